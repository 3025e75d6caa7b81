import { Database } from 'bun:sqlite'
import { DATABASE_VERSION, versionOf } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations.gen.ts'
import { isTooOld, LAST_UNRELEASED, tooOld } from '../db/unreleased.ts'
import { RUN_RESTORE } from '../lib/data-error.ts'
import { messageOf } from '../lib/thread.ts'
import { storedBytes } from '../links/property-table.ts'
import { urlKey } from '../links/url.ts'

/** The result of one check. `advice` is what to do about a problem. */
export type Finding =
  | { check: string; status: 'ok' | 'note'; says: string }
  | { check: string; status: 'problem'; says: string; advice: string }

export const ok = (check: string, says: string): Finding => ({ check, status: 'ok', says })
export const note = (check: string, says: string): Finding => ({ check, status: 'note', says })
export const problem = (check: string, says: string, advice: string): Finding => ({
  check,
  status: 'problem',
  says,
  advice,
})

export const RESTORE_ADVICE = `Stop the service. ${RUN_RESTORE}`

/**
 * A rule for stored rows. `sql` counts the rows that break it, in one statement: one snapshot.
 * `hasColumn`: of `links`.
 */
interface Invariant {
  check: string
  /** Printed if no row breaks it. */
  okMessage: string
  /** Printed after the number of rows that break it. */
  problem: string
  sql: string | ((hasColumn: (name: string) => boolean) => string)
}

const INVARIANTS: readonly Invariant[] = [
  {
    check: 'codes',
    okMessage: 'every code is 6 to 20 characters of A–Z and 0–9',
    problem: 'codes of another shape',
    sql: `SELECT count(*) AS n FROM links
          WHERE code GLOB '*[^A-Z0-9]*' OR length(code) NOT BETWEEN 6 AND 20`,
  },
  {
    check: 'urls',
    okMessage: 'every URL is http or https, and absent only with its key',
    problem: 'links whose URL is not http or https, or lacks its key',
    sql: `SELECT count(*) AS n FROM links
          WHERE (url IS NULL) <> (url_key IS NULL) OR length(url_key) <> 16
             OR NOT (url LIKE 'http://_%' OR url LIKE 'https://_%')`,
  },
  {
    check: 'hashes',
    okMessage: 'every hash of a passcode or an API key has its length',
    problem: 'hashes of another length',
    sql: `SELECT (SELECT count(*) FROM links WHERE length(passcode_hash) <> 32)
               + (SELECT count(*) FROM api_keys WHERE length(hash) <> 32) AS n`,
  },
  {
    check: 'owners',
    okMessage: 'every link and every API key belongs to an account',
    problem: 'links or API keys without an account',
    sql: `SELECT (SELECT count(*) FROM links WHERE account_id NOT IN (SELECT id FROM accounts))
               + (SELECT count(*) FROM api_keys WHERE account_id NOT IN (SELECT id FROM accounts))
               AS n`,
  },
  {
    check: 'members',
    okMessage: 'every account has an admin, and everybody is a member of an account',
    problem: 'accounts without an admin, people without an account, or members of neither',
    sql: `SELECT (SELECT count(*) FROM accounts WHERE deleted_at IS NULL AND id NOT IN (
                    SELECT account_id FROM memberships WHERE role = 'admin'))
               + (SELECT count(*) FROM people WHERE id NOT IN (SELECT person_id FROM memberships))
               + (SELECT count(*) FROM memberships WHERE person_id NOT IN (SELECT id FROM people)
                    OR account_id NOT IN (SELECT id FROM accounts)) AS n`,
  },
  {
    check: 'identities',
    okMessage: 'every identity of a provider belongs to a person',
    problem: 'identities without a person, or sessions of an identity that is not there',
    sql: `SELECT (SELECT count(*) FROM identities WHERE person_id NOT IN (SELECT id FROM people))
               + (SELECT count(*) FROM sessions WHERE identity_id IS NOT NULL
                    AND identity_id NOT IN (SELECT id FROM identities)) AS n`,
  },
  {
    check: 'link counts',
    okMessage: "every account's count is the number of its links",
    problem: 'accounts whose count is not the number of their links',
    sql: `SELECT count(*) AS n FROM accounts
          WHERE link_count <> (SELECT count(*) FROM links WHERE account_id = accounts.id)`,
  },
  {
    check: 'stored bytes',
    okMessage: "every account's byte count is that of its URLs, properties and aliases",
    problem: 'accounts whose byte count is not that of their URLs, properties and aliases',
    sql: (hasColumn) => `SELECT count(*) AS n FROM accounts WHERE url_bytes <>
      (SELECT coalesce(sum(${storedBytes(hasColumn)}), 0) FROM links
       WHERE account_id = accounts.id)`,
  },
  {
    check: 'aliases',
    okMessage: 'every alias belongs to a link, and closes the code of its form',
    problem: 'aliases without a link, or of the form of a code that is not closed or in use',
    sql: `SELECT count(*) AS n FROM aliases
          WHERE link_id NOT IN (SELECT id FROM links)
             OR folded IN (SELECT code FROM links)
             OR folded IS NOT iif(path NOT GLOB '*[^A-Za-z0-9]*'
                                  AND length(path) BETWEEN 6 AND 20, upper(path), NULL)`,
  },
  {
    check: 'letter case',
    okMessage: 'every path in small letters is its path, and every typed code its code',
    problem: 'paths in small letters of another path, or typed codes of another code',
    // SQLite knows the small letters of A to Z only.
    sql: `SELECT (SELECT count(*) FROM aliases
                    WHERE small_path GLOB '*[A-Z]*'
                       OR (path NOT GLOB '*[^ -~]*' AND small_path IS NOT lower(path)))
               + (SELECT count(*) FROM links
                    WHERE typed_code = code OR upper(typed_code) <> code) AS n`,
  },
  {
    check: 'days',
    okMessage: 'every day of hits and visitors belongs to a link or an account',
    problem: 'days of hits and visitors without a link or an account, or with too many hits',
    sql: `SELECT (SELECT count(*) FROM hit_days
                  WHERE (scope = 0 AND id NOT IN (SELECT id FROM links))
                     OR (scope = 1 AND id NOT IN (SELECT id FROM accounts)))
               + (SELECT count(*) FROM hits
                  WHERE (SELECT sum(count) FROM hit_days
                         WHERE scope = 0 AND id = link_id) > count) AS n`,
  },
  {
    check: 'tags',
    okMessage: 'the index of tags has exactly the tags of the links',
    problem: 'tags that only the index or only the link has',
    sql: `WITH tagged AS (SELECT account_id, value AS tag, links.id AS link_id
                          FROM links, json_each(tags) WHERE tags IS NOT NULL)
          SELECT (SELECT count(*) FROM (SELECT * FROM tagged
                    EXCEPT SELECT account_id, tag, link_id FROM link_tags))
               + (SELECT count(*) FROM (SELECT account_id, tag, link_id FROM link_tags
                    EXCEPT SELECT * FROM tagged)) AS n`,
  },
  {
    check: 'hits',
    okMessage: 'every hit belongs to a link, and the totals are at least their sum',
    problem: 'hits without a link, or above the totals',
    // Imported hits can exceed the integers of SQLite, in which the sum would be an error.
    sql: `SELECT (SELECT count(*) FROM hits WHERE count < 1
                    OR NOT EXISTS (SELECT 1 FROM links WHERE id = link_id))
               + CASE WHEN (SELECT total(count) FROM hits) > 9e18 THEN 0 ELSE
                   max(0, (SELECT coalesce(sum(count), 0) FROM hits)
                        - coalesce((SELECT redirects + imported FROM hit_totals WHERE id = 1), 0))
                 END AS n`,
  },
  {
    check: 'hits of accounts',
    okMessage: "every account's hits are at least those of its links",
    problem:
      'hits of another account than their link, or accounts with fewer hits than their links',
    sql: `SELECT (SELECT count(*) FROM hits JOIN links ON links.id = link_id
                    WHERE hits.account_id <> links.account_id)
               + (SELECT count(*) FROM
                    (SELECT account_id AS id, sum(count) AS n FROM hits GROUP BY account_id) AS own
                    WHERE n > coalesce((SELECT count FROM account_hits
                                        WHERE account_id = own.id), 0)) AS n`,
  },
  {
    check: 'search index',
    okMessage: 'it contains exactly the links that it should',
    problem: 'links missing from the search index, or left in it',
    sql: `SELECT (SELECT count(*) FROM links WHERE id <= (SELECT indexed_to FROM search_progress)
                    AND account_id << 32 | id NOT IN (SELECT id FROM links_search_docsize))
               + (SELECT count(*) FROM links_search_docsize AS entry WHERE NOT EXISTS (
                    SELECT 1 FROM links WHERE id = entry.id & 0xffffffff
                      AND account_id = entry.id >> 32)) AS n`,
  },
]

const DUPLICATES = `SELECT coalesce(sum(more), 0) AS n FROM (
  SELECT count(*) - 1 AS more FROM links WHERE url_key IS NOT NULL
  GROUP BY account_id, url_key HAVING count(*) > 1)`

/**
 * Checks a database of this version or an older one, without writing. If the file itself is
 * damaged, that is the last finding: the other checks could not be trusted.
 */
export function* checkDatabase(db: Database): Generator<Finding> {
  const version = versionOf(db)
  yield checkVersion(version)
  if (version === 0 || version > DATABASE_VERSION || isTooOld(version)) return
  const whole = checkIntegrity(db)
  yield whole
  if (whole.status === 'problem') return
  yield checkSchema(db, version)
  for (const invariant of INVARIANTS) yield checkInvariant(db, invariant)
  yield checkUrlKeys(db)
  const duplicates = count(db, DUPLICATES)
  if (duplicates > 0) {
    const says = 'links have the URL of another link of their account, by updates or imports'
    yield note('duplicates', `${duplicates} ${says}`)
  }
}

function checkVersion(version: number): Finding {
  const check = 'version'
  const known = DATABASE_VERSION
  if (version === known) return ok(check, `the database has version ${version}`)
  if (version > known) {
    const says = `a newer Hopcode wrote it (database version ${version}; this one knows ${known})`
    return problem(check, says, 'Use the release that wrote it, or a newer one.')
  }
  if (isTooOld(version)) {
    return problem(check, `it ${tooOld(version)}`, 'Start both programs, one after the other.')
  }
  if (version > 0) {
    return note(check, `the database has version ${version}; the next start makes it ${known}`)
  }
  return problem(check, 'it is not a database of Hopcode', 'Is DATA_DIR right?')
}

/** SQLite's own check of pages, order, indexes with their uniqueness, and the search index. */
function checkIntegrity(db: Database): Finding {
  const check = 'database file'
  let says: string[]
  try {
    const rows = db.query<{ integrity_check: string }, []>('PRAGMA integrity_check(3)').all()
    says = rows.map(({ integrity_check }) => integrity_check)
  } catch (error) {
    says = [messageOf(error)]
  }
  if (says.length === 1 && says[0] === 'ok') return ok(check, 'SQLite finds no damage')
  return problem(check, `it is damaged: ${says.join('; ')}`, RESTORE_ADVICE)
}

/** A trigger, a view or a default of somebody else changes what the service stores or reads. */
function checkSchema(db: Database, version: number): Finding {
  const check = 'schema'
  using expected = new Database(':memory:')
  for (const { sql } of MIGRATIONS.slice(0, version - LAST_UNRELEASED)) expected.run(sql)
  const ours = schemaOf(expected)
  const theirs = schemaOf(db)
  const names = [...ours.keys(), ...theirs.keys()].filter(
    (one) => ours.get(one) !== theirs.get(one),
  )
  if (names.length === 0) return ok(check, 'tables, indexes and triggers are those of this version')
  const says = `it was changed by another program: ${[...new Set(names)].join(', ').slice(0, 200)}`
  return problem(check, says, RESTORE_ADVICE)
}

/** What defines each object, by its type and name. */
function schemaOf(db: Database): Map<string, string> {
  const rows = db.query<{ name: string; sql: string }, []>(
    `SELECT type || ' ' || name AS name, CASE type WHEN 'table' THEN (
       SELECT json_group_array(json_array(name, type, "notnull", dflt_value, pk, hidden))
       FROM pragma_table_xinfo(found.name)) ELSE sql END AS sql
     FROM sqlite_schema AS found
     WHERE type IN ('trigger', 'view') OR name NOT GLOB 'sqlite_*'`,
  )
  return new Map(rows.all().map(({ name, sql }) => [name, sql.replace(/\s+/g, ' ')]))
}

/** The key is a hash of the whole URL, so a URL with a changed character does not match it. */
function checkUrlKeys(db: Database): Finding {
  const check = 'url keys'
  const links = db.prepare<{ url: string; urlKey: Uint8Array }, []>(
    'SELECT url, url_key AS urlKey FROM links WHERE url IS NOT NULL AND url_key IS NOT NULL',
  )
  let broken = 0
  for (const { url, urlKey } of links.iterate()) if (!matches(url, urlKey)) broken++
  if (broken === 0) return ok(check, 'every URL is the one that was stored')
  return problem(check, `${broken} URLs were changed by a fault`, RESTORE_ADVICE)
}

function matches(url: string, key: Uint8Array): boolean {
  const parsed = URL.parse(url)
  return parsed !== null && Buffer.from(urlKey(parsed)).equals(key)
}

function checkInvariant(db: Database, invariant: Invariant): Finding {
  const { check, sql } = invariant
  try {
    const n = count(db, typeof sql === 'string' ? sql : sql((name) => hasColumn(db, name)))
    return n === 0
      ? ok(check, invariant.okMessage)
      : problem(check, `${n} ${invariant.problem}`, RESTORE_ADVICE)
  } catch (error) {
    return problem(check, messageOf(error), RESTORE_ADVICE)
  }
}

const hasColumn = (db: Database, name: string): boolean =>
  db.query(`SELECT 1 FROM pragma_table_info('links') WHERE name = ?`).get(name) !== null

function count(db: Database, sql: string): number {
  return db.query<{ n: number }, []>(sql).get()?.n ?? 0
}
