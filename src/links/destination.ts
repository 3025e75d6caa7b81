import type { Database } from 'bun:sqlite'
import { type Destination, NO_LINK } from '../hot/destination-cache.ts'
import type { Code } from '../lib/code.ts'
import { locationOf, parseKnownUrl, type UrlFilter } from './location.ts'

interface DestinationRow {
  id: number
  url: string | null
  /** 1 if the operator has disabled the code, or all links of its account. */
  isDisabled: number
  /** 1 if a redirect depends on properties of the link. */
  hasRules: number
}

/** Reads what a redirect needs of a link, on any thread. */
export class DestinationReads {
  readonly #blocklist: UrlFilter
  readonly #byCode
  readonly #disabledCode

  constructor(db: Database, blocklist: UrlFilter) {
    this.#blocklist = blocklist
    this.#byCode = db.prepare<DestinationRow, [Code]>(
      `SELECT id, url,
         EXISTS (SELECT 1 FROM disabled_codes WHERE code = ?1)
         OR EXISTS (SELECT 1 FROM accounts
                    WHERE id = links.account_id AND links_disabled_at IS NOT NULL) AS isDisabled,
         EXISTS (SELECT 1 FROM link_properties WHERE link_id = links.id AND (forward_query = 1
           OR coalesce(paused_at, starts_at, expires_at, max_hits, delete_at) IS NOT NULL))
           AS hasRules
       FROM links WHERE code = ?1`,
    )
    this.#disabledCode = db.prepare<DestinationRow, [Code]>(
      `SELECT ${NO_LINK} AS id, NULL AS url, 1 AS isDisabled, 0 AS hasRules
       FROM disabled_codes WHERE code = ?`,
    )
  }

  /** A disabled code is found even after its link was deleted. */
  find(code: Code): Destination | undefined {
    const row = this.#byCode.get(code) ?? this.#disabledCode.get(code)
    if (!row) return undefined
    const parsed = row.url === null ? undefined : parseKnownUrl(row.url)
    const isDisabled =
      row.isDisabled === 1 || (parsed !== undefined && this.#blocklist.isBlocked(parsed))
    const location = parsed === undefined || isDisabled ? null : locationOf(parsed)
    return {
      id: row.id,
      location,
      isDisabled,
      hasRules: location !== null && row.hasRules === 1,
    }
  }
}
