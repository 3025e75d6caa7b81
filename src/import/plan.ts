import { addressText, findPathProblem, smallPath } from '../addresses/address.ts'
import { monotonicClock } from '../lib/clock.ts'
import { CODE_PATTERN } from '../lib/code.ts'
import { cannotForward, type LinkProperties } from '../links/property-table.ts'
import { Url } from '../links/url.ts'
import { type Dialect, linkOf, type SourceLink } from './fields.ts'
import { type FormatName, formatOf, KNOWN, type OpenSource, openSource } from './formats.ts'
import { isPausedFor, keptPasswordOf, type PasswordOption } from './kept-password.ts'
import { charactersOf, type ImportRow, PASSWORDS_PER_CALL, parseLine, parseRow } from './line.ts'
import { type RowResult, refused } from './outcomes.ts'
import { PathKeys } from './path-keys.ts'
import { type DomainOptions, RowDomains } from './row-domains.ts'
import { type OwnLine, Pages, SourceError, type SourceFile } from './source.ts'

/**
 * Reads the files of an import twice, and prepares what is sent to a service. It writes nothing and
 * knows nothing of the service, so that it can run in a process of its own: see `reader.ts`.
 */

/** Options of an import, as the command line and the dashboard have them. */
export interface ImportOptions extends DomainOptions {
  format: FormatName | 'auto'
  withoutHits?: boolean | undefined
  passwords?: PasswordOption | undefined
  skipDisabled?: boolean | undefined
  /** Every link adds the path behind its address to its destination, if it can. */
  appendPaths?: boolean | undefined
  dateFormat?: Dialect['dateFormat']
  dryRun?: boolean | undefined
}

/** What is sent of a row: a line of Hopcode's own format, or the row that the line stands for. */
export interface SentRows {
  lines: string
  rows: ImportRow
}

export interface ReadOptions<As extends keyof SentRows> extends ImportOptions {
  as: As
  /** Rows that are sent at once. */
  batchMax?: number | undefined
  /** More rows are refused. */
  rowsMax?: number | undefined
}

/** A row of a file. It has either what is sent of it, or its result already. */
export interface ReadRow<Sent> extends Partial<RowResult> {
  line: number
  /** Empty where the row has none. */
  path: string
  /** What the import changes in the link. */
  notes: readonly string[]
  /** Hits of the link, which count if the row creates it. */
  hits?: number
  /** What Hopcode does not have of the link. */
  lost?: readonly string[]
  sent?: Sent
}

/** The result of the first pass. */
export interface Found {
  format: FormatName
  rows: number
  /** Rows that cannot be imported, whatever the service has. */
  bad: number
  /** Names of columns that have values, and no meaning here. */
  unread: string[]
}

/** The steps of reading, in this order. */
export type Reading<Sent> =
  /** The first pass: how many rows it has read. */
  | { read: number }
  /** The end of the first pass. */
  | { found: Found }
  /** The second pass: the rows of one call. */
  | { rows: ReadRow<Sent>[] }
  | { isEnd: true }

/** Files of more rows are imported in their own order, because sorting needs them in memory. */
const SORTED_ROWS_MAX = 100_000
/** Milliseconds between two reports of the first pass. */
const REPORT_MS = 200

interface Scan extends Found {
  sources: readonly OpenSource[]
  domains: RowDomains
  /** Of the rows that are imported: where both `Menu` and `menu` occur, neither is a code. */
  paths: PathKeys
  /**
   * Of the rows whose domain is one of the service, or absent. These are `paths` if no other row is
   * imported: `menu` and `go.example/menu`, not `bit.ly/menu`.
   */
  ownPaths: PathKeys
  /**
   * In a dry run, the paths and the URL of each row: a later row with one of them finds the link
   * that the earlier one would have created. Else empty.
   */
  names: PathKeys
}

/**
 * Reads the files. Throws SourceError if one cannot be read, or if the rows have several domains
 * and none is named.
 */
export async function* readImport<As extends keyof SentRows>(
  files: readonly SourceFile[],
  options: ReadOptions<As>,
): AsyncGenerator<Reading<SentRows[As]>, void> {
  const scan = yield* firstPass(files, options)
  const { format, rows, bad, unread } = scan
  yield { found: { format, rows, bad, unread } }
  yield* secondPass(scan, options)
}

async function* firstPass(
  files: readonly SourceFile[],
  options: ImportOptions & { rowsMax?: number | undefined },
): AsyncGenerator<{ read: number }, Scan> {
  const { rowsMax = Number.POSITIVE_INFINITY } = options
  const sources: OpenSource[] = []
  const pages = new Pages()
  for (const file of files) sources.push(await openSource({ ...file, pages }, options.format))
  const format = sources[0]?.format ?? 'csv'
  const scan: Scan = {
    sources,
    format,
    rows: 0,
    bad: 0,
    unread: [],
    domains: new RowDomains(options),
    paths: new PathKeys(),
    ownPaths: new PathKeys(),
    names: new PathKeys(),
  }
  let reportedAt = monotonicClock()
  const unread = new Set<string>()
  for await (const row of linksOf(scan, options, unread)) {
    if (++scan.rows > rowsMax) {
      throw new SourceError(`has more than ${rowsMax.toLocaleString('en')} rows.`)
    }
    if (monotonicClock() - reportedAt > REPORT_MS) {
      yield { read: scan.rows }
      reportedAt = monotonicClock()
    }
    addRow(scan, row, options)
  }
  scan.unread = [...unread]
  pages.requireComplete()
  if (scan.rows === 0) {
    const names = files
      .map(({ name }) => name)
      .join(', ')
      .slice(0, 200)
    throw new SourceError(`There are no links in ${names}. ${KNOWN}`)
  }
  scan.domains.decide()
  if (scan.domains.onlyOwn) scan.paths = scan.ownPaths
  scan.paths.close()
  scan.names.close()
  return scan
}

function addRow(scan: Scan, row: Row, options: ImportOptions): void {
  const { domains } = scan
  if (options.dryRun) for (const name of namesOf(row, domains)) scan.names.add(name)
  if (isOwnLine(row)) return
  const { domain, paths, problem, url } = row
  domains.add(domain)
  if (problem || url === '') scan.bad++
  const host = domains.hostOf(domain)
  if (domains.isChosen(domain)) for (const path of paths) scan.paths.add(path, host)
  if (domains.isOwn(domain)) for (const path of paths) scan.ownPaths.add(path, host)
}

type Row = OwnLine | SourceLink
const isOwnLine = (row: Row): row is OwnLine => 'text' in row

async function* linksOf(
  { sources }: Pick<Scan, 'sources'>,
  { dateFormat }: ImportOptions,
  unread?: Set<string>,
): AsyncGenerator<Row, void> {
  for (const { format, rows } of sources) {
    const dialect: Dialect = { ...formatOf(format), dateFormat }
    for await (const row of rows()) yield 'text' in row ? row : linkOf(row, dialect, unread)
  }
}

/**
 * The paths of a row and its URL, by which later rows may find its link. The first one is its
 * address. Empty for a row that cannot be imported.
 */
function namesOf(row: Row, domains: RowDomains, parsed?: ImportRow): string[] {
  if (isOwnLine(row)) {
    const { code, aliases, aliasesAnyCase, url } = parsed ?? rowOfLine(row.text) ?? NO_NAMES
    const anyCase = aliasesAnyCase.map((one) => smallPath(addressText(one)))
    const names = [code, ...aliases.map(addressText), ...anyCase, url?.href]
    return names.filter((name) => typeof name === 'string')
  }
  const url = parsed?.url ?? Url.safeParse(row.url).data
  if (!url) return []
  const host = domains.hostOf(row.domain) ?? null
  const paths = row.isAnyCase ? row.paths.map(smallPath) : row.paths
  return [...paths.map((path) => addressText({ host, path })), url.href]
}

const NO_NAMES = { code: null, aliases: [], aliasesAnyCase: [], url: null }

function rowOfLine(text: string): ImportRow | undefined {
  const parsed = parseLine(text)
  return 'outcome' in parsed ? undefined : parsed
}

async function* secondPass<As extends keyof SentRows>(
  scan: Scan,
  options: ReadOptions<As>,
): AsyncGenerator<Reading<SentRows[As]>, void> {
  const batch = new Batch(scan, options)
  for await (const row of inOrder(scan, options)) {
    if (isOwnLine(row)) batch.addLine(row)
    else batch.addLink(row)
    if (batch.isFull) yield { rows: batch.drain() }
  }
  yield { rows: batch.drain() }
  yield { isEnd: true }
}

/** Oldest first, if there are not too many: lists show the newest link first. */
async function* inOrder(scan: Scan, options: ImportOptions) {
  const { domains } = scan
  const hasOwnLines = scan.sources.some(({ format }) => format === 'hopcode')
  const isSorted = scan.rows <= SORTED_ROWS_MAX && !hasOwnLines
  if (!isSorted) {
    yield* linksOf(scan, options)
    return
  }
  const all: SourceLink[] = []
  for await (const row of linksOf(scan, options)) all.push(row as SourceLink)
  const rank = ({ domain }: SourceLink) => domains.rank(domain)
  const time = ({ fields }: SourceLink) => String(fields.created_at ?? '')
  const compare = (a: SourceLink, b: SourceLink) => {
    if (rank(a) !== rank(b)) return rank(a) - rank(b)
    return time(a) < time(b) ? -1 : time(a) > time(b) ? 1 : 0
  }
  yield* all.sort(compare)
}

/** Rows of one call. */
export const SENT_ROWS_MAX = 1000
const SENT_CHARACTERS_MAX = 250_000

/** Collects the rows of one call. */
class Batch<As extends keyof SentRows> {
  readonly #scan: Scan
  readonly #options: ReadOptions<As>
  #rows: ReadRow<SentRows[As]>[] = []
  #sent = 0
  #passwords = 0
  #characters = 0
  /** The line that first has a name, of the names that several rows have. */
  readonly #firstLines = new Map<string, number>()

  constructor(scan: Scan, options: ReadOptions<As>) {
    this.#scan = scan
    this.#options = options
  }

  get isFull(): boolean {
    const { batchMax = SENT_ROWS_MAX } = this.#options
    return (
      this.#sent >= batchMax ||
      this.#passwords >= PASSWORDS_PER_CALL ||
      this.#characters >= SENT_CHARACTERS_MAX ||
      this.#rows.length >= 2 * SENT_ROWS_MAX
    )
  }

  drain(): ReadRow<SentRows[As]>[] {
    const rows = this.#rows
    this.#rows = []
    this.#sent = 0
    this.#passwords = 0
    this.#characters = 0
    return rows
  }

  addLine(own: OwnLine): void {
    const { line, text } = own
    if (text.includes('"password"')) this.#passwords++
    if (text.trim() !== '') this.#send({ line, path: '', notes: [] }, text, own)
  }

  addLink(link: SourceLink): void {
    const [path = ''] = link.paths
    const row = { line: link.line, path, notes: notesOf(link, this.#options) }
    const result = this.#refuse(link)
    if (result) {
      this.#push({ ...row, ...result }, path.length)
      return
    }
    if (keptPasswordOf(link, this.#options)) this.#passwords++
    const { hits, lost } = link
    const counted = {
      ...(hits > 0 && !this.#options.withoutHits && { hits }),
      ...(lost.length > 0 && { lost }),
    }
    this.#send({ ...row, ...counted }, lineOf(link, this.#options, this.#scan), link)
  }

  #push(row: ReadRow<SentRows[As]>, characters: number): void {
    this.#rows.push(row)
    this.#characters += characters
  }

  #send(row: Omit<ReadRow<never>, 'sent'>, line: string | object, source: Row): void {
    const { as, dryRun } = this.#options
    const isParsed = as === 'rows' || dryRun === true
    const parsed = isParsed
      ? typeof line === 'string'
        ? parseLine(line)
        : parseRow(line)
      : undefined
    const refusal =
      parsed && ('outcome' in parsed ? parsed : this.#findRepeated(row.line, source, parsed))
    if (refusal) {
      this.#push({ ...row, ...refusal }, row.path.length)
      return
    }
    const text = typeof line === 'string' ? line : as === 'lines' ? JSON.stringify(line) : ''
    const sent = as === 'lines' ? text : parsed
    const characters = as === 'lines' ? text.length : charactersOf(parsed as ImportRow)
    this.#push({ ...row, sent: sent as SentRows[As] }, row.path.length + characters)
    this.#sent++
  }

  /** The refusal, in a dry run, of a row whose address an earlier row has. Notes other names. */
  #findRepeated(line: number, source: Row, parsed: ImportRow): RowResult | undefined {
    if (!this.#options.dryRun) return undefined
    const names = namesOf(source, this.#scan.domains, parsed)
    const first = this.#firstLines.get(names[0] ?? '')
    if (first !== undefined) return refused('repeated', `Repeats line ${first}`)
    for (const name of names.filter(this.#scan.names.isRepeated)) {
      if (!this.#firstLines.has(name)) this.#firstLines.set(name, line)
    }
    return undefined
  }

  /** Why a row is not sent. */
  #refuse(link: SourceLink): RowResult | undefined {
    const { passwords, skipDisabled } = this.#options
    const { paths, problem, url } = link
    if (!this.#scan.domains.isChosen(link.domain)) {
      return this.#scan.domains.onlyOwn
        ? refused('unknown_domain', `${link.domain} ${UNKNOWN_DOMAIN}`)
        : refused('other_domain', `It is of ${link.domain}`)
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
}

const UNKNOWN_DOMAIN =
  'is not a domain of this service: add it with hopcode domain add, or name all domains to ' +
  'import with --domain'

function notesOf(link: SourceLink, options: ImportOptions): string[] {
  const lost = link.lost.length > 0 ? [`Not imported: ${link.lost.join(', ')}`] : []
  return [
    ...link.notes,
    ...lost,
    ...(isPausedFor(link, options) ? [NO_PASSWORD] : []),
    ...(appends(link, options) && !canAppend(link) ? [NO_PATHS] : []),
  ]
}

const appends = ({ appendsPath }: SourceLink, { appendPaths }: ImportOptions): boolean =>
  appendsPath || appendPaths === true

const canAppend = ({ url, fields }: SourceLink): boolean => {
  const destinations = (fields.destinations ?? []) as LinkProperties['destinations']
  return !cannotForward({ forward_path: 'append', destinations }, url)
}

const NO_PATHS = 'Paths behind its address are not added: its destination has a fragment (#)'

const NO_PASSWORD = 'Its password was not imported: set one, and resume the link'

/** The value of a line of Hopcode's own format. */
function lineOf(link: SourceLink, options: ImportOptions, { domains, paths }: Scan): object {
  const { url, fields, hits, isAnyCase } = link
  const [main, ...others] = [...new Set(link.paths)]
  const isCode = main !== undefined && CODE_PATTERN.test(main) && !paths.clashes(main)
  const aliases = [...(main === undefined || isCode ? [] : [main]), ...others]
  const list = isAnyCase ? 'aliases_any_case' : 'aliases'
  const host = domains.hostOf(link.domain)
  const isPaused = link.isDisabled || isPausedFor(link, options)
  const { max_hits: most, ...rest } = fields
  const left = options.withoutHits ? Math.max(1, Number(most) - hits) : most
  return {
    ...(isCode && { code: main }),
    url,
    ...rest,
    ...(most !== undefined && { max_hits: left }),
    ...(hits > 0 && !options.withoutHits && { hits }),
    ...(isPaused && { paused: true }),
    ...(appends(link, options) && canAppend(link) && { forward_path: 'append' }),
    ...keptPasswordOf(link, options),
    ...(host && { domain: host }),
    ...(aliases.length > 0 &&
      (host ? { [`domain_${list}`]: { [host]: aliases } } : { [list]: aliases })),
  }
}
