import type { Database } from 'bun:sqlite'
import { pushVarint, VarintReader } from '../lib/varint.ts'

/**
 * Databases of the commits before the first release. Their versions are 1 to 19; version 20 has the
 * first migration of `drizzle/` (decision 047).
 */

export const LAST_UNRELEASED = 19
/** The last commit that upgrades older databases, to version 19. */
const UPGRADING_COMMIT = '3f7ad441'

export const isTooOld = (version: number): boolean => version > 0 && version < LAST_UNRELEASED

export const tooOld = (version: number): string =>
  `has version ${version}, of a commit before the first release. First start commit ` +
  `${UPGRADING_COMMIT} with it, which makes it version ${LAST_UNRELEASED}, then this program.`

/** Turns the tables of version 19 into those of the first migration. */
export function upgradeUnreleased(db: Database): void {
  for (const step of ['day', 'hour']) removeDimension(db, `hits_by_${step}`, step)
  rewriteVisits(db)
  composeAliases(db)
}

/** Removes a column in which every row had an empty text. */
function removeDimension(db: Database, table: string, step: string): void {
  db.run(`
    CREATE TABLE \`new_${table}\` (
      \`${step}\` integer NOT NULL,
      \`scope\` integer NOT NULL,
      \`id\` integer NOT NULL,
      \`count\` integer NOT NULL,
      PRIMARY KEY(\`${step}\`, \`scope\`, \`id\`)
    ) WITHOUT ROWID;
    INSERT INTO new_${table} SELECT ${step}, scope, id, count FROM ${table} WHERE dimension = '';
    DROP TABLE ${table};
    ALTER TABLE new_${table} RENAME TO ${table};`)
}

/** Aliases get the form NFC, in which they are looked up. One stays if another has its form. */
export function composeAliases(db: Database): void {
  const rows = db
    .query<{ path: string; accountId: number }, []>(
      `SELECT path, account_id AS accountId FROM aliases JOIN links ON links.id = link_id
       WHERE path GLOB '*[^ -~]*'`,
    )
    .all()
  const setPath = db.prepare('UPDATE OR IGNORE aliases SET path = ?2 WHERE path = ?1')
  const addBytes = db.prepare('UPDATE accounts SET url_bytes = url_bytes + ?2 WHERE id = ?1')
  for (const { path, accountId } of rows) {
    const composed = path.normalize('NFC')
    if (composed === path || setPath.run(path, composed).changes === 0) continue
    addBytes.run(accountId, Buffer.byteLength(composed) - Buffer.byteLength(path))
  }
}

interface VisitRow {
  scope: number
  id: number
  day: number
  parts: Uint8Array
}

const CHUNK_ROWS = 1000

/** Rewrites rows of visits that earlier commits wrote in form 1, with each count. */
function rewriteVisits(db: Database): void {
  const next = db.prepare<VisitRow, [number, number, number]>(
    `SELECT scope, id, day, parts FROM visits_by_day WHERE (scope, id, day) > (?, ?, ?)
     ORDER BY scope, id, day LIMIT ${CHUNK_ROWS}`,
  )
  const update = db.prepare<null, [Uint8Array, number, number, number]>(
    'UPDATE visits_by_day SET parts = ? WHERE scope = ? AND id = ? AND day = ?',
  )
  let rows = next.all(-1, 0, 0)
  for (let last = rows.at(-1); last; last = rows.at(-1)) {
    for (const { scope, id, day, parts } of rows) {
      const rewritten = parts[0] === 1 ? rewriteSums(parts) : undefined
      if (rewritten) update.run(rewritten, scope, id, day)
    }
    rows = next.all(last.scope, last.id, last.day)
  }
}

const KINDS_MAX = 8

/** The sums in the form of `visits/parts.ts`. Undefined for a damaged row, which stays as it is. */
function rewriteSums(parts: Uint8Array): Uint8Array | undefined {
  const input = new VarintReader(parts.subarray(1))
  const out = [2]
  try {
    pushVarint(out, input.next())
    pushVarint(out, input.next())
    while (!input.isAtEnd) {
      const value = input.next()
      const text = value < KINDS_MAX ? input.bytes(input.next()) : undefined
      const count = input.next()
      pushVarint(out, value * 2 + (count === 1 ? 1 : 0))
      if (text) {
        pushVarint(out, text.length)
        out.push(...text)
      }
      if (count !== 1) pushVarint(out, count)
    }
  } catch {
    return undefined
  }
  return Uint8Array.from(out)
}
