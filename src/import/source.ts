/** A file to import. */
export interface SourceFile {
  name: string
  blob: Blob
  /** On this machine; absent for an uploaded file. */
  path?: string
  /** Databases are opened only if they are the operator's own: SQLite runs what is in them. */
  isTrusted?: boolean
  /** Pages in all files of the import. */
  pages?: Pages
}

/** Whether all pages of an API are in the files, where a page says so. */
export class Pages {
  isComplete = true
  readonly #found = new Set<number>()
  #wanted = 0

  /** Whether the value tells about pages. */
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

/** A domain of the rows; an empty name stands for rows without one. */
export interface DomainRows {
  domain: string
  rows: number
}

/** The rows have several domains, and none was chosen. Those with the most rows come first. */
export class SeveralDomains extends SourceError {
  override readonly name = 'SeveralDomains'
  readonly domains: readonly DomainRows[]

  constructor(domains: readonly DomainRows[]) {
    super(
      'The links have several domains. Name those to import with --domain, which can be ' +
        `repeated:\n${listOf(domains)}`,
    )
    this.domains = domains
  }
}

/** A person chooses among these. */
export const LISTED_DOMAINS_MAX = 50

function listOf(domains: readonly DomainRows[]): string {
  const lines = domains
    .slice(0, LISTED_DOMAINS_MAX)
    .map(({ domain, rows }) => `  ${domain || '(none)'}: ${rows.toLocaleString('en')} rows`)
  const others = domains.length - lines.length
  if (others > 0) lines.push(`  and ${others.toLocaleString('en')} others`)
  return lines.join('\n')
}
