// What does a redirect cost, compared with a bare Bun.serve route with the same response?
// npm run bench -- redirect --seconds 3 --rounds 5
import { isInstalled } from '../lib/machine.ts'
import { emptyPlace } from '../lib/place.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
} from '../lib/redirect-round.ts'
import { alternate, medianOf, medianRatio, type Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { bare, nginx } from '../lib/variants.ts'

export const redirect: Scenario = {
  name: 'redirect',
  question:
    'What does a redirect cost, compared with a bare Bun.serve route with the same response?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  say('preparing the service and its links')
  using place = await emptyPlace(options)
  const { program, dataDir, temporaryPath } = place
  const service = await hopcodeContender('hopcode', program, dataDir)
  const { links } = service
  const contenders: Contender[] = [
    { name: 'bare', launch: bare(temporaryPath, links), links, sameHeaders: true },
    service,
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
