import type { Database } from 'bun:sqlite'
import { type Authored, authoredWrite } from './subject.ts'

interface NamedRowsOptions<Key extends string, Sent, Found> {
  /** With the columns `id`, `account_id`, `name` and `created_at`. */
  table: string
  /** The column of the value, and its name in commands and results. */
  column: string
  field: Key
  /** Of an account. */
  max: number
  encode: (value: Sent) => string
  decode: (text: string) => Found
}

type Valued<Key extends string, Value> = { [Name in Key]: Value }
export type NamedRow<Key extends string, Value> = { id: number; name: string } & Valued<Key, Value>

/** Values that accounts keep under names of their own. */
export function namedRows<Key extends string, Sent, Found>({
  table,
  column,
  field,
  max,
  encode,
  decode,
}: NamedRowsOptions<Key, Sent, Found>) {
  return {
    /** Those of an account by name. */
    lister(db: Database): (accountId: number) => NamedRow<Key, Found>[] {
      const list = db.prepare<NamedRow<'value', string>, [number]>(
        `SELECT id, name, ${column} AS value FROM ${table} WHERE account_id = ? ORDER BY name`,
      )
      return (accountId) =>
        list.all(accountId).map(({ id, name, value }) => {
          return { id, name, [field]: decode(value) } as NamedRow<Key, Found>
        })
    },

    /** Replaces the row of the same name. False if the account has `max` others. */
    save: authoredWrite('editor', (db) => {
      const countOthers = db.prepare<{ n: number }, [number, string]>(
        `SELECT count(*) AS n FROM ${table} WHERE account_id = ? AND name <> ?`,
      )
      const save = db.prepare<never, [number, string, string, number]>(
        `INSERT INTO ${table} (account_id, name, ${column}, created_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (account_id, name) DO UPDATE SET ${column} = excluded.${column}`,
      )
      return (command: Authored & { name: string } & Valued<Key, Sent>): boolean => {
        const { author, name } = command
        if ((countOthers.get(author.accountId, name)?.n ?? 0) >= max) return false
        save.run(author.accountId, name, encode(command[field]), author.now)
        return true
      }
    }),

    delete: authoredWrite('editor', (db) => {
      const remove = db.prepare<never, [number, number]>(
        `DELETE FROM ${table} WHERE id = ? AND account_id = ?`,
      )
      return ({ author, id }: Authored & { id: number }): void =>
        void remove.run(id, author.accountId)
    }),
  }
}
