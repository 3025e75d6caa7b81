import { AppError } from '../errors.ts'
import type { Caller } from '../lib/thread.ts'
import type { LinkCache } from './cache.ts'
import type { Code } from './code.ts'
import { packLinks, unpackReceipt } from './parcel.ts'
import type { Author, CreatedLink, CreateLinks, LinkRow } from './row.ts'
import type { LinkWrites, ReserveCode } from './store.ts'

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
   * One link an item, in order. Throws, with nothing stored, if the disk refuses, or
   * `invalid_api_key` if the account or the key is no longer active.
   */
  async create(order: CreateLinks): Promise<CreatedLink[]> {
    const receipt = await this.#writer.call('createParcel', packLinks(order))
    if (!receipt) throw new AppError('invalid_api_key')
    const links = unpackReceipt(order, receipt)
    for (const link of links) {
      // A reused one too: it may be of a commit whose news never came.
      this.#cache.add(link.code)
      if (!link.reused) this.#images.prepare(link.code)
    }
    this.#indexer.wake()
    return links
  }

  /** Undefined when the code is in use. Throws `invalid_api_key` as `create` does. */
  async reserve(order: ReserveCode): Promise<LinkRow | undefined> {
    const link = await this.#writer.call('reserveCode', order)
    if (link === 'not_active') throw new AppError('invalid_api_key')
    if (link) {
      this.#cache.add(link.code)
      this.#images.prepare(link.code)
      this.#indexer.wake()
    }
    return link
  }

  /** Undefined when the link is gone. Throws `invalid_api_key` as `create` does. */
  async changeUrl(
    id: number,
    { url, urlKey, author }: { url: string; urlKey: Uint8Array; author: Author },
  ): Promise<LinkRow | undefined> {
    const link = await this.#writer.call('changeUrl', { id, url, urlKey, author })
    if (link === 'not_active') throw new AppError('invalid_api_key')
    if (link) this.#cache.set(link.code, link.id, link.url)
    return link
  }

  /** False when the link is gone already. Throws `invalid_api_key` as `create` does. */
  async delete(id: number, code: Code, author: Author): Promise<boolean> {
    const deleted = await this.#writer.call('deleteLink', { id, author })
    if (deleted === 'not_active') throw new AppError('invalid_api_key')
    if (deleted) {
      this.#cache.delete(code)
      this.#images.remove(code)
    }
    return deleted
  }
}
