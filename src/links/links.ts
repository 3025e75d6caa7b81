import { AppError } from '../errors.ts'
import type { Code } from '../lib/code.ts'
import type { Caller } from '../lib/thread.ts'
import type { LinkCache } from './cache.ts'
import { type Creation, packLinks, unpackReceipt } from './parcel.ts'
import { quotaError } from './quota.ts'
import type { Author, CreateLinks, LinkRow } from './row.ts'
import type { ChangeUrl, LinkWrites, ReserveCode } from './store.ts'

/** Keeps the picture of each code beside its link. */
export interface CodeImages {
  /** The code is new: its picture will be asked for. */
  prepare(code: Code): void
  /** Nobody holds the code any more. */
  remove(code: Code): void
}

interface LinkWriterOptions {
  indexer: { wake(): void }
  writer: Caller<LinkWrites>
  cache: LinkCache
  images: CodeImages
}

/**
 * Changes links. Each method resolves once the change is on disk, and the cache changes in the very
 * turn of that news: nothing may be awaited between the writer's answer and the cache.
 */
export class LinkWriter {
  readonly #writer: Caller<LinkWrites>
  readonly #cache: LinkCache
  readonly #images: CodeImages
  readonly #indexer: { wake(): void }

  constructor({ writer, cache, images, indexer }: LinkWriterOptions) {
    this.#writer = writer
    this.#cache = cache
    this.#images = images
    this.#indexer = indexer
  }

  /**
   * One link an item, in order, or the quota that has no room for it. Throws, with nothing stored,
   * if the disk refuses, or `invalid_api_key` if the account or the key is no longer active.
   */
  async create(order: CreateLinks): Promise<Creation[]> {
    const receipt = await this.#writer.call('createParcel', packLinks(order))
    if (!receipt) throw new AppError('invalid_api_key')
    const links = unpackReceipt(order, receipt)
    for (const link of links) {
      if (typeof link === 'string') continue
      // A reused one too: it may be of a commit whose news never came.
      this.#cache.add(link.code)
      if (!link.reused) this.#images.prepare(link.code)
    }
    this.#indexer.wake()
    return links
  }

  /** Undefined when the code is in use. Throws `invalid_api_key`, `quota_exceeded`. */
  async reserve(order: ReserveCode): Promise<LinkRow | undefined> {
    const link = await this.#writer.call('reserveCode', order)
    if (link === 'not_active') throw new AppError('invalid_api_key')
    if (typeof link === 'string') throw quotaError(link, order.quota)
    if (link) {
      this.#cache.add(link.code)
      this.#images.prepare(link.code)
      this.#indexer.wake()
    }
    return link
  }

  /** Undefined when the link is gone. Throws `invalid_api_key`, `quota_exceeded`. */
  async changeUrl(change: Required<ChangeUrl>): Promise<LinkRow | undefined> {
    const link = await this.#writer.call('changeUrl', change)
    if (link === 'not_active') throw new AppError('invalid_api_key')
    if (typeof link === 'string') throw quotaError(link, change.quota)
    if (link) {
      // A link of a commit whose news never came may be unknown here.
      this.#cache.add(link.code)
      this.#cache.drop(link.code)
    }
    return link
  }

  /** False when the link is gone already. Throws `invalid_api_key` as `create` does. */
  async delete(id: number, code: Code, author: Author): Promise<boolean> {
    const deleted = await this.#writer.call('deleteLink', { id, author })
    if (deleted === 'not_active') throw new AppError('invalid_api_key')
    if (deleted) {
      this.#cache.drop(code)
      this.#images.remove(code)
    }
    return deleted
  }
}
