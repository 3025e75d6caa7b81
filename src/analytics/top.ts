import type { AccountId } from '../accounts/store.ts'
import { type Operations, scan, subject } from '../db/subject.ts'
import { sumOf } from '../hits/hours.ts'
import {
  type DayCount,
  dayOf,
  dayReader,
  firstHourKept,
  HOURS_OF_DAY,
  LINK,
} from '../hits/series.ts'
import type { Clock } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import type { LinkPages } from '../lists/lists.ts'
import { mostHitsFirst, type Ranked } from '../lists/ranking.ts'

/** Candidates: this many links with the most hits of all time, and this many of the newest. */
const CANDIDATES_MAX = 1000
/** One-row lookups for one list: about 20 ms of the reader thread. */
const LOOKUPS_MAX = 20_000
/** Lookups per call: other lists wait for about 3 ms. */
const LOOKUPS_AT_ONCE = 3000

export interface RangeTopLink {
  id: number
  code: Code
  /** Null while the code is reserved. */
  url: string | null
  title: string | null
  hits: number
}

interface RangeTop {
  links: RangeTopLink[]
  /** Whether no link outside of the list can have more hits. */
  isExact: boolean
}

interface TopOptions {
  data: { topLinks: Operations<typeof topLinks> }
  pages: Pick<LinkPages, 'rank'>
  clock: Clock
  /** Tests pass small ones. */
  candidatesMax?: number
  lookupsMax?: number
}

interface TopQuery {
  accountId: AccountId
  /** Only these links of the account, at most `REPORT_LINKS_MAX`. */
  linkIds?: readonly number[] | undefined
  /** UTC hours, `to` exclusive. */
  from: number
  to: number
  limit: number
}

/**
 * The links with the most hits in a range of time. A link cannot have more hits in a range than of
 * all time: so links are read in the order of their hits of all time, until the next one has fewer
 * than the last link of the list. The work is bounded by `CANDIDATES_MAX` and `LOOKUPS_MAX`.
 */
export class TopLinks {
  readonly #options: TopOptions

  constructor(options: TopOptions) {
    this.#options = options
  }

  /** Leaves out hits that are not counted yet, and links without hits in the range. */
  async findInRange(query: TopQuery): Promise<RangeTop> {
    const { data, pages, clock } = this.#options
    const { candidatesMax = CANDIDATES_MAX, lookupsMax = LOOKUPS_MAX } = this.#options
    const { accountId, from, to, limit } = query
    if (query.linkIds) return this.#findAmong(query.linkIds, query)
    const ranked = await pages.rank({ accountId, limit: candidatesMax })
    const ranking = ranked.filter(({ count }) => count > 0)
    const isWhole = ranking.length < candidatesMax
    const newest = isWhole ? [] : await data.topLinks.newest({ accountId, limit: candidatesMax })
    const span = { from, to, now: clock() }
    const cost = lookupsOf(from, to)
    const all = merged(ranking, newest)
    const lookedAtMax = Math.min(all.length, Math.floor(lookupsMax / cost))
    const step = Math.max(1, Math.floor(LOOKUPS_AT_ONCE / cost))
    let best: Ranked[] = []
    const floor = () => (best.length === limit ? (best.at(-1)?.count ?? 0) : 0)
    let at = 0
    while (at < lookedAtMax && (all[at]?.count ?? 0) > floor()) {
      const next = Math.min(at + step, lookedAtMax)
      const ids = all.slice(at, next).map(({ id }) => id)
      const sums = await data.topLinks.hitSums({ ids, ...span })
      best = merged(best, sums).slice(0, limit)
      at = next
    }
    // The maximum number of hits of a link that was not read.
    const others = isWhole ? 0 : (ranking.at(-1)?.count ?? 0)
    const isExact = floor() >= Math.max(all[at]?.count ?? 0, others)
    return { isExact, links: await this.#titled(best) }
  }

  /**
   * Hits of at most `REPORT_LINKS_MAX` links from one UTC hour to another, which is exclusive.
   * Leaves out links without any.
   */
  async sumsOf(linkIds: readonly number[], from: number, to: number): Promise<Ranked[]> {
    const { data, clock } = this.#options
    const span = { from, to, now: clock() }
    const step = Math.max(1, Math.floor(LOOKUPS_AT_ONCE / lookupsOf(from, to)))
    const sums: Ranked[] = []
    for (let at = 0; at < linkIds.length; at += step) {
      const ids = linkIds.slice(at, at + step)
      sums.push(...(await data.topLinks.hitSums({ ids, ...span })))
    }
    return sums
  }

  async #findAmong(linkIds: readonly number[], { from, to, limit }: TopQuery): Promise<RangeTop> {
    const sums = await this.sumsOf(linkIds, from, to)
    const best = sums.sort(mostHitsFirst).slice(0, limit)
    return { isExact: true, links: await this.#titled(best) }
  }

  async #titled(best: readonly Ranked[]): Promise<RangeTopLink[]> {
    const ids = best.map(({ id }) => id)
    const found = await this.#options.data.topLinks.withTitles({ ids })
    const links = new Map(found.map((link) => [link.id, link]))
    return best.flatMap(({ id, count }) => {
      const link = links.get(id)
      return link ? [{ ...link, hits: count }] : []
    })
  }
}

/** Most hits first, then newest first, each link once. */
function merged(some: readonly Ranked[], others: readonly Ranked[]): Ranked[] {
  const known = new Set(some.map(({ id }) => id))
  return [...some, ...others.filter(({ id }) => !known.has(id))].sort(mostHitsFirst)
}

/** The whole UTC days of a range, and the hours before and after them: what a link costs. */
export function lookupsOf(from: number, to: number): number {
  const firstDay = Math.ceil(from / HOURS_OF_DAY)
  const endDay = Math.max(firstDay, Math.floor(to / HOURS_OF_DAY))
  const before = Math.min(firstDay * HOURS_OF_DAY, to) - from
  const after = Math.max(0, to - endDay * HOURS_OF_DAY)
  return Math.max(1, before + (endDay - firstDay) + after)
}

interface SumsQuery {
  ids: readonly number[]
  /** UTC hours, `to` exclusive. */
  from: number
  to: number
  now: number
}

/** The links with the most hits in a range of time, and their candidates. */
export const topLinks = subject({
  scans: {
    /** Committed hits of the links in a range of hours. Leaves out links without any. */
    hitSums: scan((db) => {
      const read = dayReader(db)
      return ({ ids, from, to, now }: SumsQuery): Ranked[] => {
        const kept = Math.max(from, firstHourKept(now))
        const hitsOf = ({ day, count, hours }: DayCount) => {
          const start = day * HOURS_OF_DAY
          if (start >= from && start + HOURS_OF_DAY <= to) return count
          return sumOf(hours().filter(([hour]) => hour >= kept && hour < to))
        }
        const sumsOf = db.transaction(() =>
          ids.map((id) => {
            const days = read(LINK, id, dayOf(from), dayOf(to - 1) + 1)
            return { id, count: days.reduce((sum, one) => sum + hitsOf(one), 0) }
          }),
        )
        return sumsOf().filter(({ count }) => count > 0)
      }
    }),

    newest: scan((db) => {
      const newest = db.prepare<Ranked, [AccountId, number]>(
        `SELECT links.id, coalesce(hits.count, 0) AS count
         FROM links LEFT JOIN hits ON hits.link_id = links.id
         WHERE links.account_id = ? ORDER BY links.id DESC LIMIT ?`,
      )
      return ({ accountId, limit }: { accountId: AccountId; limit: number }): Ranked[] =>
        newest.all(accountId, limit)
    }),

    /** The links with their titles, in no order, without deleted ones. */
    withTitles: scan((db) => {
      const titled = db.prepare<Omit<RangeTopLink, 'hits'>, [string]>(
        `SELECT links.id, code, url, title
         FROM json_each(?) JOIN links ON links.id = value`,
      )
      return ({ ids }: { ids: readonly number[] }): Omit<RangeTopLink, 'hits'>[] =>
        titled.all(JSON.stringify(ids))
    }),
  },
})
