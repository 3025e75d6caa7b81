import type { CodeVersions } from '../hot/code-versions.ts'
import type { Code } from '../lib/code.ts'
import type { KnownCodes } from './known-codes.ts'
import type { CreatedLink } from './link.ts'
import type { RuleCache } from './rules.ts'

/** Stores the QR image of each code. */
export interface CodeImages {
  /** The code is new: its image will be requested. */
  prepare(code: Code): void
  /** The code has no link any more. */
  remove(code: Code): void
}

interface LinkEffectsOptions {
  versions: Pick<CodeVersions, 'change' | 'changeAll'>
  codes: Pick<KnownCodes, 'add'>
  rules: Pick<RuleCache, 'drop' | 'clear'>
  images: CodeImages
  indexer: { wake(): void }
}

/**
 * What follows a committed write: the caches, the QR images and the search index. `LinkWriter` and
 * `Moderation` call this in the tick in which they receive the result of the commit: a later
 * request never sees an old destination.
 */
export class LinkEffects {
  readonly #versions: LinkEffectsOptions['versions']
  readonly #codes: LinkEffectsOptions['codes']
  readonly #rules: LinkEffectsOptions['rules']
  readonly #images: CodeImages
  readonly #indexer: { wake(): void }

  constructor({ versions, codes, rules, images, indexer }: LinkEffectsOptions) {
    this.#versions = versions
    this.#codes = codes
    this.#rules = rules
    this.#images = images
    this.#indexer = indexer
  }

  created(links: readonly Pick<CreatedLink, 'code' | 'reused'>[]): void {
    for (const { code, reused } of links) {
      // The result of the commit that created a reused link may have been lost, and a scheduled
      // deletion of it is canceled.
      if (reused) this.#drop(code)
      else {
        this.#codes.add(code)
        this.#versions.change(code)
        this.#images.prepare(code)
      }
    }
    this.#indexer.wake()
  }

  /** Disabled codes, disabled accounts or the blocklist have changed. */
  rulesChanged(): void {
    this.#versions.changeAll()
    this.#rules.clear()
  }

  changed(codes: readonly Code[]): void {
    for (const code of codes) this.#drop(code)
  }

  deleted(codes: readonly Code[]): void {
    for (const code of codes) {
      this.#drop(code)
      this.#images.remove(code)
    }
  }

  #drop(code: Code): void {
    this.#versions.change(code)
    this.#rules.drop(code)
  }
}
