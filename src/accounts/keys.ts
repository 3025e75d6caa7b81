import type { Clock } from '../lib/clock.ts'
import { HOUR } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import { isApiKey, newApiKey } from './api-keys.ts'
import type { SecretHasher } from './secrets.ts'
import type { Account, AccountId, AccountStore, NewKey } from './store.ts'

/** How long a rotated or revoked key goes on working. */
export const KEY_OVERLAP_MS = 24 * HOUR

/** The characters of a key that its owner may see again, from its start. */
const PREFIX_LENGTH = 8

export interface KeyDeps {
  accounts: AccountStore
  hasher: SecretHasher
  clock: Clock
  random: RandomBytes
}

export interface KeyCheckDeps extends KeyDeps {
  /** Records when each key was last used. */
  keyUses: { note(keyId: number, now: number): void }
}

/**
 * The account that an `X-API-Key` header speaks for; undefined for an absent, malformed, unknown or
 * ended key.
 */
export function findAccount(deps: KeyCheckDeps, key: string | null): Account | undefined {
  if (key === null || !isApiKey(key)) return undefined
  const now = deps.clock()
  const account = deps.accounts.findByKeyHash(deps.hasher.hash('api-key', key), now)
  if (account) deps.keyUses.note(account.keyId, now)
  return account
}

/** A key and what is stored of it. The key itself is shown once and kept nowhere. */
export function issueKey({ hasher, random }: KeyDeps): { key: string; stored: NewKey } {
  const key = newApiKey(random)
  const hash = hasher.hash('api-key', key)
  return { key, stored: { hash, prefix: key.slice(0, PREFIX_LENGTH), lastFour: key.slice(-4) } }
}

/** Returns the new key. The old one works 24 hours more, or not at all. */
export function rotateKey(deps: KeyDeps, id: AccountId, { now }: { now: boolean }): string {
  const { key, stored } = issueKey(deps)
  const time = deps.clock()
  deps.accounts.rotateKey(id, stored, now ? time : time + KEY_OVERLAP_MS, time)
  return key
}

export function revokeKey(deps: KeyDeps, id: AccountId, { now }: { now: boolean }): void {
  const time = deps.clock()
  deps.accounts.revokeKeys(id, now ? time : time + KEY_OVERLAP_MS)
}
