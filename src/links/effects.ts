import type { CodeVersions } from '../hot/code-versions.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { AliasChange } from './alias-store.ts'
import type { KnownCodes } from './known-codes.ts'
import type { CreatedLink, Link } from './link.ts'
import type { HitLimits } from './rules.ts'
import type { Creation } from './store.ts'

/** Stores the QR image of each code. */
export interface CodeImages {
  /** The code is new: its image will be requested. */
  prepare(code: Code): void
  /** The code has no link any more. */
  remove(code: Code): void
}

interface LinkEffectsOptions {
  versions: Pick<CodeVersions, 'change' | 'changeAlias' | 'changeAll'>
  codes: Pick<KnownCodes, 'add'>
  hitLimits: Pick<HitLimits, 'drop' | 'clear'>
  images: CodeImages
  indexer: { wake(): void }
}

/** The effects of a result, by the name of the call. Other calls have no effects. */
const EFFECTS: Readonly<Record<string, (effects: LinkEffects, value: unknown) => void>> = {
  createEncoded: (effects, value) => effects.created(createdLinks(value)),
  reserveCode: (effects, value) => effects.created(linksIn(value).map(asNew)),
  changeUrl: (effects, value) => effects.changed(linksIn(value).map(codeOf)),
  setAliases: (effects, value) => effects.aliasesChanged(value as Partial<AliasChange> | undefined),
  deleteLink: (effects, value) => effects.deleted(linksIn(value).map(codeOf)),
  patchLinks: (effects, value) => effects.changed(codesIn(value)),
  changeProperties: (effects, value) => effects.changed(codesIn(value)),
  scheduleDeletion: (effects, value) => effects.changed(codesIn(value)),
  undoDeletion: (effects, value) => effects.changed(codesIn(value)),
  deleteDue: (effects, value) => effects.deleted(codesIn(value)),
  deleteLinksOf: (effects, value) => effects.deleted(codesIn(value)),
  disableCode: (effects) => effects.rulesChanged(),
  enableCode: (effects) => effects.rulesChanged(),
  disableAccount: (effects) => effects.rulesChanged(),
  enableAccount: (effects) => effects.rulesChanged(),
  importLinks: (effects, value) => effects.imported(importedLinks(value)),
  setUpOwner: (effects) => effects.rulesChanged(),
  addHits: (effects) => effects.hitsCounted(),
}

const createdLinks = (value: unknown): CreatedLink[] =>
  typeof value === 'string'
    ? (JSON.parse(value) as Creation[]).filter((link) => typeof link !== 'string')
    : []

/** The links that an import has created. */
const importedLinks = (value: unknown): ImportedLink[] =>
  value === undefined
    ? []
    : (JSON.parse((value as { results: string }).results) as ImportedLink[]).filter(
        ([what]) => what === 'created',
      )

/** A result that is a link; empty for undefined and for the name of a refusal. */
const linksIn = (value: unknown): Link[] =>
  typeof value === 'object' && value !== null ? [value as Link] : []

/** A result that is an array of codes; empty for the name of a refusal. */
const codesIn = (value: unknown): Code[] => (Array.isArray(value) ? (value as Code[]) : [])

/** See `StoredResult` in `import/store.ts`. */
type ImportedLink = [what: string, code: Code, aliases: string[]]

const codeOf = ({ code }: Link): Code => code
const asNew = ({ code }: Link) => ({ code, reused: false })

/**
 * The effects of a committed write: on caches, QR images and the search index. It is called in the
 * tick in which the result of the commit is known, before the change is acknowledged: a later
 * request never sees an old destination.
 */
export class LinkEffects {
  readonly #options: LinkEffectsOptions

  constructor(options: LinkEffectsOptions) {
    this.#options = options
  }

  /** Applies the effects of the result of a call, whichever host made it. */
  after(name: string, value: unknown): void {
    EFFECTS[name]?.(this, value)
  }

  created(links: readonly Pick<CreatedLink, 'code' | 'reused'>[]): void {
    const { codes, images, indexer } = this.#options
    for (const { code, reused } of links) {
      // Also for a reused link: the result of the commit that created it may have been lost, and a
      // scheduled deletion of it is canceled.
      codes.add(code)
      this.#drop(code)
      if (!reused) images.prepare(code)
    }
    indexer.wake()
  }

  /** QR images are created on request: an import would keep their thread busy for minutes. */
  imported(links: readonly ImportedLink[]): void {
    for (const [, code, aliases] of links) {
      this.#options.codes.add(code)
      this.#drop(code)
      this.aliasesChanged({ changed: aliases })
    }
    this.#options.indexer.wake()
  }

  /** Disabled codes or disabled accounts have changed. */
  rulesChanged(): void {
    this.#options.versions.changeAll()
  }

  /** Other hosts have counted hits; the hits of this host are known already. */
  hitsCounted(): void {
    this.#options.hitLimits.clear()
  }

  changed(codes: readonly Code[]): void {
    for (const code of codes) this.#drop(code)
  }

  /** Not needed for the aliases of a deleted link: a cache finds no link with the same id. */
  aliasesChanged({ changed = [], isAnyCase = false }: Partial<AliasChange> = {}): void {
    const { codes, versions } = this.#options
    for (const path of changed) {
      codes.add(path)
      const folded = toCode(path)
      if (folded !== undefined) codes.add(folded)
      versions.changeAlias(path)
    }
    if (isAnyCase) versions.changeAll()
  }

  deleted(codes: readonly Code[]): void {
    for (const code of codes) {
      this.#drop(code)
      this.#options.images.remove(code)
    }
  }

  #drop(code: Code): void {
    this.#options.versions.change(code)
    this.#options.hitLimits.drop(code)
  }
}
