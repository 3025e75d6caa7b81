import { batchLoop } from './batch-loop.ts'
import { Histogram } from './histogram.ts'
import type { Target } from './raw-client.ts'
import type { Figures } from './rounds.ts'
import type { Metric } from './scenario.ts'
import { HOSTNAME, type Server } from './server.ts'

export const TURN_SECONDS = 0.1

/** The metrics of `measureTurns`. */
export const TURN_METRICS: Metric[] = [
  { key: 'turnRedirects', label: 'in short turns: redirects/s', digits: 0, ratio: true },
  { key: 'turnMicros', label: 'in short turns: CPU µs per redirect', digits: 2, ratio: true },
  { key: 'turnP99', label: 'in short turns: p99, µs', digits: 0, ratio: true },
]

/**
 * Compares running services that differ by less than the machine does from one second to the next:
 * each gets short, alternating time slices of a closed loop, for `seconds` in total. CPU time that
 * a service uses between its slices is included.
 */
export async function measureTurns(
  services: readonly { server: Server; targets: Target[] }[],
  { connections, seconds }: { connections: number; seconds: number },
): Promise<Figures[]> {
  const cpuBefore = services.map(({ server }) => server.cpuSeconds())
  const { figures } = await batchLoop({
    hostname: HOSTNAME,
    servers: services.map(({ server, targets }) => ({ port: server.port, targets })),
    connections,
    pipelineDepth: 1,
    seconds: seconds * services.length,
    sliceSeconds: TURN_SECONDS,
  })
  const cpu = services.map(({ server }, at) => server.cpuSeconds() - (cpuBefore[at] ?? NaN))
  return figures.map(({ requests, seconds: taken, latency }, at) => ({
    turnRedirects: requests / taken,
    turnMicros: ((cpu[at] ?? NaN) / requests) * 1e6,
    turnP99: Histogram.fromJson(latency).percentile(99) / 1000,
  }))
}
