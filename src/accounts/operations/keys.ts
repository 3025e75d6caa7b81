import { type Authored, authoredWrite, type DataOf, subject, write } from '../../db/subject.ts'
import { AppError } from '../../errors.ts'
import { DAY } from '../../lib/clock.ts'
import { findKeyByName, hasNoExpiry, issueKey, keyName } from '../keys.ts'
import { accountStore, type KeyLabel, type KeyRow, type NewKey } from '../store.ts'
import type { Asked } from './asked.ts'

/** How long a rotated or revoked key still works. */
export const KEY_OVERLAP_MS = DAY

/** Keys of an account that were neither rotated nor revoked. */
export const KEYS_MAX = 20
/** Keys of an account that work, including those that expire soon. */
const WORKING_KEYS_MAX = 2 * KEYS_MAX

/** `key_gone`: the key was rotated, revoked or ended meanwhile. */
type KeyResult = { keyId: number } | { refused: 'key_name_taken' | 'too_many_keys' | 'key_gone' }

/** `keyId`: absent for all keys of an account whose every key expires already. */
type KeyChange = Authored & { keyId?: number | undefined; endsAt: number }

const isFull = (stored: readonly KeyRow[]) => stored.length >= WORKING_KEYS_MAX

/** The label of the key to change. Null: all keys, which expire already. Undefined: it is gone. */
function findLabel(stored: readonly KeyRow[], keyId: number | undefined) {
  const lasting = stored.filter(hasNoExpiry)
  return keyId === undefined && lasting.length === 0
    ? null
    : lasting.find((key) => key.id === keyId)
}

/** API keys of accounts. `AccountReads` finds them. */
export const keys = subject({
  forget: ['DELETE FROM api_keys WHERE account_id = ?1'],

  writes: {
    create: authoredWrite('admin', (db) => {
      const accounts = accountStore(db)
      return ({ author, key }: Authored & { key: NewKey }): KeyResult => {
        const { accountId, now } = author
        const stored = accounts.listKeys(accountId, now)
        if (findKeyByName(stored, keyName(key))) return { refused: 'key_name_taken' }
        if (isFull(stored) || stored.filter(hasNoExpiry).length >= KEYS_MAX) {
          return { refused: 'too_many_keys' }
        }
        return { keyId: accounts.addKey(accountId, key, now) }
      }
    }),

    /** Replaces a key by a new one, for which everything was decided with the old one. */
    rotate: authoredWrite('admin', (db) => {
      const accounts = accountStore(db)
      return ({ author, keyId, next, endsAt }: KeyChange & { next: NewKey }): KeyResult => {
        const { accountId, now } = author
        const stored = accounts.listKeys(accountId, now)
        const old = findLabel(stored, keyId)
        if (old === undefined) return { refused: 'key_gone' }
        if (isFull(stored)) return { refused: 'too_many_keys' }
        accounts.revokeKeys(accountId, endsAt, old?.name)
        const { name, scope, perMinute = null, origins = null } = old ?? next
        const key = { ...next, name, scope, perMinute, origins }
        return { keyId: accounts.addKey(accountId, key, now) }
      }
    }),

    /** False if the key expires already, or does not exist. */
    revoke: authoredWrite('admin', (db) => {
      const accounts = accountStore(db)
      return ({ author, keyId, endsAt }: KeyChange): boolean => {
        const { accountId, now } = author
        const key = findLabel(accounts.listKeys(accountId, now), keyId)
        if (key !== undefined) accounts.revokeKeys(accountId, endsAt, key?.name)
        return key !== undefined
      }
    }),

    expire: authoredWrite(
      'admin',
      (db) =>
        ({ author, keyId }: Authored & { keyId: number }): boolean =>
          accountStore(db).expireKey(author.accountId, keyId, author.now),
    ),

    noteUses: write((db) => {
      const accounts = accountStore(db)
      return (uses: readonly { keyId: number; at: number }[]): void => {
        for (const { keyId, at } of uses) accounts.noteKeyUse(keyId, at)
      }
    }),
  },
})

type Asking = Asked<DataOf<{ keys: typeof keys }>>

/** `keyId`: absent for all keys of the account, if every one expires already. */
type KeyOf = { keyId?: number | undefined; overlapMs?: number }

function requireStored(result: KeyResult): number {
  if ('refused' in result) throw new AppError(result.refused, String(KEYS_MAX))
  return result.keyId
}

/** Returns the key, which is shown once. Throws `key_name_taken`, `too_many_keys`. */
export async function createKey(asked: Asking, label: KeyLabel): Promise<string> {
  const { data, author, email, note } = asked
  const { key, stored } = issueKey(asked, label, email)
  const keyId = requireStored(await data.keys.create({ author, key: stored }))
  note('key.created', { key_id: keyId })
  return key
}

/** A key that replaces another one. Throws `key_gone`, `too_many_keys`. */
export async function rotateKey(
  asked: Asking,
  { keyId, overlapMs = KEY_OVERLAP_MS }: KeyOf,
): Promise<{ key: string; endsAt: number }> {
  const { data, author, email, note } = asked
  const { key, stored: next } = issueKey(asked, undefined, email)
  const endsAt = author.now + overlapMs
  const id = requireStored(await data.keys.rotate({ author, keyId, next, endsAt }))
  note('key.rotated', { key_id: id })
  return { key, endsAt }
}

/** Returns when the key expires; undefined if it expires already. */
export async function revokeKey(
  { data, author, note }: Asking,
  { keyId, overlapMs = KEY_OVERLAP_MS }: KeyOf,
): Promise<number | undefined> {
  const endsAt = author.now + overlapMs
  if (!(await data.keys.revoke({ author, keyId, endsAt }))) return undefined
  if (keyId !== undefined) note('key.revoked', { key_id: keyId })
  return endsAt
}

/** The key works no longer, also one that expires soon. */
export async function endKey({ data, author, note }: Asking, keyId: number): Promise<void> {
  if (await data.keys.expire({ author, keyId })) note('key.ended', { key_id: keyId })
}
