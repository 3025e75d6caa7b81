import type { Database } from 'bun:sqlite'

/** How much of a cluster's log a database contains. */
export interface LogPosition {
  /** The random name of the cluster. */
  cluster: string
  /** The last applied entry; 0 before the first one. */
  seq: number
  /** The hash chain of the log up to `seq`. */
  chain: Uint8Array
  /** A running hash of the results of all calls. */
  digest: string
}

/** Undefined for a database that belongs to no cluster. */
export function findLogPosition(db: Database): LogPosition | undefined {
  if (!hasTable(db, 'log_position')) return undefined
  const row = db
    .query<LogPosition, []>('SELECT cluster, seq, chain, digest FROM log_position WHERE id = 1')
    .get()
  return row ?? undefined
}

export function logPositionSetter(db: Database): (position: LogPosition) => void {
  const set = db.prepare<null, [string, number, Uint8Array, string]>(
    'INSERT OR REPLACE INTO log_position (id, cluster, seq, chain, digest) VALUES (1, ?, ?, ?, ?)',
  )
  return ({ cluster, seq, chain, digest }) => void set.run(cluster, seq, chain, digest)
}

/** The database belongs to no cluster any more. */
export function removeLogPosition(db: Database): void {
  for (const table of ['log_position', 'hit_positions']) {
    db.run(`DELETE FROM ${table}`)
  }
}

/** Older databases lack tables. */
export const hasTable = (db: Database, name: string): boolean =>
  db.query('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== null
