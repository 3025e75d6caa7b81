import type { Database } from 'bun:sqlite'

/** Small values that outlive the process, by name. */
export class SettingStore {
  readonly #find
  readonly #set
  readonly #delete

  constructor(db: Database) {
    this.#find = db.prepare<{ value: string }, [string]>(
      'SELECT value FROM settings WHERE name = ?',
    )
    this.#set = db.prepare<null, [string, string]>(
      `INSERT INTO settings (name, value) VALUES (?1, ?2)
       ON CONFLICT (name) DO UPDATE SET value = ?2`,
    )
    this.#delete = db.prepare<null, [string]>('DELETE FROM settings WHERE name = ?')
  }

  find(name: string): string | undefined {
    return this.#find.get(name)?.value
  }

  set(name: string, value: string): void {
    this.#set.run(name, value)
  }

  delete(name: string): void {
    this.#delete.run(name)
  }
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function settingWrites(db: Database) {
  const settings = new SettingStore(db)
  return {
    saveSetting({ name, value }: { name: string; value: string }): void {
      settings.set(name, value)
    },
  }
}

export type SettingWrites = ReturnType<typeof settingWrites>

const MODERATION_CHANGES = 'moderation_changes'

/**
 * Counts a change to what is disabled (codes, and links of accounts) in the caller's transaction.
 * Commands change it in another process; a running service compares this counter instead of rows.
 */
export function moderationCounter(db: Database): () => void {
  const add = db.prepare<null, []>(
    `INSERT INTO settings (name, value) VALUES ('${MODERATION_CHANGES}', '1')
     ON CONFLICT (name) DO UPDATE SET value = value + 1`,
  )
  return () => void add.run()
}

/** A value that changes with every such change, in any process. */
export function moderationCount(db: Database): () => string {
  const find = db.prepare<{ value: string }, []>(
    `SELECT value FROM settings WHERE name = '${MODERATION_CHANGES}'`,
  )
  return () => find.get()?.value ?? ''
}
