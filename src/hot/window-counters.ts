import type { SharedArrays } from './shared-arrays.ts'

export const REFUSED = 0
export const OVERFLOWED = 1
export const ARENA_REFUSED = 2
export const UNCOUNTED = 3
export const RESETS = 4
const COUNTERS = 5

/** Counters of a shard in shared memory. `SlidingWindow` describes them. */
export class WindowCounters {
  readonly #values: Float64Array
  readonly #unlocked: Int32Array

  constructor(memory: SharedArrays) {
    this.#values = memory.float64(COUNTERS)
    this.#unlocked = memory.int32(1)
  }

  /** Needs the lock. */
  increment(counter: number): void {
    this.#values[counter] = (this.#values[counter] as number) + 1
  }

  /** A take that passed without being counted because its thread did not get the lock. */
  incrementUnlocked(): void {
    Atomics.add(this.#unlocked, 0, 1)
  }

  get(counter: number): number {
    const unlocked = counter === UNCOUNTED ? (this.#unlocked[0] as number) : 0
    return (this.#values[counter] as number) + unlocked
  }
}
