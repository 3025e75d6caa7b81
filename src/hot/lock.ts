/** The word of a lock: 0, or the thread that holds it and whether another one may wait for it. */
const FREE = 0
const WAITED_FOR = 1
const THREAD_SHIFT = 1

/** Takes longer than a lock is held, unless the system suspends the thread that holds it. */
const SPINS = 100
const WAIT_MS = 50
/** Consecutive waits. Time in which the whole process is stopped counts as one wait. */
const WAITS_MAX = 20

/** The number of the control thread. Redirect threads have the numbers after it. */
export const CONTROL_THREAD = 1

/**
 * HOT PATH. Mutual exclusion of threads by one word of shared memory: the three-state mutex of
 * Drepper, "Futexes Are Tricky", whose word also names the thread that holds the lock. A lock is
 * held for less than a microsecond, and nothing may throw meanwhile.
 *
 * A thread that ends while it holds a lock leaves it locked. Then `acquire` returns false after a
 * second, so that no other thread stops, until `isHeldBy` and `release` have freed it.
 */
export class Lock {
  readonly #words: Int32Array
  readonly #at: number
  readonly #held: number

  /** The lock at `words[at]`, for `thread`: a number from 1 to 1,000,000 of its own. */
  constructor(words: Int32Array, at: number, thread: number) {
    this.#words = words
    this.#at = at
    this.#held = thread << THREAD_SHIFT
  }

  /** Whether the calling thread has the lock now. Not reentrant. */
  acquire(): boolean {
    return this.#replace(FREE, this.#held) || this.#wait()
  }

  /** Frees the lock, and wakes one thread that waits for it. */
  release(): void {
    const word = Atomics.exchange(this.#words, this.#at, FREE)
    if ((word & WAITED_FOR) !== 0) Atomics.notify(this.#words, this.#at, 1)
  }

  isHeldBy(thread: number): boolean {
    return Atomics.load(this.#words, this.#at) >> THREAD_SHIFT === thread
  }

  #replace(word: number, by: number): boolean {
    return Atomics.compareExchange(this.#words, this.#at, word, by) === word
  }

  #wait(): boolean {
    for (let i = 0; i < SPINS; i++) {
      if (Atomics.load(this.#words, this.#at) === FREE && this.#replace(FREE, this.#held))
        return true
    }
    for (let waits = 0; waits < WAITS_MAX; ) {
      const word = Atomics.load(this.#words, this.#at)
      if (word === FREE) {
        // Other threads may still wait: `release` must wake the next one.
        if (this.#replace(FREE, this.#held | WAITED_FOR)) return true
      } else if (this.#replace(word, word | WAITED_FOR)) {
        const woken = Atomics.wait(this.#words, this.#at, word | WAITED_FOR, WAIT_MS)
        if (woken === 'timed-out') waits++
      }
    }
    return false
  }
}
