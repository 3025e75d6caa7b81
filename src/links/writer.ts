import type { AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import type { Caller } from '../lib/thread.ts'
import type { SetAliases } from './alias-store.ts'
import type { LinkEffects } from './effects.ts'
import {
  type Author,
  type CreateLinks,
  encodeCreate,
  type Link,
  type QuotaName,
  quotaError,
} from './link.ts'
import { BAD_TAGS, BAD_TIMES } from './property-models.ts'
import type { PatchLinks, ScheduleDeletion } from './property-store.ts'
import type { ChangeUrl, Creation, LinkWrites, ReserveCode } from './store.ts'

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
    this.#effects.created(links.filter((link) => typeof link !== 'string'))
    return links
  }

  /** Undefined if the code is in use. Throws `invalid_api_key`, `quota_exceeded`. */
  async reserve(command: ReserveCode): Promise<Link | undefined> {
    return requireLink(await this.#call('reserveCode', command), command)
  }

  /** Undefined if the link was deleted. Throws `invalid_api_key`, `quota_exceeded`. */
  async changeUrl(command: ChangeUrl): Promise<Link | undefined> {
    return requireLink(await this.#call('changeUrl', command), command)
  }

  /** False if the link was deleted already. Throws `invalid_api_key`. */
  async delete(command: { id: number; author: Author }): Promise<boolean> {
    return requireActive(await this.#call('deleteLink', command)) !== undefined
  }

  /** All of the links or none. Throws `invalid_api_key`, `invalid_value`, `quota_exceeded`. */
  async patchLinks(command: PatchLinks): Promise<void> {
    const codes = requireActive(await this.#call('patchLinks', command))
    if (codes === 'bad_times') throw new AppError('invalid_value', BAD_TIMES)
    if (codes === 'too_many_tags') throw new AppError('invalid_value', BAD_TAGS)
    if (typeof codes === 'string') throw quotaError(codes, command.quota)
  }

  /** False if the link was deleted. Throws `invalid_api_key`, `path_taken`, `quota_exceeded`. */
  async setAliases(command: SetAliases): Promise<boolean> {
    const result = requireActive(await this.#call('setAliases', command))
    if (typeof result === 'string') throw quotaError(result, command.quota)
    if (result && 'taken' in result) throw new AppError('path_taken', result.taken)
    return result !== undefined
  }

  /** Throws `invalid_api_key`. */
  async scheduleDeletion(command: ScheduleDeletion): Promise<void> {
    requireActive(await this.#call('scheduleDeletion', command))
  }

  /** Returns how many of the links there were. Throws `invalid_api_key`. */
  async undoDeletion(command: Omit<ScheduleDeletion, 'deleteAt'>): Promise<number> {
    return requireActive(await this.#call('undoDeletion', command)).length
  }

  /** Deletes at most `most` links whose scheduled deletion is due. Returns how many. */
  async deleteDue(command: { now: number; most: number }): Promise<number> {
    return (await this.#call('deleteDue', command)).length
  }

  /** Deletes at most `most` links of an account. Returns how many; 0 if none is left. */
  async deleteSome(command: { accountId: AccountId; most: number }): Promise<number> {
    return (await this.#call('deleteLinksOf', command)).length
  }

  async #call<Name extends Changes>(name: Name, args: Parameters<LinkWrites[Name]>[0]) {
    const value = await this.#writer.call(name, args)
    this.#effects.after(name, value)
    return value
  }
}

type Changes = Exclude<keyof LinkWrites, 'createEncoded'>

/** Throws `invalid_api_key` if the writer found the account or the key not active. */
function requireActive<Result>(result: Result | 'not_active'): Result {
  if (result === 'not_active') throw new AppError('invalid_api_key')
  return result
}

function requireLink(
  result: Link | 'not_active' | QuotaName | undefined,
  { quota }: Pick<ReserveCode, 'quota'>,
): Link | undefined {
  const link = requireActive(result)
  if (typeof link === 'string') throw quotaError(link, quota)
  return link
}
