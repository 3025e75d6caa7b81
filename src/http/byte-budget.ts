import { AppError } from '../errors.ts'

/** Whose bytes they are: an account's id, or the network of an anonymous client. */
export type Owner = number | string

const RETRY_AFTER_SECONDS = 5

interface HoldOptions {
  owner: Owner
  /** The most bytes that the owner may hold in this budget at once. */
  shareMax: number
}

/**
 * Memory that requests hold at once, limited in total and per owner, so that one account cannot use
 * all of it.
 */
export class ByteBudget {
  readonly #bytesMax: number
  readonly #held = new Map<Owner, number>()
  #total = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get total(): number {
    return this.#total
  }

  /** Begins with no bytes. */
  hold(options: HoldOptions): Hold {
    return new Hold(this, options)
  }

  hasRoom(bytes: number, { owner, shareMax }: HoldOptions): boolean {
    return this.#total + bytes <= this.#bytesMax && (this.#held.get(owner) ?? 0) + bytes <= shareMax
  }

  /** `bytes` may be negative. */
  change(owner: Owner, bytes: number): void {
    const held = (this.#held.get(owner) ?? 0) + bytes
    this.#total += bytes
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
  }
}

/** The bytes of one request or response. Disposing it releases them; doing so twice is harmless. */
export class Hold implements Disposable {
  readonly #budget: ByteBudget
  readonly #options: HoldOptions
  #bytes = 0

  constructor(budget: ByteBudget, options: HoldOptions) {
    this.#budget = budget
    this.#options = options
  }

  /** Throws `overloaded` unless so many bytes more may be held. */
  requireRoom(bytes: number): void {
    if (this.#budget.hasRoom(bytes, this.#options)) return
    throw new AppError('overloaded', '', {
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    })
  }

  /** Throws `overloaded`, and then holds no more than before. */
  take(bytes: number): void {
    this.requireRoom(bytes)
    this.force(bytes)
  }

  /** Counts bytes that are there and cannot be refused any more. */
  force(bytes: number): void {
    this.#bytes += bytes
    this.#budget.change(this.#options.owner, bytes)
  }

  [Symbol.dispose](): void {
    this.#budget.change(this.#options.owner, -this.#bytes)
    this.#bytes = 0
  }
}
