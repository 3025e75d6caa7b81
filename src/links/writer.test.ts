import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { subjects } from '../data.ts'
import type { Event } from '../db/events.ts'
import { eventsOfOthers, openSubjects, subject } from '../db/subject.ts'
import type { Code } from '../lib/code.ts'
import { imageReader } from '../qr/images.ts'
import { cacheReader, indexReader } from './events.ts'
import { LinkWriter } from './writer.ts'

const code = (text: string) => text as Code
const link = { id: 1, code: code('SPRING'), accountId: 7, domainId: 0, url: null, createdAt: 0 }
const named = { id: 1, code: code('SPRING'), accountId: 7 }
const OLD_PATH = { domainId: 0, path: 'old-path' }
const author = { accountId: 7, by: 'operator', now: 0 } as const
const quota = { linksMax: 0, urlBytesMax: 0 }
const create = { author, items: [], quota }
const reserve = {
  author,
  quota,
  item: { code: code('SPRING'), url: null, urlKey: null, passcodeHash: new Uint8Array(32) },
  isGenerated: false,
  patch: {},
  aliases: { set: [{ domainId: 0, path: 'old-path' }] },
}
const change = { id: 1, url: 'http://a/', urlKey: new Uint8Array(16), quota, author }

/** A writer thread whose every call gives `result`, and what followed its calls. */
function setUp(result: () => unknown) {
  const effects: string[] = []
  const events: Event[] = []
  const note = (what: string) => (of?: string) => {
    effects.push(of ? `${what} ${of}` : what)
  }
  const readers = [
    cacheReader({
      versions: { change: note('change'), changeAll: note('change all') },
      codes: { add: note('add') },
      hitLimits: { drop: note('drop hits of'), clear: note('drop all hits') },
    }),
    imageReader({ prepare: ({ code }) => note('prepare')(code), remove: note('remove') }),
    indexReader({ wake: note('wake') }),
    (some: readonly Event[]) => void events.push(...some),
  ]
  const callWriter = async () => result()
  const options = { db: new Database(), callReader: callWriter, callWriter, readers }
  const links = new LinkWriter(
    openSubjects({ links: subject({ writes: subjects.links.writes }) }, options),
  )
  const after = (name: string) => eventsOfOthers(subjects, readers)(name, result())
  return { links, effects, events, after }
}

const committed = [
  {
    name: 'a creation, a reused link and a refused item',
    result: JSON.stringify([
      { ...link, reused: false },
      { ...link, code: 'REUSED', reused: true },
      'linksMax',
    ]),
    run: (links: LinkWriter) => links.create(create),
    effects: [
      'add SPRING',
      'change SPRING',
      'drop hits of SPRING',
      'add REUSED',
      'change REUSED',
      'drop hits of REUSED',
      'prepare SPRING',
      'wake',
    ],
    events: [
      { kind: 'created', url: { before: null, after: null }, author: { now: 0 } },
      { kind: 'found', code: 'REUSED', url: undefined },
    ],
  },
  {
    name: 'a link whose scheduled deletion is canceled, because its URL is shortened again',
    result: JSON.stringify([{ ...link, reused: true, restored: true }]),
    run: (links: LinkWriter) => links.create(create),
    effects: ['add SPRING', 'change SPRING', 'drop hits of SPRING'],
    events: [{ kind: 'restored', changed: ['delete_at'], accountId: 7, linkId: 1 }],
  },
  {
    name: 'a reservation with an alias',
    result: {
      link: { ...link, reused: false },
      aliases: { changed: [OLD_PATH], isDisplaySet: false },
    },
    run: (links: LinkWriter) => links.createLink(reserve),
    effects: [
      'add SPRING',
      'change SPRING',
      'drop hits of SPRING',
      'add old-path',
      'change old-path',
      'prepare SPRING',
      'wake',
    ],
    events: [{ kind: 'created', addresses: [OLD_PATH] }],
  },
  {
    name: 'a change of the URL',
    result: { link: { ...link, url: 'http://a/' }, before: 'http://b/' },
    run: (links: LinkWriter) => links.changeUrl(change),
    effects: ['change SPRING', 'drop hits of SPRING'],
    events: [
      {
        kind: 'changed',
        changed: ['url'],
        url: { before: 'http://b/', after: 'http://a/' },
        author,
      },
    ],
  },
  {
    name: 'a change to the URL that the link has',
    result: { link: { ...link, url: 'http://a/' }, before: 'http://a/' },
    run: (links: LinkWriter) => links.changeUrl(change),
    effects: ['change SPRING', 'drop hits of SPRING'],
    events: [{ kind: 'changed', changed: [] }],
  },
  {
    name: 'other aliases, one of them with a capital letter',
    result: {
      accountId: 7,
      links: [{ id: 1, code: 'SPRING', changed: ['title'] }],
      aliases: {
        changed: [OLD_PATH, { domainId: 0, path: 'Spring' }],
        isDisplaySet: true,
      },
    },
    run: (links: LinkWriter) =>
      links.patchLinks({
        ids: [1],
        patch: {},
        aliases: { set: [{ domainId: 0, path: 'Spring' }] },
        quota,
        author,
      }),
    effects: [
      'change SPRING',
      'drop hits of SPRING',
      'add old-path',
      'change old-path',
      'add Spring',
      'add spring',
      'add SPRING',
      'change Spring',
    ],
    events: [{ kind: 'changed', changed: ['title', 'aliases', 'display_alias'], author }],
  },
  {
    name: 'a deletion',
    result: link,
    run: (links: LinkWriter) => links.delete({ id: 1, author }),
    effects: ['change SPRING', 'drop hits of SPRING', 'remove SPRING'],
    events: [{ kind: 'deleted', accountId: 7, linkId: 1, url: { before: null, after: null } }],
  },
  {
    name: 'the deletion of links of an account',
    result: [named, { id: 2, code: 'SUMMER', accountId: 7 }],
    run: (links: LinkWriter) => links.deleteSome({ accountId: 7, most: 2 }),
    effects: [
      'change SPRING',
      'drop hits of SPRING',
      'change SUMMER',
      'drop hits of SUMMER',
      'remove SPRING',
      'remove SUMMER',
    ],
    events: [
      { kind: 'deleted', linkId: 1, accountId: 7, author: undefined },
      { kind: 'deleted', linkId: 2 },
    ],
  },
  {
    name: 'a change of properties',
    result: {
      accountId: 7,
      links: [
        { id: 1, code: 'SPRING', changed: ['paused'] },
        { id: 2, code: 'SUMMER', changed: ['domain'] },
      ],
    },
    run: (links: LinkWriter) =>
      links.patchLinks({ ids: [1, 2], patch: { paused: true }, quota, author }),
    effects: [
      'change SPRING',
      'drop hits of SPRING',
      'change SUMMER',
      'drop hits of SUMMER',
      'remove SUMMER',
    ],
    events: [
      { kind: 'changed', changed: ['paused'], linkId: 1, accountId: 7 },
      { kind: 'changed', changed: ['domain'], linkId: 2 },
    ],
  },
  {
    name: 'a scheduled deletion',
    result: [named],
    run: (links: LinkWriter) => links.scheduleDeletion({ ids: [1], deleteAt: 1, author }),
    effects: ['change SPRING', 'drop hits of SPRING'],
    events: [{ kind: 'changed', changed: ['delete_at'], author }],
  },
  {
    name: 'an undone deletion',
    result: [named],
    run: (links: LinkWriter) => links.undoDeletion({ ids: [1], author }),
    effects: ['add SPRING', 'change SPRING', 'drop hits of SPRING'],
    events: [{ kind: 'restored', changed: ['delete_at'], author }],
  },
  {
    name: 'a deletion that was due',
    result: [named],
    run: (links: LinkWriter) => links.deleteDue({ now: 0, most: 9 }),
    effects: ['change SPRING', 'drop hits of SPRING', 'remove SPRING'],
    events: [{ kind: 'deleted', linkId: 1, accountId: 7 }],
  },
]

test.each(committed)('what follows the commit of $name', async ({ result, run, ...wanted }) => {
  const { links, effects, events } = setUp(() => result)
  await run(links)
  expect(effects).toEqual(wanted.effects)
  expect(events).toMatchObject(wanted.events)
})

test.each(committed)('nothing follows when the disk refuses $name', async ({ run }) => {
  const { links, effects } = setUp(() => {
    throw new Error('database or disk is full')
  })
  await expect(run(links)).rejects.toThrow('disk is full')
  expect(effects).toEqual([])
})

const refused = [
  {
    name: 'a change by a key that has expired',
    result: { denied: 'invalid_api_key', least: 'editor' },
    error: 'invalid_api_key',
  },
  { name: 'a change over the quota', result: 'urlBytesMax', error: 'quota_exceeded' },
] as const
test.each(refused)('nothing follows $name', async ({ result, error }) => {
  const { links, effects } = setUp(() => result)
  await expect(links.changeUrl(change)).rejects.toMatchObject({ code: error })
  expect(effects).toEqual([])
})

test('caches follow the aliases that another host of a cluster has set', () => {
  const { after, effects } = setUp(() => ({
    accountId: 7,
    links: [{ id: 1, code: 'SPRING', changed: ['domain'] }],
    aliases: { changed: [OLD_PATH], isDisplaySet: false },
  }))
  after('links.patch')
  expect(effects).toEqual([
    'change SPRING',
    'drop hits of SPRING',
    'add old-path',
    'change old-path',
    'remove SPRING',
  ])
})

test('caches follow an import that keeps a link whose deletion was scheduled', () => {
  const restored = [named]
  const { after, effects } = setUp(() => ({ created: '[]', accountId: 7, restored }))
  after('imports.add')
  expect(effects).toEqual(['add SPRING', 'change SPRING', 'drop hits of SPRING'])
})

test('an import tells of each new link, whose image is stored on request', () => {
  const link = { id: 1, code: 'SPRING', domainId: 0, addresses: [OLD_PATH] }
  const created = JSON.stringify([link])
  const { after, effects, events } = setUp(() => ({ created, accountId: 7, restored: [] }))
  after('imports.add')
  expect(events).toMatchObject([
    { kind: 'created', linkId: 1, accountId: 7, addresses: [OLD_PATH], isImported: true },
  ])
  const looked = ['change SPRING', 'drop hits of SPRING', 'add old-path', 'change old-path']
  expect(effects).toEqual(['add SPRING', ...looked, 'wake'])
})

test('links that were given to another account tell both accounts', () => {
  const { after, effects, events } = setUp(() => [{ ...named, fromAccountId: 3 }])
  after('links.handOver')
  expect(events).toMatchObject([{ kind: 'moved', accountId: 7, fromAccountId: 3, linkId: 1 }])
  expect(effects).toEqual(['change SPRING', 'drop hits of SPRING'])
})

test('links and aliases that leave a domain are looked up again, and get other images', () => {
  const aliases = [{ ...named, path: 'menu' }]
  const { after, effects, events } = setUp(() => ({ links: [named], aliases }))
  after('links.leaveDomain')
  expect(events).toMatchObject([
    { kind: 'changed', changed: ['domain'], linkId: 1 },
    { kind: 'changed', addresses: [{ domainId: 0, path: 'menu' }], linkId: 1 },
    { what: 'rules_changed' },
  ])
  const looked = ['change SPRING', 'drop hits of SPRING']
  expect(effects).toEqual([
    ...looked,
    ...looked,
    'add menu',
    'change menu',
    'change all',
    'remove SPRING',
  ])
})

test('a disabled link tells its account, and every cache drops all', () => {
  const link = { linkId: 1, accountId: 7, code: 'SPRING' }
  const { after, events } = setUp(() => ({ link }))
  after('moderation.disable')
  expect(events).toMatchObject([{ kind: 'disabled', ...link }, { what: 'rules_changed' }])
})

test.each([
  'moderation.disable',
  'moderation.enable',
  'accounts.disable',
  'accounts.enable',
  'registrations.setUpOwner',
])('caches follow %s of another host of a cluster', (name) => {
  const { after, effects } = setUp(() => undefined)
  after(name)
  expect(effects).toEqual(['change all'])
})
