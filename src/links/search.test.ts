import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openReadonly, openWritable } from '../db/open.ts'
import { secureRandom } from '../lib/random.ts'
import { newCode } from './code.ts'
import { linkLists } from './lists.ts'
import { searchWrites } from './search.ts'
import { linkWrites } from './store.ts'
import { urlKey } from './url.ts'

const OWNER = 1
const STRANGER = 2

function setUp(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  const writes = linkWrites(db)
  const { indexLinks } = searchWrites(db)
  const { listLinks } = linkLists(openReadonly(db.filename, { cacheKiB: 1024 }))
  const create = (accountId: number, url: string) => {
    const passcodeHash = new Uint8Array(32)
    const item = { url, urlKey: urlKey(url), code: newCode(secureRandom), passcodeHash }
    const [link] = writes.createLinks({ accountId, createdAt: 0, items: [item] })
    return link?.id ?? 0
  }
  const search = (text: string, limit = 50, offset = 0) =>
    listLinks({ accountId: OWNER, search: text, limit, offset })
  return { db, writes, indexLinks, create, search }
}

const TEXTS = [
  'summer',
  'SUMMER',
  'example.com/s',
  'ummer-1',
  'ßtraße',
  'приве',
  'nowhere',
  '%',
  '"',
]

test('a search finds the same before, amid and after the indexing', () => {
  using folder = temporaryFolder()
  const { create, search, indexLinks } = setUp(folder.path)
  for (let i = 0; i < 30; i++) {
    create(OWNER, `https://example.com/${i % 3 === 0 ? 'Summer' : 'winter'}-${i}`)
    create(STRANGER, `https://example.com/summer-${i}`)
  }
  create(OWNER, 'https://example.com/ßtraße')
  create(OWNER, 'https://example.com/Привет')
  const pages = () =>
    TEXTS.flatMap((text) => [
      search(text),
      search(text, 4, 0),
      search(text, 4, 3),
      search(text, 4, 9),
    ])
  const before = pages()
  expect(search('summer').total).toBe(10)
  expect(search('summer').links.map(({ id }) => id)).toEqual(
    search('summer')
      .links.map(({ id }) => id)
      .sort((a, b) => b - a),
  )
  let rounds = 0
  do {
    rounds++
    expect(pages()).toEqual(before)
  } while (indexLinks({ most: 7 }))
  expect(pages()).toEqual(before)
  expect(rounds).toBe(9)
})

test('a link that changes or goes before it is indexed is found as it is, not as it was', () => {
  using folder = temporaryFolder()
  const { create, search, writes, indexLinks } = setUp(folder.path)
  for (const indexFirst of [false, true]) {
    const changed = create(OWNER, `https://example.com/before-${indexFirst}`)
    const deleted = create(OWNER, `https://example.com/deleted-${indexFirst}`)
    if (indexFirst) while (indexLinks({ most: 10 }));
    const url = `https://example.com/after-${indexFirst}`
    writes.changeUrl({ id: changed, url, urlKey: urlKey(url) })
    writes.deleteLink({ id: deleted })
    const totals = () =>
      ['before', 'deleted', 'after'].map((text) => search(`${text}-${indexFirst}`).total)
    expect(totals()).toEqual([0, 0, 1])
    while (indexLinks({ most: 10 }));
    expect(totals()).toEqual([0, 0, 1])
  }
})
