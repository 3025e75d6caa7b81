import type { Code } from '../lib/code.ts'
import type { LinkCache } from './cache.ts'
import type { CreatedLink } from './link.ts'

/** Stores the QR image of each code. */
export interface CodeImages {
  /** The code is new: its image will be requested. */
  prepare(code: Code): void
  /** The code has no link any more. */
  remove(code: Code): void
}

interface LinkEffectsOptions {
  cache: LinkCache
  images: CodeImages
  indexer: { wake(): void }
}

/**
 * What follows a committed write: the cache, the QR images and the search index. `LinkWriter` calls
 * this in the tick in which it receives the result of the commit, and nothing else does: a later
 * request never sees an old destination.
 */
export class LinkEffects {
  readonly #cache: LinkCache
  readonly #images: CodeImages
  readonly #indexer: { wake(): void }

  constructor({ cache, images, indexer }: LinkEffectsOptions) {
    this.#cache = cache
    this.#images = images
    this.#indexer = indexer
  }

  created(links: readonly Pick<CreatedLink, 'code' | 'reused'>[]): void {
    for (const { code, reused } of links) {
      // A reused link too: the result of the commit that created it may have been lost.
      this.#cache.add(code)
      if (!reused) this.#images.prepare(code)
    }
    this.#indexer.wake()
  }

  changed(code: Code): void {
    this.#cache.drop(code)
  }

  deleted(codes: readonly Code[]): void {
    for (const code of codes) {
      this.#cache.drop(code)
      this.#images.remove(code)
    }
  }
}
