import { hashesEqual } from '../accounts/secrets.ts'
import type { Account } from '../accounts/store.ts'
import { type ResolveDeps, resolveLink } from '../addresses/resolve.ts'
import { authorOf } from '../db/author.ts'
import { AppError } from '../errors.ts'
import { toCode } from '../lib/code.ts'
import { check } from './check.ts'
import type { Kit } from './kit.ts'
import type { Link, ParsedUrl, SecretLink } from './link.ts'
import type { LinkReads } from './read.ts'
import type { DeletedView, UpdatedView } from './schema.ts'
import { urlKey } from './url.ts'

/**
 * Sets the URL of a code; doing it again gives the same. Throws `invalid_passcode`, then
 * `url_blocked`, then `quota_exceeded`.
 */
export async function update(
  deps: Kit,
  account: Account,
  { code, passcode, url }: { code: string; passcode: string; url: ParsedUrl },
): Promise<UpdatedView> {
  const authorize = () => authorizeByPasscode(deps, account, code, passcode)
  const before = await deps.writer.decide(authorize)
  const link = await setUrl(deps, account, before, url)
  // Deleted between the check and the write.
  if (!link) throw invalidPasscode(code)
  return {
    code: link.code,
    url: url.text,
    short_url: deps.addresses.short(link),
    updated: true,
  }
}

/**
 * Deletes a code at once: from the next request on it is unknown, and anyone can claim it. Throws
 * `invalid_passcode`.
 */
export async function deleteLink(
  deps: Kit,
  account: Account,
  { code, passcode }: { code: string; passcode: string },
): Promise<DeletedView> {
  const authorize = () => authorizeByPasscode(deps, account, code, passcode)
  const link = await deps.writer.decide(authorize)
  // Another request may have deleted it between the check and the write.
  const author = authorOf(account, deps.clock())
  if (!(await deps.links.delete({ id: link.id, author }))) throw invalidPasscode(code)
  return { code: link.code, deleted: true }
}

/** Deletes the account's own link at once, without its passcode. Throws `code_not_found`. */
export async function deleteOwnedLink(
  deps: Kit,
  account: Account,
  text: string,
): Promise<DeletedView> {
  const { id, code } = await deps.writer.decide(() => requireOwnedLink(deps, account, text))
  const author = authorOf(account, deps.clock())
  if (!(await deps.links.delete({ id, author }))) throw notFound(text)
  return { code, deleted: true }
}

/**
 * Sets the URL of the account's own link, without its passcode. Throws `code_not_found`, then
 * `url_blocked`, then `quota_exceeded`.
 */
export async function updateOwnedLink(
  deps: Kit,
  account: Account,
  { code, url }: { code: string; url: ParsedUrl },
): Promise<Link> {
  const before = await deps.writer.decide(() => requireOwnedLink(deps, account, code))
  const link = await setUrl(deps, account, before, url)
  if (!link) throw notFound(code)
  return link
}

/**
 * Undefined if the link was deleted. Throws `url_blocked` for a URL that the link does not have
 * yet, then `quota_exceeded`.
 */
async function setUrl(
  deps: Kit,
  account: Account,
  { id, url: before }: Link,
  url: ParsedUrl,
): Promise<Link | undefined> {
  await check(deps, account, { url }, { url: before })
  const { clock, links, plans } = deps
  return links.changeUrl({
    id,
    url: url.text,
    urlKey: urlKey(url),
    quota: plans[account.plan],
    author: authorOf(account, clock()),
  })
}

/**
 * The account's own link that a text names: see `resolveLink`. Throws the same `code_not_found` for
 * a text that names no link and for another account's link.
 */
export function requireOwnedLink(deps: ResolveDeps<Link>, account: Account, text: string): Link {
  const link = resolveLink(deps, text)
  if (link?.accountId !== account.id) throw notFound(text)
  return link
}

/** Maximum number of links that one call changes. */
const CHANGED_MAX = 100

/** The ids of the account's own links. Throws `code_not_found` for the first other code. */
export function requireOwnedIds(
  deps: ResolveDeps<Link>,
  account: Account,
  codes: readonly string[],
): number[] {
  if (codes.length > CHANGED_MAX) {
    throw new AppError('invalid_value', `Choose at most ${CHANGED_MAX} links.`)
  }
  return codes.map((code) => requireOwnedLink(deps, account, code).id)
}

const notFound = (text: string): AppError => new AppError('code_not_found', text.toUpperCase())

/**
 * The link that an account may change with a passcode. Throws the same `invalid_passcode` for an
 * unknown code, a wrong passcode and another account's code. The time of the response may tell an
 * unknown code from a code in use, as `GET /api/lookup` does; it does not depend on the passcode.
 */
export function authorizeByPasscode(
  deps: Pick<Kit, 'hasher'> & { data: { links: LinkReads } },
  account: Account,
  text: string,
  passcode: string,
): SecretLink {
  const code = toCode(text)
  const link = code && deps.data.links.findSecretByCode(code)
  const presented = deps.hasher.hash('passcode', passcode)
  const isAuthorized =
    link && hashesEqual(presented, link.passcodeHash) && link.accountId === account.id
  if (!isAuthorized) throw invalidPasscode(text)
  return link
}

const invalidPasscode = (code: string): AppError =>
  new AppError('invalid_passcode', code.toUpperCase())
