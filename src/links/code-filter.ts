/** With four hashes in 16 bits per code, 1 of 400 unknown codes is taken for a known one. */
export const BYTES_PER_CODE = 2
const HASHES = 4

/**
 * A set of codes and aliases in shared memory: a Bloom filter (B. Bloom, "Space/Time Trade-offs in
 * Hash Coding with Allowable Errors", 1970).
 */
export class CodeFilter {
  readonly memory: SharedArrayBuffer
  readonly #bits: Uint8Array

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#bits = new Uint8Array(memory)
  }

  add(code: string): void {
    const bits = this.#bits
    // Other threads add codes too.
    for (const bit of bitsOf(code, bits)) Atomics.or(bits, bit >>> 3, maskOf(bit))
  }

  /** True for each code that was added, and for a few others. */
  has(code: string): boolean {
    const bits = this.#bits
    return bitsOf(code, bits).every((bit) => (byteOf(bits, bit) & maskOf(bit)) !== 0)
  }

  /** Aliases in any case are added in small letters. */
  mayHaveAlias(path: string): boolean {
    const small = path.toLowerCase()
    return this.has(path) || (small !== path && this.has(small))
  }
}

/** Double hashing: A. Kirsch, M. Mitzenmacher, "Less Hashing, Same Performance", 2006. */
function bitsOf(code: string, bits: Uint8Array): number[] {
  const hash = Bun.hash.xxHash64(code)
  const first = Number(hash & 0xffff_ffffn)
  const step = (Number(hash >> 32n) | 1) >>> 0
  return Array.from({ length: HASHES }, (_, n) => (first + n * step) % (8 * bits.length))
}

const byteOf = (bits: Uint8Array, bit: number): number => bits[bit >>> 3] as number
const maskOf = (bit: number): number => 1 << (bit & 7)
