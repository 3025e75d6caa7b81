import { assert } from '../lib/assert.ts'
import { type CodeVersions, encodeKey, hashKey, KEY_WORDS } from './code-versions.ts'

/** The id of a disabled code whose link was deleted. */
export const NO_LINK = 0

/** The id of the primary domain, which has no row. */
export const PRIMARY_ID = 0

/** What a redirect needs of a link. `location` is null while the code is reserved or disabled. */
export interface Destination {
  readonly id: number
  readonly location: string | null
  /** Answered with 410. */
  readonly isDisabled: boolean
  /** ASCII without line breaks: on what else the redirect depends. Only with a location. */
  readonly rules: string
  /** The domain of the link. */
  readonly domainId: number
}

// An entry: the key, the id of a domain, the link's id, its state, the version of the key when it
// was read, and the bytes of the location, followed by a line break and the rules if there are any,
// padded to a whole unit.
const DOMAIN = KEY_WORDS
const ID = KEY_WORDS + 1
const STATE = KEY_WORDS + 2
const VERSION = KEY_WORDS + 3
const HEADER_BYTES = 4 * (KEY_WORDS + 4)
const UNIT_WORDS = 8
const UNIT_BYTES = 4 * UNIT_WORDS

// The state: the length of those bytes, and five flags.
const LENGTH_MASK = 0x00ffffff
const IS_RESERVED = 1 << 24
const IS_USED = 1 << 25
const IS_DEAD = 1 << 26
const IS_DISABLED = 1 << 27
const HAS_RULES = 1 << 28
const HAS_NO_LOCATION = IS_RESERVED | IS_DISABLED

/** Average size of an entry; one with a URL of 120 characters takes 160 bytes. */
const BYTES_PER_ENTRY = 192
/**
 * Room for 31 of the longest locations, 8,192 bytes each. A URL that was stored before that limit
 * may be nine times as long: if it is larger than a quarter of the ring, it is not kept but read
 * for every request.
 */
const RING_BYTES_MIN = 2 ** 18
/** Maximum number of entries that one call moves to the front, so that no redirect takes long. */
const CHANCES = 8

interface CacheOptions {
  max: number
  versions: CodeVersions
  /**
   * Keys are aliases, in any letter case, and each is one of a domain: the same text is another key
   * on another domain.
   */
  isScoped?: boolean
}

/**
 * HOT PATH. Key (a code or an alias) to destination in flat memory: a garbage collection has no
 * objects to visit (decision 010). Holds at most `max` entries, of at most 192 bytes on average.
 *
 * Entries lie in a ring in the order of their insertion. The oldest is evicted, unless it was found
 * since it was last checked: then it moves to the front (the clock algorithm: F. Corbató, "A Paging
 * Experiment with the Multics System", 1968). The index is open addressing with linear probing, at
 * most three quarters full, and deletion by shifting back (Knuth, volume 3, 6.4, algorithm R).
 */
export class DestinationCache {
  readonly #max: number
  readonly #words: Int32Array
  readonly #bytes: Buffer
  /** The entry's first unit + 1; 0 where empty. */
  readonly #buckets: Int32Array
  readonly #mask: number
  readonly #versions: CodeVersions
  readonly #isScoped: boolean
  /** Positions of the next and of the oldest entry, in words since the beginning. */
  #head = 0
  #tail = 0
  #size = 0
  /** The last encoded key, and its hash. */
  readonly #key = new Int32Array(KEY_WORDS)
  #hash = 0

  /** `max`: 1 to 16,777,216. The versions have a random seed: no client can fill one bucket. */
  constructor({ max, versions, isScoped = false }: CacheOptions) {
    assert(max >= 1 && max <= 2 ** 24, 'the cache holds 1 to 16,777,216 links')
    const units = Math.ceil(Math.max(RING_BYTES_MIN, max * BYTES_PER_ENTRY) / UNIT_BYTES)
    const buckets = 2 ** Math.ceil(Math.log2((max + 1) / 0.75))
    this.#max = max
    this.#words = new Int32Array(units * UNIT_WORDS)
    this.#bytes = Buffer.from(this.#words.buffer)
    this.#buckets = new Int32Array(buckets)
    this.#mask = buckets - 1
    this.#versions = versions
    this.#isScoped = isScoped
  }

  get size(): number {
    return this.#size
  }

  /**
   * Undefined if it is not in the cache, or if the key has changed since it was read. `domainId`:
   * only where keys are scoped.
   */
  findByKey(key: string, domainId = PRIMARY_ID): Destination | undefined {
    const at = this.#locate(key, domainId)
    if (at < 0 || this.#words[at + VERSION] !== this.#currentOf(key)) return undefined
    const state = this.#words[at + STATE] as number
    if ((state & IS_USED) === 0) this.#words[at + STATE] = state | IS_USED
    const id = (this.#words[at + ID] as number) >>> 0
    const found = this.#words[at + DOMAIN] as number
    if (state & HAS_NO_LOCATION) {
      const isDisabled = (state & IS_DISABLED) !== 0
      return { id, location: null, isDisabled, rules: '', domainId: found }
    }
    const start = 4 * at + HEADER_BYTES
    const text = this.#bytes.toString('latin1', start, start + (state & LENGTH_MASK))
    const end = (state & HAS_RULES) === 0 ? -1 : text.indexOf('\n')
    const location = end < 0 ? text : text.slice(0, end)
    const rules = end < 0 ? '' : text.slice(end + 1)
    return { id, location, isDisabled: false, rules, domainId: found }
  }

  /** The version to store with a destination: read it before the database. */
  versionOf(key: string): number {
    this.#encode(key)
    return this.#currentOf(key)
  }

  /** The version of the key that was encoded last. A code is in capital letters already. */
  #currentOf(key: string): number {
    return this.#isScoped ? this.#versions.ofKey(key) : this.#versions.of(this.#hash)
  }

  /** `location` is ASCII. See `RING_BYTES_MIN` for one that is too long to be kept. */
  set(key: string, destination: Destination, version: number): void {
    const { id, location, isDisabled, rules, domainId } = destination
    this.delete(key, domainId)
    const text = rules === '' ? (location ?? '') : `${location}\n${rules}`
    const length = text.length
    const words = wordsOf(length)
    if (length > LENGTH_MASK || words > this.#words.length / 4) return
    this.#makeRoom(words)
    const at = this.#claim(words)
    this.#encode(key)
    this.#words.set(this.#key, at)
    this.#words[at + DOMAIN] = domainId
    this.#words[at + ID] = id
    this.#words[at + VERSION] = version
    const withoutLocation = isDisabled ? IS_DISABLED : IS_RESERVED
    const withLocation = rules === '' ? length : length | HAS_RULES
    this.#words[at + STATE] = location === null ? withoutLocation : withLocation
    if (length > 0) this.#bytes.write(text, 4 * at + HEADER_BYTES, 'latin1')
    this.#link(at)
    this.#size++
  }

  delete(key: string, domainId = PRIMARY_ID): void {
    const at = this.#locate(key, domainId)
    if (at >= 0) this.#drop(at)
  }

  /** The entry's first word; -1 if the key is not in the cache. */
  #locate(key: string, domainId: number): number {
    const words = this.#words
    const wanted = this.#key
    this.#encode(key)
    for (let bucket = this.#hash & this.#mask; ; bucket = (bucket + 1) & this.#mask) {
      const unit = this.#buckets[bucket] as number
      if (unit === 0) return -1
      const at = (unit - 1) * UNIT_WORDS
      const isIt =
        words[at] === wanted[0] &&
        words[at + 1] === wanted[1] &&
        words[at + 2] === wanted[2] &&
        words[at + 3] === wanted[3] &&
        (!this.#isScoped || words[at + DOMAIN] === domainId)
      if (isIt) return at
    }
  }

  #encode(key: string): void {
    encodeKey(key, this.#key)
    this.#hash = hashKey(this.#key, 0, this.#versions.seed)
  }

  #homeOf(at: number): number {
    return hashKey(this.#words, at, this.#versions.seed) & this.#mask
  }

  #fits(words: number): boolean {
    const rest = this.#restOfLap()
    const needed = words <= rest ? words : rest + words
    return this.#words.length - (this.#head - this.#tail) >= needed
  }

  #restOfLap(): number {
    return this.#words.length - (this.#head % this.#words.length)
  }

  /** An entry is contiguous: if the end of the ring is too short for it, that end stays unused. */
  #claim(words: number): number {
    const rest = this.#restOfLap()
    if (words > rest) {
      // Marked as a dead entry, which `#makeRoom` skips.
      const filler = this.#words.length - rest
      this.#words[filler + STATE] = IS_DEAD | (4 * rest - HEADER_BYTES)
      this.#head += rest
    }
    const at = this.#head % this.#words.length
    this.#head += words
    return at
  }

  #makeRoom(words: number): void {
    let chances = CHANCES
    while (this.#size >= this.#max || !this.#fits(words)) {
      const at = this.#tail % this.#words.length
      const state = this.#words[at + STATE] as number
      const length = wordsOf(state & LENGTH_MASK)
      this.#tail += length
      if (state & IS_DEAD) continue
      if (state & IS_USED && chances-- > 0) this.#moveOn(at, length)
      else this.#drop(at)
    }
  }

  /** There is room: the entry's old place, or the ring's beginning if the end is too short. */
  #moveOn(from: number, length: number): void {
    const bucket = this.#bucketOf(from)
    const to = this.#claim(length)
    this.#words.copyWithin(to, from, from + length)
    this.#words[to + STATE] = (this.#words[to + STATE] as number) & ~IS_USED
    this.#buckets[bucket] = to / UNIT_WORDS + 1
  }

  #link(at: number): void {
    let bucket = this.#homeOf(at)
    while (this.#buckets[bucket] !== 0) bucket = (bucket + 1) & this.#mask
    this.#buckets[bucket] = at / UNIT_WORDS + 1
  }

  #bucketOf(at: number): number {
    let bucket = this.#homeOf(at)
    while (this.#buckets[bucket] !== at / UNIT_WORDS + 1) bucket = (bucket + 1) & this.#mask
    return bucket
  }

  #drop(at: number): void {
    const buckets = this.#buckets
    const mask = this.#mask
    let hole = this.#bucketOf(at)
    this.#words[at + STATE] = (this.#words[at + STATE] as number) | IS_DEAD
    this.#size--
    for (let next = (hole + 1) & mask; buckets[next] !== 0; next = (next + 1) & mask) {
      const unit = buckets[next] as number
      const home = this.#homeOf((unit - 1) * UNIT_WORDS)
      // An entry moves into the hole unless its home lies after it: probing would start too late.
      if (((next - home) & mask) >= ((next - hole) & mask)) {
        buckets[hole] = unit
        hole = next
      }
    }
    buckets[hole] = 0
  }
}

const wordsOf = (length: number): number =>
  Math.ceil((HEADER_BYTES + length) / UNIT_BYTES) * UNIT_WORDS
