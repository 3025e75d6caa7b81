import type { Account } from '../accounts/store.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import { authorOf } from '../db/author.ts'
import { AppError, REFUSALS } from '../errors.ts'
import { assert } from '../lib/assert.ts'
import { isoTime } from '../lib/clock.ts'
import { newCode } from '../lib/code.ts'
import { batchSlices } from '../lib/time-slices.ts'
import { check, checkUrl, type Draft, type LinkInput } from './check.ts'
import type { Kit } from './kit.ts'
import { type CreatedLink, type NewLink, newPasscode, type ParsedUrl } from './link.ts'
import type { LinkChange } from './link-change.ts'
import { quotaError } from './quota.ts'
import type { BulkItemView, BulkView, CreatedView, ReservedView, ReusedView } from './schema.ts'
import { urlKey } from './url.ts'

/** What a request may set of a new link beside its URL. */
export type NewLinkFields = Omit<LinkInput, 'url'>

/**
 * Gives a URL a code, or finds the one that the account has for it, which keeps its properties.
 * `reuse`: false for a further link to such a URL. Throws `invalid_value`, `code_in_use`,
 * `path_taken`, then `url_blocked` or `own_host`, then `quota_exceeded`.
 */
export async function shorten(
  deps: Kit,
  account: Account,
  url: ParsedUrl,
  fields: NewLinkFields = {},
  { reuse = true } = {},
): Promise<CreatedView | ReusedView> {
  const draft = await check(deps, account, { ...fields, url })
  if (!reuse || Object.values(fields).some((value) => value !== undefined)) {
    const { link, passcode } = await createLink(deps, account, draft, reuse)
    return createdView(deps.addresses, link, passcode)
  }
  const [view] = await createLinks(deps, account, [url])
  assert(view, 'one URL has one result')
  if (view instanceof AppError) throw view
  return view
}

/** Reserves a code, in any letter case, without a URL. Throws as `shorten`. */
export async function reserve(
  deps: Kit,
  account: Account,
  code: string,
  fields: LinkChange = {},
): Promise<ReservedView> {
  const draft = await check(deps, account, { ...fields, code })
  const { link, passcode } = await createLink(deps, account, draft)
  return {
    code: link.code,
    passcode,
    url: null,
    short_url: deps.addresses.short(link),
    reserved: true,
    created_at: isoTime(link.createdAt),
  }
}

/** Creates one link with its properties and aliases, all or nothing. */
async function createLink(
  deps: Kit,
  account: Account,
  draft: Draft,
  reuse = true,
): Promise<{ link: CreatedLink; passcode: string }> {
  const { code, patch, aliases = {} } = draft
  const { item, passcode } = newLinkOf(deps, draft)
  const link = await deps.links.createLink({
    author: authorOf(account, deps.clock()),
    item,
    isGenerated: !code,
    reuse,
    patch,
    aliases,
    quota: deps.plans[account.plan],
  })
  return { link, passcode }
}

/** Gives a draft its code and its passcode. */
function newLinkOf(
  { hasher, random }: Pick<Kit, 'hasher' | 'random'>,
  { url, code, typedCode }: Partial<Pick<Draft, 'url' | 'code' | 'typedCode'>>,
): { item: NewLink; passcode: string } {
  const passcode = newPasscode(random)
  const item = {
    url: url?.text ?? null,
    urlKey: url ? urlKey(url) : null,
    code: code ?? newCode(random),
    ...(typedCode && { typedCode }),
    passcodeHash: hasher.hash('passcode', passcode),
  }
  return { item, passcode }
}

/** Links per time slice: about a quarter of a millisecond. */
const LINKS_AT_ONCE = 100

/**
 * Shortens many URLs in one transaction. A bad URL fails alone. If all are bad, nothing is stored
 * and the request is refused: 400 with the message of the first invalid URL, else 422.
 * `requireHeld`: throws if others need the memory of the request, before anything is stored.
 */
export async function bulk(
  deps: Kit,
  account: Account,
  urls: readonly unknown[],
  requireHeld = () => {},
): Promise<BulkView> {
  const checked = await batchSlices.map(urls, LINKS_AT_ONCE, (url) => checkUrl(deps, url))
  const good = checked.flatMap((url) => (url instanceof AppError ? [] : [url]))
  if (good.length === 0) throw pickError(checked)
  requireHeld()
  const created = await createLinks(deps, account, good)
  const full = created.find((view) => view instanceof AppError)
  if (full && created.every((view) => view instanceof AppError)) {
    throw pickError([...checked, full])
  }
  let next = 0
  const results = checked.map((url, i): BulkItemView => {
    if (url instanceof AppError) return failedItem(urls[i], url)
    const view = created[next++]
    assert(view, 'every good URL has a result')
    return view instanceof AppError ? failedItem(urls[i], view) : { ok: true, ...view }
  })
  return { count: results.length, results }
}

function failedItem(url: unknown, { message }: AppError): BulkItemView {
  return { ok: false, url: typeof url === 'string' ? url : null, error: message }
}

function pickError(results: readonly (ParsedUrl | AppError)[]): AppError {
  const errors = results.filter((result) => result instanceof AppError)
  const invalid = errors.find(({ status }) => status === REFUSALS.invalid_value.status)
  return invalid ?? errors.at(-1) ?? new AppError('url_blocked')
}

/**
 * Stores URLs that are not blocked in one transaction; the results are in their order. Where the
 * account has a URL already, the result is the existing code without a passcode. A URL that exceeds
 * a quota has the error as its result.
 */
async function createLinks(
  deps: Kit,
  account: Account,
  urls: readonly ParsedUrl[],
): Promise<(CreatedView | ReusedView | AppError)[]> {
  const { addresses, clock, links } = deps
  const quota = deps.plans[account.plan]
  const passcodes: string[] = []
  const items = await batchSlices.map(urls, LINKS_AT_ONCE, (url): NewLink => {
    const { item, passcode } = newLinkOf(deps, { url })
    passcodes.push(passcode)
    return item
  })
  const created = await links.create({
    author: authorOf(account, clock()),
    items,
    quota,
  })
  return batchSlices.map(created, LINKS_AT_ONCE, (link, i) =>
    typeof link === 'string'
      ? quotaError(link, quota)
      : createdView(addresses, link, passcodes[i] ?? ''),
  )
}

/** `passcode`: of a link that is new. */
export function createdView(
  addresses: PublicUrls,
  link: CreatedLink,
  passcode: string,
): CreatedView | ReusedView {
  const { code, url, createdAt, reused } = link
  return {
    code,
    url: url ?? '',
    short_url: addresses.short(link),
    qr_url: addresses.qr(link),
    created_at: isoTime(createdAt),
    ...(reused ? { passcode: null, reused } : { passcode, reused }),
  }
}
