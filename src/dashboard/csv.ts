import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { delimiterOf, type Encoding, textOf } from '../import/text.ts'
import { URL_MAX_LENGTH } from '../links/url.ts'

/** Reads the CSV that spreadsheets write. */

/** A URL to shorten, from pasted text or a file. */
export interface UrlLine {
  /** From 1. */
  line: number
  /** Cut to just over the maximum length of a URL, so that pages show no longer lines. */
  text: string
  /** Why the URL in this line is ambiguous. */
  problem?: string | undefined
}

const cut = (text: string) => text.slice(0, URL_MAX_LENGTH + 1)

/** One URL per line, `linesMax` at most. Skips empty lines. */
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
/** Bytes parsed in one time slice: about 3 ms if each is a cell. */
const SLICE_BYTES = 8 * 1024
/** Eight times the longest URL. Bounds the memory of a quote that is never closed. */
const RECORD_BYTES_MAX = 65_536

const AMBIGUOUS =
  'This line has several columns, and the file does not tell which one is the URL. Start it with ' +
  'a line of column names, one of them url. If the whole line is one URL, paste it as it is here.'

const TOO_MANY =
  'This line has more columns than the first line has names. Put quotes around a URL with commas.'

/**
 * The URLs of a CSV file: from the column url, long_url or destination, or else the first. At most
 * `linesMax`; the rest of the file is not parsed. Works in time slices. Returns a `problem` if the
 * file is not valid CSV.
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

/** UTF-8, or UTF-16 if the file starts with a byte order mark, as spreadsheets save it. */
function encodingOf([first, second]: Uint8Array): Encoding {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  return 'utf-8'
}

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
  const start = await file.slice(0, RECORD_BYTES_MAX).bytes()
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
  const source = Readable.from(textOf(file, encoding, SLICE_BYTES))
  source.pipe(parser)
  const lines: UrlLine[] = []
  let isFirst = true
  let names: Names | undefined
  try {
    for await (const { info, record, raw } of parser as AsyncIterable<Parsed>) {
      const row = { line: info.lines, cells: record, raw: raw.trim() }
      if (isFirst && isHead(row)) names = namesOf(row)
      else lines.push(lineOf(row, names))
      isFirst = false
      if (lines.length === linesMax) break
    }
  } finally {
    source.unpipe(parser)
    source.destroy()
  }
  return lines
}

const urlColumn = ({ cells }: CsvRow): number =>
  cells.findIndex((cell) => NAMES.has(cell.toLowerCase().replace(/[\s_-]/g, '')))

/** The number of column names, and the position of the one of the URL. */
interface Names {
  columns: number
  column: number
}

const namesOf = (row: CsvRow): Names => ({
  columns: row.cells.length,
  column: Math.max(urlColumn(row), 0),
})

function lineOf({ line, cells, raw }: CsvRow, names: Names | undefined): UrlLine {
  const ambiguous = (problem?: string) => ({ line, text: cut(raw), problem })
  const { columns, column } = names ?? { columns: cells.length, column: 0 }
  // A row with more cells than names contains a URL with an unquoted comma.
  if (cells.length > columns) return ambiguous(columns === 1 ? undefined : TOO_MANY)
  // Many URLs contain commas: the part before one may be a different destination.
  const isClear = names || raw.startsWith('"') || cells.slice(1).every((cell) => cell === '')
  return isClear ? { line, text: cut(cells[column] ?? '') } : ambiguous(AMBIGUOUS)
}

/** Whether a row has column names: one names the URL, or no cell looks like a URL. */
function isHead(row: CsvRow): boolean {
  if (urlColumn(row) >= 0) return true
  if (row.cells.some((cell) => /^https?:/i.test(cell))) return false
  return row.cells.length > 1 || !/[.:/]/.test(row.cells[0] ?? '')
}

function problemOf({ code, ...about }: CsvError): string {
  const line = 'lines' in about ? ` (line ${about.lines})` : ''
  if (code === 'CSV_QUOTE_NOT_CLOSED') return `The file has a quote that is not closed${line}.`
  if (code === 'CSV_MAX_RECORD_SIZE') return `The file has a line that is too long${line}.`
  return `The file is not valid CSV${line}.`
}
