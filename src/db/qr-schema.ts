import { integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { bytes } from './schema.ts'

/** Tables of what accounts have stored for their QR codes: see schema.ts. */

/** The logo in the middle of an account's QR codes. */
export const qrLogos = sqliteTable('qr_logos', {
  accountId: integer('account_id').primaryKey(),
  /** `image/png` or `image/svg+xml`. */
  type: text({ enum: ['image/png', 'image/svg+xml'] }).notNull(),
  content: bytes().notNull(),
  createdAt: integer('created_at').notNull(),
})

/** Named QR options of an account. */
export const qrPresets = sqliteTable(
  'qr_presets',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: integer('account_id').notNull(),
    name: text().notNull(),
    /** The options as the query string of `/api/qr/{code}`. */
    options: text().notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [uniqueIndex('qr_presets_name').on(table.accountId, table.name)],
)

/** Sources of scans that an account has. */
export const REFS_MAX = 50

/** The sources that an account has put into codes, whose visits are scans. */
export const qrRefs = sqliteTable(
  'qr_refs',
  {
    accountId: integer('account_id').notNull(),
    ref: text().notNull(),
    /** When it was put into a code the last time that it was not known. */
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.ref] })],
)
