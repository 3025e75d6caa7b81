import { Database } from 'bun:sqlite'
import { messageOf } from '../lib/thread.ts'
import { isRead } from './fields.ts'
import { requireFewColumns, SourceError, type SourceFile, type SourceRow } from './source.ts'

/** The columns by which the table of links is recognized: of Kutt, Chhoto URL and Lstu. */
const TABLES: readonly (readonly string[])[] = [
  ['address', 'target', 'domain_id'],
  ['short_url', 'long_url'],
  ['short', 'url', 'counter'],
]

/**
 * The links of the database of another service, which is opened read-only. Only stored columns of
 * ordinary tables are read: views, virtual tables and generated columns would run what the file
 * says. Throws SourceError.
 */
export async function* readSqlite(file: SourceFile): AsyncGenerator<SourceRow, void> {
  const db = await open(file)
  try {
    const table = findTable(db, file.name)
    if (table) {
      const domains = domainsOf(db, file.name)
      let line = 0
      for (const values of table.rows()) {
        const domain = domains.get(values.domain_id)
        yield { line: ++line, values: domain === undefined ? values : { ...values, domain } }
      }
      return
    }
  } catch (error) {
    if (error instanceof SourceError) throw error
    throw new SourceError(`${file.name} cannot be read: ${messageOf(error)}`)
  } finally {
    db.close()
  }
  throw new SourceError(`${file.name} has no table of links that Hopcode knows.`)
}

/** A file on this machine is read with its write-ahead log. */
async function open({ name, blob, path, isTrusted }: SourceFile): Promise<Database> {
  if (path === undefined && !isTrusted) {
    throw new SourceError(`${name} is a database: only owners of the service can upload one.`)
  }
  try {
    const db =
      path === undefined
        ? Database.deserialize(Buffer.from(await blob.arrayBuffer()), { readonly: true })
        : new Database(path, { readonly: true })
    // Functions and virtual tables of the schema must be harmless, and damaged pages are noticed.
    db.run('PRAGMA trusted_schema = OFF')
    db.run('PRAGMA cell_size_check = ON')
    return db
  } catch (error) {
    throw new SourceError(`${name} cannot be opened: ${messageOf(error)}`)
  }
}

type Values = Record<string, unknown>

interface Table {
  columns: readonly string[]
  rows(): Generator<Values, void>
}

/** The first table of links. */
function findTable(db: Database, file: string): Table | undefined {
  // Views and virtual tables have other statements and no page of their own.
  const names = db
    .query<{ name: string }, []>(
      `SELECT name FROM sqlite_schema
       WHERE type = 'table' AND rootpage > 0 AND sql GLOB 'CREATE TABLE*'`,
    )
    .values()
  for (const [name] of names) {
    const table = tableOf(db, String(name), file)
    if (TABLES.some((has) => has.every((column) => table.columns.includes(column)))) return table
  }
  return undefined
}

/** Throws SourceError for a table of links with generated columns when its rows are read. */
function tableOf(db: Database, name: string, file: string): Table {
  const all = db
    .query<{ name: string; hidden: number }, [string]>(
      'SELECT name, hidden FROM pragma_table_xinfo(?)',
    )
    .all(name)
  const columns = all.map((column) => column.name)
  return {
    columns,
    *rows() {
      requireFewColumns(file, columns)
      if (all.some(({ hidden }) => hidden !== 0)) {
        throw new SourceError(`${file} has computed columns in ${name}, which are not read.`)
      }
      const decode = decoderOf(db)
      const read = (column: string) =>
        isRead(column) || KEYS.includes(column)
          ? cellOf(column)
          : `${quoted(column)} NOT IN ('', 0) AS ${quoted(column)}`
      const sql = `SELECT ${columns.map(read).join(', ')} FROM ${quoted(name)}`
      for (const row of db.query<Values, []>(sql).iterate()) {
        for (const [column, value] of Object.entries(row)) {
          if (value instanceof Uint8Array) row[column] = decode(value)
        }
        yield row
      }
    },
  }
}

/** Read beside the columns that have a meaning of their own; of others, whether they have one. */
const KEYS = ['id', 'domain_id']

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Characters of a cell: longer ones are longer than any text of a link. */
const CELL_MAX = 65_536

/** Text as its bytes: SQLite would replace what is not valid. */
function cellOf(column: string): string {
  const cell = quoted(column)
  const text = `CAST(substr(${cell}, 1, ${CELL_MAX}) AS BLOB)`
  const other = `WHEN 'blob' THEN NULL ELSE ${cell}`
  return `CASE typeof(${cell}) WHEN 'text' THEN ${text} ${other} END AS ${cell}`
}

/** Decodes the bytes of a text. Those that are no UTF-8 are Windows-1252. */
function decoderOf(db: Database): (bytes: Uint8Array) => string {
  const encoding = db.query<{ encoding: string }, []>('PRAGMA encoding').get()?.encoding ?? ''
  if (encoding === 'UTF-16le') return (bytes) => Buffer.from(bytes).toString('utf16le')
  if (encoding === 'UTF-16be') return (bytes) => Buffer.from(bytes).swap16().toString('utf16le')
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const other = new TextDecoder('windows-1252')
  return (bytes) => {
    try {
      return utf8.decode(bytes)
    } catch {
      return other.decode(bytes)
    }
  }
}

/** Domains of Kutt by their ids. */
function domainsOf(db: Database, file: string): Map<unknown, unknown> {
  const domains = new Map<unknown, unknown>()
  const isTable = db
    .query(`SELECT 1 FROM sqlite_schema
      WHERE name = 'domains' AND type = 'table' AND rootpage > 0 AND sql GLOB 'CREATE TABLE*'`)
    .get()
  const table = isTable ? tableOf(db, 'domains', file) : undefined
  if (!table || !['id', 'address'].every((column) => table.columns.includes(column))) return domains
  for (const { id, address } of table.rows()) domains.set(id, address)
  return domains
}
