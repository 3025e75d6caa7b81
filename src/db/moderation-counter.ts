import type { Database } from 'bun:sqlite'

const NAME = 'moderation_changes'

/**
 * Counts changes to what the operator has disabled: codes, and links of accounts. Commands change
 * it from another process, and a running server compares the counter instead of the rows.
 */

/** Adds one, in the caller's transaction. */
export function moderationCounter(db: Database): () => void {
  const add = db.prepare<null, []>(
    `INSERT INTO settings (name, value) VALUES ('${NAME}', '1')
     ON CONFLICT (name) DO UPDATE SET value = value + 1`,
  )
  return () => void add.run()
}

/** Differs after every change, made by any process. */
export function moderationCount(db: Database): () => string {
  const find = db.prepare<{ value: string }, []>(
    `SELECT value FROM settings WHERE name = '${NAME}'`,
  )
  return () => find.get()?.value ?? ''
}
