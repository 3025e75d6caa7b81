import type { Database } from 'bun:sqlite'
import {
  type Authored,
  authoredWrite,
  localWrite,
  perConnection,
  subject,
  write,
} from './subject.ts'

/**
 * Small values that outlive the process, by name. `host_settings`: those of this data folder only,
 * which other hosts of a cluster do not share.
 */
export class SettingStore {
  readonly #find
  readonly #set

  constructor(db: Database, table: 'settings' | 'host_settings' = 'settings') {
    this.#find = db.prepare<{ value: string }, [string]>(
      `SELECT value FROM ${table} WHERE name = ?`,
    )
    this.#set = db.prepare<null, [string, string]>(
      `INSERT INTO ${table} (name, value) VALUES (?1, ?2)
       ON CONFLICT (name) DO UPDATE SET value = ?2`,
    )
  }

  findByName(name: string): string | undefined {
    return this.#find.get(name)?.value
  }

  set(name: string, value: string): void {
    this.#set.run(name, value)
  }
}

interface Setting {
  name: string
  value: string
}

const hostSettings = perConnection((db) => new SettingStore(db, 'host_settings'))

export const settings = subject({
  reads(db) {
    const stored = new SettingStore(db)
    return { findByName: (name: string): string | undefined => stored.findByName(name) }
  },

  writes: {
    save: authoredWrite('owner', (db) => {
      const stored = new SettingStore(db)
      return ({ name, value }: Authored & Setting): void => stored.set(name, value)
    }),

    /** Applies to this host only. */
    saveForHost: localWrite((db) => {
      const stored = hostSettings(db)
      return ({ name, value }: Setting): void => stored.set(name, value)
    }),

    /** A test write: succeeds if other writes would. */
    probe: write((db) => {
      const stored = hostSettings(db)
      return ({ at }: { at: number }): void => stored.set('last_write_probe', String(at))
    }),
  },
})
