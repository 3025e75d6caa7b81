import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { requireFewColumns, SourceError, type SourceFile, type SourceRow } from './source.ts'
import { type Beginning, delimiterOf, textOf } from './text.ts'

/** Bounds the memory of a quote that is never closed. The longest texts of a link fit. */
const RECORD_CHARACTERS_MAX = 1024 * 1024

interface Parsed {
  info: { lines: number }
  record: string[]
}

/** The rows of a CSV file by the names in its first row. Throws SourceError. */
export async function* readCsv(
  { name, blob }: SourceFile,
  { encoding, start }: Beginning,
): AsyncGenerator<SourceRow, void> {
  const parser = parse({
    delimiter: delimiterOf(start),
    max_record_size: RECORD_CHARACTERS_MAX,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    trim: true,
    info: true,
  })
  const source = Readable.from(textOf(blob, encoding))
  source.on('error', (error) => parser.destroy(error))
  source.pipe(parser)
  let names: readonly string[] | undefined
  try {
    for await (const { info, record } of parser as AsyncIterable<Parsed>) {
      if (names) yield { line: info.lines, values: valuesOf(names, record) }
      // Excel's first line says only which sign separates the columns.
      else if (!/^sep=/i.test(record[0] ?? '')) {
        requireFewColumns(name, record)
        names = record
      }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new SourceError(`${name} ${problemOf(error)}`)
  } finally {
    source.unpipe(parser)
    source.destroy()
  }
}

/** A cell that spreadsheets would take for a formula was written with a `'` before it. */
const unescaped = (cell: string): string => (/^'[=+\-@]/.test(cell) ? cell.slice(1) : cell)

const valuesOf = (names: readonly string[], cells: readonly string[]) =>
  Object.fromEntries(names.map((name, i) => [name, unescaped(cells[i] ?? '')]))

function problemOf({ code, ...about }: CsvError): string {
  const line = 'lines' in about ? ` (line ${about.lines})` : ''
  if (code === 'CSV_QUOTE_NOT_CLOSED') return `has a quote that is not closed${line}.`
  if (code === 'CSV_MAX_RECORD_SIZE') {
    return `has a quote that is not closed, or a line of more than a million characters${line}.`
  }
  return `is not valid CSV${line}.`
}
