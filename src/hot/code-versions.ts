import { type RandomBytes, secureRandom } from '../lib/random.ts'

/** The key of a code or an alias is four words of five 6-bit characters each. */
export const KEY_WORDS = 4
const CHARS_PER_WORD = 5
const CHAR_BITS = 6

export const KEY_LENGTH_MAX = 20
/** What a cache can hold: every code, and most aliases. */
const KEY = /^[A-Za-z0-9_-]{1,20}$/

/** Characters of a key by their code: 6 bits each. */
const SIGNS = new Uint8Array(128)
const SIGNS_IN_ORDER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-'
for (let i = 0; i < SIGNS_IN_ORDER.length; i++) SIGNS[SIGNS_IN_ORDER.charCodeAt(i)] = i
/** The same in any case: small letters have the bits of capital ones. */
const CASELESS_SIGNS = SIGNS.map((_, i) => SIGNS[i > 0x60 && i < 0x7b ? i - 0x20 : i] as number)

/**
 * Writes the words of a text that matches `KEY`. No two texts have the same: the two bits of each
 * word that no character uses contain the length.
 */
export const encodeKey = (text: string, words: Int32Array): void => encode(text, words, SIGNS)

function encode(text: string, words: Int32Array, signs: Uint8Array): void {
  let i = 0
  for (let word = 0; word < KEY_WORDS; word++) {
    let bits = 0
    for (const end = Math.min(i + CHARS_PER_WORD, text.length); i < end; i++) {
      bits = (bits << CHAR_BITS) | (signs[text.charCodeAt(i)] as number)
    }
    words[word] = bits | ((text.length >> (2 * word)) << (CHARS_PER_WORD * CHAR_BITS))
  }
}

/** A signed 32-bit hash of the key at `at` in `words`. */
export function hashKey(words: Int32Array, at: number, seed: number): number {
  let hash = seed
  for (let i = at; i < at + KEY_WORDS; i++) {
    hash = Math.imul(hash ^ (words[i] as number), 0x9e3779b1)
    hash ^= hash >>> 15
  }
  return hash
}

// The shared memory: the seed of the hash, the version of all codes, the number of all changes, and
// the counters.
const SEED = 0
const ALL = 1
const CHANGES = 2
const COUNTERS = 3
/** 1 MiB. A change of one link makes the threads read each link with the same counter again. */
const SLOTS = 2 ** 18
const MASK = SLOTS - 1

/**
 * HOT PATH. Invalidates destinations that have changed in the caches of the redirect threads. In
 * shared memory, there is a counter for each hash of a key in any letter case, because an alias may
 * be cached in several. The control thread increments it after the commit of a change and before
 * its response is sent. A thread keeps the version beside each destination that it has read, and
 * reads the destination again when the version differs.
 */
export class CodeVersions {
  readonly memory: SharedArrayBuffer
  /** Random and the same in all threads, so that no client can choose codes for one counter. */
  readonly seed: number
  readonly #words: Int32Array
  readonly #key = new Int32Array(KEY_WORDS)

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

  /** A code or an alias was created, changed or deleted. One that is no `KEY` is in no cache. */
  change(key: string): void {
    if (!KEY.test(key)) return
    Atomics.add(this.#words, CHANGES, 1)
    Atomics.add(this.#words, COUNTERS + (this.#hashOf(key) & MASK), 1)
  }

  /** What is disabled or blocked has changed, which may concern any code. */
  changeAll(): void {
    Atomics.add(this.#words, CHANGES, 1)
    Atomics.add(this.#words, ALL, 1)
  }

  /** The number of calls of `changeAll` in all threads. Read it before the database. */
  get all(): number {
    return Atomics.load(this.#words, ALL)
  }

  /** Differs as soon as any version that was read before it does: a change increments it first. */
  get changes(): number {
    return Atomics.load(this.#words, CHANGES)
  }

  /** The version of a key, which is a `KEY`. Read it before the database. */
  ofKey(key: string): number {
    return this.of(this.#hashOf(key))
  }

  #hashOf(key: string): number {
    encode(key, this.#key, CASELESS_SIGNS)
    return hashKey(this.#key, 0, this.seed)
  }

  /** The version of the keys with this hash, such as a code. Read it before the database. */
  of(hash: number): number {
    return (
      (Atomics.load(this.#words, ALL) + Atomics.load(this.#words, COUNTERS + (hash & MASK))) | 0
    )
  }
}
