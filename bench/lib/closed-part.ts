import { type ClosedLoopFigures, type ClosedLoopOptions, ownClosedLoop } from './closed-loop.ts'
import { CORES, isInstalled } from './machine.ts'
import { machineBusySeconds } from './process-stats.ts'
import type { Figures } from './rounds.ts'
import type { Metric } from './scenario.ts'
import { HOSTNAME, type Server } from './server.ts'
import { fitsWrk, wrkClosedLoop } from './wrk.ts'

/** A closed loop without the server's address. */
type ClosedLoad = Omit<ClosedLoopOptions, 'hostname' | 'port'>

/** The metrics of `measureClosed`. */
export const CLOSED_METRICS: Metric[] = [
  { key: 'requestsPerSecond', label: 'closed loop: requests/s', digits: 0, ratio: true },
  { key: 'cpuMicros', label: 'closed loop: CPU µs per request', digits: 2, ratio: true },
  { key: 'controlMicros', label: '… of them on the control thread', digits: 2, ratio: true },
  { key: 'closedP50', label: 'closed loop: p50, µs', digits: 0, ratio: true },
  { key: 'closedP99', label: 'closed loop: p99, µs', digits: 0, ratio: true },
  { key: 'othersPercent', label: 'other work on the machine, %', digits: 1, ratio: false },
]

/**
 * Sends requests as fast as the server answers them. Uses wrk if it is installed and can check the
 * responses, because it takes less CPU time than our own generator.
 */
export function closedLoop(options: ClosedLoopOptions): Promise<ClosedLoopFigures> {
  return isInstalled('wrk') && fitsWrk(options.targets)
    ? wrkClosedLoop(options)
    : ownClosedLoop(options)
}

/** Sends a closed loop. Throws if the generator found a wrong response. */
export async function sendClosed(server: Server, load: ClosedLoad): Promise<ClosedLoopFigures> {
  const result = await closedLoop({ hostname: HOSTNAME, port: server.port, ...load })
  if (result.failed === 0) return result
  const first = load.targets[0]?.path
  throw new Error(
    `${server.name}: ${result.failed} of ${result.requests} requests failed (${first}, …)`,
  )
}

/** Sends a closed loop and measures its cost for the server. */
export async function measureClosed(
  server: Server,
  load: ClosedLoad,
): Promise<{ figures: Figures; requests: number }> {
  const busyBefore = machineBusySeconds()
  const startedAt = performance.now()
  const cpuBefore = server.cpuSeconds()
  const controlBefore = server.controlThreadSeconds()
  const result = await sendClosed(server, load)
  const cpu = server.cpuSeconds() - cpuBefore
  const coreSeconds = ((performance.now() - startedAt) / 1000) * CORES
  const others = machineBusySeconds() - busyBefore - cpu - result.cpuSeconds
  const figures = {
    requestsPerSecond: result.requests / result.seconds,
    cpuMicros: (cpu / result.requests) * 1e6,
    controlMicros: ((server.controlThreadSeconds() - controlBefore) / result.requests) * 1e6,
    closedP50: result.p50,
    closedP99: result.p99,
    othersPercent: Math.max(0, (others / coreSeconds) * 100),
  }
  return { figures, requests: result.requests }
}
