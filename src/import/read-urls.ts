import { URL_MAX_LENGTH } from '../links/url.ts'
import { plainName } from './fields.ts'
import { type CsvRecord, csvRecords } from './read-csv.ts'
import { beginningOf } from './text.ts'

/** Reads URLs to shorten from pasted text or from a CSV file, which needs no names of columns. */

export interface UrlLine {
  /** From 1. */
  line: number
  /** Cut to just over the maximum length of a URL, so that pages show no longer lines. */
  text: string
  /** The path that the short URL gets. Absent: a generated code. */
  path?: string | undefined
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

export interface UrlFile {
  lines: UrlLine[]
  /** Names of columns that are not read. */
  ignored: string[]
}

const URL_NAMES = new Set(['url', 'longurl', 'destination'])
const PATH_NAMES = new Set(['path', 'custompath', 'alias'])
/** Characters of a path or a name: just over the maximum of a whole address. */
const CELL_MAX = 1001
/** Eight times the longest URL. */
const RECORD_MAX = 64 * 1024
/** Bytes that are parsed in one time slice: about 3 ms if each is a cell. */
const CHUNK_BYTES = 8 * 1024

const AMBIGUOUS =
  'This line has several columns, and the file does not tell which one is the URL. Start it with ' +
  'a line of column names, such as url,path. If the whole line is one URL, paste it as it is here.'

const TOO_MANY =
  'This line has more columns than the first line has names. Put quotes around a URL with commas.'

/** Whether the first line of a pasted text has names of columns, one of them that of paths. */
export function hasPathColumn(text: string): boolean {
  const head = /^\s*([^\r\n]{1,1000})/.exec(text)?.[1] ?? ''
  const names = head.split(/[,;\t|]/).map((name) => plainName(name.replaceAll('"', '').trim()))
  return [URL_NAMES, PATH_NAMES].every((wanted) => names.some((name) => wanted.has(name)))
}

/**
 * The URLs of a CSV file: from the column url, long_url or destination, or else the first, and the
 * paths in a column path, custom_path or alias. At most `linesMax`; the rest of the file is not
 * parsed. Works in time slices. Throws SourceError.
 */
export async function readUrls(blob: Blob, linesMax: number): Promise<UrlFile> {
  const file = { name: 'The file', blob }
  const options = { recordMax: RECORD_MAX, isRawWanted: true, chunkBytes: CHUNK_BYTES }
  const lines: UrlLine[] = []
  let isFirst = true
  let names: Names | undefined
  for await (const record of csvRecords(file, await beginningOf(file), options)) {
    if (isFirst && isHead(record)) names = namesOf(record)
    else lines.push(lineOf(record, names))
    isFirst = false
    if (lines.length === linesMax) break
  }
  return { lines, ignored: names?.ignored ?? [] }
}

const columnOf = ({ cells }: CsvRecord, names: ReadonlySet<string>): number =>
  cells.findIndex((cell) => names.has(plainName(cell)))

/** The number of column names, and the positions of those of the URL and of the path, or -1. */
interface Names {
  columns: number
  column: number
  pathColumn: number
  ignored: string[]
}

function namesOf(record: CsvRecord): Names {
  const { cells } = record
  const column = Math.max(columnOf(record, URL_NAMES), 0)
  const pathColumn = columnOf(record, PATH_NAMES)
  const isIgnored = (name: string, i: number) => name !== '' && i !== column && i !== pathColumn
  const ignored = cells.map((name) => name.trim().slice(0, CELL_MAX)).filter(isIgnored)
  return { columns: cells.length, column, pathColumn, ignored }
}

function lineOf({ line, cells, raw }: CsvRecord, names: Names | undefined): UrlLine {
  const ambiguous = (problem?: string) => ({ line, text: cut(raw), problem })
  const { columns, column, pathColumn = -1 } = names ?? { columns: cells.length, column: 0 }
  // A record with more cells than names contains a URL with an unquoted comma.
  if (cells.length > columns) return ambiguous(columns === 1 ? undefined : TOO_MANY)
  // Many URLs contain commas: the part before one may be a different destination.
  const isClear = names || raw.startsWith('"') || cells.slice(1).every((cell) => cell === '')
  if (!isClear) return ambiguous(AMBIGUOUS)
  const path = cells[pathColumn]?.trim().slice(0, CELL_MAX) || undefined
  return { line, text: cut(cells[column] ?? ''), path }
}

/** Whether a record has column names: one names the URL, or no cell looks like a URL. */
function isHead(record: CsvRecord): boolean {
  if (columnOf(record, URL_NAMES) >= 0) return true
  if (record.cells.some((cell) => /^https?:/i.test(cell))) return false
  return record.cells.length > 1 || !/[.:/]/.test(record.cells[0] ?? '')
}
