import type { Database } from 'bun:sqlite'
import { SettingStore } from '../db/settings.ts'

/** How much of a cluster's log a database contains. */
export interface LogPosition {
  /** The random name of the cluster. */
  cluster: string
  /** The last applied entry; 0 before the first one. */
  seq: number
  /** The hash chain of the log up to `seq`. */
  chain: Uint8Array
}

/** Undefined for a database that belongs to no cluster. */
export function findLogPosition(db: Database): LogPosition | undefined {
  if (!hasTable(db, 'log_position')) return undefined
  const row = db
    .query<LogPosition, []>('SELECT cluster, seq, chain FROM log_position WHERE id = 1')
    .get()
  return row ?? undefined
}

export function logPositionSetter(db: Database): (position: LogPosition) => void {
  const set = db.prepare<null, [string, number, Uint8Array]>(
    'INSERT OR REPLACE INTO log_position (id, cluster, seq, chain) VALUES (1, ?, ?, ?)',
  )
  return ({ cluster, seq, chain }) => void set.run(cluster, seq, chain)
}

/** The database belongs to no cluster any more. */
export function removeLogPosition(db: Database): void {
  for (const table of ['log_position', 'hit_positions']) {
    db.run(`DELETE FROM ${table}`)
  }
  db.query('DELETE FROM host_settings WHERE name = ?').run(DAMAGE)
}

const DAMAGE = 'cluster_damage'

/** Why the data of this database, and of its copies, are wrong; undefined if that is not known. */
export const findDamage = (db: Database): string | undefined =>
  new SettingStore(db, 'host_settings').findByName(DAMAGE)

/** For later starts, and for copies of this database. The first reason stays. */
export function recordDamage(db: Database, reason: string): void {
  if (findDamage(db) === undefined) new SettingStore(db, 'host_settings').set(DAMAGE, reason)
}

/** Older databases lack tables. */
export const hasTable = (db: Database, name: string): boolean =>
  db.query('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== null
