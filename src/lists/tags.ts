import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { perConnection, scan } from '../db/subject.ts'

/** Tags of one list; an account may have more. */
export const TAGS_LISTED_MAX = 200
/** Maximum count per tag, which limits the time for all tags to about 10 ms. */
export const TAG_COUNT_MAX = 1000

interface TagCount {
  tag: string
  /** Links with the tag; `TAG_COUNT_MAX` means that or more. */
  count: number
}

interface TagQuery {
  accountId: AccountId
  tag: string
  limit: number
}

/** Runs on the reader thread. */
export function tagReads(db: Database) {
  // Each step seeks the next tag, so that the time does not depend on the number of links.
  const tags = db.prepare<TagCount, [AccountId]>(
    `WITH RECURSIVE tags (tag) AS (
       SELECT min(tag) FROM link_tags WHERE account_id = ?1
       UNION ALL
       SELECT (SELECT min(tag) FROM link_tags WHERE account_id = ?1 AND tag > tags.tag)
       FROM tags WHERE tags.tag IS NOT NULL LIMIT ${TAGS_LISTED_MAX}
     )
     SELECT tag, (SELECT count(*) FROM (SELECT 1 FROM link_tags
       WHERE account_id = ?1 AND link_tags.tag = tags.tag LIMIT ${TAG_COUNT_MAX})) AS count
     FROM tags WHERE tag IS NOT NULL`,
  )
  const tagged = db.prepare<{ id: number }, [AccountId, string, number]>(
    `SELECT link_id AS id FROM link_tags WHERE account_id = ? AND tag = ?
     ORDER BY link_id DESC LIMIT ?`,
  )
  return {
    /** The newest links with a tag. */
    linksOfTag: ({ accountId, tag, limit }: TagQuery): number[] =>
      tagged.all(accountId, tag, limit).map(({ id }) => id),

    /** The first tags of an account in alphabetical order. */
    listTags: ({ accountId }: { accountId: AccountId }): TagCount[] => tags.all(accountId),
  }
}

const tagsOf = perConnection(tagReads)

export const tagScans = {
  tags: scan((db) => tagsOf(db).listTags),
  withTag: scan((db) => tagsOf(db).linksOfTag),
}
