import { type RandomBytes, randomString } from '../lib/random.ts'

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

/**
 * Names one request in answers and in the log: a prefix of this start and a count, so that it costs
 * nothing.
 */
export class RequestIds {
  readonly #prefix: string
  #count = 0

  constructor(random: RandomBytes) {
    this.#prefix = `${randomString(random, ALPHABET, 8)}-`
  }

  next(): string {
    return this.#prefix + (++this.#count).toString(36)
  }
}
