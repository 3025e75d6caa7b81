import { Database } from 'bun:sqlite'
import { checkDatabase } from '../../src/backup/invariants.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { databaseFile, openReadonly } from '../../src/db/open.ts'

/**
 * The rows of a database that all hosts of a cluster share, in an order that does not depend on
 * their storage. The hosts must be stopped, or at rest.
 */

/**
 * Tables of one host only: the search index is filled in the background, by each for itself. Hosts
 * at rest may append a comparison of their rows, which changes nothing but `log_position`.
 */
const OWN_TABLES = /^(log_position|host_settings|search_progress|links_search.*|sqlite_stat.*)$/
/** Columns of one host only. */
const OWN_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  hit_totals: ['journal_id', 'position'],
}

interface SharedTable {
  name: string
  query: string
}

/** `sqlite_sequence` included: ids must go on with the same number. */
export function sharedTables(db: Database): SharedTable[] {
  const names = db
    .query<{ name: string }, []>(
      `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
       AND name <> 'sqlite_schema' ORDER BY name`,
    )
    .all()
  return names
    .filter(({ name }) => !OWN_TABLES.test(name))
    .map(({ name }) => {
      const columns = db
        .query<{ name: string }, [string]>('SELECT name FROM pragma_table_info(?) ORDER BY cid')
        .all(name)
        .map((column) => column.name)
        .filter((column) => !OWN_COLUMNS[name]?.includes(column))
      const list = columns.map((column) => `"${column}"`).join(', ')
      const order = columns.map((_, at) => at + 1).join(', ')
      return { name, query: `SELECT ${list} FROM "${name}" ORDER BY ${order}` }
    })
}

/** The row as JSON, bytes as in SQL. */
const show = (row: object): string =>
  JSON.stringify(row, (_, value) =>
    value instanceof Uint8Array ? `x'${Buffer.from(value).toString('hex')}'` : value,
  )

/** Every shared row of a database file, as one line each. */
export function* sharedRows(file: string): Generator<string> {
  using db = new Database(file, { readonly: true })
  for (const { name, query } of sharedTables(db)) {
    for (const row of db.query(query).iterate()) {
      yield `${name} ${show(row as object)}`
    }
  }
}

/** The first row that is not the same in both; undefined if the databases are equal. */
export function firstDifference(one: string, other: string): string | undefined {
  const left = sharedRows(one)
  const right = sharedRows(other)
  try {
    for (let row = 1; ; row++) {
      const [a, b] = [left.next(), right.next()]
      if (a.done && b.done) return undefined
      if (a.value !== b.value || a.done !== b.done) {
        return `row ${row}:\n  ${a.value ?? 'none'} in ${one}\n  ${b.value ?? 'none'} in ${other}`
      }
    }
  } finally {
    left.return(undefined)
    right.return(undefined)
  }
}

/**
 * A writing connection to the database of a running service, as another program would have. It
 * waits while the service writes.
 */
export function openBeside(dataDir: string): Database {
  const db = new Database(databaseFile(dataDir), { readwrite: true })
  db.run('PRAGMA busy_timeout = 30000')
  return db
}

/**
 * Takes the links away from under a running service, as a damaged disk might, until the block ends:
 * a service that closes still has hits to count. Keys go on working.
 */
export function breakDatabase(dataDir: string): Disposable {
  const { db } = openDataFolder(dataDir)
  db.run('ALTER TABLE links RENAME TO links_gone')
  return {
    [Symbol.dispose]() {
      db.run('ALTER TABLE links_gone RENAME TO links')
      db.close()
    },
  }
}

/** Every problem that `hopcode check` would report. */
export function problemsOf({ dataDir }: { dataDir: string }) {
  using db = openReadonly(databaseFile(dataDir), { cacheKiB: 1024 })
  return [...checkDatabase(db)].filter(({ status }) => status === 'problem')
}
