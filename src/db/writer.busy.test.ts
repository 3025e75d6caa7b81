import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { inTransaction, openWritable } from './open.ts'
import { commitTogether } from './writer.ts'

/**
 * A command line writes beside the service. A transaction that reads first and takes the write lock
 * later is refused with SQLITE_BUSY_SNAPSHOT, at once and for good, when the other has written in
 * between: no busy_timeout helps. So the lock is taken first, and the other waits.
 */
function twoProcesses(path: string) {
  const file = join(path, 'a.db')
  const service = openWritable(file)
  service.run('CREATE TABLE notes (text TEXT)')
  const command = new Database(file, { readwrite: true })
  command.run('PRAGMA busy_timeout = 0')
  const countNotes = () => service.query('SELECT count(*) AS n FROM notes').get()
  const refusals: unknown[] = []
  /** What another process does between a read and a write of ours. */
  const interrupt = () => {
    try {
      command.run("INSERT INTO notes VALUES ('command')")
    } catch (error) {
      refusals.push((error as { code: string }).code)
    }
  }
  return { service, command, countNotes, interrupt, refusals }
}

test('a batch that reads before it writes is not undone by a command that writes beside it', () => {
  using folder = temporaryFolder()
  const { service, command, countNotes, interrupt, refusals } = twoProcesses(folder.path)
  const functions = {
    add: () => {
      const seen = countNotes()
      interrupt()
      service.run("INSERT INTO notes VALUES ('service')")
      return seen
    },
  }
  const calls = [
    { name: 'add', args: null },
    { name: 'add', args: null },
  ]
  expect(commitTogether(service, functions, calls)).toEqual([
    { value: { n: 0 } },
    { value: { n: 1 } },
  ])
  expect(refusals).toEqual(['SQLITE_BUSY', 'SQLITE_BUSY'])
  interrupt()
  expect(refusals).toHaveLength(2)
  expect(countNotes()).toEqual({ n: 3 })
  command.close()
  service.close()
})

test('neither is a transaction of a start or a command', () => {
  using folder = temporaryFolder()
  const { service, command, countNotes, interrupt, refusals } = twoProcesses(folder.path)
  inTransaction(service, () => {
    countNotes()
    interrupt()
    service.run("INSERT INTO notes VALUES ('service')")
  })
  expect(refusals).toEqual(['SQLITE_BUSY'])
  expect(countNotes()).toEqual({ n: 1 })
  command.close()
  service.close()
})
