// Written by `npm run db:generate`.
import m0000 from '../../drizzle/0000_tables.sql' with { type: 'text' }
import m0001 from '../../drizzle/0001_addresses.sql' with { type: 'text' }
import m0002 from '../../drizzle/0002_blocked_hosts.sql' with { type: 'text' }
import m0003 from '../../drizzle/0003_qr_refs.sql' with { type: 'text' }
import m0004 from '../../drizzle/0004_destinations.sql' with { type: 'text' }
import m0005 from '../../drizzle/0005_passwords.sql' with { type: 'text' }
import m0006 from '../../drizzle/0006_people.sql' with { type: 'text' }
import m0007 from '../../drizzle/0007_domains.sql' with { type: 'text' }
import m0008 from '../../drizzle/0008_identities.sql' with { type: 'text' }
import m0009 from '../../drizzle/0009_owners_accounts.sql' with { type: 'text' }
import m0010 from '../../drizzle/0010_hit_days.sql' with { type: 'text' }
import m0011 from '../../drizzle/0011_letter_case.sql' with { type: 'text' }
import m0012 from '../../drizzle/0012_campaign_templates.sql' with { type: 'text' }
import m0013 from '../../drizzle/0013_label_formats.sql' with { type: 'text' }
import m0014 from '../../drizzle/0014_forward_path.sql' with { type: 'text' }

/** Migrations in order, embedded in the binary. Released ones never change. */
export const MIGRATIONS: readonly { name: string; sql: string }[] = [
  { name: '0000_tables', sql: m0000 },
  { name: '0001_addresses', sql: m0001 },
  { name: '0002_blocked_hosts', sql: m0002 },
  { name: '0003_qr_refs', sql: m0003 },
  { name: '0004_destinations', sql: m0004 },
  { name: '0005_passwords', sql: m0005 },
  { name: '0006_people', sql: m0006 },
  { name: '0007_domains', sql: m0007 },
  { name: '0008_identities', sql: m0008 },
  { name: '0009_owners_accounts', sql: m0009 },
  { name: '0010_hit_days', sql: m0010 },
  { name: '0011_letter_case', sql: m0011 },
  { name: '0012_campaign_templates', sql: m0012 },
  { name: '0013_label_formats', sql: m0013 },
  { name: '0014_forward_path', sql: m0014 },
]
