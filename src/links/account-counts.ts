import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Author, Stored } from './link.ts'

const NOTHING_STORED: Stored = { links: 0, urlBytes: 0 }

/** The stored links and bytes of each account, and whether it is active. */
export function accountCounts(db: Database) {
  const stored = db.prepare<Stored, [AccountId]>(
    'SELECT link_count AS links, url_bytes AS urlBytes FROM accounts WHERE id = ?',
  )
  const add = db.prepare<null, [number, number, AccountId]>(
    'UPDATE accounts SET link_count = link_count + ?, url_bytes = url_bytes + ? WHERE id = ?',
  )
  const active = db.prepare<{ id: AccountId }, [AccountId, number | null, number]>(
    `SELECT id FROM accounts WHERE id = ?1 AND disabled_at IS NULL
     AND (?2 IS NULL OR EXISTS (SELECT 1 FROM api_keys
       WHERE id = ?2 AND account_id = ?1 AND (ends_at IS NULL OR ends_at > ?3)))`,
  )
  return {
    stored: (accountId: AccountId): Stored => stored.get(accountId) ?? NOTHING_STORED,
    add(accountId: AccountId, { links, urlBytes }: Stored): void {
      add.run(links, urlBytes, accountId)
    },
    isActive: ({ accountId, keyId, now }: Author): boolean =>
      active.get(accountId, keyId ?? null, now) !== null,
  }
}
