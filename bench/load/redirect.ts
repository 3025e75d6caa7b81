// What does a redirect cost, compared with a bare Bun.serve route with the same response?
// npm run bench -- redirect --seconds 3 --rounds 5
import { availableParallelism } from 'node:os'
import { aliasContenders, aliasFigures } from '../lib/alias-contenders.ts'
import { isInstalled } from '../lib/machine.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
  withLimiter,
} from '../lib/redirect-round.ts'
import { alternate, medianOf, medianRatio, type Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { bare, nginx } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

export const redirect: Scenario = {
  name: 'redirect',
  question:
    'What does a redirect cost, compared with a bare Bun.serve route with the same response?',
  run,
}

/** Two, and as many as there are cores. */
const threadCounts = (): number[] => [...new Set([2, Math.min(8, availableParallelism())])]

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  say('preparing the service and its links')
  using workspace = await emptyWorkspace(options)
  const { program, dataDir, temporaryPath } = workspace
  const service = await hopcodeContender('hopcode', program, dataDir)
  const { links, launch } = service
  const withThreads = (count: number): Contender => ({
    ...service,
    name: `${count} threads`,
    launch: { ...launch, env: (port) => ({ ...launch.env?.(port), REDIRECT_THREADS: `${count}` }) },
  })
  const contenders: Contender[] = [
    { name: 'bare', launch: bare(temporaryPath, links), links, sameHeaders: true },
    { ...withThreads(1), name: 'hopcode' },
    ...threadCounts().map(withThreads),
    withLimiter(service, program, dataDir),
    ...(await aliasContenders(service, workspace)),
  ]
  if (isInstalled('nginx')) {
    const launch = nginx(temporaryPath, links)
    contenders.push({ name: 'nginx', launch, links, sameHeaders: false })
  }
  const measure = (contender: Contender) => measureRedirects(contender, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  return {
    baseline: 'bare',
    metrics: REDIRECT_METRICS,
    variants,
    summary: [
      {
        label: 'redirects/s of warm codes',
        value: medianOf(variants, 'hopcode', 'requestsPerSecond'),
        unit: ' /s',
        digits: 0,
        isMain: true,
      },
      {
        label: 'the same, beside a bare Bun.serve with the same answer',
        value: medianRatio(variants, 'hopcode', 'bare', 'requestsPerSecond'),
        unit: '×',
        digits: 2,
        isMain: true,
        target: { sense: '≥', value: 0.88, stretch: 0.94 },
      },
      {
        label: 'CPU per redirect, beside a bare Bun.serve with the same answer',
        value: medianRatio(variants, 'hopcode', 'bare', 'cpuMicros'),
        unit: '×',
        digits: 2,
        isMain: true,
        target: { sense: '≤', value: 1.15, stretch: 1.06 },
      },
      {
        label: 'p99 in the closed loop, beside a bare Bun.serve with the same answer',
        value: medianRatio(variants, 'hopcode', 'bare', 'closedP99'),
        unit: '×',
        digits: 2,
        target: { sense: '≤', value: 1.6, stretch: 1.3 },
      },
      {
        label: 'CPU per redirect in batches with two redirect threads, beside one',
        value: medianRatio(variants, '2 threads', 'hopcode', 'batchMicros'),
        unit: '×',
        digits: 2,
        target: { sense: '≤', value: 1.1, stretch: 1.05 },
      },
      {
        label: 'redirects/s in batches with two redirect threads, beside one',
        value: medianRatio(variants, '2 threads', 'hopcode', 'batchPerSecond'),
        unit: '×',
        digits: 2,
        target: { sense: '≥', value: 1.3, stretch: 1.5 },
      },
      {
        label: 'CPU per redirect in batches with the limiter, beside without',
        value: medianRatio(variants, 'with limiter', 'hopcode', 'batchMicros'),
        unit: '×',
        digits: 2,
      },
      ...aliasFigures(variants),
      {
        label: `p99 of redirects at ${options.rate} requests/s`,
        value: medianOf(variants, 'hopcode', 'openP99') / 1000,
        unit: ' ms',
        digits: 2,
      },
    ],
    ...redirectFacts(options),
  }
}
