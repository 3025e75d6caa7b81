import type { Database } from 'bun:sqlite'

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

  find(name: string): string | undefined {
    return this.#find.get(name)?.value
  }

  set(name: string, value: string): void {
    this.#set.run(name, value)
  }
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function settingWrites(db: Database) {
  const settings = new SettingStore(db)
  const ofHost = new SettingStore(db, 'host_settings')
  return {
    saveSetting({ name, value }: { name: string; value: string }): void {
      settings.set(name, value)
    },

    /** Applies to this host only. */
    saveHostSetting({ name, value }: { name: string; value: string }): void {
      ofHost.set(name, value)
    },

    /** A test write: succeeds if other writes would. */
    probeWrites({ at }: { at: number }): void {
      ofHost.set('last_write_probe', String(at))
    },
  }
}

export type SettingWrites = ReturnType<typeof settingWrites>
