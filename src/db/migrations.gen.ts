// Written by `npm run db:generate`.
import m0000 from '../../drizzle/0000_tables.sql' with { type: 'text' }
import m0001 from '../../drizzle/0001_domain_files.sql' with { type: 'text' }
import m0002 from '../../drizzle/0002_key_access.sql' with { type: 'text' }
import m0003 from '../../drizzle/0003_link_events.sql' with { type: 'text' }
import m0004 from '../../drizzle/0004_link_checks.sql' with { type: 'text' }
import m0005 from '../../drizzle/0005_webhooks.sql' with { type: 'text' }

/** Migrations in order, embedded in the binary. Released ones never change. */
export const MIGRATIONS: readonly { name: string; sql: string }[] = [
  { name: '0000_tables', sql: m0000 },
  { name: '0001_domain_files', sql: m0001 },
  { name: '0002_key_access', sql: m0002 },
  { name: '0003_link_events', sql: m0003 },
  { name: '0004_link_checks', sql: m0004 },
  { name: '0005_webhooks', sql: m0005 },
]
