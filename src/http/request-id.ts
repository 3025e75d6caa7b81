import { type RandomBytes, randomString } from '../lib/random.ts'

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'
/** The scrambled part has 31 bits: JavaScript writes such a number faster than a larger one. */
const MASK = 0x7fffffff

/**
 * Names one request in responses and in the log. An id is a random prefix and a count, scrambled by
 * a random permutation: two ids do not tell how many requests came between them. No id comes twice
 * under a prefix, and a new prefix is drawn when all ids of one are used.
 */
export class RequestIds {
  readonly #random: RandomBytes
  readonly #idsPerPrefix: number
  #prefix = ''
  #start = 0
  #factors: [number, number] = [1, 1]
  #count: number

  constructor(random: RandomBytes, { idsPerPrefix = MASK } = {}) {
    this.#random = random
    this.#idsPerPrefix = idsPerPrefix
    this.#count = idsPerPrefix
  }

  /** HOT PATH: every redirect has one. */
  next(): string {
    if (this.#count >= this.#idsPerPrefix) this.#renew()
    // Each step can be undone, so different counts give different numbers.
    const [first, second] = this.#factors
    let x = (this.#count++ ^ this.#start) & MASK
    x = Math.imul(x ^ (x >>> 16), first) & MASK
    x = Math.imul(x ^ (x >>> 15), second) & MASK
    return this.#prefix + (x ^ (x >>> 16)).toString(36)
  }

  #renew(): void {
    this.#prefix = `${randomString(this.#random, ALPHABET, 8)}-`
    const bytes = this.#random(12)
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    this.#start = view.getInt32(0)
    // Multiplying by an odd number can be undone.
    this.#factors = [view.getInt32(4) | 1, view.getInt32(8) | 1]
    this.#count = 0
  }
}
