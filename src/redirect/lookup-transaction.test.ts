import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { CodeVersions } from '../hot/code-versions.ts'
import { RedirectCounters } from '../hot/redirect-counters.ts'
import type { Code } from '../lib/code.ts'
import { LinkCache } from '../links/destination.ts'
import { LookupTransaction } from './lookup-transaction.ts'

const code = (text: string) => text as Code

/** A database of links, and a cache that looks them up in transactions. */
function linksIn(folder: string) {
  const file = join(folder, 'links.db')
  const writer = new Database(file)
  writer.run('PRAGMA journal_mode = WAL')
  writer.run('CREATE TABLE links (code TEXT PRIMARY KEY, url TEXT)')
  const reader = new Database(file, { readonly: true })
  const versions = CodeVersions.allocate()
  const transaction = new LookupTransaction(reader, versions)
  const byCode = reader.prepare<{ url: string }, [string]>('SELECT url FROM links WHERE code = ?')
  const findByCode = (asked: string) => {
    const location = byCode.get(asked)?.url
    return location ? { id: 1, location, isDisabled: false, rules: '', domainId: 0 } : undefined
  }
  const cache = new LinkCache({
    reads: { findByCode },
    aliases: { findByPath: () => undefined },
    beforeRead: () => transaction.renew(),
    versions,
    counters: new RedirectCounters(),
    max: 100,
  })
  const set = writer.prepare('INSERT OR REPLACE INTO links VALUES (?, ?)')
  return {
    reader,
    transaction,
    checkpoint: () => writer.query('PRAGMA wal_checkpoint(TRUNCATE)').get(),
    versions,
    write: (name: string, url: string) => set.run(name, url),
    find: (name: string) => {
      const known = cache.findInMemory(code(name))
      return (known === undefined ? cache.lookUp(code(name)) : known)?.location
    },
    [Symbol.dispose]() {
      reader.close()
      writer.close()
    },
  }
}

const OLD = 'https://example.com/old'
const NEW = 'https://example.com/new'
const tick = () => new Promise((resolve) => setImmediate(resolve))

const NAMES = ['FIRST1', 'SECOND', 'THIRD3']

test.each<[string, (versions: CodeVersions) => void]>([
  [
    'of its link',
    (versions) => {
      for (const name of NAMES) versions.change(name)
    },
  ],
  ['of all links', (versions) => versions.changeAll()],
])(
  'a look-up after a change %s finds it in the same tick, and so do later ones',
  async (_, tell) => {
    using folder = temporaryFolder()
    using links = linksIn(folder.path)
    const { versions, write, find } = links
    for (const name of ['FIRST1', 'SECOND']) write(name, OLD)
    expect(find('FIRST1')).toBe(OLD)
    for (const name of NAMES) write(name, NEW)
    tell(versions)
    for (let i = 0; i < 2; i++) {
      for (const name of NAMES) expect(find(name)).toBe(NEW)
      await tick()
    }
  },
)

test('look-ups of a tick share a transaction, which ends with the tick', async () => {
  using folder = temporaryFolder()
  using links = linksIn(folder.path)
  const { write, find, reader } = links
  for (const name of ['FIRST1', 'SECOND']) write(name, OLD)
  expect(find('FIRST1')).toBe(OLD)
  // Nobody has told of this change yet: its row may be read, and is read after the next change.
  write('SECOND', NEW)
  expect(reader.inTransaction).toBe(true)
  expect(find('SECOND')).toBe(OLD)
  await tick()
  expect(reader.inTransaction).toBe(false)
  links.versions.change('SECOND')
  expect(find('SECOND')).toBe(NEW)
})

test('a transaction that SQLite has ended by itself is no obstacle', async () => {
  using folder = temporaryFolder()
  using links = linksIn(folder.path)
  links.write('FIRST1', OLD)
  expect(links.find('SECOND')).toBeUndefined()
  links.reader.run('ROLLBACK')
  expect(links.find('FIRST1')).toBe(OLD)
  await tick()
  links.versions.changeAll()
  expect(links.find('FIRST1')).toBe(OLD)
})

test('once it is closed in the middle of a tick, nothing holds up a checkpoint', async () => {
  using folder = temporaryFolder()
  using links = linksIn(folder.path)
  links.write('FIRST1', OLD)
  expect(links.find('FIRST1')).toBe(OLD)
  links.write('SECOND', NEW)
  expect(links.checkpoint()).toMatchObject({ busy: 1 })
  links.transaction.close()
  expect(links.checkpoint()).toMatchObject({ busy: 0 })
  await tick()
})
