import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { accounts } from '../accounts/operations/accounts.ts'
import type { Event } from '../db/events.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { subject, writeFunctions } from '../db/subject.ts'
import { commitTogether } from '../db/writer.ts'
import { imports, type StoredRow } from '../import/store.ts'
import type { Code } from '../lib/code.ts'
import { moderation } from '../moderation/moderation.ts'
import { encodeCreate, packSecrets } from './link.ts'
import { links } from './subject.ts'
import { urlKey } from './url.ts'

/** What a subject learns inside the transactions of the real writes of links. */

const URL_A = 'https://example.com/a'
const URL_B = 'https://example.com/b'
const passcodeHash = new Uint8Array(32)
const quota = { linksMax: 0, urlBytesMax: 0 }
const author = { accountId: 1, by: 'operator', now: 5 } as const
const code = (text: string) => text as Code
const item = (text: string, url: string) => ({
  code: code(text),
  url,
  urlKey: urlKey(new URL(url)),
  passcodeHash,
})

/** Runs each write in a transaction of its own. */
function setUp(path: string) {
  const db = openWritable(path)
  migrate(db)
  db.run("INSERT INTO accounts (name, plan, created_at) VALUES ('own', 'pro', 0)")
  db.run('CREATE TABLE told (event TEXT)')
  const followers = subject({
    onEvents(on) {
      const add = on.prepare<null, [string]>('INSERT INTO told (event) VALUES (?)')
      return (events) => {
        for (const event of events) add.run(JSON.stringify(event))
      }
    },
  })
  const all = { accounts, links, moderation, imports, followers }
  const functions = writeFunctions(all, db, { id: '' })
  /** The events that the follower has stored. */
  const eventsOf = (name: string, args: unknown): Event[] => {
    db.run('DELETE FROM told')
    const [outcome] = commitTogether(db, functions, [{ name, args }])
    expect(outcome).toHaveProperty('value')
    return db
      .query<{ event: string }, []>('SELECT event FROM told')
      .all()
      .map(({ event }) => JSON.parse(event))
  }
  return { db, eventsOf }
}

const rules = { what: 'rules_changed' }

test('a follower knows what each write has done to which link, and who asked for it', () => {
  using folder = temporaryFolderInMemory()
  const { db, eventsOf } = setUp(join(folder.path, 'hopcode.db'))
  const create = (...items: ReturnType<typeof item>[]) => encodeCreate({ author, items, quota })
  const of = (linkId: number, text: string) => ({
    what: 'link',
    accountId: 1,
    linkId,
    code: code(text),
  })
  const told = (name: string, args: unknown, events: readonly object[]) => {
    const found = eventsOf(name, args)
    expect([name, found]).toMatchObject([name, events])
    expect([name, found.length]).toEqual([name, events.length])
  }

  told('links.create', create(item('AAAAAA', URL_A), item('AAAAAB', URL_B)), [
    {
      ...of(1, 'AAAAAA'),
      kind: 'created',
      url: { before: null, after: URL_A },
      author: { now: 5 },
    },
    { ...of(2, 'AAAAAB'), kind: 'created', isImported: false },
  ])
  told('links.create', create(item('AAAAAC', URL_A)), [{ ...of(1, 'AAAAAA'), kind: 'found' }])
  const about = { author, quota, isGenerated: true, reuse: false }
  const aliases = { set: [{ domainId: 0, path: 'the-menu' }] }
  told('links.createOne', { ...about, item: item('AAAAAC', URL_A), patch: {}, aliases }, [
    { ...of(3, 'AAAAAC'), kind: 'created', addresses: aliases.set },
  ])
  const changeUrl = { id: 2, url: URL_A, urlKey: urlKey(new URL(URL_A)), quota, author }
  const url = { before: URL_B, after: URL_A }
  told('links.changeUrl', changeUrl, [
    { ...of(2, 'AAAAAB'), kind: 'changed', changed: ['url'], url, author: { now: 5 } },
  ])
  const patch = { title: 'Menu', paused: false, addTags: ['spring'] }
  told('links.patch', { ids: [1, 2, 99], patch, quota, author }, [
    { ...of(1, 'AAAAAA'), kind: 'changed', changed: ['title', 'tags'] },
    { ...of(2, 'AAAAAB'), kind: 'changed', changed: ['title', 'tags'] },
  ])
  told('links.patch', { ids: [1], patch, quota, author }, [{ kind: 'changed', changed: [] }])
  told('links.patch', { ids: [3], patch: {}, aliases: { set: [] }, quota, author }, [
    { ...of(3, 'AAAAAC'), kind: 'changed', changed: ['aliases'], addresses: aliases.set },
  ])
  told('links.patch', { ids: [3], patch: {}, quota, author: { ...author, accountId: 2 } }, [])
  const disable = { author: { ...author, now: 7 }, code: code('AAAAAB'), reason: 'abuse' }
  told('moderation.disable', disable, [
    { ...of(2, 'AAAAAB'), kind: 'disabled', author: { now: 7 } },
    rules,
  ])
  told('moderation.enable', disable, [{ ...of(2, 'AAAAAB'), kind: 'enabled' }, rules])
  told('links.scheduleDeletion', { ids: [1, 3], deleteAt: 9, author }, [
    { ...of(1, 'AAAAAA'), kind: 'changed', changed: ['delete_at'] },
    { ...of(3, 'AAAAAC'), kind: 'changed', changed: ['delete_at'] },
  ])
  told('links.undoDeletion', { ids: [3], author }, [{ ...of(3, 'AAAAAC'), kind: 'restored' }])
  told('links.create', create(item('AAAAAD', URL_A)), [{ ...of(1, 'AAAAAA'), kind: 'restored' }])
  told('links.delete', { id: 1, author }, [
    { ...of(1, 'AAAAAA'), kind: 'deleted', url: { before: URL_A, after: null } },
  ])
  const row: StoredRow = {
    code: code('IMPORT'),
    typedCode: null,
    candidate: code('IMPORT'),
    url: URL_B,
    aliases: [{ domainId: 0, path: 'old/menu' }],
    aliasesAnyCase: [],
    displayed: null,
    createdAt: 1,
    hits: 3,
  }
  const imported = {
    author,
    quota,
    rows: JSON.stringify([row]),
    secrets: packSecrets([item('IMPORT', URL_B)]),
  }
  told('imports.add', imported, [
    {
      ...of(4, 'IMPORT'),
      kind: 'created',
      isImported: true,
      addresses: row.aliases,
      author: { now: 5 },
    },
  ])
  told('imports.add', imported, [])
  told('links.scheduleDeletion', { ids: [2, 4], deleteAt: 9, author }, [{}, {}])
  told('imports.add', imported, [{ ...of(4, 'IMPORT'), kind: 'restored' }])
  told('links.deleteDue', { now: 9, most: 5 }, [{ ...of(2, 'AAAAAB'), kind: 'deleted' }])
  told('links.deleteSome', { accountId: 1, most: 5 }, [
    { ...of(3, 'AAAAAC'), kind: 'deleted' },
    { ...of(4, 'IMPORT'), kind: 'deleted' },
  ])
  told('accounts.remove', { accountId: 1 }, [{ what: 'account_removed', accountId: 1 }])
  db.close()
})
