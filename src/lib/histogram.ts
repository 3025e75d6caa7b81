/**
 * Counts values into buckets with fixed upper bounds, as Prometheus does. Observing allocates
 * nothing.
 */
export class Histogram {
  /** Upper bounds, ascending, each belonging to its own bucket. The last bucket has none. */
  readonly bounds: readonly number[]
  /** Values of each bucket alone, one more than there are bounds. */
  readonly buckets: Float64Array
  #sum = 0

  /** `bounds`: ascending. Throws RangeError when they are not. */
  constructor(bounds: readonly number[]) {
    if (bounds.some((bound, i) => bound <= (bounds[i - 1] ?? Number.NEGATIVE_INFINITY))) {
      throw new RangeError('the bounds of a histogram ascend')
    }
    this.bounds = bounds
    this.buckets = new Float64Array(bounds.length + 1)
  }

  get sum(): number {
    return this.#sum
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket++
    this.buckets[bucket] = (this.buckets[bucket] as number) + 1
    this.#sum += value
  }
}

/** Seconds, from a look-up in memory to a request that a client gives up. */
export const LATENCY_BOUNDS = [
  ...[0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
  ...[1, 2.5, 5, 10],
]
