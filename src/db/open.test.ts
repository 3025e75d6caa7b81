import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { BUSY_TIMEOUT_MS, openWritable } from './open.ts'

const pathOf = (name: string) => JSON.stringify(new URL(name, import.meta.url).pathname)

/** Each answers with what went wrong, if anything did, once all have begun. */
const SOURCE = `
  const { openWritable } = require(${pathOf('./open.ts')})
  const { migrate } = require(${pathOf('./migrate.ts')})
  self.onmessage = ({ data: { file, begun, all } }) => {
    const count = new Int32Array(begun)
    Atomics.add(count, 0, 1)
    while (Atomics.load(count, 0) < all);
    try {
      const db = openWritable(file)
      migrate(db)
      db.close()
      self.postMessage('')
    } catch (error) {
      self.postMessage(error.message)
    }
  }`

const ALL = 4
const ROUNDS = 60

test('those that begin at once on a folder without a database all have it, whole', async () => {
  const file = new File([SOURCE], 'thread.js', { type: 'text/javascript' })
  const workers = Array.from({ length: ALL }, () => new Worker(URL.createObjectURL(file)))
  const refusals: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    using folder = temporaryFolder()
    const order = {
      file: join(folder.path, 'hopcode.db'),
      begun: new SharedArrayBuffer(4),
      all: ALL,
    }
    const answers = workers.map(
      (worker) =>
        new Promise<string>((resolve) => {
          worker.onmessage = ({ data }) => resolve(data)
          worker.postMessage(order)
        }),
    )
    refusals.push(...(await Promise.all(answers)).filter((answer) => answer !== ''))
  }
  for (const worker of workers) worker.terminate()
  expect(refusals).toEqual([])
})

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
