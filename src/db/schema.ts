import { sql } from 'drizzle-orm'
import {
  customType,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core'

/**
 * Every table of the service. `npm run db:generate` turns a change here into a migration under
 * `drizzle/`. Times are epoch ms. Ids increase and are never reused (AUTOINCREMENT).
 */

/** A BLOB. Unlike `blob` of drizzle, it also accepts bytes that another thread has sent. */
export const bytes = customType<{ data: Uint8Array }>({ dataType: () => 'blob' })

export const accounts = sqliteTable('accounts', {
  id: integer().primaryKey({ autoIncrement: true }),
  /** Members see it. At first the e-mail address of the person it was created for. */
  name: text().notNull(),
  plan: text({ enum: ['free', 'pro', 'enterprise'] }).notNull(),
  /** Number of links: the `total` of a list without a search. */
  linkCount: integer('link_count').notNull().default(0),
  createdAt: integer('created_at').notNull(),
  /** Since when its keys and its sign-in are refused; its links still work. */
  disabledAt: integer('disabled_at'),
  /** Since when the account is being deleted, one batch of links at a time. */
  deletedAt: integer('deleted_at'),
  /** UTF-8 bytes of the URLs, properties and aliases that the account stores. */
  urlBytes: integer('url_bytes').notNull().default(0),
  /** Since when visitors of its links get 410. */
  linksDisabledAt: integer('links_disabled_at'),
  /** IANA name of the time zone of its analytics; null for UTC. */
  timeZone: text('time_zone'),
  /** The domain of its new links; null for the primary one. */
  domainId: integer('domain_id'),
  /**
   * 1: an owner of the service created the account, so its links have the rights of owners. Later
   * members do not change this.
   */
  isOwner: integer('is_owner').notNull().default(0),
})

export const apiKeys = sqliteTable(
  'api_keys',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: integer('account_id').notNull(),
    /** Keyed hash of the whole key. */
    hash: bytes().notNull(),
    /** The key's last four characters, so that its owner can tell it from another. */
    lastFour: text('last_four').notNull(),
    createdAt: integer('created_at').notNull(),
    /** When a rotated or revoked key stops working; null while it is active. */
    endsAt: integer('ends_at'),
    /** The key's first eight characters; null for keys older than this column. */
    prefix: text(),
    /** To the minute. */
    lastUsedAt: integer('last_used_at'),
    /** Chosen by the key's owner; null for keys without a name. */
    name: text(),
    /** What it may do: see `accounts/keys.ts`. */
    scope: text({ enum: ['read', 'write', 'create', 'manage'] })
      .notNull()
      .default('write'),
    /** The e-mail address of the person who created it; null for the command line. */
    createdBy: text('created_by'),
    /** Requests of this key in any 60 seconds; null: as many as those of its account. */
    perMinute: integer('per_minute'),
    /** Origins of pages that may send requests with it; null for none. */
    origins: text({ mode: 'json' }).$type<string[]>(),
  },
  (table) => [
    uniqueIndex('api_keys_hash').on(table.hash),
    index('api_keys_account').on(table.accountId),
    // Few keys have origins, and each preflight looks for one.
    index('api_keys_origins').on(table.id).where(sql`origins IS NOT NULL`),
  ],
)

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

export const links = sqliteTable(
  'links',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    code: text().notNull(),
    accountId: integer('account_id').notNull(),
    /** Null while the code is reserved. */
    url: text(),
    /** The first 16 bytes of SHA-256 over the URL's normal form: what "the same URL" means. */
    urlKey: bytes('url_key'),
    passcodeHash: bytes('passcode_hash').notNull(),
    createdAt: integer('created_at').notNull(),
    // The properties: see `links/property-table.ts`.
    title: text(),
    /** A JSON array of small letters in alphabetical order; null without tags. */
    tags: text(),
    note: text(),
    paused: integer().notNull().default(0),
    startsAt: integer('starts_at'),
    expiresAt: integer('expires_at'),
    maxHits: integer('max_hits'),
    expiredUrl: text('expired_url'),
    forwardQuery: integer('forward_query').notNull().default(0),
    /** 'append'; null: off. */
    forwardPath: text('forward_path'),
    deleteAt: integer('delete_at'),
    noIndex: integer('no_index').notNull().default(0),
    /** A JSON array of `RuledDestination`; null without any. */
    destinations: text(),
    /** Hash of the password that visitors enter; null without one. */
    password: text(),
    /** Null for the primary domain. */
    domainId: integer('domain_id'),
    /** The code in the letters in which it was typed; null if they are those of the code. */
    typedCode: text('typed_code'),
  },
  (table) => [
    uniqueIndex('links_code').on(table.code),
    index('links_account').on(table.accountId, table.id),
    index('links_delete').on(table.deleteAt).where(sql`delete_at IS NOT NULL`),
    index('links_url').on(table.accountId, table.urlKey).where(sql`url_key IS NOT NULL`),
    index('links_domain').on(table.domainId).where(sql`domain_id IS NOT NULL`),
  ],
)

/**
 * Checks of the destinations of links: see `checks/store.ts`. Triggers on `links` keep the account,
 * and forget what was found when the destination changes.
 */
export const linkChecks = sqliteTable(
  'link_checks',
  {
    linkId: integer('link_id').primaryKey(),
    accountId: integer('account_id').notNull(),
    checkedAt: integer('checked_at'),
    /** The HTTP status of the last check, or why it had no response. */
    status: text(),
    /** The first failure since it last answered; null if the last answer was fine. */
    failingSince: integer('failing_since'),
    /** Failures since then. Checks that say nothing are not counted. */
    failures: integer().notNull().default(0),
    /** The next check; null if the link is not checked. */
    dueAt: integer('due_at'),
    /** 1: the account has downloaded codes to print. */
    printed: integer().notNull().default(0),
  },
  (table) => [
    index('link_checks_due').on(table.accountId, table.dueAt).where(sql`due_at IS NOT NULL`),
    index('link_checks_dead').on(table.accountId).where(sql`failures >= 3`),
  ],
)

/** Domains of short links beside that of `BASE_URL`, which is the primary one: see `addresses/`. */
export const domains = sqliteTable(
  'domains',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    /** In small letters and punycode, without a port. */
    host: text().notNull(),
    /** Only with the access `account`. */
    accountId: integer('account_id'),
    access: text({ enum: ['owners', 'all', 'account'] }).notNull(),
    codes: text({ enum: ['own', 'all'] }).notNull(),
    rootUrl: text('root_url'),
    notFoundUrl: text('not_found_url'),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [uniqueIndex('domains_host').on(table.host)],
)

/**
 * Files by which phones open apps for addresses of a domain: see `addresses/app-files.ts`. A domain
 * of 0 is the primary one.
 */
export const appFiles = sqliteTable(
  'app_files',
  {
    domainId: integer('domain_id').notNull(),
    kind: text({ enum: ['apple', 'android'] }).notNull(),
    /** JSON. */
    content: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.domainId, table.kind] })],
)

/**
 * How often visitors asked for a path that names no link, by UTC day: see
 * `addresses/unknown-paths.ts`. A domain of 0 is the primary one.
 */
export const unknownPaths = sqliteTable(
  'unknown_paths',
  {
    domainId: integer('domain_id').notNull(),
    /** Counted from 1970. */
    day: integer().notNull(),
    /** In small letters. */
    path: text().notNull(),
    count: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.day, table.domainId, table.path] })],
)

/**
 * The links of a tag in the order of their ids. Triggers on `links` derive it from `links.tags`.
 * WITHOUT ROWID.
 */
export const linkTags = sqliteTable(
  'link_tags',
  {
    accountId: integer('account_id').notNull(),
    /** Lower case. */
    tag: text().notNull(),
    linkId: integer('link_id').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.tag, table.linkId] }),
    index('link_tags_link').on(table.linkId),
  ],
)

/**
 * Further paths of links: those that another service has printed, or that the account has added.
 * See `addresses/names.ts`. WITHOUT ROWID.
 */
export const aliases = sqliteTable(
  'aliases',
  {
    domainId: integer('domain_id').notNull().default(0),
    /**
     * As people see it: decoded, in the form NFC, without its first slash. A domain of 0 is the
     * primary one.
     */
    path: text().notNull(),
    linkId: integer('link_id').notNull(),
    /** The code that would have this path, which nobody can claim; null if none would. */
    folded: text(),
    /** 1: found in any case, by `smallPath`. */
    anyCase: integer('any_case').notNull().default(0),
    /** `path` in small letters. */
    smallPath: text('small_path').notNull().default(''),
    /** Counts up with each alias that the link gets; 0 for those older than this column. */
    position: integer().notNull().default(0),
    /** 1: chosen as the address of the link that people see, in place of the newest alias. */
    displayed: integer().notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.domainId, table.path] }),
    index('aliases_link').on(table.linkId),
    index('aliases_small').on(table.domainId, table.smallPath),
    index('aliases_folded').on(table.folded).where(sql`folded IS NOT NULL`),
  ],
)

/**
 * Codes that the operator has disabled: visitors get 410, and nobody can claim them. The code stays
 * disabled if its link is deleted.
 */
export const disabledCodes = sqliteTable('disabled_codes', {
  code: text().primaryKey(),
  /** Shown to the link's account and to the owner, never to visitors. */
  reason: text().notNull(),
  disabledAt: integer('disabled_at').notNull(),
})

/**
 * What happened to links, and who did it: see `db/history.ts`. A batch of links has one row,
 * and `link_event_links`.
 */
export const linkEvents = sqliteTable(
  'link_events',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    /** Null for a batch. */
    linkId: integer('link_id'),
    /** The account that has the link now. */
    accountId: integer('account_id').notNull(),
    at: integer().notNull(),
    kind: text().notNull(),
    actorKind: text('actor_kind').notNull(),
    /** The name of the person or key at that time; null for all others. */
    actor: text(),
    /** JSON; null where nothing is said. */
    before: text(),
    after: text(),
    /** How many links it concerned. */
    links: integer().notNull().default(1),
  },
  (table) => [
    index('link_events_account').on(table.accountId),
    index('link_events_link').on(table.linkId).where(sql`link_id IS NOT NULL`),
  ],
)

/**
 * The links of a batch. Those that it created have one row for all: their ids follow one another.
 * A trigger on `link_events` removes them. WITHOUT ROWID.
 */
export const linkEventLinks = sqliteTable(
  'link_event_links',
  {
    eventId: integer('event_id').notNull(),
    /** The first one. */
    linkId: integer('link_id').notNull(),
    lastLink: integer('last_link').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.eventId, table.linkId] }),
    index('link_event_links_link').on(table.linkId),
    index('link_event_links_range').on(table.linkId).where(sql`last_link > link_id`),
  ],
)

/** Hosts that the owner of the service has blocked, with all names below them. */
export const blockedHosts = sqliteTable('blocked_hosts', {
  /** The host in the form of `hostOf` (src/blocklist/match.ts). */
  host: text().primaryKey(),
  reason: text().notNull(),
  blockedAt: integer('blocked_at').notNull(),
})

/**
 * Hits of links, committed. A link without a row has none. In a table of its own, so that a flush
 * touches few pages.
 */
export const hits = sqliteTable(
  'hits',
  {
    linkId: integer('link_id').primaryKey(),
    /** The account of the link, so that a flush does not read the links. */
    accountId: integer('account_id').notNull(),
    count: integer().notNull(),
    /** How many of `count` another service has served: they have no dates. */
    imported: integer().notNull().default(0),
    /** Hits of the newest hours. See `hits/series.ts`. */
    hours: bytes(),
  },
  // The index leaves out the count, which changes with every flush.
  (table) => [index('hits_account').on(table.accountId)],
)

/** Redirects of all links of an account, including deleted ones. */
export const accountHits = sqliteTable('account_hits', {
  accountId: integer('account_id').primaryKey(),
  count: integer().notNull(),
  /** The part of `count` that was imported. */
  imported: integer().notNull().default(0),
  /** As in `hits`. */
  hours: bytes(),
})

/**
 * One UTC day of a link (`scope` 0) or an account (1): its hits, and the details of its redirects.
 * Hits of the newest hours are in `hits` and `account_hits`. WITHOUT ROWID.
 */
export const hitDays = sqliteTable(
  'hit_days',
  {
    scope: integer().notNull(),
    id: integer().notNull(),
    /** Counted from 1970. */
    day: integer().notNull(),
    count: integer().notNull(),
    /** The hits by hour: see `hits/hours.ts`. Null if they are not known. */
    hours: bytes(),
    /** How many had which referrer, country and so on: see `visits/parts.ts`. */
    parts: bytes(),
  },
  (table) => [primaryKey({ columns: [table.scope, table.id, table.day] })],
)

/** The last batch of details that each host has added: it is added once. */
export const visitBatches = sqliteTable('visit_batches', {
  host: text().primaryKey(),
  batch: text().notNull(),
})

/** Public pages with the numbers of a link. */
export const publicPages = sqliteTable(
  'shared_pages',
  {
    linkId: integer('link_id').primaryKey(),
    /** 32 bytes, of which the address is made: random, or the hash of an older token. */
    hash: bytes().notNull(),
    /** 1: the page shows the destination. */
    showsUrl: integer('shows_url').notNull(),
  },
  (table) => [uniqueIndex('shared_pages_hash').on(table.hash)],
)

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

export const campaignTemplates = sqliteTable(
  'campaign_templates',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: integer('account_id').notNull(),
    name: text().notNull(),
    /** The parameters as the query of a URL. */
    query: text().notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [uniqueIndex('campaign_templates_name').on(table.accountId, table.name)],
)

export const labelFormats = sqliteTable(
  'label_formats',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: integer('account_id').notNull(),
    name: text().notNull(),
    /** The measures as JSON: `Grid` of draw/sheet.ts. */
    grid: text().notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [uniqueIndex('label_formats_name').on(table.accountId, table.name)],
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

/** One row: the counted part of the hit journal, and the number of all redirects. */
export const hitTotals = sqliteTable('hit_totals', {
  id: integer().primaryKey(),
  /** The journal file of `position`. */
  journalId: text('journal_id').notNull(),
  /** Every journal entry before this one is in `hits` and in `redirects`. */
  position: integer().notNull(),
  redirects: integer().notNull(),
  /** Hits of links that other services have served: not in `redirects`. */
  imported: integer().notNull().default(0),
})

export const settings = sqliteTable('settings', {
  name: text().primaryKey(),
  value: text().notNull(),
})

/** Settings that concern one data folder: in a cluster, each host has its own. */
export const hostSettings = sqliteTable('host_settings', {
  name: text().primaryKey(),
  value: text().notNull(),
})

/** Receivers of signed webhooks: see `webhooks/`. */
export const webhooks = sqliteTable(
  'webhooks',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: integer('account_id').notNull(),
    url: text().notNull(),
    /** Encrypted with the key of `secret.key`, and so is the one before. */
    secret: bytes().notNull(),
    oldSecret: bytes('old_secret'),
    /** Until then, `oldSecret` signs too. */
    oldEndsAt: integer('old_ends_at'),
    /** A JSON array of names. */
    events: text().notNull(),
    enabled: integer().notNull().default(1),
    /** The first failed attempt since the last success; null if there is none. */
    failingSince: integer('failing_since'),
    /** Null while it is enabled, and if a person has disabled it. */
    disabledReason: text('disabled_reason'),
    /** Deliveries that were dropped since the last event. */
    dropped: integer().notNull().default(0),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [index('webhooks_account').on(table.accountId)],
)

/** What an account with webhooks has queued, and the number of its last event. */
export const webhookQueues = sqliteTable('webhook_queues', {
  accountId: integer('account_id').primaryKey(),
  sequence: integer().notNull().default(0),
  deliveries: integer().notNull().default(0),
  bytes: integer().notNull().default(0),
})

/** Events that are not delivered to each webhook yet. */
export const webhookEvents = sqliteTable(
  'webhook_events',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: integer('account_id').notNull(),
    /** Counts up in the account. */
    sequence: integer().notNull(),
    type: text().notNull(),
    /** A JSON array of `LinkSnapshot`: see `webhooks/events.ts`. */
    body: text().notNull(),
    /** 1: there were more links. */
    more: integer().notNull().default(0),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [index('webhook_events_account').on(table.accountId, table.id)],
)

/** WITHOUT ROWID. */
export const webhookDeliveries = sqliteTable(
  'webhook_deliveries',
  {
    webhookId: integer('webhook_id').notNull(),
    eventId: integer('event_id').notNull(),
    /** The host of a cluster whose call has created the event, and that sends it. */
    origin: text().notNull(),
    attempts: integer().notNull().default(0),
    /** `NEVER` of `webhooks/store.ts` while the webhook is disabled. */
    nextAt: integer('next_at').notNull(),
    /** Deliveries to the webhook that were dropped before this one. */
    dropped: integer().notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.eventId, table.webhookId] }),
    index('webhook_deliveries_next').on(table.webhookId, table.nextAt, table.eventId),
  ],
)

/** The last attempts of each webhook. */
export const webhookAttempts = sqliteTable(
  'webhook_attempts',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    webhookId: integer('webhook_id').notNull(),
    type: text().notNull(),
    /** 0 for a test. */
    sequence: integer().notNull(),
    /** From 1. */
    attempt: integer().notNull(),
    /** Null if there was no response; then `error` says why. */
    status: integer(),
    error: text(),
    ms: integer().notNull(),
    at: integer().notNull(),
  },
  (table) => [index('webhook_attempts_webhook').on(table.webhookId, table.id)],
)

/** Links that the write that runs has deleted: a trigger adds them for accounts with webhooks. */
export const webhookDeletedLinks = sqliteTable('webhook_deleted_links', {
  /** That of the link. */
  id: integer().primaryKey(),
  /** A `LinkSnapshot`. */
  snapshot: text().notNull(),
})

/**
 * One row while the data folder belongs to a cluster: how much of the log the database contains.
 * Each transaction that applies entries of the log changes it.
 */
export const logPosition = sqliteTable('log_position', {
  id: integer().primaryKey(),
  /** The random name of the cluster. */
  cluster: text().notNull(),
  /** The last applied entry; 0 before the first one. */
  seq: integer().notNull(),
  /** The hash chain of the log up to `seq`. */
  chain: bytes().notNull(),
})

/** How much of each host's hit journal the database has counted, in a cluster. */
export const hitPositions = sqliteTable(
  'hit_positions',
  {
    host: text().notNull(),
    journalId: text('journal_id').notNull(),
    position: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.host, table.journalId] })],
)
