import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import {
  COLUMNS_MAX,
  FIRST_ROW_MAX,
  SourceError,
  type SourceFile,
  type SourceRow,
  tooManyColumns,
} from './source.ts'
import { type Beginning, delimiterOf, textOf } from './text.ts'

/** Characters of a record after the first one. The longest texts of a link fit. */
const RECORD_MAX = 1024 * 1024

export interface CsvRecord {
  /** From 1: the line in which it ends. */
  line: number
  cells: string[]
  /** The text of the record. Empty without `isRawWanted`. */
  raw: string
}

interface RecordOptions {
  recordMax?: number
  /** Cells of a record. */
  columnsMax?: number
  isRawWanted?: boolean
  /** Bytes that are parsed in one time slice. */
  chunkBytes?: number
}

interface Parsed {
  info: { lines: number }
  record: string[]
  raw: string
}

/**
 * The records of a CSV file, without empty lines and without a first line that only names the
 * separator. Throws SourceError.
 */
export async function* csvRecords(
  { name, blob }: Pick<SourceFile, 'name' | 'blob'>,
  { encoding, start }: Beginning,
  { recordMax = RECORD_MAX, columnsMax, isRawWanted = false, chunkBytes }: RecordOptions = {},
): AsyncGenerator<CsvRecord, void> {
  const parser = parse({
    delimiter: delimiterOf(start),
    max_record_size: recordMax,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    trim: true,
    info: true,
    raw: isRawWanted,
    // Stops within a record: a million empty cells take 100 MiB.
    ...(columnsMax !== undefined && {
      cast: (cell: string, { index }: { index: number }) => {
        if (index >= columnsMax) throw tooManyColumns(name)
        return cell
      },
    }),
  })
  let read = 0
  const bounded = async function* () {
    for await (const text of textOf(blob, encoding, chunkBytes)) {
      if (read > FIRST_ROW_MAX && parser.info.records === 0) {
        throw new SourceError(`${name} ${tooLong(FIRST_ROW_MAX)}.`)
      }
      read += text.length
      yield text
    }
  }
  // One chunk is read ahead, so that a bound is noticed one chunk late at most.
  const source = Readable.from(bounded(), { highWaterMark: 1 })
  source.on('error', (error) => parser.destroy(error))
  source.pipe(parser)
  let isFirst = true
  try {
    for await (const { info, record, raw = '' } of parser as AsyncIterable<Parsed>) {
      const isRow = !isFirst || !isSeparatorLine(record)
      isFirst = false
      if (isRow) yield { line: info.lines, cells: record, raw: raw.trim() }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new SourceError(`${name} ${problemOf(error, recordMax)}`)
  } finally {
    source.unpipe(parser)
    source.destroy()
  }
}

/** Excel's first line: `sep=;`, of which the separator may end a cell. */
const isSeparatorLine = ([first = '', ...others]: readonly string[]): boolean =>
  /^sep=\W?$/i.test(first) && others.every((cell) => cell === '')

/** The rows of a CSV file by the names in its first row. Throws SourceError. */
export async function* readCsv(
  file: SourceFile,
  beginning: Beginning,
): AsyncGenerator<SourceRow, void> {
  let names: readonly string[] | undefined
  for await (const { line, cells } of csvRecords(file, beginning, { columnsMax: COLUMNS_MAX })) {
    if (names) yield { line, values: valuesOf(names, cells) }
    else names = cells
  }
}

/** A cell that spreadsheets would take for a formula was written with a `'` before it. */
const unescaped = (cell: string): string => (/^'[=+\-@]/.test(cell) ? cell.slice(1) : cell)

const valuesOf = (names: readonly string[], cells: readonly string[]) =>
  Object.fromEntries(names.map((name, i) => [name, unescaped(cells[i] ?? '')]))

const tooLong = (most: number) =>
  'has a quote that is not closed, or a line that is too long: more than ' +
  `${most === RECORD_MAX ? 'a million' : most.toLocaleString('en')} characters`

function problemOf({ code, ...about }: CsvError, recordMax: number): string {
  const line = 'lines' in about ? ` (line ${about.lines})` : ''
  if (code === 'CSV_QUOTE_NOT_CLOSED') return `has a quote that is not closed${line}.`
  if (code === 'CSV_MAX_RECORD_SIZE') return `${tooLong(recordMax)}${line}.`
  return `is not valid CSV${line}.`
}
