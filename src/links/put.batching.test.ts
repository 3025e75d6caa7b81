import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { accounts } from '../accounts/operations/accounts.ts'
import { checkDatabase } from '../backup/invariants.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { settings } from '../db/settings.ts'
import { writeFunctions } from '../db/subject.ts'
import { commitTogether } from '../db/writer.ts'
import type { Code } from '../lib/code.ts'
import { moderation } from '../moderation/moderation.ts'
import { encodeCreate } from './link.ts'
import { linkWrites } from './put.ts'
import { links } from './subject.ts'
import { urlKey } from './url.ts'

/**
 * The result of a write depends on the database and its arguments only: whichever calls share a
 * transaction, the same calls leave the same tables and give the same results.
 */

interface Call {
  name: string
  args: unknown
}

// Few of everything, so that calls meet: most generated codes are in use.
const ACCOUNTS = 2
const code = fc.constantFrom('AAAAAA', 'AAAAAB', 'AAAAAC', 'AAAAAD').map((text) => text as Code)
const url = fc.nat(7).map((n) => `https://example.com/${'x'.repeat(n * n * n)}${n}`)
const accountId = fc.integer({ min: 1, max: ACCOUNTS })
const id = fc.integer({ min: 1, max: 15 })
const quota = fc.record({
  linksMax: fc.constantFrom(0, 0, 4),
  urlBytesMax: fc.constantFrom(0, 0, 300),
})
const passcodeHash = new Uint8Array(32).fill(3)
const keyed = (text: string) => ({ url: text, urlKey: urlKey(new URL(text)) })
const now = 1_750_000_000_000

const newLink = fc.record({ url, code }).map((link) => ({
  ...keyed(link.url),
  code: link.code,
  passcodeHash,
}))
const author = accountId.map((account) => ({ accountId: account, by: 'operator', now }) as const)
const call = <Args>(name: string, args: fc.Arbitrary<Args>): fc.Arbitrary<Call> =>
  args.map((value) => ({ name, args: value }))

const creation = fc
  .record({ author, quota, items: fc.array(newLink, { minLength: 1, maxLength: 4 }) })
  .map((command) => encodeCreate(command))
const change = fc
  .record({ id, url, quota, author })
  .map(({ url: text, ...command }) => ({ ...command, ...keyed(text) }))

const ids = fc.array(id, { minLength: 1, maxLength: 4 })
const tags = fc.array(fc.constantFrom('a', 'b', 'spring'), { maxLength: 2 })
const time = fc.constantFrom(null, 1000, 2000)
const patch = fc.record(
  {
    title: fc.constantFrom(null, 'Aaa', 'x'.repeat(250)),
    note: fc.constantFrom(null, 'exa'),
    tags,
    addTags: tags,
    removeTags: tags,
    paused: fc.boolean(),
    starts_at: time,
    expires_at: time,
    max_hits: fc.constantFrom(null, 5),
    expired_url: fc.constantFrom(null, 'https://example.com/over'),
    forward_query: fc.boolean(),
    no_index: fc.boolean(),
  },
  { requiredKeys: [] },
)

const single = fc
  .record({
    author,
    quota,
    patch,
    url: fc.option(url),
    code,
    isGenerated: fc.boolean(),
    aliases: fc
      .uniqueArray(fc.constantFrom('a-b', 'spring', 'CODE01', 'c'))
      .map((paths) => ({ set: paths.map((path) => ({ domainId: 0, path })) })),
  })
  .map(({ url: text, code: wanted, ...command }) => ({
    ...command,
    item: {
      ...(text === null ? { url: null, urlKey: null } : keyed(text)),
      code: wanted,
      passcodeHash,
    },
  }))

const calls = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: call('links.create', creation) },
    { weight: 3, arbitrary: call('links.createOne', single) },
    { weight: 3, arbitrary: call('links.changeUrl', change) },
    { weight: 3, arbitrary: call('links.delete', fc.record({ id, author })) },
    { weight: 4, arbitrary: call('links.patch', fc.record({ ids, patch, quota, author })) },
    call('links.scheduleDeletion', fc.record({ ids, deleteAt: fc.constantFrom(1, 2), author })),
    call('links.undoDeletion', fc.record({ ids, author })),
    call('links.deleteDue', fc.record({ now: fc.constantFrom(1, 2), most: fc.constantFrom(1, 9) })),
    call('links.deleteSome', fc.record({ accountId, most: fc.integer({ min: 1, max: 3 }) })),
    call('moderation.disable', fc.record({ author, code, reason: fc.constant('abuse') })),
    call('moderation.enable', fc.record({ author, code })),
    call('accounts.disable', fc.record({ author, links: fc.boolean() })),
    call('accounts.enable', fc.record({ author })),
    call('settings.save', fc.record({ author, name: fc.constant('a'), value: fc.string() })),
    call('links.index', fc.record({ rowsMax: fc.integer({ min: 1, max: 3 }) })),
    call('deleteAndFail', fc.record({ id, author })),
  ),
  { minLength: 1, maxLength: 40 },
)

function openDatabase(path: string) {
  const db = openWritable(path)
  migrate(db)
  db.run('PRAGMA synchronous = OFF')
  for (let n = 1; n <= ACCOUNTS; n++) {
    db.run('INSERT INTO accounts (name, plan, created_at) VALUES (?, ?, 0)', [`${n}`, 'pro'])
  }
  const { deleteLink } = linkWrites(db)
  const functions = {
    ...writeFunctions({ accounts, links, moderation, settings }, db, { id: '' }),
    deleteAndFail(command: Parameters<typeof deleteLink>[0]) {
      deleteLink(command)
      throw new Error('failed after a change')
    },
  }
  return { db, run: (batch: readonly Call[]) => commitTogether(db, functions, batch) }
}

/** The rows of every table, and the links that the search index finds for some text. */
function contentsOf(db: Database): unknown {
  const tables = db
    .query<{ name: string }, []>(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'links_search%'`,
    )
    .all()
  const indexed = db.query('SELECT rowid FROM links_search WHERE links_search MATCH ?')
  return {
    tables: tables.map(({ name }) => [name, db.query(`SELECT * FROM "${name}"`).values()]),
    indexed: ['"aaa"', '"exa"', '"xxx"', '"m/3"'].map((text) => indexed.values(text)),
  }
}

test('calls have the same results and leave the same tables, however they are batched', () => {
  using folder = temporaryFolderInMemory()
  let runs = 0
  const property = fc.property(
    calls,
    fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 40, maxLength: 40 }),
    (made, sizes) => {
      const path = join(folder.path, `${runs++}`)
      const alone = openDatabase(`${path}-alone.db`)
      const together = openDatabase(`${path}-together.db`)
      try {
        const expected = made.flatMap((one) => alone.run([one]))
        const outcomes = sizes.flatMap((size, batch) => {
          const start = sizes.slice(0, batch).reduce((sum, earlier) => sum + earlier, 0)
          return together.run(made.slice(start, start + size))
        })
        expect(outcomes).toEqual(expected)
        const failed = made.filter((_, at) => 'error' in (expected[at] ?? {}))
        expect(failed.filter(({ name }) => name !== 'deleteAndFail')).toEqual([])
        expect(contentsOf(together.db)).toEqual(contentsOf(alone.db))
        const checks = ['stored bytes', 'tags', 'search index']
        const found = [...checkDatabase(alone.db)].filter(({ check }) => checks.includes(check))
        expect(found.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok'])
      } finally {
        alone.db.close()
        together.db.close()
      }
    },
  )
  fc.assert(property, { numRuns: 60 })
})
