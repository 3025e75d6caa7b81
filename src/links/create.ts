import { newPasscode } from '../accounts/passcodes.ts'
import type { Account } from '../accounts/store.ts'
import { isoTime } from '../lib/clock.ts'
import { mapInTurns } from '../lib/turns.ts'
import { newCode } from './code.ts'
import type { LinkDeps } from './deps.ts'
import type { CreatedLink, NewLink } from './row.ts'
import type { CreatedView, ReusedView } from './schema.ts'
import { urlKey } from './url.ts'

/** Links before other requests get their turn: about a quarter of a millisecond. */
export const LINKS_AT_ONCE = 100

/**
 * Stores URLs that have passed `Url` and the blocklist, in one transaction, and answers in order.
 * Where the account has a URL already, the answer is the existing code without a passcode.
 */
export async function create(
  deps: LinkDeps,
  { id: accountId, keyId }: Account,
  urls: readonly string[],
): Promise<(CreatedView | ReusedView)[]> {
  const { links, clock, random } = deps
  const passcodes: string[] = []
  const items = await mapInTurns(urls, LINKS_AT_ONCE, (url): NewLink => {
    const passcode = newPasscode(random)
    passcodes.push(passcode)
    const passcodeHash = deps.hasher.hash('passcode', passcode)
    return { url, urlKey: urlKey(url), code: newCode(random), passcodeHash }
  })
  const created = await links.create({ accountId, keyId, createdAt: clock(), items })
  return mapInTurns(created, LINKS_AT_ONCE, (link, i) =>
    createdView(deps, link, passcodes[i] ?? ''),
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
