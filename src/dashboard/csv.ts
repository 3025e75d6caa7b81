import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { batchTurns } from '../lib/turns.ts'
import { URL_MAX_LENGTH } from '../links/url.ts'

/** Tables as text: RFC 4180 out, whatever a spreadsheet writes in. */

export const CSV_TYPE = 'text/csv; charset=utf-8'

/** What a spreadsheet would take for a formula (OWASP, "CSV Injection"). */
const FORMULA = /^[=+\-@\t\r\n]/

/** One line with its end. A cell that would run in a spreadsheet gets a `'` before it. */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

function csvCell(value: string | number | null): string {
  if (typeof value === 'number') return String(value)
  const text = value ?? ''
  const safe = FORMULA.test(text) ? `'${text}` : text
  return /[",;\t\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** A URL that somebody wants to shorten, as it stands in a text or a file. */
export interface UrlLine {
  /** From 1, as an editor counts. */
  line: number
  /** Cut where no URL could go on, so that a refused line is not shown at any length. */
  text: string
  /** Why it cannot be told which URL is meant. */
  problem?: string
}

const cut = (text: string) => text.slice(0, URL_MAX_LENGTH + 1)

/** One URL a line, `linesMax` at most; empty lines are none. */
export function linesOf(text: string, linesMax: number): UrlLine[] {
  const found: UrlLine[] = []
  let line = 1
  let start = 0
  for (let at = 0; at <= text.length && found.length < linesMax; at++) {
    const unit = at === text.length ? LINE_FEED : text.charCodeAt(at)
    if (unit !== LINE_FEED && unit !== CARRIAGE_RETURN) continue
    const trimmed = at > start ? text.slice(start, at).trim() : ''
    if (trimmed !== '') found.push({ line, text: cut(trimmed) })
    if (unit === CARRIAGE_RETURN && text.charCodeAt(at + 1) === LINE_FEED) at++
    start = at + 1
    line++
  }
  return found
}

const LINE_FEED = 10
const CARRIAGE_RETURN = 13

const NAMES = new Set(['url', 'longurl', 'destination'])
/** Bytes parsed before other work of this thread runs: about 3 ms if each is a cell. */
const SLICE_BYTES = 8 * 1024
/** Eight times the longest URL: a quote that is never closed does not take in the whole file. */
const RECORD_BYTES_MAX = 65_536

const AMBIGUOUS =
  'This line has several columns, and the file does not say which is the URL. Begin it with ' +
  'a line of names, one of them url; or, if the line is one URL, shorten it as it stands here.'

const TOO_MANY =
  'This line has more columns than the first one has names. Write quotes around a URL with commas.'

/**
 * The URLs of a CSV file: of the column named url, long_url or destination, else of the first. At
 * most `linesMax`: the rest of the file is not parsed. Other work of this thread goes on meanwhile.
 * Gives the reason where the file is none.
 */
export async function parseUrlFile(
  file: Blob,
  linesMax: number,
): Promise<UrlLine[] | { problem: string }> {
  try {
    return await readLines(file, linesMax)
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    return { problem: problemOf(error) }
  }
}

type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be'

/** UTF-8, or UTF-16 where the file begins with its mark, as spreadsheets save it. */
function encodingOf([first, second]: Uint8Array): Encoding {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  return 'utf-8'
}

/** The file's text in pieces, decoded as they are needed: a large file is not in memory twice. */
async function* textOf(file: Blob, encoding: Encoding) {
  const decoder = new TextDecoder(encoding)
  for (let at = 0; at < file.size; at += SLICE_BYTES) {
    if (at > 0) await batchTurns.next()
    yield decoder.decode(await partOf(file, at, at + SLICE_BYTES), { stream: true })
  }
  yield decoder.decode()
}

const partOf = async (file: Blob, start: number, end: number): Promise<Uint8Array> =>
  new Uint8Array(await file.slice(start, end).arrayBuffer())

interface CsvRow {
  line: number
  cells: string[]
  raw: string
}

interface Parsed {
  info: { lines: number }
  record: string[]
  raw: string
}

async function readLines(file: Blob, linesMax: number): Promise<UrlLine[]> {
  const start = await partOf(file, 0, RECORD_BYTES_MAX)
  const encoding = encodingOf(start)
  const parser = parse({
    delimiter: delimiterOf(new TextDecoder(encoding).decode(start)),
    max_record_size: RECORD_BYTES_MAX,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    trim: true,
    info: true,
    raw: true,
  })
  const source = Readable.from(textOf(file, encoding))
  source.pipe(parser)
  const lines: UrlLine[] = []
  let lineOf: ((row: CsvRow) => UrlLine) | undefined
  try {
    for await (const { info, record, raw } of parser as AsyncIterable<Parsed>) {
      const row = { line: info.lines, cells: record, raw: raw.trim() }
      const isFirst = lineOf === undefined
      lineOf ??= lineReader(row)
      if (!isFirst || !isHead(row)) lines.push(lineOf(row))
      if (lines.length === linesMax) break
    }
  } finally {
    source.unpipe(parser)
    source.destroy()
  }
  return lines
}

/** Spreadsheets write what their language calls a list separator. */
function delimiterOf(start: string): string {
  const first = /^[^\r\n]*/.exec(start)?.[0] ?? ''
  const count = (sign: string) => first.split(sign).length
  const [most = ','] = [',', ';', '\t'].toSorted((a, b) => count(b) - count(a))
  return most
}

const urlColumn = ({ cells }: CsvRow): number =>
  cells.findIndex((cell) => NAMES.has(cell.toLowerCase().replace(/[\s_-]/g, '')))

/** How the rows of a file with this first row are read. */
function lineReader(first: CsvRow): (row: CsvRow) => UrlLine {
  if (!isHead(first)) return inFirstColumn
  const column = Math.max(urlColumn(first), 0)
  const { length } = first.cells
  return (row) => inColumn(row, column, length)
}

/** Without names of columns. */
function inFirstColumn(row: CsvRow): UrlLine {
  const [first = '', ...others] = row.cells
  // A comma belongs to many URLs: what comes before it may lead elsewhere.
  const isClear = others.every((cell) => cell === '') || row.raw.startsWith('"')
  if (isClear) return urlLine(row, first)
  return urlLine(row, row.raw, AMBIGUOUS)
}

/** A row with more cells than there are names has a URL with a comma in it, and no quotes. */
function inColumn(row: CsvRow, column: number, columns: number): UrlLine {
  if (row.cells.length <= columns) return urlLine(row, row.cells[column] ?? '')
  return urlLine(row, row.raw, columns === 1 ? undefined : TOO_MANY)
}

function urlLine({ line }: CsvRow, text: string, problem?: string): UrlLine {
  return problem === undefined ? { line, text: cut(text) } : { line, text: cut(text), problem }
}

/** Names of columns: one of them says URL, or none is like one. */
function isHead(row: CsvRow): boolean {
  if (urlColumn(row) >= 0) return true
  if (row.cells.some((cell) => /^https?:/i.test(cell))) return false
  return row.cells.length > 1 || !/[.:/]/.test(row.cells[0] ?? '')
}

function problemOf({ code, ...about }: CsvError): string {
  const line = 'lines' in about ? ` (line ${about.lines})` : ''
  if (code === 'CSV_QUOTE_NOT_CLOSED') return `The file has a quote that is not closed${line}.`
  if (code === 'CSV_MAX_RECORD_SIZE') return `The file has a line that is too long${line}.`
  return `The file is no CSV that can be read${line}.`
}
