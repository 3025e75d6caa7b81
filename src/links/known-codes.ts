import type { Code } from '../lib/code.ts'
import type { Caller } from '../lib/thread.ts'
import type { LinkLists } from './lists.ts'
import type { LinkReads } from './read.ts'

/** With four hashes in 16 bits per code, 1 of 400 unknown codes is taken for a known one. */
const BYTES_PER_CODE = 2
const HASHES = 4
/** Room for codes that are created before the next start. More of them cost accuracy only. */
const NEW_CODES = 65_536
const BYTES_MAX = 2 ** 25
/** Codes per message from the reader: about a millisecond. */
const CHUNK = 2000

interface KnownCodesOptions {
  reads: Pick<LinkReads, 'lastId'>
  reader: Caller<Pick<LinkLists, 'codesAfter'>>
}

/**
 * Tells unknown codes without a look-up, for addresses that have used up their reads: a Bloom
 * filter (B. Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", 1970). All codes
 * are read when the first such address asks; until then this costs nothing.
 */
export class KnownCodes {
  readonly #options: KnownCodesOptions
  #bits: Uint8Array | undefined
  #isComplete = false

  constructor(options: KnownCodesOptions) {
    this.#options = options
  }

  /** False only if no link has the code. True for all codes until those in use have been read. */
  mayExist(code: Code): boolean {
    if (this.#bits === undefined) this.#startReading()
    return !this.#isComplete || this.#has(code)
  }

  /** The code has a link now. */
  add(code: Code): void {
    const bits = this.#bits
    if (bits)
      for (const bit of bitsOf(code, bits)) bits[bit >>> 3] = byteOf(bits, bit) | maskOf(bit)
  }

  #has(code: Code): boolean {
    const bits = this.#bits ?? new Uint8Array()
    return bitsOf(code, bits).every((bit) => (byteOf(bits, bit) & maskOf(bit)) !== 0)
  }

  #startReading(): void {
    const codes = this.#options.reads.lastId() + NEW_CODES
    // Codes that are created from now on are added as well.
    this.#bits = new Uint8Array(Math.min(BYTES_MAX, codes * BYTES_PER_CODE))
    this.#readAll().catch(() => {
      // The thread has ended: the next question starts over.
      this.#bits = undefined
    })
  }

  async #readAll(): Promise<void> {
    const { reader } = this.#options
    for (let id = 0; ; ) {
      const links = await reader.call('codesAfter', { id, limit: CHUNK })
      for (const { code } of links) this.add(code)
      const last = links.at(-1)
      if (!last) break
      id = last.id
    }
    this.#isComplete = true
  }
}

/** Double hashing: A. Kirsch, M. Mitzenmacher, "Less Hashing, Same Performance", 2006. */
function bitsOf(code: Code, bits: Uint8Array): number[] {
  const hash = Bun.hash.xxHash64(code)
  const first = Number(hash & 0xffff_ffffn)
  const step = (Number(hash >> 32n) | 1) >>> 0
  return Array.from({ length: HASHES }, (_, n) => (first + n * step) % (8 * bits.length))
}

const byteOf = (bits: Uint8Array, bit: number): number => bits[bit >>> 3] as number
const maskOf = (bit: number): number => 1 << (bit & 7)
