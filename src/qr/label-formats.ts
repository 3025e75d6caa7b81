import type { AccountId } from '../accounts/store.ts'
import { type Authored, authoredWrite, subject } from '../db/subject.ts'
import type { Grid } from '../draw/sheet.ts'

export const LABEL_FORMATS_MAX = 20

/** Measures of a sheet of labels, under a name of the account. */
export interface LabelFormat {
  id: number
  name: string
  grid: Grid
}

export const labelFormats = subject({
  forget: ['DELETE FROM label_formats WHERE account_id = ?1'],

  reads(db) {
    const list = db.prepare<{ id: number; name: string; grid: string }, [AccountId]>(
      'SELECT id, name, grid FROM label_formats WHERE account_id = ? ORDER BY name',
    )
    return {
      list: (accountId: AccountId): LabelFormat[] =>
        list.all(accountId).map(({ grid, ...named }) => ({ ...named, grid: JSON.parse(grid) })),
    }
  },

  writes: {
    /** Replaces a format of the same name. False if the account has `LABEL_FORMATS_MAX` others. */
    save: authoredWrite('editor', {
      prepare(db) {
        const countOthers = db.prepare<{ n: number }, [AccountId, string]>(
          'SELECT count(*) AS n FROM label_formats WHERE account_id = ? AND name <> ?',
        )
        const save = db.prepare<never, [AccountId, string, string, number]>(
          `INSERT INTO label_formats (account_id, name, grid, created_at)
           VALUES (?, ?, ?, ?) ON CONFLICT (account_id, name) DO UPDATE SET grid = excluded.grid`,
        )
        return ({ author, name, grid }: Authored & Omit<LabelFormat, 'id'>): boolean => {
          const { accountId, now } = author
          if ((countOthers.get(accountId, name)?.n ?? 0) >= LABEL_FORMATS_MAX) return false
          save.run(accountId, name, JSON.stringify(grid), now)
          return true
        }
      },
    }),

    delete: authoredWrite('editor', {
      prepare(db) {
        const remove = db.prepare<never, [number, AccountId]>(
          'DELETE FROM label_formats WHERE id = ? AND account_id = ?',
        )
        return ({ author, id }: Authored & { id: number }): void =>
          void remove.run(id, author.accountId)
      },
    }),
  },
})
