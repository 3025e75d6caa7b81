import type { Code } from '../lib/code.ts'
import { type RandomBytes, secureRandom } from '../lib/random.ts'

/** A code is four words of five 6-bit characters each; unused bits are zero. */
export const CODE_WORDS = 4
const CHARS_PER_WORD = 5
const CHAR_BITS = 6
const CHAR_MASK = 63

/** Writes the words of a code to the beginning of `words`. */
export function encodeCode(code: Code, words: Int32Array): void {
  let i = 0
  for (let word = 0; word < CODE_WORDS; word++) {
    let bits = 0
    for (const end = Math.min(i + CHARS_PER_WORD, code.length); i < end; i++) {
      // The low six bits differ for all of A–Z and 0–9, and none is zero.
      bits = (bits << CHAR_BITS) | (code.charCodeAt(i) & CHAR_MASK)
    }
    words[word] = bits
  }
}

export const ALIAS_KEY_MAX = 20
/** An alias that a cache can hold. */
const ALIAS_KEY = /^[A-Za-z0-9_-]{1,20}$/

/** Signs of an alias by their character code: 6 bits each. */
const SIGNS = new Uint8Array(128)
const SIGNS_IN_ORDER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-'
for (let i = 0; i < SIGNS_IN_ORDER.length; i++) SIGNS[SIGNS_IN_ORDER.charCodeAt(i)] = i

/**
 * Writes the words of a path that matches `ALIAS_KEY`. No two paths have the same: the two bits of
 * each word that no sign uses contain the length.
 */
export function encodeAlias(path: string, words: Int32Array): void {
  let i = 0
  for (let word = 0; word < CODE_WORDS; word++) {
    let bits = 0
    for (const end = Math.min(i + CHARS_PER_WORD, path.length); i < end; i++) {
      bits = (bits << CHAR_BITS) | (SIGNS[path.charCodeAt(i)] as number)
    }
    words[word] = bits | ((path.length >> (2 * word)) << (CHARS_PER_WORD * CHAR_BITS))
  }
}

/** A signed 32-bit hash of the code at `at` in `words`. */
export function hashCode(words: Int32Array, at: number, seed: number): number {
  let hash = seed
  for (let i = at; i < at + CODE_WORDS; i++) {
    hash = Math.imul(hash ^ (words[i] as number), 0x9e3779b1)
    hash ^= hash >>> 15
  }
  return hash
}

// The shared memory: the seed of the hash, the version of all codes, and the counters.
const SEED = 0
const ALL = 1
const COUNTERS = 2
/** 1 MiB. A change of one link makes the threads read each link with the same counter again. */
const SLOTS = 2 ** 18
const MASK = SLOTS - 1

/**
 * HOT PATH. Invalidates destinations that have changed in the caches of the redirect threads. In
 * shared memory, there is a counter for each hash of a code. The control thread increments it after
 * the commit of a change and before its response is sent. A thread keeps the version beside each
 * destination that it has read, and reads the destination again when the version differs.
 */
export class CodeVersions {
  readonly memory: SharedArrayBuffer
  /** Random and the same in all threads, so that no client can choose codes for one counter. */
  readonly seed: number
  readonly #words: Int32Array
  readonly #code = new Int32Array(CODE_WORDS)

  /** Attaches to the memory that another thread has allocated. */
  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#words = new Int32Array(memory)
    this.seed = this.#words[SEED] as number
  }

  static allocate(random: RandomBytes = secureRandom): CodeVersions {
    const memory = new SharedArrayBuffer(4 * (COUNTERS + SLOTS))
    new Int32Array(memory)[SEED] = new DataView(random(4).buffer).getInt32(0)
    return new CodeVersions(memory)
  }

  /** The code was created, changed or deleted. */
  change(code: Code): void {
    encodeCode(code, this.#code)
    this.#increment()
  }

  /** The same for an alias. Others than `ALIAS_KEY` are in no cache. */
  changeAlias(path: string): void {
    if (!ALIAS_KEY.test(path)) return
    encodeAlias(path, this.#code)
    this.#increment()
  }

  /** What is disabled or blocked has changed, which may concern any code. */
  changeAll(): void {
    Atomics.add(this.#words, ALL, 1)
  }

  #increment(): void {
    Atomics.add(this.#words, COUNTERS + (hashCode(this.#code, 0, this.seed) & MASK), 1)
  }

  /** The version of the codes with this hash. Read it before the database. */
  of(hash: number): number {
    return (
      (Atomics.load(this.#words, ALL) + Atomics.load(this.#words, COUNTERS + (hash & MASK))) | 0
    )
  }
}
