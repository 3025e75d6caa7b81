// What does a cluster cost a host, how late are the others, and how fast does a host catch up?
// npm run bench -- cluster --seconds 3 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { PostgresServer } from '../../test/support/postgres.ts'
import { BULK_ITEMS, bulkTargets } from '../lib/bulk-load.ts'
import { ClusterHosts } from '../lib/cluster-hosts.ts'
import { atLeast, atMost, measureVariants, type Plan, ratio, value } from '../lib/figures.ts'
import { accountHeaders, createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { measureClosed, measureOpen, sendClosed } from '../lib/load-parts.ts'
import { targetsOf } from '../lib/redirect-round.ts'
import type { Target } from '../lib/request.ts'
import type { Figures, Progress, RoundResult, VariantResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario, SummaryFigure } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import { addTurns, TURN_METRICS, TURN_NOTE } from '../lib/short-turns.ts'
import { hopcode, hopcodeProgram, WITHOUT_LIMITS } from '../lib/variants.ts'
import { millionWorkspace } from '../lib/workspace.ts'

const URLS = Array.from({ length: 100 }, (_, n) => `https://example.com/landing/${n}`)
const BULK_CONNECTIONS = 2
/** Prepared per second: more than any machine needs, so that none is sent twice. */
const BULKS_PER_SECOND = 60
/** Creations; after each, the new link is requested from the other hosts. */
const STALENESS_PROBES = 300
const STALENESS_POLL_MS = 1
const STALENESS_MAX_MS = 5000

const METRICS: Metric[] = [
  { key: 'redirects', label: 'redirects/s', digits: 0, ratio: true },
  { key: 'cpuMicros', label: 'CPU µs per redirect', digits: 2, ratio: true },
  ...TURN_METRICS,
  { key: 'openP99', label: 'redirect at the fixed rate: p99, µs', digits: 0, ratio: true },
  { key: 'creates', label: 'links/s one by one', digits: 0, ratio: true },
  { key: 'createP99', label: 'one of them: p99, µs', digits: 0, ratio: true },
  { key: 'bulk', label: 'links/s in bulks of 1,000', digits: 0, ratio: true },
  { key: 'staleP99', label: 'staleness on other hosts: p99, ms', digits: 1, ratio: false },
  { key: 'staleMax', label: 'staleness on other hosts: maximum, ms', digits: 1, ratio: false },
  { key: 'catchUp', label: 'catch-up, links/s', digits: 0, ratio: false },
  { key: 'joinSeconds', label: 'join with a million links, s', digits: 1, ratio: false },
]

interface Variant {
  name: string
  /** 0: without a cluster. */
  hosts: number
}

export const cluster: Scenario = {
  name: 'cluster',
  question: 'What does a cluster cost a host, and how late are the others?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  const program = await hopcodeProgram(options)
  await using postgres = await PostgresServer.start()
  const plan: Plan<Variant> = {
    variants: [
      { name: 'alone', hosts: 0 },
      { name: 'one host', hosts: 1 },
      { name: 'three hosts', hosts: 3 },
    ],
    measure: ({ hosts }) => measureRound(program, postgres, hosts, options),
    finish: async (variants) => {
      await measureBeside(program, postgres, options, { variants, say })
      say('joining with a million links')
      const joinSeconds = await measureJoin(options, postgres, say)
      variants.push({ name: 'join', rounds: [{ joinSeconds }] })
    },
    baseline: 'alone',
    metrics: METRICS,
    figures: FIGURES,
    notes: [
      'PostgreSQL, all hosts and the generator share this machine; each host needs one of its own.',
      'alone: without CLUSTER_URL. one host: with it. three hosts: the first gets all requests.',
      TURN_NOTE,
      'Staleness: from the answer to a creation until another host redirects, asked every ' +
        `${STALENESS_POLL_MS} ms.`,
      'Catch-up: links created while a host was stopped, by the seconds from its start to ready, ' +
        'less those of a start with nothing to catch up.',
      'join: hopcode backup --for-join - | hopcode cluster join -, and the start until ready.',
    ],
  }
  return await measureVariants(plan, options, say)
}

const three = (key: string, unit: string, digits: number, target: SummaryFigure['target']) =>
  value('three hosts', key, unit, digits, target)

const FIGURES: Plan<Variant>['figures'] = {
  'CPU per redirect with CLUSTER_URL': ratio('one host', 'alone', 'turnMicros'),
  'redirects/s with CLUSTER_URL': ratio('one host', 'alone', 'turnRedirects', atLeast(0.98)),
  'p99 of redirects with CLUSTER_URL': ratio('one host', 'alone', 'turnP99', atMost(1.02)),
  'durable links/s one by one with CLUSTER_URL': ratio(
    'one host',
    'alone',
    'creates',
    atLeast(0.5),
  ),
  'durable links/s one by one with three hosts on this machine': ratio(
    'three hosts',
    'alone',
    'creates',
  ),
  'durable links/s in bulks with CLUSTER_URL': ratio('one host', 'alone', 'bulk', atLeast(0.5)),
  'durable links/s in bulks with three hosts on this machine': ratio(
    'three hosts',
    'alone',
    'bulk',
  ),
  'staleness of other hosts, p99': three('staleP99', ' ms', 1, atMost(50)),
  'catch-up of a host that was stopped': three('catchUp', ' links/s', 0, atLeast(10_000)),
  'joining with a million links': value('join', 'joinSeconds', ' s', 1, atMost(60)),
}

async function measureRound(
  program: string[],
  postgres: PostgresServer,
  count: number,
  options: LoadOptions,
): Promise<RoundResult> {
  using temporary = new TemporaryFolder()
  const dataDir = join(temporary.path, 'host-0')
  mkdirSync(dataDir)
  const apiKey = createAccount(program, dataDir)
  if (count === 0) {
    await using server = await startServer(hopcode(program, dataDir, WITHOUT_LIMITS))
    const figures = await measureHost(server, apiKey, options)
    await server.stop()
    return { figures }
  }
  const hosts = await ClusterHosts.start(program, { dataDir, folder: temporary.path, postgres })
  try {
    for (let host = 1; host < count; host++) await hosts.join(dataDir)
    const figures = await measureHost(hosts.servers[0] as Server, apiKey, options)
    if (count === 1) return { figures }
    const stale = await measureStaleness(hosts.servers, apiKey)
    return { figures: { ...figures, ...stale, ...(await measureCatchUp(hosts, apiKey, options)) } }
  } finally {
    await hosts.stop()
  }
}

/** Adds what redirects cost with and without a cluster to the rounds of both. */
async function measureBeside(
  program: string[],
  postgres: PostgresServer,
  options: LoadOptions,
  results: { variants: readonly VariantResult[]; say: Progress },
): Promise<void> {
  using temporary = new TemporaryFolder()
  const folder = temporary.path
  const aloneDir = join(folder, 'alone')
  const dataDir = join(folder, 'host-0')
  const [aloneKey, apiKey] = [aloneDir, dataDir].map((name) => {
    mkdirSync(name)
    return createAccount(program, name)
  }) as [string, string]
  await using alone = await startServer(hopcode(program, aloneDir, WITHOUT_LIMITS))
  const hosts = await ClusterHosts.start(program, { dataDir, folder, postgres })
  try {
    const host = hosts.servers[0] as Server
    const services = [
      { name: 'alone', server: alone, targets: await createTargets(alone, aloneKey) },
      { name: 'one host', server: host, targets: await createTargets(host, apiKey) },
    ]
    await addTurns(services, options, results)
    await alone.stop()
  } finally {
    await hosts.stop()
  }
}

const createTargets = async ({ origin }: Server, apiKey: string): Promise<Target[]> =>
  targetsOf(await new HopcodeClient(origin, apiKey).createLinks(URLS))

/** Redirects, creations one by one, and bulks. */
async function measureHost(
  server: Server,
  apiKey: string,
  { connections, seconds, warmUp, rate }: LoadOptions,
): Promise<Figures> {
  const targets = await createTargets(server, apiKey)
  if (warmUp > 0) await sendClosed(server, { targets, connections, seconds: warmUp })
  const redirects = await measureClosed(server, { targets, connections, seconds })
  const open = await measureOpen(server, { targets, connections, seconds, ratePerSecond: rate })
  const create = (part: string): Target => ({
    method: 'POST',
    path: '/api/shorten',
    headers: accountHeaders(apiKey),
    body: JSON.stringify({ url: `https://www.example.com/${part}/article-{number}?from=mail` }),
    status: 201,
  })
  await sendClosed(server, { targets: [create('warm-up')], connections, seconds: warmUp || 0.5 })
  const creates = await measureClosed(server, { targets: [create('timed')], connections, seconds })
  const bulk = await measureBulk(server, apiKey, seconds, 1)
  return {
    redirects: redirects.figures.requestsPerSecond ?? Number.NaN,
    cpuMicros: redirects.figures.cpuMicros ?? Number.NaN,
    openP99: open.figures.openP99 ?? Number.NaN,
    creates: creates.figures.requestsPerSecond ?? Number.NaN,
    createP99: creates.figures.closedP99 ?? Number.NaN,
    bulk: (bulk.figures.requestsPerSecond ?? Number.NaN) * BULK_ITEMS,
  }
}

function measureBulk(server: Server, apiKey: string, seconds: number, series: number) {
  const targets = bulkTargets(apiKey, series, Math.ceil(BULKS_PER_SECOND * seconds))
  return measureClosed(server, { targets, connections: BULK_CONNECTIONS, seconds })
}

/** Milliseconds from the answer to a creation until each other host redirects. */
async function measureStaleness(servers: readonly Server[], apiKey: string): Promise<Figures> {
  const [first, ...others] = servers as [Server, ...Server[]]
  const client = new HopcodeClient(first.origin, apiKey)
  const times: number[] = []
  for (let n = 0; n < STALENESS_PROBES; n++) {
    const [link] = await client.createLinks([`https://example.com/stale/${n}`])
    const answeredAt = performance.now()
    const seen = others.map(async ({ origin }) => {
      while (performance.now() - answeredAt < STALENESS_MAX_MS) {
        const askedAt = performance.now()
        const { status } = await fetch(`${origin}/${link?.code}`, { redirect: 'manual' })
        // Already there when it was asked first: no later than the answer itself.
        if (status === 302) return askedAt - answeredAt
        await Bun.sleep(STALENESS_POLL_MS)
      }
      throw new Error(`${link?.code} never appeared on another host`)
    })
    times.push(...(await Promise.all(seen)))
  }
  const sorted = times.toSorted((a, b) => a - b)
  const staleP99 = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
  return { staleP99, staleMax: sorted.at(-1) ?? Number.NaN }
}

/** The last host is stopped while the first one creates links. */
async function measureCatchUp(
  hosts: ClusterHosts,
  apiKey: string,
  { seconds }: LoadOptions,
): Promise<Figures> {
  const restartSeconds = await restartLast(hosts, async () => {})
  let links = 0
  const elapsed = await restartLast(hosts, async () => {
    const first = hosts.servers[0] as Server
    links = (await measureBulk(first, apiKey, seconds, 2)).requests * BULK_ITEMS
  })
  return { catchUp: links / (elapsed - restartSeconds) }
}

/** Seconds from the start of the last host until it is ready. `meanwhile` runs before it. */
async function restartLast(hosts: ClusterHosts, meanwhile: () => Promise<void>): Promise<number> {
  const last = hosts.servers.pop() as Server
  await last.stop()
  await meanwhile()
  const startedAt = performance.now()
  hosts.servers.push(await startServer(hosts.launch(hosts.dataDirOf(hosts.servers.length))))
  return (performance.now() - startedAt) / 1000
}

async function measureJoin(
  options: LoadOptions,
  postgres: PostgresServer,
  say: Progress,
): Promise<number> {
  using workspace = await millionWorkspace(options, say)
  const { program, dataDir, temporaryPath: folder } = workspace
  const hosts = await ClusterHosts.start(program, { dataDir, folder, postgres })
  try {
    return await hosts.join(dataDir)
  } finally {
    await hosts.stop()
  }
}
