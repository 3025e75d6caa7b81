import { AppError, retryAfter } from '../errors.ts'

/** An account's id, or the network of an anonymous client. */
export type Owner = number | string

const RETRY_AFTER_SECONDS = 5

interface HoldOptions {
  owner: Owner
  /** Bytes that the owner may hold in this budget at once. */
  shareMax: number
}

/**
 * Limits the memory that requests hold at once, in total and per owner: one account cannot use all
 * of it.
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

  /** Initially holds no bytes. */
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

/** Reserved bytes of one request or response. `dispose` releases them, and can be called twice. */
export class Hold implements Disposable {
  readonly #budget: ByteBudget
  readonly #options: HoldOptions
  #bytes = 0

  constructor(budget: ByteBudget, options: HoldOptions) {
    this.#budget = budget
    this.#options = options
  }

  /** Throws `overloaded` if `bytes` more would exceed a limit. */
  requireRoom(bytes: number): void {
    if (this.#budget.hasRoom(bytes, this.#options)) return
    throw new AppError('overloaded', '', retryAfter(RETRY_AFTER_SECONDS))
  }

  /** Holds more bytes. Throws `overloaded`, and then holds no more than before. */
  take(bytes: number): void {
    this.requireRoom(bytes)
    this.force(bytes)
  }

  /** Holds bytes that are already in memory and can no longer be refused. */
  force(bytes: number): void {
    this.#bytes += bytes
    this.#budget.change(this.#options.owner, bytes)
  }

  [Symbol.dispose](): void {
    this.#budget.change(this.#options.owner, -this.#bytes)
    this.#bytes = 0
  }
}
