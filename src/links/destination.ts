import type { Database } from 'bun:sqlite'
import { type Destination, NO_LINK } from '../hot/destination-cache.ts'
import type { Code } from '../lib/code.ts'
import { locationOf, parseKnownUrl, type UrlFilter } from './link.ts'
import { encodeRules, RULES_COLUMN } from './rules.ts'

interface DestinationRow {
  id: number
  url: string | null
  /** 1 if the operator has disabled the code, or all links of its account. */
  isDisabled: number
  /** `RULES_COLUMN`. */
  rules: string | null
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
         ${RULES_COLUMN} AS rules
       FROM links WHERE code = ?1`,
    )
    this.#disabledCode = db.prepare<DestinationRow, [Code]>(
      `SELECT ${NO_LINK} AS id, NULL AS url, 1 AS isDisabled, NULL AS rules
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
    const hasRules = location !== null && row.rules !== null
    return {
      id: row.id,
      location,
      isDisabled,
      rules: hasRules ? encodeRules(row.rules as string, this.#blocklist) : '',
    }
  }
}
