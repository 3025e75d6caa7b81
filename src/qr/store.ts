/** The logo and the named QR options of an account. */

import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { parseQrOptions, type QrOptions } from './options.ts'
import type { StoredLogo } from './renderer.ts'

export const PRESETS_MAX = 20

interface QrPreset {
  id: number
  name: string
  options: QrOptions
}

/** Reads, on the control thread's own connection. */
export class QrStore {
  readonly #logo
  readonly #exists
  readonly #presets

  constructor(db: Database) {
    this.#logo = db.prepare<{ content: Uint8Array }, [AccountId]>(
      'SELECT content FROM qr_logos WHERE account_id = ?',
    )
    this.#exists = db.prepare<{ found: number }, [AccountId]>(
      'SELECT 1 AS found FROM qr_logos WHERE account_id = ?',
    )
    this.#presets = db.prepare<{ id: number; name: string; options: string }, [AccountId]>(
      'SELECT id, name, options FROM qr_presets WHERE account_id = ? ORDER BY name',
    )
  }

  findLogo(accountId: AccountId): StoredLogo | undefined {
    const row = this.#logo.get(accountId)
    return row ? { key: `${accountId} ${Bun.hash(row.content)}`, png: row.content } : undefined
  }

  hasLogo(accountId: AccountId): boolean {
    return this.#exists.get(accountId) !== null
  }

  listPresets(accountId: AccountId): QrPreset[] {
    return this.#presets.all(accountId).map(({ id, name, options }) => ({
      id,
      name,
      options: parseQrOptions(Object.fromEntries(new URLSearchParams(options))),
    }))
  }
}

interface PresetCommand {
  accountId: AccountId
  name: string
  /** The query string of `qrQueryOf`. */
  options: string
  now: number
}

/** Run on the writer thread, inside the transaction of its batch. */
export function qrWrites(db: Database) {
  const saveLogo = db.prepare<never, [AccountId, Uint8Array, number]>(
    `INSERT INTO qr_logos (account_id, type, content, created_at) VALUES (?, 'image/png', ?, ?)
     ON CONFLICT (account_id) DO UPDATE
       SET type = excluded.type, content = excluded.content, created_at = excluded.created_at`,
  )
  const removeLogo = db.prepare<never, [AccountId]>('DELETE FROM qr_logos WHERE account_id = ?')
  const countOthers = db.prepare<{ n: number }, [AccountId, string]>(
    'SELECT count(*) AS n FROM qr_presets WHERE account_id = ? AND name <> ?',
  )
  const savePreset = db.prepare<never, [AccountId, string, string, number]>(
    `INSERT INTO qr_presets (account_id, name, options, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (account_id, name) DO UPDATE SET options = excluded.options`,
  )
  const deletePreset = db.prepare<never, [number, AccountId]>(
    'DELETE FROM qr_presets WHERE id = ? AND account_id = ?',
  )

  return {
    /** Replaces an earlier logo. */
    saveQrLogo(command: { accountId: AccountId; png: Uint8Array; now: number }): void {
      saveLogo.run(command.accountId, command.png, command.now)
    },

    removeQrLogo({ accountId }: { accountId: AccountId }): void {
      removeLogo.run(accountId)
    },

    /** Replaces a preset of the same name. False if the account has `PRESETS_MAX` others. */
    saveQrPreset({ accountId, name, options, now }: PresetCommand): boolean {
      if ((countOthers.get(accountId, name)?.n ?? 0) >= PRESETS_MAX) return false
      savePreset.run(accountId, name, options, now)
      return true
    },

    deleteQrPreset({ accountId, id }: { accountId: AccountId; id: number }): void {
      deletePreset.run(id, accountId)
    },
  }
}

export type QrWrites = ReturnType<typeof qrWrites>
