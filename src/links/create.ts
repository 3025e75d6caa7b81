import { newPasscode } from '../accounts/passcodes.ts'
import type { Account } from '../accounts/store.ts'
import type { AppError } from '../errors.ts'
import { isoTime } from '../lib/clock.ts'
import { newCode } from '../lib/code.ts'
import { batchTurns } from '../lib/turns.ts'
import type { LinkDeps } from './deps.ts'
import { quotaError } from './quota.ts'
import type { CreatedLink, NewLink } from './row.ts'
import type { CreatedView, ReusedView } from './schema.ts'
import { urlKey } from './url.ts'

/** Links before other requests get their turn: about a quarter of a millisecond. */
export const LINKS_AT_ONCE = 100

/**
 * Stores URLs that have passed `Url` and the blocklist, in one transaction, and answers in order.
 * Where the account has a URL already, the answer is the existing code without a passcode. A URL
 * that exceeds a quota is answered with the error alone.
 */
export async function create(
  deps: LinkDeps,
  owner: Account,
  urls: readonly string[],
): Promise<(CreatedView | ReusedView | AppError)[]> {
  const quota = deps.plans[owner.plan]
  const { links, clock, random } = deps
  const passcodes: string[] = []
  const items = await batchTurns.map(urls, LINKS_AT_ONCE, (url): NewLink => {
    const passcode = newPasscode(random)
    passcodes.push(passcode)
    const passcodeHash = deps.hasher.hash('passcode', passcode)
    return { url, urlKey: urlKey(url), code: newCode(random), passcodeHash }
  })
  const created = await links.create({
    accountId: owner.id,
    keyId: owner.keyId,
    createdAt: clock(),
    items,
    quota,
  })
  return batchTurns.map(created, LINKS_AT_ONCE, (link, i) =>
    typeof link === 'string'
      ? quotaError(link, quota)
      : createdView(deps, link, passcodes[i] ?? ''),
  )
}

function createdView(
  { addresses }: LinkDeps,
  { code, url, createdAt, reused }: CreatedLink,
  passcode: string,
): CreatedView | ReusedView {
  return {
    code,
    url: url ?? '',
    short_url: addresses.short(code),
    qr_url: addresses.qr(code),
    created_at: isoTime(createdAt),
    ...(reused ? { passcode: null, reused } : { passcode, reused }),
  }
}
