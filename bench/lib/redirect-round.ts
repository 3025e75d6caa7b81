import { createAccount, HopcodeClient } from './hopcode-client.ts'
import {
  BATCH_METRICS,
  CLOSED_METRICS,
  measureBatches,
  measureClosed,
  measureOpen,
  OPEN_METRICS,
  sendClosed,
} from './load-parts.ts'
import { isInstalled } from './machine.ts'
import { followLink, HitCheck, requireComparable } from './redirect-check.ts'
import type { Target } from './request.ts'
import type { Figures, RoundResult } from './rounds.ts'
import type { Findings, LoadOptions, Metric } from './scenario.ts'
import { type Launch, type Server, startServer } from './server.ts'
import { BUDGET_MAX, hopcode, type Link, WITHOUT_LIMITS } from './variants.ts'

/** The metrics of a round of redirects of a hundred cached links. */
export const REDIRECT_METRICS: Metric[] = [
  ...CLOSED_METRICS,
  ...BATCH_METRICS,
  ...OPEN_METRICS,
  { key: 'openCpuMicros', label: 'open loop: CPU µs per request', digits: 2, ratio: true },
  { key: 'residentMebibytes', label: 'memory after the load, MiB', digits: 0, ratio: true },
]

const CODES = 100
/** A longer load gives no better figure. */
const BATCH_SECONDS_MAX = 1

/** With the limiter, each of the three loads uses at most this part of the budget. */
const LIMITED_MAX = BUDGET_MAX / 4

/** One server to measure. */
export interface Contender {
  name: string
  launch: Launch
  links: readonly Link[]
  /** Of the service: then its hits and limits are checked. */
  apiKey?: string
  /** Default: that of the code. */
  pathOf?: (link: Link) => string
  /** Sent with each request, and forwarded to the destination. */
  query?: string
  /** Headers of visitors, which take turns. */
  visitors?: readonly Record<string, string>[]
  /** The limiter counts: the closed loop, which would use up the budget, is left out. */
  isLimited?: boolean
}

/** The service `program` with the new folder `dataDir`, one account and a hundred links. */
export async function hopcodeContender(
  name: string,
  program: string[],
  dataDir: string,
): Promise<Contender & { apiKey: string }> {
  const apiKey = createAccount(program, dataDir)
  const launch = { ...hopcode(program, dataDir, WITHOUT_LIMITS), name }
  await using server = await startServer(launch)
  const urls = Array.from(
    { length: CODES },
    (_, n) => `https://example.com/landing/${n}?from=print`,
  )
  const links = await new HopcodeClient(server.origin, apiKey).createLinks(urls)
  await server.stop()
  return { name, launch, links, apiKey }
}

/** The same service with its limits on: all requests of the open loop are one caller's. */
export const withLimiter = (
  contender: Contender,
  program: string[],
  dataDir: string,
): Contender => ({
  ...contender,
  name: 'with limiter',
  launch: { ...hopcode(program, dataDir, { REDIRECT_THREADS: '1' }), name: 'with limiter' },
  isLimited: true,
})

/** A new process: verified, warmed up, measured with all loops, checked and stopped. */
export async function measureRedirects(
  contender: Contender,
  options: LoadOptions,
): Promise<RoundResult> {
  const { launch, links, apiKey, isLimited = false } = contender
  await using server = await startServer(launch)
  const hits = apiKey ? new HitCheck(new HopcodeClient(server.origin, apiKey), links) : undefined
  await hits?.start()
  for (const link of links) {
    requireComparable(server.name, await followLink(server, link))
  }
  const loops = { targets: targetsFor(contender), hits, options }
  const closed = isLimited ? await measureLimited(server, loops) : await measureLoops(server, loops)
  const open = await measureRated(server, loops)
  const [anyLink] = links
  if (isLimited && anyLink) await hits?.requireCountedByLimiter(server, anyLink)
  await server.stop()
  return { figures: { ...closed, ...open.figures } }
}

/** Each link, or each visitor with one of the links. */
export function targetsFor({ links, query, pathOf, visitors }: Contender): Target[] {
  const plain = targetsOf(links, query, pathOf)
  if (!visitors) return plain
  return visitors.map((headers, n) => ({ ...(plain[n % plain.length] as Target), headers }))
}

interface Loops {
  targets: Target[]
  hits: HitCheck | undefined
  options: LoadOptions
}

/** As many requests as the server answers, one at a time and in batches. */
async function measureLoops(server: Server, { targets, hits, options }: Loops): Promise<Figures> {
  const { connections, seconds, warmUp } = options
  if (warmUp > 0) await sendClosed(server, { targets, connections, seconds: warmUp })
  await hits?.begin()
  const closed = await measureClosed(server, { targets, connections, seconds })
  await hits?.requireBetween(closed.requests, closed.requests + connections)
  await hits?.begin()
  const batchSeconds = Math.min(seconds, BATCH_SECONDS_MAX)
  const batches = await measureBatches(server, { targets, connections, seconds: batchSeconds })
  await hits?.requireBetween(batches.requests, batches.requests)
  return { ...closed.figures, ...batches.figures }
}

/** Only batches, and twice: the first ones warm up. */
async function measureLimited(
  server: Server,
  { targets, options: { connections, seconds } }: Loops,
): Promise<Figures> {
  const load = { targets, connections, seconds, requestsMax: LIMITED_MAX }
  await measureBatches(server, load)
  return (await measureBatches(server, load)).figures
}

/** The same number of requests per second on every machine. */
async function measureRated(server: Server, { targets, hits, options }: Loops) {
  const { connections, rate } = options
  const seconds = Math.min(options.seconds, LIMITED_MAX / rate)
  await hits?.begin()
  const cpuBefore = server.cpuSeconds()
  const open = await measureOpen(server, { targets, connections, seconds, ratePerSecond: rate })
  const openCpuMicros = ((server.cpuSeconds() - cpuBefore) / open.result.answered) * 1e6
  await hits?.requireExactly(sumsByLink(open.result.rightByTarget))
  const residentMebibytes = server.memory().resident
  return { figures: { ...open.figures, openCpuMicros, residentMebibytes } }
}

/** Several targets are of one link: target `n` of link `n % CODES`. */
const sumsByLink = (byTarget: readonly number[]): number[] =>
  Array.from({ length: CODES }, (_, link) =>
    byTarget.reduce((sum, count, n) => (n % CODES === link ? sum + count : sum), 0),
  )

export const targetsOf = (
  links: readonly Link[],
  query = '',
  pathOf = ({ code }: Link) => `/${code}`,
): Target[] =>
  links.map((link) => ({
    path: `${pathOf(link)}${query}`,
    status: 302,
    location: query === '' ? link.url : `${link.url}&${query.slice(1)}`,
  }))

/** Settings and notes of a report with such rounds. */
export const redirectFacts = ({
  connections,
  rate,
}: LoadOptions): Pick<Findings, 'settings' | 'notes'> => ({
  settings: { codes: CODES, closedLoopGenerator: isInstalled('wrk') ? 'wrk' : 'own' },
  notes: [
    'Each round is a fresh process, and the codes are warm.',
    `Closed loop: ${connections} connections, as fast as the server answers.`,
    `Open loop: ${rate} requests/s whatever the server does, measured from when each was due.`,
    'Without limits, so that no figure depends on the speed of the machine. One variant has them.',
    'Every hit_count was compared with the redirects received, after every round.',
  ],
})
