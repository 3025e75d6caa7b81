import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { IS_DEAD } from '../checks/store.ts'
import type { Code } from '../lib/code.ts'
import type { LinkSource } from './count-index.ts'
import { type SEARCH_SIZES, searches } from './search.ts'

/** Selects links of an account. An absent field selects all. */
export interface LinkFilter {
  search?: string | undefined
  /** The link that a search finds besides. */
  orCode?: Code | undefined
  /** The search covers title, tags and note too. */
  inProperties?: boolean | undefined
  tag?: string | undefined
  state?: StateFilter | undefined
}

/** Links in a state at a time (epoch ms). Matches are counted once for all equal filters. */
export interface StateFilter {
  is: LinkStateName
  at: number
}

/** What visitors find, as a condition on a link `l`, its hits `h` and the time ?2. */
const IS_OVER = '(l.expires_at <= ?2 OR l.max_hits <= coalesce(h.count, 0))'
const STATES = {
  active: `l.url IS NOT NULL AND l.paused = 0 AND l.delete_at IS NULL
    AND (l.starts_at IS NULL OR l.starts_at <= ?2) AND ${IS_OVER} IS NOT TRUE
    AND NOT EXISTS (SELECT 1 FROM disabled_codes d WHERE d.code = l.code)`,
  paused: 'l.paused = 1',
  expired: IS_OVER,
  scheduled: 'l.starts_at > ?2',
  unused: 'coalesce(h.count, 0) = 0',
  dead: `EXISTS (SELECT 1 FROM link_checks WHERE link_id = l.id AND ${IS_DEAD})`,
} as const
export type LinkStateName = keyof typeof STATES
export const LINK_STATES = Object.keys(STATES) as [LinkStateName, ...LinkStateName[]]

export interface AccountFilter extends LinkFilter {
  accountId: AccountId
}

interface SourceOptions {
  chunkLinks?: number | undefined
  search?: typeof SEARCH_SIZES | undefined
}

/** Links of a chunk in a list without a search: counting one takes about 0.1 ms. */
export const CHUNK_LINKS = 4096

/** Bytes of the index per link: a chunk has some thousand links. */
const LINK_BYTES = 64

export const isFiltered = ({ search = '', tag, state }: LinkFilter): boolean =>
  search !== '' || tag !== undefined || state !== undefined

/** Equal for filters that select the same links. */
export function keyOf(filter: AccountFilter) {
  const { accountId, search = '', orCode, inProperties = false, tag, state } = filter
  return JSON.stringify([accountId, search, orCode, inProperties, tag ?? null, state ?? null])
}

/** The sources of one connection. A search is searchable. */
export function linkSources(db: Database, { chunkLinks = CHUNK_LINKS, search }: SourceOptions) {
  const accountLinks = rangeCounter(db, chunkLinks, {
    nth: `SELECT id FROM links WHERE account_id = ?1 AND id > ?2 AND ?4 IS NULL
          ORDER BY id LIMIT 1 OFFSET ?3`,
    range: 'SELECT id FROM links WHERE account_id = ?1 AND id > ?2 AND id <= ?3 AND ?4 IS NULL',
  })
  const taggedLinks = rangeCounter(db, chunkLinks, {
    nth: `SELECT link_id AS id FROM link_tags WHERE account_id = ?1 AND link_id > ?2 AND tag = ?4
          ORDER BY link_id LIMIT 1 OFFSET ?3`,
    range: `SELECT link_id AS id FROM link_tags
            WHERE account_id = ?1 AND link_id > ?2 AND link_id <= ?3 AND tag = ?4`,
  })
  const among = db.prepare<{ id: number }, [AccountId, string, string]>(
    `SELECT link_id AS id FROM link_tags
     WHERE account_id = ?1 AND tag = ?2 AND link_id IN (SELECT value FROM json_each(?3))
     ORDER BY link_id`,
  )
  const inState = stateFilters(db)
  const searchLinks = searches(db, search)

  return (filter: AccountFilter): LinkSource => {
    const { accountId, search: text = '', orCode, inProperties = false, tag, state } = filter
    const tagged = (ids: readonly number[]) =>
      among.all(accountId, tag ?? '', JSON.stringify(ids)).map(({ id }) => id)
    if (text === '') {
      const source = tag === undefined ? accountLinks(accountId, null) : taggedLinks(accountId, tag)
      return state ? narrowed(source, inState(state)) : source
    }
    const found = searchLinks({ accountId, text, orCode, inProperties })
    const source = tag === undefined ? found : narrowed(found, tagged)
    return state ? narrowed(source, inState(state)) : source
  }
}

/** A source with only those ids that `choose` returns. */
function narrowed(source: LinkSource, choose: (ids: readonly number[]) => number[]): LinkSource {
  const chosen = (ids: readonly number[]) => (ids.length === 0 ? [] : choose(ids))
  return {
    count(range, isOver) {
      const part = source.count(range, isOver)
      const ids = chosen(part.ids ?? source.ids({ after: range.after, upTo: part.upTo }))
      return { upTo: part.upTo, count: ids.length, ids, bytes: part.bytes }
    },
    ids: (range) => chosen(source.ids(range)),
  }
}

/** Each statement has the time ?2, also where the state does not depend on it. */
function stateFilters(db: Database) {
  const statementOf = (state: LinkStateName) =>
    db.prepare<{ id: number }, [string, number]>(
      `SELECT l.id FROM links l LEFT JOIN hits h ON h.link_id = l.id
       WHERE l.id IN (SELECT value FROM json_each(?1)) AND ?2 > 0 AND ${STATES[state]}
       ORDER BY l.id`,
    )
  const statements = new Map<LinkStateName, ReturnType<typeof statementOf>>()
  return ({ is, at }: StateFilter) => {
    const statement = statements.get(is) ?? statementOf(is)
    statements.set(is, statement)
    return (ids: readonly number[]) => statement.all(JSON.stringify(ids), at).map(({ id }) => id)
  }
}

/**
 * Counts links with an index in the order of their ids. Parameters of the statements: account ?1,
 * after the id ?2, tag ?4. `nth` selects link number ?3, counted from 0; `range` selects the links
 * up to the id ?3.
 */
function rangeCounter(
  db: Database,
  chunkLinks: number,
  { nth, range }: { nth: string; range: string },
): (accountId: AccountId, tag: string | null) => LinkSource {
  type Values = [AccountId, number, number, string | null]
  const last = db.prepare<{ id: number }, Values>(nth)
  const count = db.prepare<{ count: number }, Values>(`SELECT count(*) AS count FROM (${range})`)
  const inRange = db.prepare<{ id: number }, Values>(`${range} ORDER BY id`)
  return (accountId, tag) => ({
    count({ after, upTo }) {
      const end = last.get(accountId, after, chunkLinks - 1, tag)?.id
      const isWhole = end !== undefined && end <= upTo
      const counted = isWhole ? chunkLinks : count.get(accountId, after, upTo, tag)?.count
      const links = counted ?? 0
      return { upTo: isWhole ? end : upTo, count: links, ids: undefined, bytes: links * LINK_BYTES }
    },
    ids: ({ after, upTo }) => inRange.all(accountId, after, upTo, tag).map(({ id }) => id),
  })
}
