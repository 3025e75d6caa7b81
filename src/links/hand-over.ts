import type { Database } from 'bun:sqlite'
import type { AccountId, PersonId } from '../accounts/store.ts'
import { MAY_USE } from '../addresses/use.ts'
import type { Quota } from '../config.ts'
import { memberOf } from '../db/author.ts'
import { eventMover, eventRecorder } from '../db/history.ts'
import { REFS_MAX } from '../db/schema.ts'
import type { Authored } from '../db/subject.ts'
import { NAMED_LINK, type NamedLink } from './link.ts'
import { listChangeNoter } from './list-changes.ts'
import { storedBytes } from './property-table.ts'
import { accountCounts, type QuotaName } from './quota.ts'
import { indexKeeper } from './search-index.ts'

/** Its author must be an admin of both accounts. */
export interface HandOver extends Authored {
  /** Links of other accounts, and those that will be deleted, are skipped. At most 1,000. */
  ids: readonly number[]
  to: AccountId
  /** Of the account `to`. */
  quota: Quota
  /** What only accounts of owners may have, by the settings of the service. */
  ownersOnly: { aliases: boolean; destinations: boolean }
}

/** A link of the account that has received it. */
export type MovedLink = NamedLink & { fromAccountId: AccountId }

/** What the receiving account may not have. */
type MissingRight = 'domain' | 'aliases' | 'destinations'

/** `not_allowed`: the person is no admin of both, or one of the accounts is disabled. */
export type HandOverRefusal = 'not_allowed' | MissingRight | QuotaName

/**
 * Finds what some of the links have and the account `to` may not have. An owner of the service may
 * give it to every account.
 */
export function missingRights(db: Database) {
  const ids = 'IN (SELECT value FROM json_each(?2))'
  const find = db.prepare<
    { missing: MissingRight | null },
    [AccountId, string, PersonId, boolean, boolean]
  >(
    `SELECT CASE
       WHEN (SELECT is_owner FROM people WHERE id = ?3) = 1 THEN NULL
       WHEN EXISTS (
         SELECT domain_id FROM links WHERE id ${ids} AND domain_id IS NOT NULL
         UNION ALL SELECT domain_id FROM aliases WHERE link_id ${ids} AND domain_id > 0
         EXCEPT SELECT id FROM domains WHERE ${MAY_USE}) THEN 'domain'
       WHEN (SELECT is_owner FROM accounts WHERE id = ?1) = 1 THEN NULL
       WHEN ?4 AND EXISTS (SELECT 1 FROM aliases WHERE link_id ${ids}) THEN 'aliases'
       WHEN ?5 AND EXISTS (SELECT 1 FROM links WHERE id ${ids} AND destinations IS NOT NULL)
         THEN 'destinations' END AS missing`,
  )
  return ({ ids, to, author, ownersOnly }: Omit<HandOver, 'quota'>): MissingRight | null => {
    const { aliases, destinations } = ownersOnly
    const by = memberOf(author.by)
    return find.get(to, JSON.stringify(ids), by, aliases, destinations)?.missing ?? null
  }
}

/**
 * Gives links to another account: all of them or none. Codes, aliases, domains, passcodes, hits,
 * visits and public pages stay as they are. The account that gives them keeps the redirects it has
 * counted, as after a deletion. Runs on the writer thread, inside the transaction of its batch.
 */
export function handOverWrite(db: Database) {
  const accounts = accountCounts(db)
  const index = indexKeeper(db)
  const findMissing = missingRights(db)
  const record = eventRecorder(db)
  const events = eventMover(db)
  const noteChange = listChangeNoter(db)
  const nameOf = db.prepare<{ name: string }, [AccountId]>('SELECT name FROM accounts WHERE id = ?')
  const isAllowed = db.prepare<{ n: number }, [PersonId, AccountId, AccountId]>(
    `SELECT count(*) AS n FROM memberships JOIN accounts ON accounts.id = account_id
     WHERE person_id = ?1 AND account_id IN (?2, ?3) AND role = 'admin'
       AND disabled_at IS NULL AND links_disabled_at IS NULL`,
  )
  const find = db.prepare<{ id: number; urlBytes: number }, [string, AccountId]>(
    `SELECT id, ${storedBytes()} AS urlBytes FROM links
     WHERE id IN (SELECT value FROM json_each(?1)) AND account_id = ?2 AND delete_at IS NULL
     ORDER BY id`,
  )
  const ids = 'IN (SELECT value FROM json_each(?1))'
  const setAccount = db.prepare<NamedLink, [string, AccountId]>(
    `UPDATE links SET account_id = ?2 WHERE id ${ids} RETURNING ${NAMED_LINK}`,
  )
  const rows = [
    `UPDATE link_tags SET account_id = ?2 WHERE link_id ${ids}`,
    `INSERT INTO account_hits (account_id, count, imported)
     SELECT ?2, sum(count), sum(count) FROM hits WHERE link_id ${ids} HAVING count(*) > 0
     ON CONFLICT (account_id) DO UPDATE SET
       count = count + excluded.count, imported = imported + excluded.imported`,
    `UPDATE hits SET account_id = ?2 WHERE link_id ${ids}`,
  ].map((sql) => db.prepare<null, [string, AccountId]>(sql))
  // Visits of codes that were printed for `from` remain scans.
  const copyRefs = db.prepare<null, [AccountId, AccountId]>(
    `INSERT INTO qr_refs (account_id, ref, created_at)
     SELECT ?2, ref, created_at FROM qr_refs WHERE account_id = ?1 ORDER BY created_at DESC, ref
     LIMIT max(0, ${REFS_MAX} - (SELECT count(*) FROM qr_refs WHERE account_id = ?2))
     ON CONFLICT DO NOTHING`,
  )

  return (command: HandOver): MovedLink[] | HandOverRefusal => {
    const { ids, to, quota, author } = command
    const from = author.accountId
    if (isAllowed.get(memberOf(author.by), from, to)?.n !== 2) return 'not_allowed'
    const links = find.all(JSON.stringify(ids), from)
    const urlBytes = links.reduce((sum, link) => sum + link.urlBytes, 0)
    const moved = { links: links.length, urlBytes }
    const exceeded = accounts.exceededBy(to, moved, quota)
    if (exceeded) return exceeded
    const owned = links.map(({ id }) => id)
    const missing = findMissing({ ...command, ids: owned })
    if (missing) return missing
    const found = JSON.stringify(owned)
    for (const { id } of links) index.move(id, { from, to })
    for (const row of rows) row.run(found, to)
    noteChange(from, owned, true)
    noteChange(to, owned)
    if (links.length > 0) copyRefs.run(from, to)
    accounts.add(from, { links: -moved.links, urlBytes: -urlBytes })
    accounts.add(to, moved)
    events.move(owned, to)
    const [before, after] = [from, to].map((id) => nameOf.get(id)?.name)
    const about = { accountId: to, links: owned, by: author, before, after, isPart: true }
    record({ kind: 'moved', ...about })
    return setAccount.all(found, to).map((link) => ({ ...link, fromAccountId: from }))
  }
}
