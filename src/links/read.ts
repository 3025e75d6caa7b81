import type { Database } from 'bun:sqlite'
import type { z } from 'zod'
import type { Account } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import type { HitCounts } from '../hits/hits.ts'
import { NO_LINK } from '../hot/destination-cache.ts'
import { isoTime } from '../lib/clock.ts'
import { type Code, toCode } from '../lib/code.ts'
import {
  LINK_COLUMNS,
  type Link,
  type PublicUrls,
  SECRET_LINK_COLUMNS,
  type SecretLink,
} from './link.ts'
import type { LinkPages } from './lists.ts'
import type { ListQuery, ListView, LookupView } from './schema.ts'

export interface ReadDeps {
  reads: LinkReads
  pages: Pick<LinkPages, 'find'>
  hits: HitCounts
  addresses: PublicUrls
}

/** The link of a code in any letter case. Throws `code_not_found`, also for a malformed code. */
export function getLink({ reads }: Pick<ReadDeps, 'reads'>, text: string): Link {
  const code = toCode(text)
  const link = code && reads.findByCode(code)
  if (!link) throw new AppError('code_not_found', text.toUpperCase())
  return link
}

/** A code's destination and hits. Not counted as a hit. */
export function lookup(deps: ReadDeps, code: string): LookupView {
  const link = getLink(deps, code)
  return lookupView(link, deps.hits.of([link.id]).get(link.id) ?? 0)
}

function lookupView(link: Link, hitCount: number): LookupView {
  return {
    code: link.code,
    url: link.url,
    created_at: isoTime(link.createdAt),
    hit_count: hitCount,
  }
}

/** A page of the account's codes, newest first. Hits are read last, so that none is missing. */
export async function list(
  { pages, hits, addresses }: ReadDeps,
  { id }: Account,
  { limit, offset, search }: z.output<typeof ListQuery>,
  signal?: AbortSignal,
): Promise<ListView> {
  const { total, links } = await pages.find({ accountId: id, limit, offset, search }, signal)
  const counts = hits.of(links.map((link) => link.id))
  const items = links.map((link) => ({
    ...lookupView(link, counts.get(link.id) ?? 0),
    short_url: addresses.short(link.code),
    qr_url: addresses.qr(link.code),
  }))
  return { total, limit, offset, count: items.length, items }
}

/**
 * `isDisabled`: 1 if the operator has disabled the code, or all links of its account. `hasRules`: 1
 * if a redirect depends on properties of the link.
 */
export type DestinationRow = Pick<Link, 'id' | 'url'> & { isDisabled: number; hasRules: number }

/** Reads of one row, on the HTTP thread's own connection. */
export class LinkReads {
  readonly #byCode
  readonly #nearest
  readonly #destination
  readonly #disabledCode

  constructor(db: Database) {
    this.#byCode = db.prepare<Link, [Code]>(`SELECT ${LINK_COLUMNS} FROM links WHERE code = ?`)
    this.#nearest = db.prepare<SecretLink, [string]>(
      `SELECT ${SECRET_LINK_COLUMNS} FROM links WHERE code > ? ORDER BY code LIMIT 1`,
    )
    this.#destination = db.prepare<DestinationRow, [Code]>(
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

  findByCode(code: Code): Link | undefined {
    return this.#byCode.get(code) ?? undefined
  }

  /**
   * The link of `code`, or else of the next code in use: finding either takes the same time.
   * Undefined after the last code of all.
   */
  findNearest(code: Code): SecretLink | undefined {
    return this.#nearest.get(justBefore(code)) ?? undefined
  }

  /** What a redirect needs. A disabled code is found even after its link was deleted. */
  findDestination(code: Code): DestinationRow | undefined {
    return this.#destination.get(code) ?? this.#disabledCode.get(code) ?? undefined
  }
}

/**
 * A text that sorts between a code and all codes before it, and equals none: SQLite ends its search
 * a few nanoseconds earlier when it meets the text itself, which would reveal that it is there.
 */
const justBefore = (code: Code): string =>
  `${code.slice(0, -1)}${String.fromCharCode(code.charCodeAt(code.length - 1) - 1)}~`
