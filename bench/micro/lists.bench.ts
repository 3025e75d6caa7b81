// How long do the dashboard's lists of a million links take on the reader thread?
// npm run bench -- micro lists
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDataFolder } from '../../src/data-folder.ts'
import { databaseFile, inTransaction, openReadonly } from '../../src/db/open.ts'
import { Thread } from '../../src/lib/thread.ts'
import { LinkPages, linkLists } from '../../src/links/lists.ts'
import { linkWrites } from '../../src/links/store.ts'
import { tagReads } from '../../src/links/tags.ts'
import { printMachine } from '../lib/micro.ts'
import { copyMillion, MILLION, millionFolder } from '../lib/million.ts'

const CALLS = 100
const ACCOUNT = 1
const TITLED = 2000
const PAGE = { accountId: ACCOUNT, limit: 50, offset: 0 }

printMachine()
const parent = mkdtempSync(join(tmpdir(), 'hopcode-bench-lists-'))
try {
  const folder = copyMillion(millionFolder(console.error), join(parent, 'data'))
  describeLinks(folder.path)
  await measureAll(databaseFile(folder.path))
} finally {
  rmSync(parent, { recursive: true, force: true })
}

/** Half of the links get one tag, some a title and a second tag, a third has hits. */
function describeLinks(path: string): void {
  const { db } = openDataFolder(path)
  const { patchLinks } = linkWrites(db)
  const author = { accountId: ACCOUNT, now: 0 }
  const quota = { linksMax: 0, urlBytesMax: 0 }
  const patch = { title: 'Spring Poster', addTags: ['rare'] }
  inTransaction(db, () => {
    db.run("UPDATE links SET tags = json_array('half') WHERE id % 2 = 0")
    db.run(
      `INSERT INTO hits (link_id, account_id, count)
       SELECT id, account_id, id * 7919 % 1000 + 1 FROM links WHERE id % 3 = 0`,
    )
    for (let n = 0; n < TITLED; n++) {
      patchLinks({ ids: [n * (MILLION / TITLED) + 1], patch, quota, author })
    }
  })
  db.close()
}

async function measureAll(file: string): Promise<void> {
  const db = openReadonly(file, { cacheKiB: 16_384 })
  const lists = linkLists(db)
  const tags = tagReads(db)
  const reader = Thread.inProcess(lists)
  const pages = new LinkPages(reader)
  const search = { search: 'spring p', inProperties: true }
  const total = async (query: object) => (await pages.find({ ...PAGE, ...query })).total
  const byHits = async (query: object) =>
    (await pages.find({ ...PAGE, ...query, byHits: true })).links.length
  const kinds: [name: string, call: () => Promise<unknown>, expected: unknown][] = [
    ['the first page', () => total({}), MILLION],
    ['a tag of half the links', () => total({ tag: 'half' }), MILLION / 2],
    ['its page at 400,000', () => total({ tag: 'half', offset: 400_000 }), MILLION / 2],
    ['a search in titles', () => total(search), TITLED],
    [
      'a search with a million matches',
      () => total({ search: 'https', inProperties: true }),
      MILLION,
    ],
    ['a search and a tag', () => total({ ...search, tag: 'rare' }), TITLED],
    ['all tags', async () => tags.listTags({ accountId: ACCOUNT }).length, 2],
    ['most hits first', () => byHits({}), 50],
    ['most hits first, with a tag and a search', () => byHits({ ...search, tag: 'rare' }), 50],
    ['most hits first, a tag of half the links', () => byHits({ tag: 'half' }), 50],
    ['most hits first, a search that all match', () => byHits({ search: 'https' }), 50],
  ]
  for (const [name, call, expected] of kinds) await measure(name, call, expected)
}

async function measure(
  name: string,
  call: () => Promise<unknown>,
  expected: unknown,
): Promise<void> {
  const ms: number[] = []
  const endsAt = performance.now() + 5000
  for (let n = 0; n < CALLS && (n < 3 || performance.now() < endsAt); n++) {
    const startedAt = performance.now()
    const found = await call()
    ms.push(performance.now() - startedAt)
    if (found !== expected) throw new Error(`${name}: ${found}, not ${expected}`)
  }
  const [first = 0, ...others] = ms
  const sorted = others.sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]?.toFixed(1)
  console.log(
    `${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, the first one ${first.toFixed(1)} ms`,
  )
}
