import { generateLoads, requireFaultless } from './load.ts'
import type { Target } from './request.ts'
import type { Figures, Progress, VariantResult } from './rounds.ts'
import type { LoadOptions, Metric } from './scenario.ts'
import type { Server } from './server.ts'

const TURN_SECONDS = 0.1
/** Seconds of turns with each service, per second of `--seconds`. */
const TOTAL_SECONDS = 10

export const TURN_NOTE =
  'In short turns: both services run, and a closed loop has turns of ' +
  `${TURN_SECONDS * 1000} ms with each.`

/** The metrics of `addTurns`. */
export const TURN_METRICS: Metric[] = [
  { key: 'turnRedirects', label: 'in short turns: redirects/s', digits: 0, ratio: true },
  { key: 'turnMicros', label: 'in short turns: CPU µs per redirect', digits: 2, ratio: true },
  {
    key: 'turnThreadMicros',
    label: 'in short turns: CPU µs of the redirect threads per redirect',
    digits: 2,
    ratio: true,
  },
  { key: 'turnP99', label: 'in short turns: p99, µs', digits: 0, ratio: true },
]

const BATCH = 50
const LABEL = `in short turns, batches of ${BATCH}`
/** The metrics of `addTurns` with `isBatched`. */
export const BATCH_TURN_METRICS: Metric[] = [
  { key: 'turnBatchRedirects', label: `${LABEL}: redirects/s`, digits: 0, ratio: true },
  { key: 'turnBatchMicros', label: `${LABEL}: CPU µs per redirect`, digits: 2, ratio: true },
]

interface TurnService {
  /** That of its variant. */
  name: string
  server: Server
  targets: Target[]
}

/**
 * Adds figures of short turns to the rounds of the services' variants. It compares running services
 * that differ by less than the machine does from one second to the next: each gets short,
 * alternating time slices of a closed loop.
 */
export async function addTurns(
  services: readonly TurnService[],
  { connections, rounds, seconds }: Pick<LoadOptions, 'connections' | 'rounds' | 'seconds'>,
  {
    variants,
    say,
    isBatched = false,
  }: { variants: readonly VariantResult[]; say: Progress; isBatched?: boolean },
): Promise<void> {
  const load = { connections, seconds: seconds * TOTAL_SECONDS }
  for (let round = 0; round < rounds; round++) {
    say(`round ${round + 1} of ${rounds}: redirects in short turns`)
    const figures = await measureTurns(services, load)
    if (isBatched) {
      const batched = await measureTurns(services, { ...load, batch: BATCH })
      for (const [at, { turnRedirects, turnMicros }] of batched.entries()) {
        const more = { turnBatchRedirects: turnRedirects, turnBatchMicros: turnMicros }
        Object.assign(figures[at] ?? {}, more)
      }
    }
    for (const [at, { name }] of services.entries()) {
      const variant = variants.find((one) => one.name === name)
      Object.assign(variant?.rounds[round] ?? {}, figures[at])
    }
  }
}

/** CPU time that a service uses between its slices is included. */
async function measureTurns(
  services: readonly TurnService[],
  { seconds, ...load }: { connections: number; seconds: number; batch?: number },
): Promise<Figures[]> {
  const cpuOf = ({ server }: TurnService) => [server.cpuSeconds(), server.redirectThreadSeconds()]
  const before = services.map(cpuOf)
  const servers = services.map(({ server, targets }) => ({ port: server.port, targets }))
  const total = seconds * services.length
  // Each turn waits for its last responses.
  const turns = { ...load, seconds: total, sliceSeconds: TURN_SECONDS, drainSeconds: total }
  const results = await generateLoads(servers, turns)
  const after = services.map(cpuOf)
  return results.map((result, at) => {
    requireFaultless(result, 'in short turns')
    const [micros = NaN, threadMicros = NaN] = (after[at] ?? []).map(
      (end, n) => ((end - (before[at]?.[n] ?? NaN)) / result.answered) * 1e6,
    )
    return {
      turnRedirects: result.answered / result.seconds,
      turnMicros: micros,
      turnThreadMicros: threadMicros,
      turnP99: result.latency.p99,
    }
  })
}
