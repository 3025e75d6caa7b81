import type { Account } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import type { LinkDeps } from './deps.ts'
import { getOwnLink, notOwn } from './own.ts'
import { authorOf, type LinkRow } from './row.ts'
import { urlKey } from './url.ts'

/**
 * Points an account's own code at another URL, which has passed `Url`: owning it suffices. Throws
 * `code_not_found`, then `url_blocked`.
 */
export async function change(
  deps: LinkDeps,
  owner: Account,
  { code, url }: { code: string; url: string },
): Promise<LinkRow> {
  const link = await pointAt(deps, owner, { id: getOwnLink(deps, owner, code).id, url })
  if (!link) throw notOwn(code)
  return link
}

/**
 * What a change asks of the new URL, whoever may make it; doing it again gives the same. Undefined
 * when the link is gone. Throws `url_blocked`, then `quota_exceeded`.
 */
export async function pointAt(
  { blocklist, links, plans, clock }: LinkDeps,
  owner: Account,
  { id, url }: { id: number; url: string },
): Promise<LinkRow | undefined> {
  if (blocklist.isBlocked(url)) throw new AppError('url_blocked')
  return links.changeUrl({
    id,
    url,
    urlKey: urlKey(url),
    quota: plans[owner.plan],
    author: authorOf(owner, clock()),
  })
}
