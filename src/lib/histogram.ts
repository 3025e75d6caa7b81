/** Counts values in buckets with fixed upper bounds, as Prometheus does. */
export class Histogram {
  /** Inclusive upper bounds, ascending. The last bucket has none. */
  readonly bounds: readonly number[]
  /** Number of values in each bucket, not cumulated; one bucket more than bounds. */
  readonly buckets: Float64Array
  /** The buckets, and the sum of all values. */
  readonly #cells: Float64Array

  /** `cells`: where to count, `cellsFor(bounds)` numbers, for example in shared memory. */
  constructor(bounds: readonly number[], cells: Float64Array = new Float64Array(cellsFor(bounds))) {
    this.bounds = bounds
    this.#cells = cells
    this.buckets = cells.subarray(0, -1)
  }

  get sum(): number {
    return this.#cells[this.buckets.length] as number
  }

  /** Allocates nothing. */
  observe(value: number): void {
    let bucket = 0
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket++
    this.buckets[bucket] = (this.buckets[bucket] as number) + 1
    this.#cells[this.buckets.length] = this.sum + value
  }
}

/** Numbers that a histogram with these bounds counts in. */
export const cellsFor = (bounds: readonly number[]): number => bounds.length + 2

/** Seconds, from a lookup in memory to the usual timeout of a client. */
export const LATENCY_BOUNDS = [
  0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
  10,
]
