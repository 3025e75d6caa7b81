import { toCode } from '../lib/code.ts'
import { ALIASES_MAX } from '../links/aliases.ts'
import type { ImportRow } from './line.ts'

/** What a link is found by, and what no other link can have then. */
function namesOf({ code, aliases, aliasesAnyCase, url }: ImportRow): string[] {
  const paths = [...aliases, ...aliasesAnyCase]
  const codes = [code, ...paths.map(toCode)].filter((one) => typeof one === 'string')
  return [...codes, ...paths.map((path) => `/${path}`), ...(url ? [url.href] : [])]
}

/** The names that decide about a row. */
export const lookupsOf = (row: ImportRow): string[] => [
  ...namesOf(row),
  ...row.aliases.map((path) => `/${path.toLowerCase()}`),
]

/** Of one row: a code, a URL, three names of each alias and two of each in any case. */
export const LOOKUPS_MAX = 2 + 5 * ALIASES_MAX

/**
 * The rows that a dry run would have created, for the decisions about later ones. Of all rows with
 * one path or URL the first is enough: the others do not have it.
 */
export class CreatedRows<Kept> {
  readonly #kept: Kept[] = []
  readonly #firstOf = new Map<string, number>()

  add(row: ImportRow, kept: Kept): void {
    const n = this.#kept.push(kept) - 1
    for (const name of namesOf(row)) if (!this.#firstOf.has(name)) this.#firstOf.set(name, n)
  }

  /** Those that have a path or a URL in common with the rows, the oldest first. */
  relatedTo(rows: readonly ImportRow[]): Kept[] {
    const found = rows.flatMap((row) => lookupsOf(row).map((name) => this.#firstOf.get(name)))
    const numbers = new Set(found.filter((n) => n !== undefined))
    return [...numbers].sort((a, b) => a - b).map((n) => this.#kept[n] as Kept)
  }
}
