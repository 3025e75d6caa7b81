import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { type CountIndex, ID_MAX, type IsOver } from './count-index.ts'

/** Links in the order of their hits. */

/** The last rank: `offset` and `limit` together. Pages after it are empty. */
export const TOP_MAX = 10_000
/** Links that are read together: a few milliseconds. */
const READ_AT_ONCE = 4096

export interface Ranked {
  id: number
  /** Committed hits. */
  count: number
}

export const mostHitsFirst = (a: Ranked, b: Ranked): number => b.count - a.count || b.id - a.id

/** The next links that are ranked, newest first. */
interface RankedPart {
  /** Links with more hits than the floor, in any order. */
  links: Ranked[]
  /** The id below which the next part begins; undefined after the last. */
  next: number | undefined
}

/** Reads links with ids below `below`. */
type ReadPart = (below: number, floor: number) => RankedPart

/** The links with the most hits, found in time slices. */
export class Ranking {
  /** When its last links were read. */
  readAt = 0
  #links: Ranked[] = []
  #below: number | undefined = ID_MAX + 1
  /** Links with fewer hits, or with as many and older, are not among the first ones. */
  #floor = -1

  /** The first `TOP_MAX` links, or undefined if the slice was over first: call it again then. */
  findRanked(readPart: ReadPart, now: number, isOver: IsOver): readonly Ranked[] | undefined {
    while (this.#below !== undefined) {
      this.readAt = now
      const { links, next } = readPart(this.#below, this.#floor)
      this.#links.push(...links)
      this.#below = next
      if (next === undefined || this.#links.length >= 2 * TOP_MAX) this.#cut()
      if (next !== undefined && isOver()) return undefined
    }
    return this.#links
  }

  #cut(): void {
    this.#links = this.#links.sort(mostHitsFirst).slice(0, TOP_MAX)
    if (this.#links.length === TOP_MAX) this.#floor = this.#links.at(-1)?.count ?? -1
  }
}

/** Reads parts of rankings. Tests pass small ones. */
export function rankParts(db: Database, readAtOnce = READ_AT_ONCE) {
  const end = db.prepare<{ id: number }, [AccountId, number, number]>(
    `SELECT link_id AS id FROM hits WHERE account_id = ? AND link_id < ?
     ORDER BY link_id DESC LIMIT 1 OFFSET ?`,
  )
  const followed = db.prepare<Ranked, [AccountId, number, number, number]>(
    `SELECT link_id AS id, count FROM hits
     WHERE account_id = ? AND link_id < ? AND link_id >= ? AND count > ?`,
  )
  const others = db.prepare<Ranked, [AccountId, number]>(
    `SELECT id, 0 AS count FROM links WHERE account_id = ?
     AND NOT EXISTS (SELECT 1 FROM hits WHERE link_id = id) ORDER BY id DESC LIMIT ?`,
  )
  const some = db.prepare<Ranked, [string, number]>(
    `SELECT value AS id, coalesce(hits.count, 0) AS count
     FROM json_each(?1) LEFT JOIN hits ON hits.link_id = value WHERE coalesce(hits.count, 0) > ?2`,
  )
  return {
    /** Part of all links of an account. Links without hits are in the last part. */
    ofAccount(accountId: AccountId, below: number, floor: number): RankedPart {
      const next = end.get(accountId, below, readAtOnce - 1)?.id
      const links = followed.all(accountId, below, next ?? 0, floor)
      if (next === undefined && floor < 0) links.push(...others.all(accountId, TOP_MAX))
      return { links, next }
    },

    /** Part of the matches that a list has counted. */
    ofIds(index: Pick<CountIndex, 'pageBelow'>, below: number, floor: number): RankedPart {
      const ids = index.pageBelow(below, readAtOnce)
      const next = ids.length === readAtOnce ? ids.at(-1) : undefined
      return { links: some.all(JSON.stringify(ids), floor), next }
    },
  }
}
