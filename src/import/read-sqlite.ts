import { Database } from 'bun:sqlite'
import { messageOf } from '../lib/thread.ts'
import { SourceError, type SourceFile, type SourceRow } from './source.ts'

/** Which table has the links, by its columns. */
const TABLES: readonly { has: readonly string[]; sql: (table: string) => string }[] = [
  {
    // Kutt.
    has: ['address', 'target', 'domain_id'],
    sql: (table) =>
      `SELECT ${table}.*, domains.address AS domain FROM ${table}
       LEFT JOIN domains ON domains.id = domain_id ORDER BY ${table}.id`,
  },
  // Chhoto URL.
  { has: ['short_url', 'long_url'], sql: (table) => `SELECT * FROM ${table}` },
  // Lstu.
  { has: ['short', 'url', 'counter'], sql: (table) => `SELECT * FROM ${table}` },
]

/** The links of the database of another service, which is opened read-only. Throws SourceError. */
export async function* readSqlite(file: SourceFile): AsyncGenerator<SourceRow, void> {
  const db = await open(file)
  try {
    const names = db
      .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
      .all()
    for (const { name } of names) {
      const columns = db
        .query<{ name: string }, [string]>('SELECT name FROM pragma_table_info(?)')
        .all(name)
        .map((column) => column.name)
      const table = TABLES.find(({ has }) => has.every((column) => columns.includes(column)))
      if (!table) continue
      let line = 0
      const sql = table.sql(`"${name.replaceAll('"', '""')}"`)
      for (const values of db.query<Record<string, unknown>, []>(sql).iterate()) {
        yield { line: ++line, values }
      }
      return
    }
  } catch (error) {
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
    if (path !== undefined) return new Database(path, { readonly: true })
    return Database.deserialize(Buffer.from(await blob.arrayBuffer()), { readonly: true })
  } catch (error) {
    throw new SourceError(`${name} cannot be opened: ${messageOf(error)}`)
  }
}
