import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Code } from '../lib/code.ts'
import { linkWrites } from './store.ts'

/** Runs on the writer thread, inside the transaction of its batch. */
export function accountLinkWrites(db: Database) {
  const next = db.prepare<{ id: number; code: Code }, [AccountId, number]>(
    'SELECT id, code FROM links WHERE account_id = ? ORDER BY id LIMIT ?',
  )
  const { deleteLink } = linkWrites(db)
  return {
    /** Deletes links of an account, at most `most`. Returns their codes; none when none is left. */
    deleteLinksOf({ accountId, most }: { accountId: AccountId; most: number }): Code[] {
      const links = next.all(accountId, most)
      for (const { id } of links) deleteLink({ id })
      return links.map(({ code }) => code)
    },
  }
}

export type AccountLinkWrites = ReturnType<typeof accountLinkWrites>
