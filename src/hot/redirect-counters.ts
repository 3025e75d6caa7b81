import { cellsFor, Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'

/** Responses since the start; redirects of GET requests are not here: the journal counts them. */
const COUNTERS = [
  'foundByHead',
  'notFound',
  'disabled',
  /** Answered with 410, or with 302 to the URL for this case. */
  'expired',
  /** Answered with 200, 401, 403, 429 or 503 because of the password of the link. */
  'protected',
  'limited',
  /** Requests that do not follow a link with `max_hits`: see `HeldBack`. */
  'prefetch',
  /** The same, and requests that ask where a link leads. */
  'preview',
  'failed',
  /** Codes in the cache: existing ones and unknown ones. */
  'known',
  'unknown',
  /** Lookups in the database, by result. */
  'foundInDatabase',
  'notInDatabase',
  /** Connections that were closed because of a limit. */
  'closed',
  /** Handshakes of TLS, by result. */
  'handshakes',
  'handshakesFailed',
  'handshakesLate',
  /** Bytes in memory for clients: see `ConnectionLimits`. */
  'bytesHeld',
] as const

type Counter = (typeof COUNTERS)[number]

const INDEX = Object.fromEntries(COUNTERS.map((name, at) => [name, at])) as Record<Counter, number>
const CELLS = COUNTERS.length + cellsFor(LATENCY_BOUNDS)

/**
 * Counters of redirects of one thread, in shared memory: the thread writes them, and the control
 * thread reads them. 64-bit numbers, as Float64.
 */
export class RedirectCounters {
  readonly memory: SharedArrayBuffer
  readonly seconds: Histogram
  readonly #cells: Float64Array

  constructor(memory = new SharedArrayBuffer(8 * CELLS)) {
    this.memory = memory
    this.#cells = new Float64Array(memory)
    this.seconds = new Histogram(LATENCY_BOUNDS, this.#cells.subarray(COUNTERS.length))
  }

  add(name: Counter): void {
    this.set(name, this.get(name) + 1)
  }

  set(name: Counter, value: number): void {
    this.#cells[INDEX[name]] = value
  }

  get(name: Counter): number {
    return this.#cells[INDEX[name]] as number
  }
}

/** The sum of what several threads have counted. */
export function sumCounters(all: readonly RedirectCounters[]) {
  const cells = new Float64Array(CELLS)
  for (const { memory } of all) {
    for (const [at, value] of new Float64Array(memory).entries()) {
      cells[at] = (cells[at] as number) + value
    }
  }
  const counts = Object.fromEntries(COUNTERS.map((name, at) => [name, cells[at]]))
  return {
    ...(counts as Record<Counter, number>),
    seconds: new Histogram(LATENCY_BOUNDS, cells.subarray(COUNTERS.length)),
  }
}
