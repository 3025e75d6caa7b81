import { sql } from 'drizzle-orm'
import { blob, index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/**
 * Every table of the service. `npm run db:generate` turns a change here into a migration under
 * `drizzle/`. Times are epoch ms. Ids count up and are never given out again (AUTOINCREMENT).
 */

export const accounts = sqliteTable(
  'accounts',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    email: text().notNull(),
    plan: text({ enum: ['free', 'pro', 'enterprise'] }).notNull(),
    /** Codes held now: the `total` of a list without a search. */
    linkCount: integer('link_count').notNull().default(0),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [uniqueIndex('accounts_email').on(sql`lower(${table.email})`)],
)

export const apiKeys = sqliteTable(
  'api_keys',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: integer('account_id').notNull(),
    /** Keyed hash of the whole key. */
    hash: blob({ mode: 'buffer' }).notNull(),
    /** The key's last four characters, so that its owner can tell it from another. */
    lastFour: text('last_four').notNull(),
    createdAt: integer('created_at').notNull(),
    /** When a rotated or revoked key stops working; null while it is in force. */
    endsAt: integer('ends_at'),
  },
  (table) => [
    uniqueIndex('api_keys_hash').on(table.hash),
    index('api_keys_account').on(table.accountId),
  ],
)

export const links = sqliteTable(
  'links',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    code: text().notNull(),
    accountId: integer('account_id').notNull(),
    /** Null while the code is reserved. */
    url: text(),
    /** The first 16 bytes of SHA-256 over the URL's normal form: what "the same URL" means. */
    urlKey: blob('url_key', { mode: 'buffer' }),
    passcodeHash: blob('passcode_hash', { mode: 'buffer' }).notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [
    uniqueIndex('links_code').on(table.code),
    index('links_account').on(table.accountId, table.id),
    index('links_url').on(table.accountId, table.urlKey).where(sql`url_key IS NOT NULL`),
  ],
)

/**
 * Redirects served and committed. A link without a row has none. Kept apart so that a flush touches
 * few pages.
 */
export const hits = sqliteTable('hits', {
  linkId: integer('link_id').primaryKey(),
  count: integer().notNull(),
})

/** One row: how far the hit journal is counted, and every redirect ever. */
export const hitTotals = sqliteTable('hit_totals', {
  id: integer().primaryKey(),
  /** Which journal file `position` speaks of. */
  journalId: text('journal_id').notNull(),
  /** Every journal entry before this one is in `hits` and in `redirects`. */
  position: integer().notNull(),
  redirects: integer().notNull(),
})

export const settings = sqliteTable('settings', {
  name: text().primaryKey(),
  value: text().notNull(),
})
