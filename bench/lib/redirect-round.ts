import { type BatchLoopFigures, batchLoop } from './batch-loop.ts'
import { CLOSED_METRICS, measureClosed, sendClosed } from './closed-part.ts'
import { createAccount, HopcodeClient } from './hopcode-client.ts'
import { isInstalled } from './machine.ts'
import { measureOpen, OPEN_METRICS } from './open-part.ts'
import type { Target } from './raw-client.ts'
import { followLink, HitCheck, requireBudget, requireNoOtherHeaders } from './redirect-check.ts'
import type { Figures, RoundResult } from './rounds.ts'
import type { LoadOptions, Metric, ScenarioReport } from './scenario.ts'
import { HOSTNAME, type Launch, type Server, startServer } from './server.ts'
import { BUDGET_MAX, hopcode, type Link } from './variants.ts'

/** The metrics of a round of redirects of a hundred cached links. */
export const REDIRECT_METRICS: Metric[] = [
  ...CLOSED_METRICS,
  { key: 'batchPerSecond', label: 'batches of 50: requests/s', digits: 0, ratio: true },
  { key: 'batchMicros', label: 'batches of 50: CPU µs per request', digits: 2, ratio: true },
  { key: 'batchLoadMicros', label: '… and of the generator', digits: 2, ratio: false },
  ...OPEN_METRICS,
  { key: 'openCpuMicros', label: 'open loop: CPU µs per request', digits: 2, ratio: true },
  { key: 'residentMebibytes', label: 'memory after the load, MiB', digits: 0, ratio: true },
]

const CODES = 100
/** Pipelined requests: the generator then needs much less CPU than the server. */
const PIPELINE_DEPTH = 50
/** A longer load would use up the budget of the limiter. */
const BATCH_SECONDS_MAX = 1

/** One server to measure. */
export interface Contender {
  name: string
  launch: Launch
  links: readonly Link[]
  /** Of the service: then its hits and limits are checked. */
  apiKey?: string
  /** Whether its responses must have no other headers. */
  sameHeaders: boolean
}

/** The service `program` with the new folder `dataDir`, one account and a hundred links. */
export async function hopcodeContender(
  name: string,
  program: string[],
  dataDir: string,
): Promise<Contender & { apiKey: string }> {
  const apiKey = createAccount(program, dataDir)
  const launch = { ...hopcode(program, dataDir), name }
  await using server = await startServer(launch)
  const urls = Array.from(
    { length: CODES },
    (_, n) => `https://example.com/landing/${n}?from=print`,
  )
  const links = await new HopcodeClient(server.origin, apiKey).createLinks(urls)
  await server.stop()
  return { name, launch, links, apiKey, sameHeaders: true }
}

/** A new process: verified, warmed up, measured with both loops, checked and stopped. */
export async function measureRedirects(
  { launch, links, apiKey, sameHeaders }: Contender,
  options: LoadOptions,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const hits = apiKey && new HitCheck(new HopcodeClient(server.origin, apiKey), links)
  if (hits) await hits.start()
  for (const link of links) {
    const headers = await followLink(server, link)
    requireBudget(server.name, headers)
    if (sameHeaders) requireNoOtherHeaders(server.name, headers)
  }
  const { connections, seconds, warmUp } = options
  const targets = targetsOf(links)
  if (warmUp > 0) await sendClosed(server, { targets, connections, seconds: warmUp })

  if (hits) await hits.begin()
  const closed = await measureClosed(server, { targets, connections, seconds })
  if (hits) await hits.requireBetween(closed.requests, closed.requests + connections)

  if (hits) await hits.begin()
  const batchSeconds = Math.min(seconds, BATCH_SECONDS_MAX)
  const load = { targets, connections, seconds: batchSeconds }
  const batches = await measureBatches(server, load)
  if (hits) await hits.requireBetween(batches.requests, batches.requests)

  if (hits) await hits.begin()
  const cpuBefore = server.cpuSeconds()
  const rated = { targets, connections, seconds, ratePerSecond: options.rate }
  const open = await measureOpen(server, rated)
  const openCpuMicros = ((server.cpuSeconds() - cpuBefore) / open.result.answered) * 1e6
  if (hits) await hits.requireExactly(open.result.rightByTarget)

  const residentMebibytes = server.memory().resident
  const [anyLink] = links
  if (hits && anyLink) await hits.requireCountedByLimiter(server, anyLink)
  await server.stop()
  const figures = {
    ...closed.figures,
    ...batches.figures,
    ...open.figures,
    openCpuMicros,
    residentMebibytes,
  }
  return { figures, latency: open.latency }
}

async function measureBatches(
  server: Server,
  { targets, connections, seconds }: { targets: Target[]; connections: number; seconds: number },
): Promise<{ figures: Figures; requests: number }> {
  const { port } = server
  const load = { connections, pipelineDepth: PIPELINE_DEPTH, seconds, sliceSeconds: seconds }
  const cpuBefore = server.cpuSeconds()
  const result = await batchLoop({ hostname: HOSTNAME, servers: [{ port, targets }], ...load })
  const cpu = server.cpuSeconds() - cpuBefore
  const { requests, seconds: taken } = result.figures[0] as BatchLoopFigures
  const figures = {
    batchPerSecond: requests / taken,
    batchMicros: (cpu / requests) * 1e6,
    batchLoadMicros: (result.cpuSeconds / requests) * 1e6,
  }
  return { figures, requests }
}

export const targetsOf = (links: readonly Link[]): Target[] =>
  links.map(({ code, url }) => ({ path: `/${code}`, status: 302, location: url }))

/** Settings, notes and plot title of a report with such rounds. */
export const redirectFacts = (
  { seconds, rounds, warmUp, connections, rate, source }: LoadOptions,
  name: string,
): Pick<ScenarioReport, 'settings' | 'notes' | 'plot'> => ({
  settings: {
    program: source ? 'source' : 'binary',
    codes: CODES,
    seconds,
    rounds,
    warmUp,
    connections,
    rate,
    closedLoopGenerator: isInstalled('wrk') ? 'wrk' : 'own',
  },
  plot: `${name}: latency at ${rate} requests/s`,
  notes: [
    'Each round is a fresh process, and the codes are warm.',
    `Closed loop: ${connections} connections, as fast as the server answers.`,
    `Open loop: ${rate} requests/s whatever the server does, measured from when each was due.`,
    `The limiter is on: it counts all requests as one caller's, with ${BUDGET_MAX} a minute.`,
    'Every hit_count was compared with the redirects received, after every round.',
  ],
})
