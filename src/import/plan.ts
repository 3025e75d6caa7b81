import { monotonicClock } from '../lib/clock.ts'
import { CODE_PATTERN } from '../lib/code.ts'
import { batchSlices } from '../lib/time-slices.ts'
import { findPathProblem } from '../links/aliases.ts'
import { addStored, NOTHING_STORED, type Stored } from '../links/quota.ts'
import { Url } from '../links/url.ts'
import { type Dialect, linkOf, type SourceLink } from './fields.ts'
import { type FormatName, formatOf, type OpenSource, openSource } from './formats.ts'
import { type ImportRow, parseLine } from './line.ts'
import type { DryRun } from './lines.ts'
import { isCreated, OUTCOMES, type Outcome, type RowResult, refused } from './outcomes.ts'
import { PathKeys } from './path-keys.ts'
import { CreatedRows, lookupsOf } from './related.ts'
import { type OwnLine, Pages, SourceError, type SourceFile } from './source.ts'

/** Options of an import, as the command line and the dashboard have them. */
export interface ImportOptions {
  format: FormatName | 'auto'
  /** Rows of other domains are left out. With several, the first one wins a path. */
  domains?: readonly string[] | undefined
  withoutHits?: boolean | undefined
  /** A link with a password becomes a paused one, is left out, or is open to all. */
  passwords?: 'pause' | 'skip' | 'open' | undefined
  skipDisabled?: boolean | undefined
  dateFormat?: Dialect['dateFormat']
  dryRun?: boolean | undefined
}

/** Sends lines to a service: see `importLines`. */
export type SendLines = (
  lines: readonly string[],
  dryRun: DryRun | undefined,
) => Promise<{ results: readonly RowResult[]; stored: Stored }>

/** What became of a row of a file. */
export interface ImportedRow extends RowResult {
  line: number
  /** Empty where the row has none. */
  path: string
}

export interface Summary {
  format: FormatName
  rows: number
  counts: Partial<Record<Outcome, number>>
  hits: number
  /** How many links had each thing that Hopcode does not have. */
  lost: Record<string, number>
}

/** Rows of one call. */
export const SENT_ROWS_MAX = 1000
const SENT_CHARACTERS_MAX = 250_000
/** Files of more rows are imported in their own order, because sorting needs them in memory. */
const SORTED_ROWS_MAX = 100_000

/** What the first reading of a file finds: its rows, domains and paths that clash. */
export interface Scan {
  sources: readonly OpenSource[]
  format: FormatName
  rows: number
  /** Rows that cannot be imported, whatever the service has. */
  bad: number
  /** Rows by domain; those without one are under an empty name. */
  domains: Map<string, number>
  paths: PathKeys
  /** Paths and URLs. Empty unless it is a dry run. */
  names: PathKeys
}

/**
 * The first pass, which writes nothing: reads the files as a whole. Throws SourceError if one
 * cannot be read, or if the rows have several domains and none is named.
 */
export async function scan(
  files: readonly SourceFile[],
  options: ImportOptions,
  onRow: (rows: number) => void = () => {},
): Promise<Scan> {
  const sources: OpenSource[] = []
  const pages = new Pages()
  for (const file of files) sources.push(await openSource({ ...file, pages }, options.format))
  const format = sources[0]?.format ?? 'csv'
  const found: Scan = {
    sources,
    format,
    rows: 0,
    bad: 0,
    domains: new Map(),
    paths: new PathKeys(),
    names: new PathKeys(),
  }
  for await (const row of linksOf(found, options)) {
    onRow(++found.rows)
    if (options.dryRun) for (const name of namesOf(row)) found.names.add(name)
    if (isOwnLine(row)) continue
    const domain = row.domain ?? ''
    found.domains.set(domain, (found.domains.get(domain) ?? 0) + 1)
    if (row.problem || row.url === '') found.bad++
    if (isChosen(row, options)) for (const path of row.paths) found.paths.add(path)
  }
  pages.requireComplete()
  found.paths.close()
  found.names.close()
  if (found.rows === 0) throw new SourceError('There are no links in it.')
  const named = [...found.domains.keys()].filter((domain) => domain !== '')
  if (named.length > 1 && !options.domains) {
    throw new SourceError(
      'The links have several domains. Name those to import with --domain, which can be repeated' +
        `, or in the form of the dashboard:\n${listOf(found.domains)}`,
    )
  }
  return found
}

const LISTED_DOMAINS_MAX = 50

/** Those with the most rows first. */
function listOf(domains: ReadonlyMap<string, number>): string {
  const sorted = [...domains].toSorted(([, one], [, other]) => other - one)
  const lines = sorted
    .slice(0, LISTED_DOMAINS_MAX)
    .map(
      ([domain, rows]) =>
        `  ${domain.slice(0, 255) || '(none)'}: ${rows.toLocaleString('en')} rows`,
    )
  const others = sorted.length - lines.length
  return [...lines, ...(others > 0 ? [`  and ${others.toLocaleString('en')} others`] : [])].join(
    '\n',
  )
}

const isChosen = ({ domain }: SourceLink, { domains }: ImportOptions): boolean =>
  !domains || domain === undefined || domains.includes(domain)

type Row = OwnLine | SourceLink
const isOwnLine = (row: Row): row is OwnLine => 'text' in row

async function* linksOf(
  { sources }: Pick<Scan, 'sources'>,
  { dateFormat }: ImportOptions,
): AsyncGenerator<Row, void> {
  for (const { format, rows } of sources) {
    const dialect: Dialect = { ...formatOf(format), dateFormat }
    let startedAt = monotonicClock()
    for await (const row of rows()) {
      if (monotonicClock() - startedAt > SLICE_MS) {
        await batchSlices.next()
        startedAt = monotonicClock()
      }
      yield 'text' in row ? row : linkOf(row, dialect)
    }
  }
}

/** After it the service answers other requests: some rows take a thousand times as long as most. */
const SLICE_MS = 2

/** What a row may have in common with others. */
function namesOf(row: Row): string[] {
  if (!isOwnLine(row)) {
    const { data } = Url.safeParse(row.url)
    return data ? [...row.paths, data.href] : []
  }
  const parsed = parseLine(row.text)
  if ('outcome' in parsed) return []
  const { code, aliases, aliasesAnyCase, url } = parsed
  return [...(code ? [code] : []), ...aliases, ...aliasesAnyCase, ...(url ? [url.href] : [])]
}

interface RunOptions extends ImportOptions {
  /** Rows of one call. */
  rowsMax?: number | undefined
}

/**
 * The second pass: sends each link, and yields one result for each row. With `dryRun` the results
 * are the same, and nothing is written.
 */
export async function* run(
  found: Scan,
  options: RunOptions,
  send: SendLines,
): AsyncGenerator<ImportedRow[], Summary> {
  const summary: Summary = { format: found.format, rows: 0, counts: {}, hits: 0, lost: {} }
  const batch = new Batch(found, options, send)
  const note = (rows: readonly ImportedRow[]): ImportedRow[] => {
    for (const { outcome } of rows) summary.counts[outcome] = (summary.counts[outcome] ?? 0) + 1
    summary.rows += rows.length
    return [...rows]
  }
  let pending: Promise<ImportedRow[]> = Promise.resolve([])
  for await (const row of inOrder(found, options)) {
    if (isOwnLine(row)) batch.addLine(row)
    else batch.addLink(row, summary)
    if (!batch.isFull) continue
    // The next rows are read while the service works.
    const done = await pending
    pending = batch.flush()
    pending.catch(() => {})
    yield note(done)
  }
  yield note(await pending)
  yield note(await batch.flush())
  return summary
}

/** Oldest first, if there are not too many: lists show the newest link first. */
async function* inOrder(found: Scan, options: ImportOptions) {
  const { domains = [] } = options
  const hasOwnLines = found.sources.some(({ format }) => format === 'hopcode')
  const isSorted = found.rows <= SORTED_ROWS_MAX && !hasOwnLines
  if (!isSorted) {
    yield* linksOf(found, options)
    return
  }
  const all: SourceLink[] = []
  for await (const row of linksOf(found, options)) all.push(row as SourceLink)
  const rank = ({ domain = '' }: SourceLink) => domains.indexOf(domain)
  const time = ({ fields }: SourceLink) => String(fields.created_at ?? '')
  const compare = (a: SourceLink, b: SourceLink) => {
    if (rank(a) !== rank(b)) return rank(a) - rank(b)
    return time(a) < time(b) ? -1 : time(a) > time(b) ? 1 : 0
  }
  yield* all.sort(compare)
}

interface SentRow {
  line: number
  path: string
  notes: readonly string[]
  /** Set if the row is not sent. */
  result?: RowResult
  /** The row as the service reads it. Set in a dry run if others have its path or URL. */
  shared?: { row: ImportRow; text: string } | undefined
}

/** Collects the rows of one call. */
class Batch {
  readonly #scan: Scan
  readonly #options: RunOptions
  readonly #send: SendLines
  #rows: SentRow[] = []
  #lines: string[] = []
  #characters = 0
  /** In a dry run, what the rows before would have stored. */
  #stored: Stored = NOTHING_STORED
  readonly #created = new CreatedRows<string>()
  #relatedMax = 0

  constructor(scan: Scan, options: RunOptions, send: SendLines) {
    this.#scan = scan
    this.#options = options
    this.#send = send
  }

  get isFull(): boolean {
    const { rowsMax = SENT_ROWS_MAX } = this.#options
    return (
      this.#lines.length + this.#relatedMax >= rowsMax ||
      this.#characters >= SENT_CHARACTERS_MAX ||
      this.#rows.length >= 2 * SENT_ROWS_MAX
    )
  }

  addLine(own: OwnLine): void {
    const { line, text } = own
    if (text.trim() !== '') this.#add({ line, path: '', notes: [] }, text, own)
  }

  addLink(link: SourceLink, summary: Summary): void {
    const [path = ''] = link.paths
    const row = { line: link.line, path, notes: notesOf(link) }
    const outcome = this.#refuse(link)
    if (outcome) {
      this.#rows.push({ ...row, result: outcome })
      return
    }
    for (const name of link.lost) summary.lost[name] = (summary.lost[name] ?? 0) + 1
    if (!this.#options.withoutHits) summary.hits += link.hits
    this.#add(row, JSON.stringify(lineOf(link, this.#options, this.#scan.paths)), link)
  }

  #add(row: SentRow, text: string, source: Row): void {
    this.#rows.push({ ...row, shared: this.#sharedOf(text, source) })
    this.#lines.push(text)
    this.#characters += text.length
  }

  #sharedOf(text: string, source: Row): SentRow['shared'] {
    if (!this.#options.dryRun || !namesOf(source).some(this.#scan.names.isShared)) return undefined
    const row = parseLine(text)
    if ('outcome' in row) return undefined
    this.#relatedMax += lookupsOf(row).length
    return { row, text }
  }

  /** Why a row is not sent. */
  #refuse(link: SourceLink): RowResult | undefined {
    const { passwords, skipDisabled } = this.#options
    const { paths, problem, url } = link
    if (!isChosen(link, this.#options)) {
      return refused('other_domain', `It is of ${link.domain}`)
    }
    if (problem) return refused(problem.outcome, problem.message)
    if (paths[0] === '') {
      return refused('invalid_path', 'The domain itself: set ROOT_URL to its destination')
    }
    if (skipDisabled && link.isDisabled) return refused('left_out', 'It is disabled')
    if (passwords === 'skip' && link.hasPassword) return refused('left_out', 'It has a password')
    if (url === '') return refused('invalid_url', 'It has no destination')
    const bad = paths.map(findPathProblem).find((found) => found !== undefined)
    return bad ? refused('invalid_path', `The path ${bad}`) : undefined
  }

  async flush(): Promise<ImportedRow[]> {
    const rows = this.#rows
    const results = await this.#sendAll(rows)
    let next = 0
    return rows.map(({ line, path, notes, result, shared }) => {
      const found = result ?? results[next++]
      if (!found) throw new Error('each line has a result')
      if (shared && isCreated(found.outcome)) this.#created.add(shared.row, shared.text)
      const parts = [found.message, ...(isCreated(found.outcome) ? notes : [])]
      return { ...found, line, path, message: parts.filter((part) => part !== '').join('. ') }
    })
  }

  async #sendAll(rows: readonly SentRow[]): Promise<readonly RowResult[]> {
    const sent = this.#lines
    this.#rows = []
    this.#lines = []
    this.#characters = 0
    this.#relatedMax = 0
    if (sent.length === 0) return []
    const shared = rows.flatMap((one) => one.shared?.row ?? [])
    const dryRun = { stored: this.#stored, related: this.#created.relatedTo(shared) }
    const { results, stored } = await this.#send(sent, this.#options.dryRun ? dryRun : undefined)
    this.#stored = addStored(this.#stored, stored)
    return results
  }
}

function notesOf({ notes, lost }: SourceLink): string[] {
  return lost.length > 0 ? [...notes, `Not imported: ${lost.join(', ')}`] : [...notes]
}

/** The line of Hopcode's own format. */
function lineOf(link: SourceLink, options: ImportOptions, paths: PathKeys): object {
  const { url, fields, hits, isAnyCase } = link
  const [main, ...others] = [...new Set(link.paths)]
  const isCode = main !== undefined && CODE_PATTERN.test(main) && !paths.clashes(main)
  const aliases = [...(main === undefined || isCode ? [] : [main]), ...others]
  const isPaused = link.isDisabled || (link.hasPassword && options.passwords !== 'open')
  const { max_hits: most, ...rest } = fields
  const left = options.withoutHits ? Math.max(1, Number(most) - hits) : most
  return {
    ...(isCode && { code: main }),
    url,
    ...rest,
    ...(most !== undefined && { max_hits: left }),
    ...(hits > 0 && !options.withoutHits && { hits }),
    ...(isPaused && { paused: true }),
    ...(aliases.length > 0 && { [isAnyCase ? 'aliases_any_case' : 'aliases']: aliases }),
  }
}

export const countRows = ({ counts }: Summary, isCounted: (outcome: Outcome) => boolean): number =>
  OUTCOMES.filter(isCounted).reduce((sum, outcome) => sum + (counts[outcome] ?? 0), 0)
