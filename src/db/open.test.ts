import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { BUSY_TIMEOUT_MS, openWritable } from './open.ts'

/** The test waits as long as the program does. */
const TIMEOUT_MS = 6 * BUSY_TIMEOUT_MS

test(
  'a database that another process keeps to itself is waited for once, and then refused',
  () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'hopcode.db')
    openWritable(file).close()
    using other = new Database(file)
    other.run('PRAGMA locking_mode = EXCLUSIVE')
    other.run('CREATE TABLE mine (id INTEGER)')
    expect(() => openWritable(file)).toThrow('another program has locked the database')
  },
  TIMEOUT_MS,
)
