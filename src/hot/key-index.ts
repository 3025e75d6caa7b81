import type { SharedArrays } from './shared-arrays.ts'

/** Returned by `find` for a key that is not in the index. */
export const NO_SLOT = 0

// Words of an index. All of them are 0 in an empty index, as all other memory may be.
const SIZE = 0
const SLOTS_USED = 1
/** A slot that was used before, or NO_SLOT. */
const FIRST_FREE = 2
const WORDS = 3

export interface KeyIndexOptions {
  /** From 1 to 16,777,216. */
  keysMax: number
  /** The random key of the hash. */
  seed0: number
  seed1: number
}

/**
 * HOT PATH. Maps 64-bit keys, each given as two 32-bit halves, to slots 1 to `keysMax`. All state
 * is in shared memory, which is zero in an empty index; the caller excludes other threads.
 *
 * Open addressing with linear probing, at most three quarters full, and deletion by shifting back
 * (Knuth, The Art of Computer Programming, volume 3, 6.4, algorithm R): there are no tombstones, so
 * the table does not degrade as keys come and go. The hash has a random key, so that a client
 * cannot choose keys for one bucket.
 */
export class KeyIndex {
  readonly #keysMax: number
  readonly #words: Int32Array
  /** Slot s: the key's halves at 2s and 2s + 1. A free slot keeps the next free slot at 2s. */
  readonly #keys: Int32Array
  /** A slot, or NO_SLOT where empty. */
  readonly #buckets: Int32Array
  readonly #mask: number
  readonly #seed0: number
  readonly #seed1: number

  constructor(memory: SharedArrays, { keysMax, seed0, seed1 }: KeyIndexOptions) {
    if (!Number.isInteger(keysMax) || keysMax < 1 || keysMax > 2 ** 24) {
      throw new RangeError(`keysMax must be a whole number from 1 to ${2 ** 24}`)
    }
    const buckets = 2 ** Math.ceil(Math.log2(keysMax / 0.75))
    this.#keysMax = keysMax
    this.#words = memory.int32(WORDS)
    this.#keys = memory.int32(2 * keysMax + 2)
    this.#buckets = memory.int32(buckets)
    this.#mask = buckets - 1
    this.#seed0 = seed0
    this.#seed1 = seed1
  }

  /** Number of keys in the index. */
  get size(): number {
    return this.#words[SIZE] as number
  }

  get isFull(): boolean {
    return this.size === this.#keysMax
  }

  /** Slots that have ever been used: a free slot is used again before a new one. */
  get slotsUsed(): number {
    return this.#words[SLOTS_USED] as number
  }

  /** The highest memory use so far, in bytes. */
  get bytes(): number {
    return this.#buckets.byteLength + 8 * this.slotsUsed
  }

  /** The signed 32-bit hash that the other methods take. */
  hash(high: number, low: number): number {
    return halfSipHash(high, low, this.#seed0, this.#seed1)
  }

  /** The key's slot, or NO_SLOT. */
  find(hash: number, high: number, low: number): number {
    const keys = this.#keys
    const buckets = this.#buckets
    const mask = this.#mask
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const slot = buckets[at] as number
      if (slot === NO_SLOT) return NO_SLOT
      if (keys[2 * slot] === (high | 0) && keys[2 * slot + 1] === (low | 0)) return slot
    }
  }

  /** Gives a slot to a key that has none. NO_SLOT when full. */
  add(hash: number, high: number, low: number): number {
    const words = this.#words
    const keys = this.#keys
    const buckets = this.#buckets
    const mask = this.#mask
    if (this.isFull) return NO_SLOT
    let slot = words[FIRST_FREE] as number
    if (slot === NO_SLOT) {
      slot = (words[SLOTS_USED] as number) + 1
      words[SLOTS_USED] = slot
    } else words[FIRST_FREE] = keys[2 * slot] as number
    keys[2 * slot] = high
    keys[2 * slot + 1] = low
    let at = hash & mask
    while (buckets[at] !== NO_SLOT) at = (at + 1) & mask
    buckets[at] = slot
    words[SIZE] = (words[SIZE] as number) + 1
    return slot
  }

  /** Removes the key of `slot`, which must be in use. */
  remove(slot: number): void {
    const buckets = this.#buckets
    const mask = this.#mask
    let hole = this.#home(slot)
    while (buckets[hole] !== slot) hole = (hole + 1) & mask
    for (let at = (hole + 1) & mask; buckets[at] !== NO_SLOT; at = (at + 1) & mask) {
      const other = buckets[at] as number
      // A key moves into the hole unless its home bucket is after the hole: probing starts there.
      if (((at - this.#home(other)) & mask) >= ((at - hole) & mask)) {
        buckets[hole] = other
        hole = at
      }
    }
    buckets[hole] = NO_SLOT
    const words = this.#words
    this.#keys[2 * slot] = words[FIRST_FREE] as number
    words[FIRST_FREE] = slot
    words[SIZE] = (words[SIZE] as number) - 1
  }

  #home(slot: number): number {
    const keys = this.#keys
    return this.hash(keys[2 * slot] as number, keys[2 * slot + 1] as number) & this.#mask
  }
}

/**
 * HalfSipHash-1-3 of the two 32-bit words under a 64-bit key, as a signed 32-bit number: the keyed
 * hash with which Linux protects its tables against chosen collisions (Aumasson and Bernstein,
 * https://github.com/veorq/SipHash). It protects the order of a table and no other secret.
 */
export function halfSipHash(first: number, second: number, key0: number, key1: number): number {
  let v0 = key0
  let v1 = key1
  let v2 = key0 ^ 0x6c796765
  let v3 = key1 ^ 0x74656462
  // One round for each word, one for the length (8 bytes, in the top byte), and three to finish.
  for (let round = 0; round < 6; round++) {
    const word = round === 0 ? first | 0 : round === 1 ? second | 0 : round === 2 ? 8 << 24 : 0
    v3 ^= word
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    v0 ^= word
    if (round === 2) v2 ^= 0xff
  }
  return v1 ^ v3
}
