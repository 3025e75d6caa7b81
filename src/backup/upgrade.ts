import type { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DATABASE_VERSION, migrate, versionOf } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations.gen.ts'
import { closeWritable, copyDatabase, openWritable } from '../db/open.ts'
import { messageOf } from '../lib/thread.ts'
import { freeBytes, scratchFolder } from './disk.ts'
import { checkDatabase, type Finding, note, ok, problem } from './invariants.ts'

/** The copy, the log of a change of each page, and as much again for what the tables grow by. */
const ROOM_FACTOR = 3
const CHECK = 'upgrade'
const LEFT = 'The database is as it was. Keep the release that runs, and report this.'

const bytesOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`

/**
 * Does on a copy what the next start would do to a sound database, checks the result, and removes
 * it. `db` only reads.
 */
export function* tryUpgrade(db: Database): Generator<Finding> {
  const [from, to] = [versionOf(db), DATABASE_VERSION]
  if (from === to) {
    yield note(CHECK, `none is needed: this release has the same version ${to}`)
    return
  }
  const folder = dirname(db.filename)
  const needed = ROOM_FACTOR * (bytesOf(db.filename) + bytesOf(`${db.filename}-wal`))
  const free = freeBytes(folder)
  if (free < needed) {
    const says = `it was not tried: that needs ${mib(needed)}, and ${folder} has ${mib(free)} free`
    yield problem(CHECK, says, 'Make room.')
    return
  }
  using scratch = scratchFolder(folder)
  try {
    const { seconds, bytes, problems } = rehearse(db.filename, scratch.path)
    yield* problems
    if (problems.length > 0) return
    const says =
      `version ${from} becomes ${to}. On a copy it took ${seconds.toFixed(1)} s; the service is ` +
      `closed meanwhile. It needs ${mib(bytes)} of disk; ${mib(free)} are free`
    yield ok(CHECK, says)
  } catch (error) {
    yield problem(CHECK, `it fails: ${messageOf(error)}`, LEFT)
  }
}

function rehearse(file: string, scratch: string) {
  const copy = join(scratch, basename(file))
  const startedAt = performance.now()
  copyDatabase(file, copy)
  const before = bytesOf(copy)
  const db = openWritable(copy)
  try {
    migrate(db, MIGRATIONS, { isCopy: true })
    const seconds = (performance.now() - startedAt) / 1000
    const log = bytesOf(`${copy}-wal`)
    const problems = [...checkDatabase(db)].filter(({ status }) => status === 'problem')
    closeWritable(db)
    // The copy stays, and the log with each changed page, until the pages are in the file.
    const bytes = before + log + Math.max(0, bytesOf(copy) - before)
    return { seconds, bytes, problems }
  } catch (error) {
    db.close()
    throw error
  }
}
