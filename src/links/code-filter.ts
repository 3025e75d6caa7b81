/**
 * HOT PATH. Which codes may be held, in a little more than a byte each: a Bloom filter over memory
 * that threads share, so that a scanner's guess costs no look-up in the database. It never denies
 * a code that was added; it cannot forget one.
 *
 * Bits by double hashing: A. Kirsch and M. Mitzenmacher, "Less Hashing, Same Performance" (2006).
 */

/** At capacity: 10 to 20 bits a code and seven probes, so at most 1 code in 100 passes wrongly. */
const BITS_PER_CODE = 10
const PROBES = 7
const BITS_MIN = 2 ** 20
/** Bit numbers are 32 bits wide: 512 MiB, far more than any host's links. */
const BITS_MAX = 2 ** 32

export class CodeFilter {
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #mask: number

  /** `memory` of another thread's filter; its length in bits is a power of two. */
  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#words = new Int32Array(memory)
    this.#mask = (memory.byteLength * 8 - 1) >>> 0
  }

  static forCodes(capacity: number): CodeFilter {
    let bits = BITS_MIN
    while (bits < capacity * BITS_PER_CODE && bits < BITS_MAX) bits *= 2
    return new CodeFilter(new SharedArrayBuffer(bits / 8))
  }

  /** Codes it can hold before wrong passes become common. */
  get capacity(): number {
    return Math.floor((this.memory.byteLength * 8) / BITS_PER_CODE)
  }

  add(code: string): void {
    const step = stepOf(code)
    let bit = hashOf(code)
    for (let probe = 0; probe < PROBES; probe++) {
      const at = (bit & this.#mask) >>> 0
      // Another thread may set a bit of the same word at the same time.
      Atomics.or(this.#words, at >>> 5, 1 << (at & 31))
      bit = (bit + step) | 0
    }
  }

  /** False: the code was never added. True: it was, or the filter cannot tell. */
  mayHold(code: string): boolean {
    const step = stepOf(code)
    let bit = hashOf(code)
    for (let probe = 0; probe < PROBES; probe++) {
      const at = (bit & this.#mask) >>> 0
      if (((this.#words[at >>> 5] as number) & (1 << (at & 31))) === 0) return false
      bit = (bit + step) | 0
    }
    return true
  }
}

/** FNV-1a with the finish of MurmurHash3, which spreads short codes over all 32 bits. */
function hashOf(code: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < code.length; i++) hash = Math.imul(hash ^ code.charCodeAt(i), 0x01000193)
  return mixed(hash)
}

/** Odd, so that the probes of one code are different bits. */
function stepOf(code: string): number {
  let hash = 0x2f0b4c47
  for (let i = code.length - 1; i >= 0; i--) {
    hash = Math.imul(hash ^ code.charCodeAt(i), 0x5bd1e995)
  }
  return mixed(hash) | 1
}

function mixed(hash: number): number {
  let mix = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35)
  return mix ^ (mix >>> 16)
}
