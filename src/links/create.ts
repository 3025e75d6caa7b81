import { setImmediate } from 'node:timers/promises'
import { newPasscode } from '../accounts/passcodes.ts'
import type { AccountId } from '../accounts/store.ts'
import { isoTime } from '../lib/clock.ts'
import { newCode } from './code.ts'
import type { LinkDeps } from './deps.ts'
import type { CreatedView, ReusedView } from './schema.ts'
import type { CreatedLink, NewLink } from './store.ts'
import { urlKey } from './url.ts'

/** URLs prepared before other requests get their turn: about a millisecond. */
const PREPARED_AT_ONCE = 100

/**
 * Stores URLs that have passed `Url` and the blocklist, in one transaction, and answers in order.
 * Where the account has a URL already, the answer is the existing code without a passcode.
 */
export async function create(
  deps: LinkDeps,
  accountId: AccountId,
  urls: readonly string[],
): Promise<(CreatedView | ReusedView)[]> {
  const { links, clock, random } = deps
  const items: NewLink[] = []
  const passcodes: string[] = []
  for (const url of urls) {
    const passcode = newPasscode(random)
    const passcodeHash = deps.hasher.hash('passcode', passcode)
    passcodes.push(passcode)
    items.push({ url, urlKey: urlKey(url), code: newCode(random), passcodeHash })
    if (items.length % PREPARED_AT_ONCE === 0) await setImmediate()
  }
  const created = await links.create({ accountId, createdAt: clock(), items })
  return created.map((link, i) => createdView(deps, link, passcodes[i] ?? ''))
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
