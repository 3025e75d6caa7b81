import { issueKey, type KeyDeps } from '../../src/accounts/keys.ts'
import { KEY_OVERLAP_MS } from '../../src/accounts/operations/keys.ts'
import type { AccountId, AccountStore } from '../../src/accounts/store.ts'

/** What `hopcode key rotate` and `hopcode key revoke` do to all keys of an account. */

/** `KeyDeps` in a process that may write. */
export type KeyStoreDeps = KeyDeps & { accounts: AccountStore }

interface KeyChange {
  /** The old keys expire immediately, not in 24 hours. */
  now: boolean
}

/** Returns the new key. */
export function rotateKey(deps: KeyStoreDeps, id: AccountId, change: KeyChange): string {
  const { key, stored } = issueKey(deps)
  revokeKey(deps, id, change)
  deps.accounts.addKey(id, stored, deps.clock())
  return key
}

export function revokeKey(deps: KeyStoreDeps, id: AccountId, { now }: KeyChange): void {
  const time = deps.clock()
  deps.accounts.revokeKeys(id, now ? time : time + KEY_OVERLAP_MS)
}
