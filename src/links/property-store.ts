import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import type { Code } from '../lib/code.ts'
import { accountCounts } from './account-counts.ts'
import { type Author, exceededQuota, type Link, type QuotaName } from './link.ts'
import {
  PROPERTY_COLUMNS,
  type PropertiesPatch,
  type PropertiesRow,
  TAGS_MAX,
} from './property-model.ts'
import { indexKeeper } from './search-index.ts'

export interface ChangeProperties {
  /** Links of other accounts, and those that were deleted, are skipped. */
  ids: readonly number[]
  patch: PropertiesPatch
  quota: Quota
  author: Author
}

export interface ScheduleDeletion {
  ids: readonly number[]
  deleteAt: number
  author: Author
}

type PropertiesRefusal = 'not_active' | 'bad_times' | 'too_many_tags' | QuotaName

/** A link with its properties, as they are stored or will be. */
interface Row extends Omit<Link, 'createdAt'>, Omit<PropertiesRow, 'tags'> {
  tags: readonly string[]
}

/**
 * Writes properties of links. Runs on the writer thread, inside the transaction of its batch. A
 * link has a row in `link_properties` if and only if it has a property or a tag.
 */
export function propertyWrites(db: Database) {
  const accounts = accountCounts(db)
  const rows = rowStore(db)
  return {
    /** The codes of the changed links, or why none was changed. */
    changeProperties(command: ChangeProperties): Code[] | PropertiesRefusal {
      const { ids, patch, quota, author } = command
      if (!accounts.isActive(author)) return 'not_active'
      const changes = rows
        .find(ids, author.accountId)
        .map((before) => ({ before, after: patched(before, patch, author.now) }))
      for (const { after } of changes) {
        if (areSwapped(after)) return 'bad_times'
        if (after.tags.length > TAGS_MAX) return 'too_many_tags'
      }
      const added = changes.reduce(
        (sum, { before, after }) => sum + bytesOf(after) - bytesOf(before),
        0,
      )
      const urlBytes = accounts.stored(author.accountId).urlBytes + added
      const exceeded = added > 0 ? exceededQuota({ links: 0, urlBytes }, quota) : undefined
      if (exceeded) return exceeded
      for (const { before, after } of changes) rows.save(before, after)
      accounts.add(author.accountId, { links: 0, urlBytes: added })
      return changes.map(({ after }) => after.code)
    },

    /** Links that are scheduled already keep their time. Returns the codes of all. */
    scheduleDeletion({ ids, deleteAt, author }: ScheduleDeletion): Code[] | 'not_active' {
      if (!accounts.isActive(author)) return 'not_active'
      const found = rows.find(ids, author.accountId)
      for (const row of found) rows.save(row, { ...row, deleteAt: row.deleteAt ?? deleteAt })
      return found.map(({ code }) => code)
    },

    undoDeletion({ ids, author }: Omit<ScheduleDeletion, 'deleteAt'>): Code[] | 'not_active' {
      if (!accounts.isActive(author)) return 'not_active'
      const found = rows.find(ids, author.accountId)
      for (const row of found) rows.save(row, { ...row, deleteAt: null })
      return found.map(({ code }) => code)
    },
  }
}

/** Deletes the properties of a link that is deleted. Returns how many bytes its account gains. */
export function propertyRemover(db: Database): (id: number) => number {
  const remove = db.prepare<{ bytes: number }, [number]>(
    `DELETE FROM link_properties WHERE link_id = ? RETURNING coalesce(octet_length(title), 0)
       + coalesce(octet_length(note), 0) + coalesce(octet_length(expired_url), 0) AS bytes`,
  )
  const removeTags = db.prepare<{ bytes: number }, [number]>(
    'DELETE FROM link_tags WHERE link_id = ? RETURNING octet_length(tag) AS bytes',
  )
  return (id) => {
    const properties = remove.get(id)
    if (!properties) return 0
    return removeTags.all(id).reduce((sum, { bytes }) => sum + bytes, properties.bytes)
  }
}

/** A link that is created again while its deletion is scheduled is not deleted. */
export function deletionCanceler(db: Database): (link: Link) => void {
  const rows = rowStore(db)
  const isScheduled = db.prepare<{ id: number }, [number]>(
    'SELECT link_id AS id FROM link_properties WHERE link_id = ? AND delete_at IS NOT NULL',
  )
  return ({ id, accountId }) => {
    if (!isScheduled.get(id)) return
    for (const row of rows.find([id], accountId)) rows.save(row, { ...row, deleteAt: null })
  }
}

function rowStore(db: Database) {
  const index = indexKeeper(db)
  const byIds = db.prepare<Omit<Row, 'tags'> & { tags: string }, [string, AccountId]>(
    `SELECT links.id AS id, code, account_id AS accountId, url, ${PROPERTY_COLUMNS}
     FROM links LEFT JOIN link_properties ON link_id = links.id
     WHERE links.id IN (SELECT value FROM json_each(?1)) AND account_id = ?2 ORDER BY links.id`,
  )
  const replace = db.prepare<null, (string | number | null)[]>(
    `INSERT OR REPLACE INTO link_properties (link_id, forward_query, title, note, paused_at,
       starts_at, expires_at, max_hits, expired_url, delete_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const remove = db.prepare<null, [number]>('DELETE FROM link_properties WHERE link_id = ?')
  const addTag = db.prepare<null, [AccountId, string, number]>(
    'INSERT INTO link_tags (account_id, tag, link_id) VALUES (?, ?, ?)',
  )
  const removeTag = db.prepare<null, [AccountId, string, number]>(
    'DELETE FROM link_tags WHERE account_id = ? AND tag = ? AND link_id = ?',
  )
  const addChange = db.prepare<null, [AccountId, number]>(
    'INSERT INTO link_changes (account_id, link_id, is_deleted) VALUES (?, ?, 0)',
  )
  const pruneChanges = db.prepare<null, []>(
    'DELETE FROM link_changes WHERE seq <= (SELECT max(seq) FROM link_changes) - 4096',
  )

  return {
    find: (ids: readonly number[], accountId: AccountId): Row[] =>
      byIds
        .all(JSON.stringify(ids), accountId)
        .map((row) => ({ ...row, tags: JSON.parse(row.tags) as string[] })),

    save(before: Row, after: Row): void {
      const { id, accountId } = after
      if (isPlain(after)) remove.run(id)
      else replace.run(id, after.forwardQuery, ...nullables(after))
      const removed = before.tags.filter((tag) => !after.tags.includes(tag))
      const added = after.tags.filter((tag) => !before.tags.includes(tag))
      for (const tag of removed) removeTag.run(accountId, tag, id)
      for (const tag of added) addTag.run(accountId, tag, id)
      const isFoundOtherwise =
        before.title !== after.title ||
        before.note !== after.note ||
        removed.length + added.length > 0
      if (!isFoundOtherwise) return
      index.update(after)
      // Lists count the link again: what the triggers of the table `links` do for a changed URL.
      addChange.run(accountId, id)
      pruneChanges.run()
    },
  }
}

function patched(row: Row, patch: PropertiesPatch, now: number): Row {
  const { tags = row.tags, addTags = [], removeTags = [], isPaused, forwardQuery } = patch
  const kept = [...tags, ...addTags].filter((tag) => !removeTags.includes(tag))
  const pausedAt = isPaused ? (row.pausedAt ?? now) : null
  const isForwarding = forwardQuery ? 1 : 0
  return {
    ...row,
    title: chosen(patch.title, row.title),
    note: chosen(patch.note, row.note),
    tags: [...new Set(kept)].sort(),
    pausedAt: isPaused === undefined ? row.pausedAt : pausedAt,
    startsAt: chosen(patch.startsAt, row.startsAt),
    expiresAt: chosen(patch.expiresAt, row.expiresAt),
    maxHits: chosen(patch.maxHits, row.maxHits),
    expiredUrl: chosen(patch.expiredUrl, row.expiredUrl),
    forwardQuery: forwardQuery === undefined ? row.forwardQuery : isForwarding,
  }
}

const chosen = <Value>(next: Value | undefined, old: Value): Value =>
  next === undefined ? old : next

const areSwapped = ({ startsAt, expiresAt }: Row): boolean =>
  startsAt !== null && expiresAt !== null && startsAt >= expiresAt

const nullables = (row: Row) => [
  row.title,
  row.note,
  row.pausedAt,
  row.startsAt,
  row.expiresAt,
  row.maxHits,
  row.expiredUrl,
  row.deleteAt,
]

const isPlain = (row: Row): boolean =>
  row.tags.length === 0 && row.forwardQuery === 0 && nullables(row).every((value) => value === null)

/** UTF-8 bytes that count towards the quota of the account. */
function bytesOf({ title, note, expiredUrl, tags }: Row): number {
  const texts = [title, note, expiredUrl, ...tags]
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0)
}
