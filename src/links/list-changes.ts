import type { AccountId } from '../accounts/store.ts'
import { perConnection } from '../db/subject.ts'

/**
 * Counts of lists change in a way that the triggers on `links` do not see. `isGone`: the links have
 * left the account.
 */
export const listChangeNoter = perConnection((db) => {
  const add = db.prepare<null, [string, AccountId, boolean]>(
    `INSERT INTO link_changes (account_id, link_id, is_deleted)
     SELECT ?2, value, ?3 FROM json_each(?1)`,
  )
  const removeOld = db.prepare<null, []>(
    'DELETE FROM link_changes WHERE seq <= (SELECT max(seq) FROM link_changes) - 4096',
  )
  return (accountId: AccountId, ids: readonly number[], isGone = false): void => {
    add.run(JSON.stringify(ids), accountId, isGone)
    removeOld.run()
  }
})
