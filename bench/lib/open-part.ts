import { Histogram } from './histogram.ts'
import { type OpenLoopOptions, type OpenLoopResult, openLoopProcess } from './open-loop.ts'
import type { Figures } from './rounds.ts'
import type { Metric } from './scenario.ts'
import { HOSTNAME, type Server } from './server.ts'
import { requireFaultless } from './tally.ts'

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

interface OpenPart {
  figures: Figures
  result: OpenLoopResult
}

/** Sends an open loop. Throws if a response is missing or wrong, or if it was saturated. */
export async function measureOpen(
  server: Server,
  load: Omit<OpenLoopOptions, 'hostname' | 'port'>,
): Promise<OpenPart> {
  const { result } = await openLoopProcess({ hostname: HOSTNAME, port: server.port, ...load })
  requireFaultless(result, `${server.name}, open loop`)
  if (result.saturated) {
    throw new Error(`${server.name} cannot keep up with ${load.ratePerSecond} requests/s`)
  }
  const latency = Histogram.fromJson(result.latency)
  const figures = {
    openP50: latency.percentile(50) / 1000,
    openP99: latency.percentile(99) / 1000,
    openP999: latency.percentile(99.9) / 1000,
    latenessP99: Histogram.fromJson(result.lateness).percentile(99) / 1000,
  }
  return { figures, result }
}

/** Requests per second, more than any generator can send. */
const BEYOND_ANY_PEAK = 500_000
/** A longer load gives no better figure. */
const PEAK_SECONDS_MAX = 10

/**
 * Requests per second that the generator of the open loop reaches when far more are due. Throws if
 * a response is wrong.
 */
export async function measurePeak(
  server: Server,
  load: Pick<OpenLoopOptions, 'targets' | 'connections' | 'seconds'>,
): Promise<number> {
  const seconds = Math.min(load.seconds, PEAK_SECONDS_MAX)
  const { result } = await openLoopProcess({
    hostname: HOSTNAME,
    port: server.port,
    sleepMs: SLEEP_MS,
    ...load,
    seconds,
    ratePerSecond: BEYOND_ANY_PEAK,
    backlogMax: BEYOND_ANY_PEAK * seconds,
    drainSeconds: 0,
  })
  requireFaultless({ ...result, unanswered: 0, unsent: 0 }, `${server.name}, at its peak`)
  return Math.round(result.answered / result.seconds)
}
