import {
  FIRST_ROW_MAX,
  requireFewColumns,
  SourceError,
  type SourceFile,
  type SourceRow,
} from './source.ts'
import { type Beginning, textOf } from './text.ts'

/** Reads dumps of MySQL, MariaDB and PostgreSQL, one statement or row after the other. */

/** Characters without the end of a row or statement, after the first row. */
const UNREAD_MAX = 1024 * 1024

/** Characters of the beginning of a statement, up to the names of its columns. */
const NAME_MAX = 4096
const TABLE = /^CREATE\s+(?:\w+\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([`"\w.]+)\s*\(/i

const INSERT =
  /^(?:INSERT\s+(?:IGNORE\s+)?|REPLACE\s+)INTO\s+([`"\w.]+)\s*(?:\(([^)]*)\)\s*)?VALUES\s*/i

type Cell = string | null

/** One of these and one of those columns: a table of links. */
const SHORT = ['keyword', 'short_url', 'address', 'short']
const LONG = ['url', 'long_url', 'target']

export async function* readSql(
  { name, blob }: SourceFile,
  { encoding }: Beginning,
): AsyncGenerator<SourceRow, void> {
  const dump = new Dump(name)
  let wanted = 0
  for await (const text of textOf(blob, encoding)) {
    dump.add(text)
    // What has no end yet is read again from its start, so it must have grown by half at least.
    if (dump.unread < wanted) continue
    yield* dump.rows()
    wanted = 2 * dump.unread
    if (dump.unread > (dump.hasRows ? UNREAD_MAX : FIRST_ROW_MAX)) {
      throw new SourceError(`${name} has a statement without an end.`)
    }
  }
  dump.add('\n')
  yield* dump.rows()
  if (dump.isInside) throw new SourceError(`${name} ends in the middle of a statement.`)
  if (!dump.hasLinks) throw new SourceError(`${name} has no table of links that Hopcode knows.`)
}

interface Table {
  columns: readonly string[]
  kind: 'links' | 'domains' | 'other'
}

class Dump {
  hasLinks = false
  /** A row was found, also of another table. */
  hasRows = false
  #text = ''
  #at = 0
  /** The table whose rows follow, and their form. */
  #table: (Table & { form: 'insert' | 'copy' }) | undefined
  /** Columns by the name of the table, for rows that do not name them. */
  readonly #columns = new Map<string, string[]>()
  /** Domains of Kutt by their ids. */
  readonly #domains = new Map<Cell, Cell>()
  #line = 0
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  add(text: string): void {
    this.#text = this.#text.slice(this.#at) + text
    this.#at = 0
  }

  get unread(): number {
    return this.#text.length - this.#at
  }

  get isInside(): boolean {
    return this.#table !== undefined || this.#text.slice(this.#at).trim() !== ''
  }

  /** Rows of the statements that have been read completely. */
  *rows(): Generator<SourceRow, void> {
    for (;;) {
      if (!this.#table && !this.#readStatement()) return
      if (!this.#table) continue
      const cells = this.#table.form === 'copy' ? this.#readLine() : this.#readTuple()
      if (cells === undefined) return
      if (cells === 'end') this.#table = undefined
      else {
        this.hasRows = true
        yield* this.#rowOf(this.#table, cells)
      }
    }
  }

  *#rowOf({ columns, kind }: Table, cells: readonly Cell[]): Generator<SourceRow, void> {
    if (kind === 'other') return
    if (cells.length !== columns.length) {
      const found = `${cells.length} values for ${columns.length} columns`
      throw new SourceError(`${this.#file} has a row with ${found} (${columns.join(', ')}).`)
    }
    const values: Record<string, Cell> = {}
    for (const [i, column] of columns.entries()) values[column] = cells[i] ?? null
    if (kind === 'domains') {
      this.#domains.set(values.id ?? null, values.address ?? null)
      return
    }
    this.hasLinks = true
    if (values.domain_id) values.domain = this.#domains.get(values.domain_id) ?? null
    yield { line: ++this.#line, values }
  }

  /** Skips to the rows of a table. False if the text ends before. */
  #readStatement(): boolean {
    const rest = this.#text.slice(this.#at, this.#at + NAME_MAX)
    const blank = /^(?:\s+|;)/.exec(rest)?.[0].length
    if (blank) return this.#move(blank)
    if (rest === '') return false
    if (/^(?:--|#)/.test(rest)) return this.#moveAfter('\n')
    if (rest.startsWith('/*')) return this.#moveAfter('*/')
    const rows =
      INSERT.exec(rest) ?? /^COPY\s+([`"\w.]+)\s*\(([^)]*)\)\s+FROM stdin;\r?\n/i.exec(rest)
    if (rows) return this.#begin(rows)
    return this.#skipStatement()
  }

  #begin([all, table = '', list]: RegExpExecArray): boolean {
    const columns =
      list === undefined ? this.#columns.get(nameOf(table)) : list.split(',').map(nameOf)
    requireFewColumns(this.#file, columns ?? [])
    const form = /^COPY/i.test(all) ? 'copy' : 'insert'
    this.#table = { columns: columns ?? [], kind: kindOf(nameOf(table), columns ?? []), form }
    return this.#move(all.length)
  }

  /** A `CREATE TABLE` tells the columns. */
  #skipStatement(): boolean {
    const end = endOfStatement(this.#text, this.#at)
    if (end === undefined) return false
    const [head, name = ''] = TABLE.exec(this.#text.slice(this.#at, this.#at + NAME_MAX)) ?? []
    if (head) {
      this.#columns.set(nameOf(name), columnsIn(this.#text.slice(this.#at + head.length, end)))
    }
    return this.#move(end - this.#at)
  }

  #move(characters: number): boolean {
    this.#at += characters
    return true
  }

  #moveAfter(end: string): boolean {
    const found = this.#text.indexOf(end, this.#at)
    return found >= 0 && this.#move(found + end.length - this.#at)
  }

  /** A row of COPY. */
  #readLine(): Cell[] | 'end' | undefined {
    const end = this.#text.indexOf('\n', this.#at)
    if (end < 0) return undefined
    const line = this.#text.slice(this.#at, end).replace(/\r$/, '')
    this.#at = end + 1
    if (line === '\\.') return 'end'
    return line.split('\t').map((cell) => {
      if (cell === '\\N') return null
      return cell.replace(/\\(.)/g, (_, sign: string) => ESCAPES[sign] ?? sign)
    })
  }

  /** A row of INSERT: `(1,'a',NULL)`. */
  #readTuple(): Cell[] | 'end' | undefined {
    const text = this.#text
    let at = this.#at
    while (/[\s,]/.test(text[at] ?? '')) at++
    if (text[at] === undefined) return undefined
    if (text[at] !== '(') {
      this.#at = text[at] === ';' ? at + 1 : at
      return 'end'
    }
    const cells: Cell[] = []
    for (at++; ; at++) {
      while (/\s/.test(text[at] ?? '')) at++
      const cell = text[at] === "'" ? readQuoted(text, at) : readBare(text, at)
      if (!cell || text[cell.end] === undefined) return undefined
      cells.push(cell.value)
      at = cell.end
      while (/\s/.test(text[at] ?? '')) at++
      if (text[at] === undefined) return undefined
      if (text[at] === ')') break
    }
    this.#at = at + 1
    return cells
  }
}

const QUOTED = String.raw`'(?:[^'\\]|\\.|'')*'|"(?:[^"]|"")*"|\`(?:[^\`]|\`\`)*\``
const COMMENT = String.raw`--(?=\s)[^\n]*|#[^\n]*|/\*.*?\*/`
/** Texts, names in quotes, comments and the signs that divide definitions. */
const TOKEN = new RegExp(`${QUOTED}|${COMMENT}|[(),]|[^'"\`(),#/-]+|[-/]`, 'gs')

const OTHER_DEFINITION =
  /^(?:PRIMARY|UNIQUE|CONSTRAINT|FOREIGN|CHECK|FULLTEXT|SPATIAL|EXCLUDE|LIKE|PERIOD\s+FOR)\b/i
/** `KEY name (column)`. In contrast, `key varchar(9)` is a column. */
const INDEX = /^(?:KEY|INDEX)\b\s*(?:(?:`[^`]*`|"[^"]*"|\w+)\s*)?(?:USING\s+\w+\s*)?\(\s*[^\s\d']/i
const isColumn = (definition: string): boolean =>
  !OTHER_DEFINITION.test(definition) && !INDEX.test(definition)

/** The names of the columns, in order. `definitions`: what follows the first parenthesis. */
function columnsIn(definitions: string): string[] {
  const columns: string[] = []
  let depth = 0
  let definition = ''
  for (const [token] of definitions.matchAll(TOKEN)) {
    if (token === '(') depth++
    else if (token === ')') depth--
    if (depth < 0 || (depth === 0 && token === ',')) {
      const text = definition.trim()
      const name = /^(?:"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|\w+)/.exec(text)
      if (name && isColumn(text)) columns.push(name[1] ?? name[2] ?? name[0])
      definition = ''
      if (depth < 0) break
    } else definition += /^(?:--|#|\/\*)/.test(token) ? ' ' : token
  }
  return columns
}

const nameOf = (quoted: string): string => quoted.replace(/[`"\s]/g, '').replace(/^.*\./, '')

function kindOf(table: string, columns: readonly string[]): Table['kind'] {
  const hasOne = (names: readonly string[]) => names.some((name) => columns.includes(name))
  if (hasOne(SHORT) && hasOne(LONG)) return 'links'
  return table === 'domains' ? 'domains' : 'other'
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  v: '\v',
  '0': '\0',
  Z: '\u001a',
}

interface ReadCell {
  value: Cell
  /** The position after it. */
  end: number
}

/** Undefined if the text ends before the text does. */
function readQuoted(text: string, start: number): ReadCell | undefined {
  let value = ''
  let from = start + 1
  for (let at = from; ; at++) {
    const sign = text[at]
    if (sign === undefined) return undefined
    if (sign === '\\') {
      const escaped = text[at + 1]
      if (escaped === undefined) return undefined
      value += text.slice(from, at) + (ESCAPES[escaped] ?? escaped)
      from = ++at + 1
    } else if (sign === "'") {
      if (text[at + 1] !== "'") return { value: value + text.slice(from, at), end: at + 1 }
      value += text.slice(from, at + 1)
      from = ++at + 1
    }
  }
}

function readBare(text: string, start: number): ReadCell | undefined {
  let at = start
  while (text[at] !== undefined && text[at] !== ',' && text[at] !== ')') at++
  if (text[at] === undefined) return undefined
  const value = text.slice(start, at).trim()
  return { value: /^null$/i.test(value) ? null : value, end: at }
}

/** The position after its semicolon; undefined if the text ends before. */
function endOfStatement(text: string, start: number): number | undefined {
  // Elsewhere # is an operator of PostgreSQL.
  const isTable = TABLE.test(text.slice(start, start + NAME_MAX))
  const quote = isTable ? /['"`;#]|--\s|\/\*/g : /['"`;]|--\s|\/\*/g
  quote.lastIndex = start
  for (let found = quote.exec(text); found; found = quote.exec(text)) {
    const [sign] = found
    if (sign === ';') return found.index + 1
    if (sign === '#' || sign.length > 1) {
      const closing = sign === '/*' ? '*/' : '\n'
      const end = text.indexOf(closing, found.index + Math.min(2, sign.length))
      if (end < 0) return undefined
      quote.lastIndex = end + closing.length
      continue
    }
    const closing = new RegExp(`\\\\[\\s\\S]|${sign}`, 'g')
    closing.lastIndex = found.index + 1
    let end = closing.exec(text)
    while (end && end[0] !== sign) end = closing.exec(text)
    if (!end) return undefined
    quote.lastIndex = end.index + 1
  }
  return undefined
}
