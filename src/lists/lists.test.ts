import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { inProcess } from '../../test/support/in-process.ts'
import { listLinks, plainWrites } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { inTransaction, openReadonly, openWritable } from '../db/open.ts'
import { newCode } from '../lib/code.ts'
import { secureRandom } from '../lib/random.ts'
import type { CallOptions } from '../lib/thread.ts'
import type { CreatedLink } from '../links/link.ts'
import { linkWrites } from '../links/put.ts'
import { searchWrites } from '../links/search-index.ts'
import { urlKey } from '../links/url.ts'
import type { LinkStateName } from './link-sources.ts'
import { LinkPages, type ListQuery, linkLists, type Matches } from './lists.ts'

/** Lists over the real connections, beside arrays that say what they must give. */

/** A linear congruential generator with the constants of Numerical Recipes: the same for a seed. */
function seeded(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

interface Kept extends Pick<CreatedLink, 'id' | 'code' | 'url'> {
  title?: string
  tags?: readonly string[]
  paused?: boolean
}

type LinkLists = ReturnType<typeof linkLists>

function setUp(path: string, options?: Parameters<typeof linkLists>[1]) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  // Nothing here is about the disk, and a random test commits often.
  db.run('PRAGMA synchronous = OFF')
  const writes = plainWrites(db)
  const { patchLinks } = linkWrites(db)
  const { indexLinks } = searchWrites(db)
  const accounts = [1, 2, 3].map((n) => {
    db.run('INSERT INTO accounts (name, plan, created_at) VALUES (?, ?, 0)', [`${n}`, 'pro'])
    return n
  })
  const model = new Map<number, Kept[]>(accounts.map((id) => [id, []]))
  const linksOf = (accountId: number) => model.get(accountId) ?? []
  const passcodeHash = new Uint8Array(32)
  return {
    db,
    linksOf,
    lists: linkLists(openReadonly(db.filename, { cacheKiB: 1024 }), options),
    index: (rowsMax: number) => inTransaction(db, () => indexLinks({ rowsMax })),
    create(accountId: number, urls: readonly string[]): void {
      const items = urls.map((url) => ({
        url,
        urlKey: urlKey(new URL(url)),
        code: newCode(secureRandom),
        passcodeHash,
      }))
      const made = inTransaction(db, () => writes.create(accountId, items))
      for (const link of made) if (!link.reused) linksOf(accountId).unshift(link)
    },
    change(accountId: number, link: Kept, url: string): void {
      inTransaction(db, () => writes.setUrl(accountId, link.id, url))
      link.url = url
    },
    remove(accountId: number, link: Kept): void {
      inTransaction(db, () => writes.remove(accountId, link.id))
      linksOf(accountId).splice(linksOf(accountId).indexOf(link), 1)
    },
    describe(accountId: number, link: Kept, title: string, tags: readonly string[]): void {
      const author = { accountId, by: 'operator', now: 0 } as const
      const quota = { linksMax: 0, urlBytesMax: 0 }
      inTransaction(db, () => patchLinks({ ids: [link.id], patch: { title, tags }, quota, author }))
      Object.assign(link, { title, tags })
    },
    pause(accountId: number, link: Kept, paused: boolean): void {
      const author = { accountId, by: 'operator', now: 0 } as const
      const quota = { linksMax: 0, urlBytesMax: 0 }
      inTransaction(db, () => patchLinks({ ids: [link.id], patch: { paused }, quota, author }))
      link.paused = paused
    },
    expected({ accountId, limit, offset, search = '', inProperties, tag, state }: ListQuery) {
      const text = search.toLowerCase()
      const words = inProperties ? text.split(/\s+/).filter(Boolean) : [text]
      const found = linksOf(accountId).filter(({ code, url, title = '', tags = [], paused }) => {
        const fields = [
          code,
          url ?? '',
          ...(inProperties ? [title, tags.toSorted().join(' ')] : []),
        ]
        const isFound = words.every((word) =>
          fields.some((field) => field.toLowerCase().includes(word)),
        )
        const isInState = !state || (state.is === 'paused') === (paused === true)
        return isFound && isInState && (tag === undefined || tags.includes(tag))
      })
      const page = found.slice(offset, offset + limit)
      return { total: found.length, links: page.map(({ id, code, url }) => ({ id, code, url })) }
    },
  }
}

/** Each call counts a little, and few candidates or ids are many. */
const SMALL = {
  chunkLinks: 8,
  walkMax: 20,
  sliceMs: 0,
  search: {
    rowsAtOnce: 16,
    candidatesMax: 12,
    rowsBetween: 48,
    span: 60,
    spanMin: 20,
    countBytes: 5000,
    bytesMax: 3000,
  },
  chunk: { bytesMax: 10_000, idsMax: 10 },
}

function seen({ total, links }: Matches) {
  return { total, links: links.map(({ id, code, url }) => ({ id, code, url })) }
}

/** Its end is beyond what the index holds. */
const LONG = `${'long/'.repeat(110)}Zend`

const SEARCHES = [
  undefined,
  undefined,
  'https',
  'HTTP',
  'summer',
  'winter-',
  'xample.com/s',
  'qqqxyzzy',
  'Ёлк',
  'ΔΟΣ-',
  'δος-',
  'zend',
  'ZEND-1',
  'a"b',
  'a b',
  'h',
  'S',
  'mm',
  'w',
  'q',
  'ё',
  '-1',
  '%',
  '_',
  'zz',
  '\0',
  'htt\0',
  'ring p',
  'oster 7',
]

const TITLES = ['Spring Poster', 'poster 7', 'Ёлка', '']

test.each([1, 2, 3])(
  'pages and totals are a plain array’s through changes of all kinds, seed %i',
  (seed) => {
    using folder = temporaryFolder()
    const below = seeded(seed)
    const app = setUp(folder.path, SMALL)
    const pick = <Item>(items: readonly Item[]) => items[below(items.length)] as Item
    const words = ['summer', 'winter', 'Ёлка', 'ΟΔΟΣ', 'zz%_', 'x', LONG]
    const url = () => `https://example.com/${pick(words)}-${below(100_000)}`
    const query = (): ListQuery => {
      const accountId = pick([1, 1, 2, 3])
      const offset = pick([0, below(10), below(app.linksOf(accountId).length + 10)])
      const search = pick(SEARCHES)
      const tag = pick([undefined, undefined, 'spring', 'summer', 'none'])
      const inProperties = below(2) === 0
      const state = pick([undefined, undefined, 'paused' as const, 'active' as const])
      const filter = { search, inProperties, tag, state: state && { is: state, at: 1 } }
      return { accountId, ...filter, limit: 1 + below(30), offset }
    }
    const write = () => {
      const accountId = pick([1, 1, 2])
      const link = pick(app.linksOf(accountId))
      const kind = below(15)
      if (kind >= 13 && link !== undefined) app.pause(accountId, link, below(2) === 0)
      else if (kind >= 10 && link !== undefined) {
        app.describe(accountId, link, pick(TITLES), pick([[], ['spring'], ['summer', 'spring']]))
      } else if (kind < 4 || link === undefined) {
        app.create(accountId, Array.from({ length: 1 + below(20) }, url))
      } else if (kind < 6) app.change(accountId, link, url())
      else if (kind < 9) app.remove(accountId, link)
      else app.index(1 + below(200))
    }
    for (let step = 0; step < 300; step++) {
      for (let n = below(4); n > 0; n--) write()
      const asked = query()
      // What was counted in a slice may have changed before the next.
      let page = app.lists.listLinksSlice(asked)
      for (; page === undefined; page = app.lists.listLinksSlice(asked))
        if (below(20) === 0) write()
      expect({ step, asked, ...seen(page) }).toEqual({ step, asked, ...app.expected(asked) })
    }
    expect(app.linksOf(1).length).toBeGreaterThan(200)
  },
)

test('more changes than the log holds between two lists leave no old count behind', () => {
  using folder = temporaryFolder()
  const { db, lists, create, remove, change, index, linksOf, expected } = setUp(folder.path, {
    ...SMALL,
    walkMax: 0,
  })
  const text = Array.from({ length: 200 }, (_, n) => `https://example.com/summer-${n}`)
  create(1, text)
  create(2, ['https://example.com/other'])
  index(1000)
  const queries = [undefined, 'summer', 'su'].map((search) => {
    return { accountId: 1, search, limit: 20, offset: 30 }
  })
  const agree = () => {
    for (const query of queries) expect(seen(listLinks(lists, query))).toEqual(expected(query))
  }
  agree()
  for (const link of linksOf(1).slice(50, 80)) remove(1, link)
  for (const link of linksOf(1).slice(90, 99)) change(1, link, `https://example.com/${link.id}`)
  const [other] = linksOf(2)
  db.run('BEGIN')
  for (let n = 0; n < 5000; n++)
    db.run('UPDATE links SET url = ? WHERE id = ?', [`https://n/${n}`, other?.id ?? 0])
  db.run('COMMIT')
  agree()
  const kept = db.query<{ count: number }, []>('SELECT count(*) AS count FROM link_changes').get()
  expect(kept).toEqual({ count: 4096 })
})

test('a search whose matches multiply in old links is counted again', () => {
  using folder = temporaryFolder()
  const app = setUp(folder.path, SMALL)
  const { lists, create, change, index, linksOf, expected } = app
  create(
    1,
    Array.from({ length: 300 }, (_, n) => `https://example.com/${n % 40 ? 'x' : 'summer'}-${n}`),
  )
  index(1000)
  const query = { accountId: 1, search: 'summer', limit: 10, offset: 150 }
  expect(listLinks(lists, query)).toEqual({ total: 8, links: [] })
  for (const link of linksOf(1)) change(1, link, `https://example.com/summer/${link.id}`)
  expect(lists.listLinksSlice(query)).toBeUndefined()
  expect(seen(listLinks(lists, query))).toEqual(expected(query))
  expect(listLinks(lists, query).total).toBe(300)
})

/** The reader thread as functions; `calls` collects what was asked. */
function threadOf(lists: LinkLists, calls: string[]) {
  const thread = inProcess<LinkLists>(lists)
  const note = ({ accountId, search = '' }: Partial<ListQuery>, background = false) =>
    calls.push(`${accountId} ${search} ${background ? 'background' : 'urgent'}`)
  return {
    lists: {
      pageSlice(query: ListQuery, { background }: CallOptions = {}) {
        note(query, background)
        return thread.call('listLinksSlice', query, { background })
      },
      rankingSlice: (query: Parameters<LinkLists['rankedLinksSlice']>[0]) =>
        thread.call('rankedLinksSlice', query),
    },
  }
}

const numbered = (length: number) => Array.from({ length }, (_, n) => `https://example.com/${n}`)

test('a list that takes long to count continues behind the lists of others', async () => {
  using folder = temporaryFolder()
  const { lists, create, expected } = setUp(folder.path, { ...SMALL, walkMax: 0 })
  create(1, numbered(50))
  const calls: string[] = []
  const pages = new LinkPages(threadOf(lists, calls))
  const query = { accountId: 1, search: undefined, limit: 5, offset: 20 }
  expect(seen(await pages.findPage(query))).toEqual(expected(query))
  const counted = calls.splice(0)
  expect(counted.length).toBeGreaterThan(3)
  expect(counted[0]).toBe('1  urgent')
  expect(new Set(counted.slice(1))).toEqual(new Set(['1  background']))
  expect(seen(await pages.findPage(query))).toEqual(expected(query))
  expect(calls).toEqual(['1  urgent'])
})

test('searches of one account take turns with another account’s, however many there are', async () => {
  using folder = temporaryFolder()
  const { lists, create } = setUp(folder.path, SMALL)
  create(1, numbered(60))
  create(2, numbered(60))
  const calls: string[] = []
  const pages = new LinkPages(threadOf(lists, calls))
  const many = ['a', 'b', 'c', 'd'].map((search) =>
    pages.findPage({ accountId: 1, search, limit: 1, offset: 0 }),
  )
  await pages.findPage({ accountId: 2, search: 'e', limit: 1, offset: 0 })
  const texts = calls.map((call) => call.split(' ')[1])
  // Where the other account's search ended, the first account's third had not begun.
  expect(texts).toContain('a')
  expect(texts).not.toContain('c')
  expect(calls.every((call) => call.endsWith('background'))).toBe(true)
  await Promise.all(many)
  const own = calls.map((call) => call.split(' ')[1]).filter((text) => text !== 'e')
  expect(own).toEqual(own.toSorted())
})

test('a search whose client is gone stops, and one that takes too long says so', async () => {
  using folder = temporaryFolder()
  const { lists, create, expected } = setUp(folder.path, SMALL)
  create(1, numbered(60))
  const calls: string[] = []
  const query = { accountId: 1, search: 'zz', limit: 1, offset: 0 }
  const gone = new LinkPages(threadOf(lists, calls)).findPage(query, AbortSignal.abort())
  expect(gone).rejects.toMatchObject({ code: 'search_timeout' })
  const late = new LinkPages(threadOf(lists, calls), { deadlineMs: 0 }).findPage(query)
  expect(late).rejects.toMatchObject({ code: 'search_timeout', headers: { 'retry-after': '1' } })
  expect(calls).toEqual([])
  expect(seen(await new LinkPages(threadOf(lists, calls)).findPage(query))).toEqual(expected(query))
})

test.each<[LinkStateName, string[]]>([
  ['active', ['plain']],
  ['paused', ['paused']],
  ['expired', ['used up', 'over']],
  ['scheduled', ['later']],
  ['unused', ['paused', 'over', 'later']],
  ['dead', ['over']],
])('the links that are %s at a time', (is, names) => {
  using folder = temporaryFolder()
  const app = setUp(folder.path)
  const titles = ['plain', 'used up', 'paused', 'over', 'later']
  app.create(
    1,
    titles.map((title) => `https://example.com/${title}`),
  )
  const [plain, usedUp, paused, over, later] = app
    .linksOf(1)
    .toReversed()
    .map(({ id }) => id)
  const set = (id: number | undefined, values: string) =>
    app.db.run(`UPDATE links SET ${values} WHERE id = ${id}`)
  set(usedUp, 'max_hits = 2')
  set(paused, 'paused = 1')
  set(over, 'expires_at = 1000')
  set(later, 'starts_at = 1001')
  for (const id of [plain, usedUp]) {
    app.db.run(`INSERT INTO hits (link_id, account_id, count) VALUES (${id}, 1, 2)`)
  }
  for (const [id, failures] of [
    [plain, 2],
    [over, 3],
  ]) {
    app.db.run(
      `INSERT INTO link_checks (link_id, account_id, failures) VALUES (${id}, 1, ${failures})`,
    )
  }
  const query = { accountId: 1, limit: 10, offset: 0, state: { is, at: 1000 } }
  const { total, links } = app.lists.listLinksSlice(query) ?? { total: 0, links: [] }
  const found = links.map(({ url }) => decodeURIComponent(url?.split('/').at(-1) ?? ''))
  expect([total, found.toReversed()]).toEqual([names.length, names])
})
