/** A file to import. */
export interface SourceFile {
  name: string
  blob: Blob
  /** On this machine; absent for an uploaded file. */
  path?: string
  /** Databases are opened only if they are the operator's own: SQLite runs what is in them. */
  isTrusted?: boolean
  /** One for all files of an import, whose pages together must be complete. */
  pages?: Pages
}

/**
 * Pages of an API's list: a saved answer has the number of its page and of all pages. With 1 and 3
 * of 3, the import is refused, because rows are missing.
 */
export class Pages {
  isComplete = true
  readonly #found = new Set<number>()
  #wanted = 0

  /** Notes the page of an answer. False if the value is none: it has no such numbers. */
  note({ pagesCount, currentPage }: Readonly<Record<string, unknown>>): boolean {
    if (typeof pagesCount !== 'number' || typeof currentPage !== 'number') return false
    this.#found.add(currentPage)
    this.#wanted = Math.max(this.#wanted, pagesCount)
    return true
  }

  /** Throws SourceError. */
  requireComplete(): void {
    if (this.isComplete && this.#found.size >= this.#wanted) return
    const pages = this.#wanted > 0 ? ` (${this.#found.size} of ${this.#wanted})` : ''
    throw new SourceError(`Pages are missing${pages}: import all of them at once.`)
  }
}

/** A row of a source: its values by the names that the source has for them. */
export interface SourceRow {
  /** From 1: the line in the file, or the number of the link where lines mean nothing. */
  line: number
  values: Readonly<Record<string, unknown>>
}

/** A line of Hopcode's own format. */
export interface OwnLine {
  /** From 1, in its file. */
  line: number
  text: string
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Characters of a record before the first row was found: a file that is none of the known forms is
 * refused before much of it was parsed.
 */
export const FIRST_ROW_MAX = 64 * 1024

/** Each row costs time for each column, also for those of which it has no value. */
export const COLUMNS_MAX = 200

export const tooManyColumns = (file: string) =>
  new SourceError(`${file} has more than ${COLUMNS_MAX} columns.`)

/** Throws SourceError for more columns than a table of links has. */
export function requireFewColumns(file: string, columns: readonly string[]): void {
  if (columns.length > COLUMNS_MAX) throw tooManyColumns(file)
}

/** A file cannot be read as what it should be. The message is for the user. */
export class SourceError extends Error {
  override readonly name: string = 'SourceError'
}

/** The domains of the rows. */
export interface FoundDomains {
  /** `isOwn`: of the service. Those with the most rows, at most `LISTED_DOMAINS_MAX`. */
  listed: readonly { domain: string; rows: number; isOwn: boolean }[]
  /** How many further domains there are: a file may name one in each row. */
  others: number
  /** Rows without a domain. */
  without: number
}

/** A person chooses among these. */
export const LISTED_DOMAINS_MAX = 50

/** The rows have several domains, and none was chosen. */
export class SeveralDomains extends SourceError {
  override readonly name = 'SeveralDomains'
  readonly domains: FoundDomains

  constructor(domains: FoundDomains) {
    const { listed, others, without } = domains
    const lines = listed.map(({ domain, rows }) => `  ${domain}: ${rows.toLocaleString('en')} rows`)
    if (without > 0) lines.push(`  (none): ${without.toLocaleString('en')} rows`)
    if (others > 0) lines.push(`  and ${others.toLocaleString('en')} others`)
    super(
      'The links have several domains. Name those to import with --domain, which can be ' +
        `repeated:\n${lines.join('\n')}`,
    )
    this.domains = domains
  }
}
