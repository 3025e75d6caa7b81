// What does a redirect cost, compared with a bare Bun.serve route and nginx with the same response?
// npm run bench -- redirect --seconds 3 --rounds 5
import { availableParallelism } from 'node:os'
import { aliasContenders } from '../lib/alias-contenders.ts'
import {
  atLeast,
  atMost,
  main,
  measureVariants,
  milliseconds,
  type Plan,
  ratio,
  value,
} from '../lib/figures.ts'
import { CONNECTION_METRICS } from '../lib/load-parts.ts'
import { isInstalled } from '../lib/machine.ts'
import {
  type Contender,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
  withColdCache,
  withLimiter,
} from '../lib/redirect-round.ts'
import type { Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { bare, NGINX_HEADERS, nginxMap } from '../lib/variants.ts'
import { emptyWorkspace, type Workspace } from '../lib/workspace.ts'

export const redirect: Scenario = {
  name: 'redirect',
  question: 'What does a redirect cost, compared with a bare Bun.serve route and nginx?',
  run,
}

/** Two, and as many as there are cores. */
const threadCounts = (): number[] => [...new Set([2, Math.min(8, availableParallelism())])]

/** A request finds its domain in a map. */
const DOMAIN_FIGURES = {
  'redirects/s with two domains configured, beside none': ratio(
    'two domains',
    'hopcode',
    'requestsPerSecond',
    atLeast(0.97, 1),
  ),
  'CPU per redirect with two domains configured, beside none': ratio(
    'two domains',
    'hopcode',
    'cpuMicros',
    atMost(1.03, 1),
  ),
}

/** CPU of all threads per redirect by the kind of connection, beside both servers. */
function besideBoth(hasNginx: boolean): Plan<Contender>['figures'] {
  const kinds = [
    { kind: 'kept connections', key: 'cpuMicros', bound: atMost(1.18), nginx: atMost(1.55) },
    { kind: 'one connection each, server closes', key: 'serverClosesMicros', bound: atMost(1.25) },
    {
      kind: 'one connection each, visitor closes',
      key: 'visitorClosesMicros',
      bound: atMost(1.35),
    },
    { kind: 'cold codes, kept connections', key: 'cpuMicros', of: 'cold' },
  ]
  const figures: Plan<Contender>['figures'] = {}
  for (const { kind, key, of = 'hopcode', bound, nginx } of kinds) {
    const label = `CPU per redirect, ${kind}, beside`
    figures[`${label} a bare Bun.serve`] = main(ratio(of, 'bare', key, bound))
    if (hasNginx) figures[`${label} nginx with a map`] = main(ratio(of, 'nginx', key, nginx))
  }
  return figures
}

/** The service with several settings, and two simpler servers. */
async function contendersOf(
  service: Contender & { apiKey: string },
  workspace: Workspace,
): Promise<Contender[]> {
  const { program, dataDir, temporaryPath } = workspace
  const { links, launch } = service
  const withThreads = (count: number): Contender => ({
    ...service,
    name: `${count} threads`,
    launch: { ...launch, env: (port) => ({ ...launch.env?.(port), REDIRECT_THREADS: `${count}` }) },
  })
  const nginx: Contender = {
    name: 'nginx',
    launch: nginxMap(temporaryPath, links),
    links,
    addedHeaders: NGINX_HEADERS,
    loops: 'connections',
  }
  return [
    { name: 'bare', launch: bare(temporaryPath, links), links, loops: 'connections' },
    ...(isInstalled('nginx') ? [nginx] : []),
    { ...withThreads(1), name: 'hopcode', loops: 'connections' },
    withColdCache(service, { REDIRECT_THREADS: '1' }),
    ...threadCounts().map(withThreads),
    withLimiter(service, program, dataDir),
    ...(await aliasContenders(service, workspace)),
  ]
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  say('preparing the service and its links')
  using workspace = await emptyWorkspace(options)
  const { program, dataDir } = workspace
  const service = await hopcodeContender('hopcode', program, dataDir)
  const contenders = await contendersOf(service, workspace)
  const plan: Plan<Contender> = {
    variants: contenders,
    measure: (contender) => measureRedirects(contender, options),
    baseline: 'bare',
    metrics: [...REDIRECT_METRICS, ...CONNECTION_METRICS],
    figures: {
      'redirects/s of warm codes': main(value('hopcode', 'requestsPerSecond', ' /s')),
      'the same, beside a bare Bun.serve with the same answer': main(
        ratio('hopcode', 'bare', 'requestsPerSecond', atLeast(0.88, 0.94)),
      ),
      ...besideBoth(isInstalled('nginx')),
      'p99 in the closed loop, beside a bare Bun.serve with the same answer': ratio(
        'hopcode',
        'bare',
        'closedP99',
        atMost(1.6),
      ),
      'CPU per redirect in batches with two redirect threads, beside one': ratio(
        '2 threads',
        'hopcode',
        'batchMicros',
        atMost(1.1, 1.05),
      ),
      'redirects/s in batches with two redirect threads, beside one': ratio(
        '2 threads',
        'hopcode',
        'batchPerSecond',
        atLeast(1.3, 1.5),
      ),
      'CPU per redirect in batches with the limiter, beside without': ratio(
        'with limiter',
        'hopcode',
        'batchMicros',
      ),
      'CPU per redirect of warm aliases, beside codes': ratio(
        'aliases',
        'hopcode',
        'cpuMicros',
        atMost(1.15, 1.1),
      ),
      'CPU per redirect of codes with a million aliases stored, beside none': ratio(
        'million aliases',
        'hopcode',
        'batchMicros',
        atMost(1.01, 1),
      ),
      ...(contenders.some(({ name }) => name === 'two domains') && DOMAIN_FIGURES),
      [`p99 of redirects at ${options.rate} requests/s`]: milliseconds('hopcode', 'openP99', 2),
    },
    ...redirectFacts(options),
  }
  return await measureVariants(plan, options, say)
}
