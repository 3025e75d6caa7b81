import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { listLinks, plainWrites } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { openReadonly, openWritable } from '../db/open.ts'
import { newCode } from '../lib/code.ts'
import { secureRandom } from '../lib/random.ts'
import { searchWrites } from '../links/search-index.ts'
import { urlKey } from '../links/url.ts'
import { linkLists } from './lists.ts'

const OWNER = 1
const OTHER = 2

function setUp(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  for (const account of [OWNER, OTHER]) {
    db.run('INSERT INTO accounts (name, plan, created_at) VALUES (?, ?, 0)', [account, 'pro'])
  }
  const writes = plainWrites(db)
  const { indexLinks } = searchWrites(db)
  const lists = linkLists(openReadonly(db.filename, { cacheKiB: 1024 }))
  const create = (accountId: number, url: string) => {
    const passcodeHash = new Uint8Array(32)
    const item = { url, urlKey: urlKey(new URL(url)), code: newCode(secureRandom), passcodeHash }
    const [link] = writes.create(accountId, [item])
    return link?.id ?? 0
  }
  const search = (text: string, limit = 50, offset = 0) =>
    listLinks(lists, { accountId: OWNER, search: text, limit, offset })
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
    create(OTHER, `https://example.com/summer-${i}`)
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
  } while (indexLinks({ rowsMax: 7 }))
  expect(pages()).toEqual(before)
  expect(rounds).toBe(9)
})

test('a link that changes or goes before it is indexed is found as it is, not as it was', () => {
  using folder = temporaryFolder()
  const { create, search, writes, indexLinks } = setUp(folder.path)
  for (const indexFirst of [false, true]) {
    const changed = create(OWNER, `https://example.com/before-${indexFirst}`)
    const deleted = create(OWNER, `https://example.com/deleted-${indexFirst}`)
    if (indexFirst) while (indexLinks({ rowsMax: 10 }));
    const url = `https://example.com/after-${indexFirst}`
    writes.setUrl(OWNER, changed, url)
    writes.remove(OWNER, deleted)
    const totals = () =>
      ['before', 'deleted', 'after'].map((text) => search(`${text}-${indexFirst}`).total)
    expect(totals()).toEqual([0, 0, 1])
    while (indexLinks({ rowsMax: 10 }));
    expect(totals()).toEqual([0, 0, 1])
  }
})

test('a step of the index is bounded by its text, and a long URL is indexed by its beginning', () => {
  using folder = temporaryFolder()
  const { db, create, search, indexLinks } = setUp(folder.path)
  const letters = (length: number) =>
    Array.from({ length }, () => String.fromCharCode(97 + Math.random() * 26)).join('')
  const urls = Array.from({ length: 100 }, (_, n) => `https://x.example/${letters(8000)}/end${n}`)
  for (const url of urls) create(OWNER, url)
  const indexedTo = () => db.query('SELECT indexed_to AS id FROM search_progress').get()
  expect(indexLinks({})).toBe(true)
  expect(indexedTo()).toEqual({ id: 24 })
  while (indexLinks({}));
  expect(indexedTo()).toEqual({ id: 100 })
  const index = db
    .query<{ bytes: number }, []>('SELECT sum(length(block)) AS bytes FROM links_search_data')
    .get()
  expect(index?.bytes).toBeLessThan(urls.join('').length)
  expect(search('/END7').total).toBe(11)
  expect(search(urls[3]?.slice(5000, 5150) ?? '').total).toBe(1)
  expect(search('not/there').total).toBe(0)
})

test('letters whose small form is ASCII, the Kelvin sign and the dotted I, are found in any row', () => {
  using folder = temporaryFolder()
  const { create, search } = setUp(folder.path)
  const paths = Array.from({ length: 60 }, (_, n) => ['plain', '\u212Aelvin', '\u0130zmir'][n % 3])
  const ids = paths.map((path, n) => create(OWNER, `https://example.com/${path}-${n}`))
  const found = (text: string) => search(text, 1000).links.map(({ id }) => id)
  const expected = (path: string) => ids.filter((_, n) => paths[n] === path).toReversed()
  expect(found('kelvin')).toEqual(expected('\u212Aelvin'))
  expect(found('KELVIN')).toEqual(expected('\u212Aelvin'))
  expect(found('i')).toEqual(ids.toReversed())
  expect(found('m/k')).toEqual(expected('\u212Aelvin'))
  expect(found('m/i')).toEqual(expected('\u0130zmir'))
})
