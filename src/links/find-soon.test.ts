import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { secureRandom } from '../lib/random.ts'
import type { Caller } from '../lib/thread.ts'
import { newCode } from './code.ts'
import { findSoon } from './find-soon.ts'
import { type LinkLists, linkLists, type Matches } from './lists.ts'
import { type NewestReads, newestReads } from './newest-store.ts'
import { searchWrites } from './search.ts'
import { linkWrites } from './store.ts'
import { urlKey } from './url.ts'

const QUERY = { accountId: 1, limit: 50, offset: 0, search: 'spring' }

/** A thread that answers its calls as the function says. */
const threadOf = (answer: (name: string) => unknown) =>
  ({ call: async (name: string) => answer(name) }) as unknown as Caller<LinkLists & NewestReads>

const never = () => new Promise<never>(() => {})

test('a page whose matches take long to count comes without their number', async () => {
  const thread = threadOf((name) => (name === 'newestMatches' ? [] : never()))
  const found = await findSoon({ lists: thread, reader: thread, patienceMs: 0 }, QUERY)
  expect(found).toEqual({ total: undefined, links: [] })
})

test('a page that is counted in time has the number, and nothing else is asked', async () => {
  const counted: Matches = { total: 7, links: [] }
  const thread = threadOf((name) => (name === 'newestMatches' ? never() : counted))
  const options = { lists: thread, reader: thread, patienceMs: 1_000_000 }
  expect(await findSoon(options, QUERY)).toEqual(counted)
})

test('a count that fails in time is an error, and one that fails later is not ours', async () => {
  const failing = threadOf(() => Promise.reject(new Error('the disk is gone')))
  const options = { lists: failing, reader: failing, patienceMs: 1_000_000 }
  expect(findSoon(options, QUERY)).rejects.toThrow('the disk is gone')
  const later = Promise.withResolvers<never>()
  const slow = threadOf((name) => (name === 'newestMatches' ? [] : later.promise))
  const found = await findSoon({ lists: slow, reader: slow, patienceMs: 0 }, QUERY)
  later.reject(new Error('the disk is gone'))
  expect(found.links).toEqual([])
})

test('the newest matches are the list’s own page, indexed yet or not, for long and short texts', () => {
  using folder = temporaryFolder()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  const writes = linkWrites(db)
  const search = searchWrites(db)
  for (let n = 0; n < 60; n++) {
    const url = `https://example.com/${n % 3 === 0 ? 'Spring' : 'autumn'}-${n}`
    const passcodeHash = new Uint8Array(32)
    const item = { url, urlKey: urlKey(url), code: newCode(secureRandom), passcodeHash }
    writes.createLinks({ accountId: 1 + (n % 2), createdAt: n, items: [item] })
    if (n === 40) search.indexLinks({ most: 100 })
  }
  const lists = linkLists(db)
  const newest = newestReads(db)
  for (const text of ['spring', 'SPR', 'sp', 'g', 'nothing', '%', '-']) {
    for (const offset of [0, 3, 9, 30]) {
      const query = { accountId: 1, search: text, limit: 4, offset }
      expect([text, offset, newest.newestMatches(query)]).toEqual([
        ...[text, offset, lists.listLinks(query).links],
      ])
    }
  }
  db.close()
})
