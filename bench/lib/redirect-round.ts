import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { untilCounted } from './counted-hits.ts'
import { createAccount, forEach, HopcodeClient } from './hopcode-client.ts'
import {
  BATCH_METRICS,
  CLOSED_METRICS,
  measureBatches,
  measureClosed,
  measureConnections,
  measureOpen,
  OPEN_METRICS,
  sendClosed,
  sendOwn,
} from './load-parts.ts'
import { isInstalled } from './machine.ts'
import { followLink, HitCheck, requireAnswer, requireComparable } from './redirect-check.ts'
import type { Target } from './request.ts'
import type { Figures, RoundResult } from './rounds.ts'
import type { Findings, LoadOptions, Metric } from './scenario.ts'
import { type Launch, type Server, startServer } from './server.ts'
import { BUDGET_MAX, hopcode, type Link, WITHOUT_LIMITS } from './variants.ts'

/** The metrics of a round of redirects. */
export const REDIRECT_METRICS: Metric[] = [
  ...CLOSED_METRICS,
  ...BATCH_METRICS,
  ...OPEN_METRICS,
  { key: 'openCpuMicros', label: 'open loop: CPU µs per request', digits: 2, ratio: true },
  { key: 'residentMebibytes', label: 'memory after the load, MiB', digits: 0, ratio: true },
]

/** With few codes, the hits of a commit fall on few rows, and counting them costs nothing. */
export const CODES = 5000
/** Wait after the first unknown path, when the service reads the codes in use for about 2 s. */
export const CODES_READ_MS = 6000
/** Fewer than `CODES`, so that each is gone from the cache before it is requested again. */
const COLD_CACHE = '1000'
const IMAGES_DEADLINE_MS = 600_000
const USES = ['server closes', 'visitor closes'] as const
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
  /** Of the service: then the CPU time of a load includes counting its hits. */
  dataDir?: string
  /** Headers that its responses have beside those of all. */
  addedHeaders?: readonly string[]
  /** `connections`: also with one connection for each request. `kept`: only the closed loop. */
  loops?: 'connections' | 'kept'
  /** Default: that of the code. */
  pathOf?: (link: Link) => string
  /** In place of the redirect of the code. */
  targetOf?: (link: Link) => Target
  /** Sent with each request, and forwarded to the destination. */
  query?: string
  /** Headers of visitors, which take turns. */
  visitors?: readonly Record<string, string>[]
  /** The limiter counts: the closed loop, which would use up the budget, is left out. */
  isLimited?: boolean
}

/** The service `program` with the new folder `dataDir`, one account, links and their images. */
export async function hopcodeContender(
  name: string,
  program: string[],
  dataDir: string,
): Promise<Contender & { apiKey: string; dataDir: string }> {
  const apiKey = createAccount(program, dataDir)
  const launch = { ...hopcode(program, dataDir, WITHOUT_LIMITS), name }
  await using server = await startServer(launch)
  const urls = Array.from(
    { length: CODES },
    (_, n) => `https://example.com/landing/${n}?from=print`,
  )
  const links = await new HopcodeClient(server.origin, apiKey).createLinks(urls)
  await untilDrawn(join(dataDir, 'cdn', 'qr'), links.length)
  await server.stop()
  return { name, launch, links, apiKey, dataDir }
}

/** The same links and images in another new folder. */
export function copyOf(
  from: Contender & { apiKey: string; dataDir: string },
  name: string,
  program: string[],
  dataDir: string,
): Contender & { apiKey: string; dataDir: string } {
  cpSync(from.dataDir, dataDir, { recursive: true })
  const launch = { ...hopcode(program, dataDir, WITHOUT_LIMITS), name }
  return { ...from, name, launch, dataDir }
}

/** Drawing their images would take CPU time of the first rounds. */
async function untilDrawn(folder: string, count: number): Promise<void> {
  const deadline = performance.now() + IMAGES_DEADLINE_MS
  const drawn = () => new Bun.Glob('*.png').scanSync(folder)
  while ([...drawn()].length < count) {
    if (performance.now() > deadline) throw new Error(`${folder} has not ${count} images in time`)
    await Bun.sleep(100)
  }
}

/** The same service with a cache of fewer links than are requested in turn. */
export const withColdCache = (contender: Contender, env: Record<string, string>): Contender => ({
  ...contender,
  name: 'cold',
  launch: {
    ...contender.launch,
    env: (port) => ({ ...contender.launch.env?.(port), ...env, LINK_CACHE_MAX: COLD_CACHE }),
  },
  loops: 'kept',
})

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
  const { launch, links, apiKey, dataDir, isLimited = false } = contender
  await using server = await startServer(launch)
  const client = apiKey ? new HopcodeClient(server.origin, apiKey) : undefined
  const hits = client && new HitCheck(client, links)
  await hits?.start()
  await forEach(links, async (link) => {
    requireComparable(server.name, await followLink(server, link), contender.addedHeaders)
  })
  const targets = targetsFor(contender)
  if (contender.targetOf) {
    const [first] = targets
    if (first) await requireAnswer(server, first)
    await Bun.sleep(CODES_READ_MS)
    // wrk checks only the status.
    await forEach(targets, (target) => requireAnswer(server, target))
  }
  const settle = async () => {
    if (client && dataDir) await untilCounted(client, dataDir)
  }
  const loops = { targets, hits, settle, options }
  const figures = isLimited
    ? await measureLimited(server, loops)
    : await measureLoops(server, contender.loops, loops)
  const open = contender.loops === 'kept' ? undefined : await measureRated(server, loops)
  const [anyLink] = links
  if (isLimited && anyLink) await hits?.requireCountedByLimiter(server, anyLink)
  await server.stop()
  return { figures: { ...figures, ...open?.figures } }
}

/** Each link, or each visitor with one of the links. */
export function targetsFor({ links, query, pathOf, targetOf, visitors }: Contender): Target[] {
  const plain = targetOf ? links.map(targetOf) : targetsOf(links, query, pathOf)
  if (!visitors) return plain
  return visitors.map((headers, n) => ({ ...(plain[n % plain.length] as Target), headers }))
}

interface Loops {
  targets: Target[]
  hits: HitCheck | undefined
  /** Resolves when all hits are counted. */
  settle: () => Promise<void>
  options: LoadOptions
}

/** As many requests as the server answers: one at a time, by their connections, in batches. */
async function measureLoops(
  server: Server,
  which: Contender['loops'],
  { targets, hits, settle, options }: Loops,
): Promise<Figures> {
  const { connections, seconds, warmUp } = options
  const load = { targets, connections }
  if (warmUp > 0) await sendClosed(server, { ...load, seconds: warmUp })
  await settle()
  await hits?.begin()
  const closed = await measureClosed(server, { ...load, seconds }, settle)
  await hits?.requireBetween(closed.requests, closed.requests + connections)
  const figures: Figures = { ...closed.figures }
  for (const use of which === 'connections' ? USES : []) {
    if (warmUp > 0) await sendOwn(server, { ...load, use, seconds: warmUp })
    await settle()
    await hits?.begin()
    const each = await measureConnections(server, { ...load, use, seconds }, settle)
    await hits?.requireBetween(each.requests, each.requests)
    Object.assign(figures, each.figures)
  }
  if (which === 'kept') return figures
  await hits?.begin()
  const batchSeconds = Math.min(seconds, BATCH_SECONDS_MAX)
  const batches = await measureBatches(server, { ...load, seconds: batchSeconds }, settle)
  await hits?.requireBetween(batches.requests, batches.requests)
  return { ...figures, ...batches.figures }
}

/** Only batches, and twice: the first ones warm up. */
async function measureLimited(
  server: Server,
  { targets, settle, options: { connections, seconds } }: Loops,
): Promise<Figures> {
  const load = { targets, connections, seconds, requestsMax: LIMITED_MAX }
  await measureBatches(server, load, settle)
  return (await measureBatches(server, load, settle)).figures
}

/** The same number of requests per second on every machine. */
async function measureRated(server: Server, { targets, hits, settle, options }: Loops) {
  const { connections, rate } = options
  const seconds = Math.min(options.seconds, LIMITED_MAX / rate)
  await hits?.begin()
  const cpuBefore = server.cpuSeconds()
  const open = await measureOpen(server, { targets, connections, seconds, ratePerSecond: rate })
  await settle()
  const openCpuMicros = ((server.cpuSeconds() - cpuBefore) / open.result.answered) * 1e6
  await hits?.requireExactly(sumsByLink(open.result.rightByTarget))
  const residentMebibytes = server.memory().resident
  return { figures: { ...open.figures, openCpuMicros, residentMebibytes } }
}

/** Several targets are of one link: target `n` of link `n % CODES`. */
function sumsByLink(byTarget: readonly number[]): number[] {
  const sums = new Array<number>(CODES).fill(0)
  for (const [n, count] of byTarget.entries()) sums[n % CODES] = (sums[n % CODES] ?? 0) + count
  return sums
}

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
    `Each round is a fresh process, and the ${CODES} codes are warm; their images exist.`,
    'CPU of the closed loops: all threads, until every hit is counted.',
    `Closed loop: ${connections} connections, as fast as the server answers.`,
    `Open loop: ${rate} requests/s whatever the server does, measured from when each was due.`,
    'Without limits, so that no figure depends on the speed of the machine. One variant has them.',
    'Every hit_count was compared with the redirects received, after every round.',
  ],
})
