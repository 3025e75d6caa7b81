// What does a redirect cost in hopcode, beside a bare Bun.serve route that gives the same 302?
// npm run bench -- redirect --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { isInstalled } from '../lib/machine.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
} from '../lib/redirect-round.ts'
import { alternate, medianOf, medianRatio, type Progress } from '../lib/rounds.ts'
import type { LoadOptions, Scenario, ScenarioReport } from '../lib/scenario.ts'
import { bare, hopcodeProgram, nginx } from '../lib/variants.ts'

export const redirect: Scenario = {
  name: 'redirect',
  question:
    'What does a redirect cost in hopcode, beside a bare Bun.serve route with the same 302?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<ScenarioReport> {
  using folder = new TemporaryFolder()
  const dataDir = join(folder.path, 'data')
  mkdirSync(dataDir)
  say('preparing the service and its links')
  const program = await hopcodeProgram({ fromSource: options.source })
  const service = await hopcodeContender('hopcode', program, dataDir)
  const { links } = service
  const contenders: Contender[] = [
    { name: 'bare', launch: bare(folder.path, links), links, sameHeaders: true },
    service,
  ]
  if (isInstalled('nginx')) {
    const launch = nginx(folder.path, links)
    contenders.push({ name: 'nginx', launch, links, sameHeaders: false })
  }
  const measure = (contender: Contender) => measureRedirects(contender, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  return {
    scenario: redirect.name,
    question: redirect.question,
    baseline: 'bare',
    metrics: REDIRECT_METRICS,
    variants,
    bars: [
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
        demand: { sense: '≥', bar: 0.8, stretch: 0.92 },
      },
      {
        label: 'CPU per redirect, beside a bare Bun.serve with the same answer',
        value: medianRatio(variants, 'hopcode', 'bare', 'cpuMicros'),
        unit: '×',
        digits: 2,
        isMain: true,
      },
      {
        label: `p99 of redirects at ${options.rate} requests/s`,
        value: medianOf(variants, 'hopcode', 'openP99') / 1000,
        unit: ' ms',
        digits: 2,
      },
    ],
    ...redirectFacts(options, redirect.name),
  }
}
