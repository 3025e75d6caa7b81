import type { AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import type { Effects } from '../db/effects.ts'
import { AppError } from '../errors.ts'
import type { CodeVersions } from '../hot/code-versions.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { Caller } from '../lib/thread.ts'
import type { HitLimits } from './destination.ts'
import type { KnownCodes } from './known-codes.ts'
import {
  type Addressed,
  type Author,
  type CreatedLink,
  type CreateLinks,
  encodeCreate,
  type Link,
} from './link.ts'
import type { Patched, PatchLinks, PatchRefusal } from './property-store.ts'
import { type QuotaName, quotaError } from './quota.ts'
import { BAD_ALIASES, BAD_DISPLAY_ALIAS, BAD_TAGS, BAD_TIMES } from './schema.ts'
import type {
  ChangeUrl,
  CreatedOne,
  CreateLink,
  Creation,
  LinkWrites,
  ScheduleDeletion,
} from './store.ts'

interface LinkWriterOptions {
  writer: Caller<LinkWrites>
  effects: LinkEffects
}

/**
 * Changes links. Each method resolves once the change is on disk and its effects have been applied:
 * nothing may be awaited between the writer's result and the effects.
 */
export class LinkWriter {
  readonly #writer: Caller<LinkWrites>
  readonly #effects: LinkEffects

  constructor({ writer, effects }: LinkWriterOptions) {
    this.#writer = writer
    this.#effects = effects
  }

  /**
   * One result per item, in order: a link, or the quota that it exceeds. Throws, with nothing
   * stored, if the disk refuses, or `invalid_api_key` if the account or the key is not active.
   */
  async create(command: CreateLinks): Promise<Creation[]> {
    const result = await this.#writer.call('createEncoded', encodeCreate(command))
    if (result === undefined) throw new AppError('invalid_api_key')
    const links = JSON.parse(result) as Creation[]
    this.#effects.linksCreated(links.filter((link) => typeof link !== 'string'))
    return links
  }

  /**
   * All of a link or nothing. Throws `invalid_api_key`, `code_in_use`, `invalid_value`,
   * `path_taken`, `quota_exceeded`.
   */
  async createLink(command: CreateLink): Promise<CreatedLink> {
    const result = await this.#call('createLink', command)
    if (result === 'code_in_use') throw new AppError('code_in_use', command.item.code)
    return requirePatched(result, command.quota).link
  }

  /** Undefined if the link was deleted. Throws `invalid_api_key`, `quota_exceeded`. */
  async changeUrl(command: ChangeUrl): Promise<Link | undefined> {
    return requireQuota(await this.#call('changeUrl', command), command.quota)
  }

  /** False if the link was deleted already. Throws `invalid_api_key`. */
  async delete(command: { id: number; author: Author }): Promise<boolean> {
    return (await this.#call('deleteLink', command)) !== undefined
  }

  /**
   * All of the links or none. Returns how many of them there were. Throws `invalid_api_key`,
   * `invalid_value`, `path_taken`, `quota_exceeded`.
   */
  async patchLinks(command: PatchLinks): Promise<number> {
    const result = await this.#call('patchLinks', command)
    return requirePatched(result, command.quota).codes.length
  }

  /** Throws `invalid_api_key`. */
  async scheduleDeletion(command: ScheduleDeletion): Promise<void> {
    await this.#call('scheduleDeletion', command)
  }

  /** Returns how many of the links there were. Throws `invalid_api_key`. */
  async undoDeletion(command: Omit<ScheduleDeletion, 'deleteAt'>): Promise<number> {
    return (await this.#call('undoDeletion', command)).length
  }

  /** Deletes at most `most` links whose scheduled deletion is due. Returns how many. */
  async deleteDue(command: { now: number; most: number }): Promise<number> {
    return (await this.#call('deleteDue', command)).length
  }

  /** Deletes at most `most` links of an account. Returns how many; 0 if none is left. */
  async deleteSome(command: { accountId: AccountId; most: number }): Promise<number> {
    return (await this.#call('deleteLinksOf', command)).length
  }

  /** Throws `invalid_api_key` if the writer found the account or the key not active. */
  async #call<Name extends Changes>(name: Name, args: Parameters<LinkWrites[Name]>[0]) {
    const value = await this.#writer.call(name, args)
    this.#effects.after(name, value)
    if (value === 'not_active') throw new AppError('invalid_api_key')
    return value as Exclude<typeof value, 'not_active'>
  }
}

type Changes = Exclude<keyof LinkWrites, 'createEncoded'>

/** A text is the quota that the result of a call exceeds. */
function requireQuota<Result>(result: Result, quota: Quota): Exclude<Result, QuotaName> {
  if (typeof result === 'string') throw quotaError(result as QuotaName, quota)
  return result as Exclude<Result, QuotaName>
}

const PROBLEMS = {
  bad_times: BAD_TIMES,
  too_many_tags: BAD_TAGS,
  too_many_aliases: BAD_ALIASES,
  not_an_alias: BAD_DISPLAY_ALIAS,
}

/** Throws the error of a refused change of properties or aliases. */
function requirePatched<Result extends object>(
  result: Result | Exclude<PatchRefusal, 'not_active'>,
  quota: Quota,
): Result {
  if (typeof result === 'string' && result in PROBLEMS) {
    throw new AppError('invalid_value', PROBLEMS[result as keyof typeof PROBLEMS])
  }
  const patched = requireQuota(result, quota) as Result | { taken: string }
  if ('taken' in patched) throw new AppError('path_taken', patched.taken)
  return patched
}

/** Stores the QR image of each code. */
export interface CodeImages {
  /** The link is new: its image will be requested. */
  prepare(link: Addressed): void
  /** The code has no link any more. */
  remove(code: Code): void
}

interface LinkEffectsOptions {
  versions: Pick<CodeVersions, 'change' | 'changeAll'>
  codes: Pick<KnownCodes, 'add'>
  hitLimits: Pick<HitLimits, 'drop' | 'clear'>
  images: CodeImages
  indexer: { wake(): void }
}

const createdLinks = (value: unknown): CreatedLink[] =>
  typeof value === 'string'
    ? (JSON.parse(value) as Creation[]).filter((link) => typeof link !== 'string')
    : []

/** The codes of a result: a link, or an array of codes. None of undefined or a refusal's name. */
function codesOf(value: unknown): Code[] {
  if (Array.isArray(value)) return value as Code[]
  return typeof value === 'object' && value !== null ? [(value as Link).code] : []
}

/** See `import/store.ts`. `results`: JSON of one for each link. */
interface ImportResult {
  results: string
  restored?: Code[]
}
type ImportedLink = [what: string, code: Code, aliases: string[]]

/**
 * The effects of a committed write: on caches, QR images and the search index. It is called in the
 * tick in which the result of the commit is known, before the change is acknowledged: a later
 * request never sees an old destination.
 */
export class LinkEffects implements Effects {
  readonly #options: LinkEffectsOptions
  /** By the name of the call. Other calls have no effects. */
  readonly #byName: Readonly<Record<string, (value: unknown) => void>>

  constructor(options: LinkEffectsOptions) {
    this.#options = options
    const changed = (value: unknown) => this.linksChanged(codesOf(value))
    const deleted = (value: unknown) => this.linksDeleted(codesOf(value))
    const patched = (value: unknown) => this.#patched(value as Partial<Patched>)
    this.#byName = {
      createEncoded: (value) => this.linksCreated(createdLinks(value)),
      createLink: (value) => this.#createdOne(value as CreatedOne | string),
      changeUrl: changed,
      deleteLink: deleted,
      patchLinks: patched,
      scheduleDeletion: changed,
      undoDeletion: changed,
      deleteDue: deleted,
      deleteLinksOf: deleted,
      importLinks: (value) => this.#imported(value as ImportResult | undefined),
    }
  }

  /** Applies the effects of the result of a call, whichever host made it. */
  after(name: string, value: unknown): void {
    this.#byName[name]?.(value)
  }

  linksCreated(links: readonly Pick<CreatedLink, 'code' | 'reused'>[]): void {
    const { codes, images, indexer } = this.#options
    for (const link of links) {
      const { code, reused } = link
      // Also for a reused link: the result of the commit that created it may have been lost, and a
      // scheduled deletion of it is canceled.
      codes.add(code)
      this.#drop(code)
      if (!reused) images.prepare(link)
    }
    indexer.wake()
  }

  #createdOne(result: CreatedOne | { taken: string } | string): void {
    if (typeof result === 'string' || 'taken' in result) return
    this.linksCreated([result.link])
    if (result.aliases) this.aliasesChanged(result.aliases)
  }

  /** QR images are created on request: an import would keep their thread busy for minutes. */
  linksImported(links: readonly { code: Code; paths: readonly string[] }[]): void {
    for (const { code, paths } of links) {
      this.#options.codes.add(code)
      this.#drop(code)
      this.aliasesChanged({ changed: paths })
    }
    this.#options.indexer.wake()
  }

  #imported({ results, restored = [] }: ImportResult = { results: '[]' }): void {
    const links = JSON.parse(results) as ImportedLink[]
    this.linksImported(
      links.flatMap(([what, code, paths]) => (what === 'created' ? { code, paths } : [])),
    )
    this.linksChanged(restored)
  }

  /** The hits of this host are known already. */
  hitsAdded(): void {
    this.#options.hitLimits.clear()
  }

  /** Disabled codes or disabled accounts have changed. */
  rulesChanged(): void {
    this.#options.versions.changeAll()
  }

  linksChanged(codes: readonly Code[]): void {
    for (const code of codes) this.#drop(code)
  }

  /** Without codes it is a refusal. */
  #patched({ codes = [], aliases }: Partial<Patched>): void {
    this.linksChanged(codes)
    if (aliases) this.aliasesChanged(aliases)
  }

  /** Not needed for the aliases of a deleted link: a cache finds no link with the same id. */
  aliasesChanged({
    changed,
    isAnyCase = false,
  }: {
    changed: readonly string[]
    isAnyCase?: boolean
  }): void {
    const { codes, versions } = this.#options
    for (const path of changed) {
      codes.add(path)
      const folded = toCode(path)
      if (folded !== undefined) codes.add(folded)
      versions.change(path)
    }
    if (isAnyCase) versions.changeAll()
  }

  linksDeleted(codes: readonly Code[]): void {
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
