/** The logo and the named QR options of an account. */

import type { AccountId } from '../accounts/store.ts'
import { namedRows } from '../db/named-rows.ts'
import { REFS_MAX } from '../db/schema.ts'
import { type Authored, authoredWrite, subject } from '../db/subject.ts'
import { parseStoredOptions, type QrOptions } from '../draw/options.ts'
import type { StoredLogo } from './renderer.ts'

export const PRESETS_MAX = 20

const presets = namedRows({
  table: 'qr_presets',
  column: 'options',
  field: 'options',
  max: PRESETS_MAX,
  // The query string of `qrQueryOf`.
  encode: (query: string) => query,
  decode: (query): QrOptions => parseStoredOptions(Object.fromEntries(new URLSearchParams(query))),
})

/** What an account has stored for its QR codes. */
export const qrSettings = subject({
  forget: ['qr_logos', 'qr_presets', 'qr_refs'].map(
    (table) => `DELETE FROM ${table} WHERE account_id = ?1`,
  ),

  reads(db) {
    const logo = db.prepare<{ content: Uint8Array }, [AccountId]>(
      'SELECT content FROM qr_logos WHERE account_id = ?',
    )
    const exists = db.prepare<{ found: number }, [AccountId]>(
      'SELECT 1 AS found FROM qr_logos WHERE account_id = ?',
    )
    const refs = db.prepare<{ ref: string }, [AccountId]>(
      'SELECT ref FROM qr_refs WHERE account_id = ?',
    )
    return {
      /** The sources that codes of the account were made with. */
      listRefs: (accountId: AccountId): string[] => refs.all(accountId).map(({ ref }) => ref),

      findLogo(accountId: AccountId): StoredLogo | undefined {
        const row = logo.get(accountId)
        return row ? { key: `${accountId} ${Bun.hash(row.content)}`, png: row.content } : undefined
      },

      hasLogo: (accountId: AccountId): boolean => exists.get(accountId) !== null,

      listPresets: presets.lister(db),
    }
  },

  writes: {
    /** Replaces an earlier logo. */
    saveLogo: authoredWrite('editor', (db) => {
      const save = db.prepare<never, [AccountId, Uint8Array, number]>(
        `INSERT INTO qr_logos (account_id, type, content, created_at)
         VALUES (?, 'image/png', ?, ?)
         ON CONFLICT (account_id) DO UPDATE SET
           type = excluded.type, content = excluded.content, created_at = excluded.created_at`,
      )
      return ({ author, png }: Authored & { png: Uint8Array }): void =>
        void save.run(author.accountId, png, author.now)
    }),

    removeLogo: authoredWrite('editor', (db) => {
      const remove = db.prepare<never, [AccountId]>('DELETE FROM qr_logos WHERE account_id = ?')
      return ({ author }: Authored): void => void remove.run(author.accountId)
    }),

    savePreset: presets.save,
    deletePreset: presets.delete,

    /** Keeps the newest `REFS_MAX` sources of the account. */
    addRef: authoredWrite('editor', (db) => {
      const add = db.prepare<never, [AccountId, string, number]>(
        `INSERT INTO qr_refs (account_id, ref, created_at) VALUES (?, ?, ?)
         ON CONFLICT DO NOTHING`,
      )
      const trim = db.prepare<never, [AccountId, number]>(
        `DELETE FROM qr_refs WHERE account_id = ?1 AND ref IN (
           SELECT ref FROM qr_refs WHERE account_id = ?1
           ORDER BY created_at DESC, ref LIMIT -1 OFFSET ?2)`,
      )
      return ({ author, ref }: Authored & { ref: string }): void => {
        const { accountId, now } = author
        add.run(accountId, ref, now)
        trim.run(accountId, REFS_MAX)
      }
    }),
  },
})
