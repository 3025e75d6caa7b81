import {
  type ClosedLoad,
  type ClosedResult,
  generateLoad,
  type LoadResult,
  type OpenLoad,
  requireFaultless,
} from './load.ts'
import { CORES, isInstalled } from './machine.ts'
import { machineBusySeconds } from './process-stats.ts'
import type { Target } from './request.ts'
import type { Figures } from './rounds.ts'
import type { Metric } from './scenario.ts'
import type { Server } from './server.ts'
import { fitsWrk, wrkLoad } from './wrk.ts'

/** The metrics of `measureClosed`. */
export const CLOSED_METRICS: Metric[] = [
  { key: 'requestsPerSecond', label: 'closed loop: requests/s', digits: 0, ratio: true },
  { key: 'cpuMicros', label: 'closed loop: CPU µs per request', digits: 2, ratio: true },
  { key: 'controlMicros', label: '… of them on the control thread', digits: 2, ratio: true },
  { key: 'closedP50', label: 'closed loop: p50, µs', digits: 0, ratio: true },
  { key: 'closedP99', label: 'closed loop: p99, µs', digits: 0, ratio: true },
  { key: 'othersPercent', label: 'other work on the machine, %', digits: 1, ratio: false },
]

/** The metrics of `measureBatches`. */
export const BATCH_METRICS: Metric[] = [
  { key: 'batchPerSecond', label: 'batches of 50: requests/s', digits: 0, ratio: true },
  { key: 'batchMicros', label: 'batches of 50: CPU µs per request', digits: 2, ratio: true },
  { key: 'batchLoadMicros', label: '… and of the generator', digits: 2, ratio: false },
]

/** The metrics of `measureOpen`. */
export const OPEN_METRICS: Metric[] = [
  { key: 'openP50', label: 'open loop: p50, µs', digits: 0, ratio: true },
  { key: 'openP99', label: 'open loop: p99, µs', digits: 0, ratio: true },
  { key: 'openP999', label: 'open loop: p99.9, µs', digits: 0, ratio: true },
  { key: 'latenessP99', label: 'open loop: own lateness p99, µs', digits: 0, ratio: false },
]

/**
 * `sleepMs` for services that do more than redirects: a polling generator uses a whole core, which
 * the other threads need on a small machine. Latencies below half a millisecond are then the
 * generator's own.
 */
export const SLEEP_MS = 0.1
/** The generator then needs much less CPU than the server. */
const BATCH = 50
/** Requests per second, more than any generator can send. */
const BEYOND_ANY_PEAK = 500_000
/** A longer load gives no better figure. */
const PEAK_SECONDS_MAX = 10

/** The load of one server. */
type With<Load> = Load & { targets: Target[] }

/** Sends a load with our own generator. Throws if a response is missing or wrong. */
export async function sendOwn(
  { port, name }: Server,
  { targets, ...load }: With<ClosedLoad | OpenLoad>,
): Promise<LoadResult> {
  const result = await generateLoad({ port, targets }, load)
  requireFaultless(result, `${name}, ${targets[0]?.path}, …`)
  return result
}

/**
 * Sends requests as fast as the server answers them, with wrk if it is installed and can check the
 * responses, because it takes less CPU time than our own generator. Throws if a response is wrong.
 */
export async function sendClosed(server: Server, load: With<ClosedLoad>): Promise<ClosedResult> {
  if (!isInstalled('wrk') || !fitsWrk(load.targets)) return await sendOwn(server, load)
  const result = await wrkLoad({ port: server.port, targets: load.targets }, load)
  if (result.wrong === 0) return result
  const first = load.targets[0]?.path
  throw new Error(`${server.name}: ${result.wrong} of ${result.answered} failed (${first}, …)`)
}

/** The metrics of `measureConnections`, by the side that closes. */
const CLOSERS = { 'server closes': 'serverCloses', 'visitor closes': 'visitorCloses' } as const

export const CONNECTION_METRICS: Metric[] = Object.entries(CLOSERS).flatMap(([use, key]) => [
  {
    key: `${key}PerSecond`,
    label: `one connection each, ${use}: requests/s`,
    digits: 0,
    ratio: true,
  },
  { key: `${key}Micros`, label: '… CPU µs per request', digits: 2, ratio: true },
  { key: `${key}P99`, label: '… p99 with the connection, µs', digits: 0, ratio: true },
])

/**
 * A closed loop with one connection for each request. `settle`: resolves when the server has done
 * all work of the requests.
 */
export async function measureConnections(
  server: Server,
  load: With<ClosedLoad> & { use: keyof typeof CLOSERS },
  settle = async () => {},
): Promise<{ figures: Figures; requests: number }> {
  const key = CLOSERS[load.use]
  const cpuBefore = server.cpuSeconds()
  const { answered, seconds, latency } = await sendOwn(server, load)
  await settle()
  const figures = {
    [`${key}PerSecond`]: answered / seconds,
    [`${key}Micros`]: ((server.cpuSeconds() - cpuBefore) / answered) * 1e6,
    [`${key}P99`]: latency.p99,
  }
  return { figures, requests: answered }
}

/** Sends a closed loop and measures its cost for the server. `settle`: as above. */
export async function measureClosed(
  server: Server,
  load: With<ClosedLoad>,
  settle = async () => {},
) {
  const busyBefore = machineBusySeconds()
  const startedAt = performance.now()
  const cpuBefore = server.cpuSeconds()
  const controlBefore = server.controlThreadSeconds()
  const { answered, seconds, latency, cpuSeconds } = await sendClosed(server, load)
  await settle()
  const cpu = server.cpuSeconds() - cpuBefore
  const coreSeconds = ((performance.now() - startedAt) / 1000) * CORES
  const others = machineBusySeconds() - busyBefore - cpu - cpuSeconds
  const figures = {
    requestsPerSecond: answered / seconds,
    cpuMicros: (cpu / answered) * 1e6,
    controlMicros: ((server.controlThreadSeconds() - controlBefore) / answered) * 1e6,
    closedP50: latency.p50,
    closedP99: latency.p99,
    othersPercent: Math.max(0, (others / coreSeconds) * 100),
  }
  return { figures, requests: answered }
}

/** A closed loop in batches. `settle`: as above. */
export async function measureBatches(
  server: Server,
  load: With<ClosedLoad>,
  settle = async () => {},
): Promise<{ figures: Figures; requests: number }> {
  const cpuBefore = server.cpuSeconds()
  const { answered, seconds, cpuSeconds } = await sendOwn(server, { ...load, batch: BATCH })
  await settle()
  const figures = {
    batchPerSecond: answered / seconds,
    batchMicros: ((server.cpuSeconds() - cpuBefore) / answered) * 1e6,
    batchLoadMicros: (cpuSeconds / answered) * 1e6,
  }
  return { figures, requests: answered }
}

/** Sends an open loop. Throws if a response is missing or wrong, or if the server falls behind. */
export async function measureOpen(
  server: Server,
  load: With<OpenLoad>,
): Promise<{ figures: Figures; result: LoadResult }> {
  const result = await sendOwn(server, load)
  const { p50: openP50, p99: openP99, p999: openP999 } = result.latency
  return { figures: { openP50, openP99, openP999, latenessP99: result.lateness.p99 }, result }
}

/**
 * Requests per second that the generator of the open loop reaches when far more are due. Throws if
 * a response is wrong.
 */
export async function measurePeak(
  { port, name }: Server,
  { targets, connections, seconds: wanted }: With<ClosedLoad>,
): Promise<number> {
  const seconds = Math.min(wanted, PEAK_SECONDS_MAX)
  const result = await generateLoad(
    { port, targets },
    {
      connections,
      seconds,
      sleepMs: SLEEP_MS,
      ratePerSecond: BEYOND_ANY_PEAK,
      backlogMax: BEYOND_ANY_PEAK * seconds,
      drainSeconds: 0,
    },
  )
  requireFaultless({ ...result, unanswered: 0, unsent: 0 }, `${name}, at its peak`)
  return Math.round(result.answered / result.seconds)
}
