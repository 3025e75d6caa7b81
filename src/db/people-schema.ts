import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { bytes } from './schema.ts'

/** Tables of people: who signs in, and what they may open. */

/**
 * Those who sign in. A person and an account have the same id only if both were created at once
 * (decision 068).
 */
export const people = sqliteTable(
  'people',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    email: text().notNull(),
    createdAt: integer('created_at').notNull(),
    /** The account that was opened last, and that the next sign-in opens. */
    accountId: integer('account_id').notNull(),
    /** Argon2id; null for a person who has never had a password. */
    passwordHash: text('password_hash'),
    passwordChangedAt: integer('password_changed_at'),
    /** 1: may use the pages of the whole service and manage its accounts. */
    isOwner: integer('is_owner').notNull().default(0),
    /** The secret of two-factor sign-in, encrypted with the key of `secret.key`. */
    totpSecret: bytes('totp_secret'),
    /** Since when sign-in needs a code; null while the secret is not confirmed. */
    totpEnabledAt: integer('totp_enabled_at'),
    /** The time step (RFC 6238) of the last code that was accepted: no code is accepted twice. */
    totpLastStep: integer('totp_last_step'),
  },
  (table) => [uniqueIndex('people_email').on(sql`lower(${table.email})`)],
)

/** Who may use which account, and how. See `accounts/roles.ts`. */
export const memberships = sqliteTable(
  'memberships',
  {
    accountId: integer('account_id').notNull(),
    personId: integer('person_id').notNull(),
    role: text({ enum: ['viewer', 'editor', 'admin'] }).notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.personId] }),
    index('memberships_person').on(table.personId),
  ],
)

/** Sessions of the dashboard, with address and browser. */
export const sessions = sqliteTable(
  'sessions',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    /** Keyed hash of the cookie's value. */
    hash: bytes().notNull(),
    /** The account that its pages show. */
    accountId: integer('account_id').notNull(),
    personId: integer('person_id').notNull().default(0),
    createdAt: integer('created_at').notNull(),
    /** To the minute. */
    seenAt: integer('seen_at').notNull(),
    /** An IPv4 address, or the /64 of an IPv6 one. */
    address: text().notNull(),
    /** The browser's own name, at most 200 characters. */
    agent: text().notNull(),
    /** When the person last proved who they are: by the password, or at the provider. */
    provedAt: integer('proved_at').notNull().default(0),
    /** 1: lasts 30 days, because its owner chose to stay signed in. */
    isLong: integer('is_long').notNull().default(0),
    /** The identity of the sign-in; null for the password. */
    identityId: integer('identity_id'),
  },
  (table) => [
    uniqueIndex('sessions_hash').on(table.hash),
    index('sessions_account').on(table.accountId),
    index('sessions_person').on(table.personId),
    index('sessions_created').on(table.createdAt),
  ],
)

/** Users of the provider of OIDC, as which people sign in. */
export const identities = sqliteTable(
  'identities',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    issuer: text().notNull(),
    /** The `sub` of the ID token: names the user within the issuer, for good. */
    subject: text().notNull(),
    personId: integer('person_id').notNull(),
    /** The address that the provider named when the identity was connected. */
    email: text(),
    createdAt: integer('created_at').notNull(),
    lastUsedAt: integer('last_used_at'),
  },
  (table) => [
    uniqueIndex('identities_subject').on(table.issuer, table.subject),
    index('identities_person').on(table.personId),
  ],
)

/** One-time codes that replace the second factor when its device is lost. */
export const recoveryCodes = sqliteTable(
  'recovery_codes',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    personId: integer('person_id').notNull(),
    /** Keyed hash of the code. */
    hash: bytes().notNull(),
    usedAt: integer('used_at'),
  },
  (table) => [index('recovery_codes_person').on(table.personId)],
)

/** Links to a page that work once, for the purpose of the link. */
export const oneTimeLinks = sqliteTable(
  'one_time_links',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    /** Keyed hash of the link's last part. */
    hash: bytes().notNull(),
    purpose: text({ enum: ['setup', 'invite', 'reset'] }).notNull(),
    /** The person whose password a `reset` sets, or who sent an `invite`. */
    personId: integer('person_id'),
    /** The account that an `invite` gives access to; null if it creates one. */
    accountId: integer('account_id'),
    /** The role of an `invite` in `accountId`. */
    role: text({ enum: ['viewer', 'editor', 'admin'] }),
    /** The address of an `invite`; null if the guest chooses it. */
    email: text(),
    /** The plan of an `invite`. */
    plan: text({ enum: ['free', 'pro', 'enterprise'] }),
    createdAt: integer('created_at').notNull(),
    endsAt: integer('ends_at').notNull(),
    usedAt: integer('used_at'),
  },
  (table) => [uniqueIndex('one_time_links_hash').on(table.hash)],
)
