import type { AccountId } from '../accounts/store.ts'
import { BAD_DOMAIN } from '../addresses/address.ts'
import { BAD_ALIASES, BAD_DISPLAY_ALIAS } from '../addresses/schema.ts'
import type { Quota } from '../config.ts'
import type { Author } from '../db/author.ts'
import type { WriteCalls } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import type { CreatedLink, CreateLinks, Link } from './link.ts'
import type {
  ChangeUrl,
  CreateLink,
  Creation,
  PatchLinks,
  PatchRefusal,
  ScheduleDeletion,
} from './put.ts'
import { type QuotaName, quotaError } from './quota.ts'
import { BAD_FORWARDING, BAD_TAGS, BAD_TIMES } from './schema.ts'
import type { links } from './subject.ts'

type LinkCalls = WriteCalls<(typeof links)['writes']>

/**
 * Changes links. Each method resolves once the change is on disk and all readers of its events know
 * it, and throws if its author may not change the links: see `Write`.
 */
export class LinkWriter {
  readonly #links: LinkCalls

  constructor(data: { links: LinkCalls }) {
    this.#links = data.links
  }

  /**
   * One result per item, in order: a link, or the quota that it exceeds. Throws, with nothing
   * stored, if the disk refuses.
   */
  create(command: CreateLinks): Promise<Creation[]> {
    return this.#links.create(command)
  }

  /**
   * All of a link or nothing. Throws `code_in_use`, `invalid_value`, `path_taken`,
   * `quota_exceeded`.
   */
  async createLink(command: CreateLink): Promise<CreatedLink> {
    const result = await this.#links.createOne(command)
    if (result === 'code_in_use') throw new AppError('code_in_use', command.item.code)
    return requirePatched(result, command.quota).link
  }

  /** Undefined if the link was deleted. Throws `quota_exceeded`. */
  async changeUrl(command: ChangeUrl): Promise<Link | undefined> {
    const changed = await this.#links.changeUrl(command)
    return changed && requirePatched(changed, command.quota).link
  }

  /** False if the link was deleted already. */
  async delete(command: { id: number; author: Author }): Promise<boolean> {
    return (await this.#links.delete(command)) !== undefined
  }

  /**
   * All of the links or none. Returns how many of them there were. Throws `invalid_value`,
   * `path_taken`, `quota_exceeded`.
   */
  async patchLinks(command: PatchLinks): Promise<number> {
    const result = await this.#links.patch(command)
    return requirePatched(result, command.quota).links.length
  }

  async scheduleDeletion(command: ScheduleDeletion): Promise<void> {
    await this.#links.scheduleDeletion(command)
  }

  /** Returns how many of the links there were. */
  async undoDeletion(command: Omit<ScheduleDeletion, 'deleteAt'>): Promise<number> {
    return (await this.#links.undoDeletion(command)).length
  }

  /** Deletes at most `most` links whose scheduled deletion is due. Returns how many. */
  async deleteDue(command: { now: number; most: number }): Promise<number> {
    return (await this.#links.deleteDue(command)).length
  }

  /** Deletes at most `most` links of an account. Returns how many; 0 if none is left. */
  async deleteSome(command: { accountId: AccountId; most: number }): Promise<number> {
    return (await this.#links.deleteSome(command)).length
  }
}

/** A text is the quota that the result of a call exceeds. */
function requireQuota<Result>(result: Result, quota: Quota): Exclude<Result, QuotaName> {
  if (typeof result === 'string') throw quotaError(result as QuotaName, quota)
  return result as Exclude<Result, QuotaName>
}

const PROBLEMS = {
  bad_times: BAD_TIMES,
  bad_forwarding: BAD_FORWARDING,
  too_many_tags: BAD_TAGS,
  too_many_aliases: BAD_ALIASES,
  not_an_alias: BAD_DISPLAY_ALIAS,
  bad_domain: BAD_DOMAIN,
}

/** Throws the error of a refused change of properties or aliases. */
function requirePatched<Result extends object>(
  result: Result | PatchRefusal,
  quota: Quota,
): Result {
  if (typeof result === 'string' && result in PROBLEMS) {
    throw new AppError('invalid_value', PROBLEMS[result as keyof typeof PROBLEMS])
  }
  const patched = requireQuota(result, quota) as Result | { taken: string; isOtherCase?: boolean }
  if ('taken' in patched) {
    throw new AppError(patched.isOtherCase ? 'path_differs_in_case' : 'path_taken', patched.taken)
  }
  return patched
}
