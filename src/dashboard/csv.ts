import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { CsvError, parse } from 'csv-parse'

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
  text: string
  /** Why it cannot be told which URL is meant. */
  problem?: string
}

/** One URL a line; empty lines are none. */
export function linesOf(text: string): UrlLine[] {
  return text.split(/\r\n|\r|\n/).flatMap((raw, at) => {
    const line = raw.trim()
    return line === '' ? [] : [{ line: at + 1, text: line }]
  })
}

const NAMES = new Set(['url', 'longurl', 'destination'])
const SLICE = 64 * 1024
/** Eight times the longest URL: a quote that is never closed does not take in the whole file. */
const RECORD_BYTES_MAX = 65_536

const AMBIGUOUS =
  'This line has several columns, and the file does not say which is the URL. Begin it with ' +
  'a line of names, one of them url; or, if the line is one URL, shorten it as it stands here.'

const TOO_MANY =
  'This line has more columns than the first one has names. Write quotes around a URL with commas.'

/**
 * The URLs of a CSV file: of the column named url, long_url or destination, else of the first.
 * Other work of this thread goes on meanwhile. Gives the reason where the file is none.
 */
export async function parseUrlFile(bytes: Uint8Array): Promise<UrlLine[] | { problem: string }> {
  const text = decode(bytes)
  try {
    return urlsOf(await readRecords(text))
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    return { problem: problemOf(error) }
  }
}

/** UTF-8, or UTF-16 where the file begins with its mark, as spreadsheets save it. */
function decode(bytes: Uint8Array): string {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  return new TextDecoder().decode(bytes)
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

async function readRecords(text: string): Promise<CsvRow[]> {
  const parser = parse({
    ...{ delimiter: delimiterOf(text), max_record_size: RECORD_BYTES_MAX },
    ...{ relax_column_count: true, relax_quotes: true, skip_empty_lines: true, trim: true },
    ...{ info: true, raw: true },
  })
  const slices = async function* () {
    for (let at = 0; at < text.length; at += SLICE) {
      if (at > 0) await setImmediate()
      yield text.slice(at, at + SLICE)
    }
  }
  const source = Readable.from(slices())
  source.pipe(parser)
  const rows: CsvRow[] = []
  for await (const { info, record, raw } of parser as AsyncIterable<Parsed>) {
    rows.push({ line: info.lines, cells: record, raw: raw.trim() })
  }
  return rows
}

/** Spreadsheets write what their language calls a list separator. */
function delimiterOf(text: string): string {
  const first = /^[^\r\n]*/.exec(text)?.[0] ?? ''
  const count = (sign: string) => first.split(sign).length
  const [most = ','] = [',', ';', '\t'].toSorted((a, b) => count(b) - count(a))
  return most
}

function urlsOf(rows: readonly CsvRow[]): UrlLine[] {
  const [head] = rows
  if (!head) return []
  const named = head.cells.findIndex((cell) => NAMES.has(cell.toLowerCase().replace(/[\s_-]/g, '')))
  if (named >= 0 || isHead(head)) {
    const column = Math.max(named, 0)
    return rows.slice(1).map((row) => inColumn(row, column, head.cells.length))
  }
  return rows.map((row) => {
    const [first = '', ...others] = row.cells
    // A comma belongs to many URLs: what comes before it may lead elsewhere.
    const isClear = others.every((cell) => cell === '') || row.raw.startsWith('"')
    if (isClear) return urlLine(row, first)
    return urlLine(row, row.raw, AMBIGUOUS)
  })
}

/** A row with more cells than there are names has a URL with a comma in it, and no quotes. */
function inColumn(row: CsvRow, column: number, columns: number): UrlLine {
  if (row.cells.length <= columns) return urlLine(row, row.cells[column] ?? '')
  return urlLine(row, row.raw, columns === 1 ? undefined : TOO_MANY)
}

const urlLine = ({ line }: CsvRow, text: string, problem?: string): UrlLine => ({
  ...{ line, text },
  ...(problem !== undefined && { problem }),
})

/** Names of columns, none of which says URL, in place of a first row. */
function isHead({ cells }: CsvRow): boolean {
  if (cells.some((cell) => /^https?:/i.test(cell))) return false
  return cells.length > 1 || !/[.:/]/.test(cells[0] ?? '')
}

function problemOf({ code, ...about }: CsvError): string {
  const line = 'lines' in about ? ` (line ${about.lines})` : ''
  if (code === 'CSV_QUOTE_NOT_CLOSED') return `The file has a quote that is not closed${line}.`
  if (code === 'CSV_MAX_RECORD_SIZE') return `The file has a line that is too long${line}.`
  return `The file is no CSV that can be read${line}.`
}
