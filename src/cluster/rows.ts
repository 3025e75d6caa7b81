import type { Database } from 'bun:sqlite'
import { versionOf } from '../db/migrate.ts'
import { assert } from '../lib/assert.ts'

/** Hashes the rows that all hosts share, part by part. */

/** Tables and columns that each host has for itself. */
const OWN_TABLES = /^(log_position|host_settings|search_progress|links_search.*|sqlite_stat.*)$/
const OWN_COLUMNS = ['hit_totals.journal_id', 'hit_totals.position']

/** The end of a row, where the next read begins. */
interface RowCursor {
  table: string
  /** The primary key of the row; null before the first one. */
  key: (string | number)[] | null
}

export interface HashRows {
  /** The version of the database: rows of another one cannot be compared. */
  version: number
  /** Null for the first part. */
  from: RowCursor | null
  rowsMax: number
  bytesMax: number
}

export interface HashedRows {
  /** Equal on all hosts whose rows of this part are equal. Hexadecimal. */
  digest: string
  /** The next part; null after the last one. */
  next: RowCursor | null
}

const CHUNK_ROWS = 100

/** Runs on the writer thread of every host, inside the transaction of an entry of the log. */
export function rowHashes(db: Database) {
  const version = versionOf(db)
  const tables = sharedTables(db)
  const start = (at: number) => (tables[at] ? { table: tables[at].name, key: null } : null)
  return {
    /** Hashes the rows of one part. Undefined if this database has another version. */
    hashRows({ from, rowsMax, bytesMax, ...author }: HashRows): HashedRows | undefined {
      if (author.version !== version) return undefined
      const hash = new Bun.CryptoHasher('sha256')
      let cursor: RowCursor | null = from ?? start(0)
      for (let rows = 0, bytes = 0; cursor && rows < rowsMax && bytes < bytesMax; ) {
        const { table } = cursor
        const at = tables.findIndex(({ name }) => name === table)
        const chunk = tables[at]?.read(cursor.key)
        assert(chunk, `the table ${table} exists`)
        hash.update(`${table} ${chunk.length}\n`)
        for (const { text } of chunk) {
          hash.update(`${text}\n`)
          bytes += text.length
        }
        rows += chunk.length
        const last = chunk[CHUNK_ROWS - 1]
        cursor = last ? { table, key: last.key } : start(at + 1)
      }
      return { digest: hash.digest('hex'), next: cursor }
    },
  }
}

interface SharedTable {
  name: string
  /** The next rows after a key. `text` has all values of the row. */
  read(key: RowCursor['key']): { key: (string | number)[]; text: string }[]
}

/** `sqlite_sequence` included: new rows get the same ids. */
function sharedTables(db: Database): SharedTable[] {
  const names = db
    .query<{ name: string }, []>(
      `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
       AND name <> 'sqlite_schema' ORDER BY name`,
    )
    .all()
  return names
    .filter(({ name }) => !OWN_TABLES.test(name))
    .map(({ name }) => ({ name, read: rowReader(db, name) }))
}

function rowReader(db: Database, table: string): SharedTable['read'] {
  const columns = db
    .query<{ name: string; pk: number }, [string]>(
      'SELECT name, pk FROM pragma_table_info(?) ORDER BY cid',
    )
    .all(table)
    .filter(({ name }) => !OWN_COLUMNS.includes(`${table}.${name}`))
  const primary = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
  const list = (primary.length > 0 ? primary : columns).map(({ name }) => `"${name}"`)
  const keys = list.join(', ')
  const text = columns.map(({ name }) => `quote("${name}")`).join(` || ',' || `)
  const after = list.map(() => '?').join(', ')
  const select = (where: string) =>
    db.prepare(
      `SELECT ${text}, ${keys} FROM "${table}" ${where} ORDER BY ${keys} LIMIT ${CHUNK_ROWS}`,
    )
  const first = select('')
  const next = select(`WHERE (${keys}) > (${after})`)
  return (key) => {
    const rows = key ? next.values(...key) : first.values()
    return rows.map(([row, ...found]) => ({ key: found as (string | number)[], text: String(row) }))
  }
}
