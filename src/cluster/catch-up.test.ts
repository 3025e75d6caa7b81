import { expect, spyOn } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { PostgresServer } from '../../test/support/postgres.ts'
import { shared } from '../../test/support/shared.ts'
import { testWith } from '../../test/support/tools.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { settings } from '../db/settings.ts'
import { writeFunctions } from '../db/subject.ts'
import * as flush from '../lib/flush.ts'
import { applyLog } from './catch-up.ts'
import { encodeCalls } from './entries.ts'
import { PostgresLog } from './log.ts'
import { logPositionSetter } from './position.ts'
import { beginLog, createTables, FIRST_CHAIN } from './schema.ts'

const testLog = testWith('postgres')
const postgres = shared(() => PostgresServer.start({ isVolatile: true }))

/** The other hosts may delete what every host has reported as applied. */
testLog('a starting host has entries on its disk before it reports them', async () => {
  using folder = temporaryFolderInMemory()
  const server = await postgres()
  const database = await server.createDatabase()
  const url = server.url(database)
  await server.run(async (sql) => {
    await sql.begin(async (tx) => {
      await createTables(tx)
      await beginLog(tx, { cluster: 'c', seq: 0, chain: FIRST_CHAIN })
    })
    await sql`INSERT INTO hopcode.hosts (id, name, address, program, version, applied, seen)
      VALUES ('host', '', '', '', 1, 0, 'epoch')`
  }, database)
  const log = new PostgresLog({ url, host: 'other' })
  await log.head()
  const author = { accountId: 0, by: 'operator', now: 0 }
  const calls = encodeCalls([{ name: 'settings.save', args: { author, name: 'a', value: 'a' } }])
  await log.append({ batch: 'b', version: 1, calls }, log.deadlineAfter(10_000))
  await log.close()

  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  logPositionSetter(db)({ cluster: 'c', seq: 0, chain: FIRST_CHAIN })
  const done: string[] = []
  const { flushToDisk } = flush
  using _flush = spyOn(flush, 'flushToDisk').mockImplementation((path) => {
    done.push(`flush ${path.slice(folder.path.length + 1)}`)
    flushToDisk(path)
  })
  const { report } = PostgresLog.prototype
  using _report = spyOn(PostgresLog.prototype, 'report').mockImplementation(function (
    this: PostgresLog,
    state,
  ) {
    done.push(`report ${state.applied}`)
    return report.call(this, state)
  })
  const functions = writeFunctions({ settings }, db, { id: 'host' })
  expect(await applyLog({ db, url, host: 'host', functions, boot: 'boot' })).toBe(1)
  expect(done).toEqual(['report 0', 'flush hopcode.db-wal', 'report 1'])
  db.close()
})
