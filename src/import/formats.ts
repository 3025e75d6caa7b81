import { type Dialect, hasUrl, plainName } from './fields.ts'
import { HEADER_FIELD } from './line.ts'
import { readCsv } from './read-csv.ts'
import { readJson } from './read-json.ts'
import { readSql } from './read-sql.ts'
import { readSqlite } from './read-sqlite.ts'
import { type OwnLine, SourceError, type SourceFile, type SourceRow } from './source.ts'
import { beginningOf, textOf } from './text.ts'

interface Format extends Dialect {
  label: string
  /** Names as `plainName` writes them: a row with all names of a list is of the format. */
  marks: readonly (readonly string[])[]
  /** Marks of a CSV file, where they are others: spreadsheets have “ID, URL, Slug” too. */
  csvMarks?: readonly (readonly string[])[]
  /** What an importer must know. */
  note?: string
}

/** Formats in the order in which a row is compared with them: fewer names come last. */
const FORMATS = {
  hopcode: { label: 'Hopcode', marks: [] },
  shlink: {
    label: 'Shlink',
    marks: [['shortcode', 'longurl']],
    csvMarks: [['shortcode', 'longurl', 'shorturl', 'visits']],
    forwardsQuery: true,
    note:
      'Its counts include bots. Files do not say whether it appends extra paths to long URLs: ' +
      'choose that for all links.',
  },
  kutt: { label: 'Kutt', marks: [['address', 'target']], csvMarks: [] },
  polr: { label: 'Polr', marks: [['shorturl', 'longurl', 'secretkey']] },
  chhoto: {
    label: 'Chhoto URL',
    marks: [
      ['shorturl', 'longurl', 'expirytime'],
      ['shortlink', 'longlink'],
    ],
    csvMarks: [['shorturl', 'longurl', 'expirytime']],
    note: 'It has no dates of creation.',
  },
  sink: {
    label: 'Sink',
    marks: [['slug', 'url', 'id']],
    csvMarks: [],
    isAnyCase: true,
    note: 'Its export has no counts. Its paths work in any letter case, as in Sink.',
  },
  bitly: {
    label: 'Bitly',
    marks: [
      ['link', 'longurl', 'id'],
      ['bitlink', 'longurl'],
    ],
    csvMarks: [['bitlink', 'longurl']],
    note: 'Answers of its API have no counts.',
  },
  dub: {
    label: 'Dub',
    marks: [
      ['key', 'url', 'domain'],
      ['shortlink', 'destinationurl'],
    ],
    csvMarks: [['shortlink', 'destinationurl']],
  },
  shortio: { label: 'Short.io', marks: [['originalurl', 'path']] },
  rebrandly: { label: 'Rebrandly', marks: [['slashtag', 'destination']] },
  tinyurl: { label: 'TinyURL', marks: [['tinyurl']], note: 'Its answers have no counts.' },
  lstu: { label: 'Lstu', marks: [['short', 'url', 'counter']] },
  golink: {
    label: 'golink',
    marks: [['short', 'long']],
    csvMarks: [],
    isAnyCase: true,
    addsPaths: true,
    note:
      'Paths behind its addresses are added, as there. Destinations with other templates than ' +
      '{{.Path}} at the end are not imported.',
  },
  yourls: {
    label: 'YOURLS',
    marks: [
      ['keyword', 'url'],
      ['shorturl', 'url', 'clicks'],
      ['source', 'target', 'hits'],
    ],
    note: 'Its counts include bots and previews.',
  },
  csv: { label: 'CSV', marks: [] },
} as const satisfies Record<string, Format>

export type FormatName = keyof typeof FORMATS
export const FORMAT_NAMES = Object.keys(FORMATS) as FormatName[]
export const formatOf = (name: FormatName): Format => FORMATS[name]

/** What the refusal of another file says. */
export const KNOWN =
  'Hopcode reads CSV files and exports of ' +
  `${FORMAT_NAMES.flatMap((name) => (name === 'csv' ? [] : [formatOf(name).label])).join(', ')}.`

const SQLITE = 'SQLite format 3\0'

/** A file that can be read as often as needed. */
export interface OpenSource {
  format: FormatName
  rows(): AsyncGenerator<SourceRow | OwnLine, void>
}

/**
 * Recognizes the form of a file by its content, and its service by the names in its first row.
 * Throws SourceError for a file that has no links.
 */
export async function openSource(
  file: SourceFile,
  named: FormatName | 'auto',
): Promise<OpenSource> {
  const found = named === 'hopcode' ? undefined : await rowsOf(file)
  if (!found) return { format: 'hopcode', rows: () => readLines(file) }
  const { rows, isCsv } = found
  const first = await firstRowOf(rows)
  const names = Object.keys(first?.values ?? {}).map(plainName)
  if (first && !hasUrl(names)) {
    const listed = names.slice(0, 10).join(', ').slice(0, 200)
    throw new SourceError(
      `${file.name} has no column that Hopcode takes for a destination, such as “Long URL”. ` +
        `It has: ${listed}. ${KNOWN}`,
    )
  }
  const known = FORMAT_NAMES.find((name) => {
    const { marks, csvMarks = marks } = formatOf(name)
    return (isCsv ? csvMarks : marks).some((mark) => mark.every((one) => names.includes(one)))
  })
  return { format: named === 'auto' ? (known ?? 'csv') : named, rows }
}

/** Throws SourceError, which says what can be read, if the file has no form that is known. */
async function firstRowOf(rows: () => AsyncGenerator<SourceRow, void>) {
  try {
    const reading = rows()
    const { value } = await reading.next()
    await reading.return()
    return value ?? undefined
  } catch (error) {
    throw error instanceof SourceError ? new SourceError(`${error.message} ${KNOWN}`) : error
  }
}

/** Undefined for an export of Hopcode. */
async function rowsOf(
  file: SourceFile,
): Promise<{ rows: () => AsyncGenerator<SourceRow, void>; isCsv: boolean } | undefined> {
  const isDatabase = (await file.blob.slice(0, SQLITE.length).text()) === SQLITE
  if (isDatabase) return { rows: () => readSqlite(file), isCsv: false }
  const beginning = await beginningOf(file)
  const text = beginning.start.trimStart()
  if (isHeaderLine(text)) return undefined
  const isDump = /^(?:--|\/\*|SET |CREATE |INSERT INTO|COPY |PRAGMA )/i.test(text)
  const read = /^[[{]/.test(text) ? readJson : isDump ? readSql : readCsv
  return { rows: () => read(file, beginning), isCsv: read === readCsv }
}

const LINE_LENGTH_MAX = 1024 * 1024

/** The first line of each export, which is no link. */
const isHeaderLine = (text: string): boolean => text.startsWith(`{"${HEADER_FIELD}"`)

/** The links of an export of Hopcode: each line is one value, which needs no reading. */
async function* readLines(file: SourceFile): AsyncGenerator<OwnLine, void> {
  const { name, blob } = file
  const { encoding } = await beginningOf(file)
  let rest = ''
  let line = 0
  for await (const chunk of textOf(blob, encoding)) {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    if (rest.length > LINE_LENGTH_MAX) throw new SourceError(`${name} has a line that is too long.`)
    for (const text of parts) {
      line++
      if (!isHeaderLine(text)) yield { line, text }
    }
  }
  if (rest !== '' && !isHeaderLine(rest)) yield { line: line + 1, text: rest }
}
