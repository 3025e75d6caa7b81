import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { subjects } from '../data.ts'
import { effectsOfOthers, openSubjects, subject } from '../db/subject.ts'
import type { Code } from '../lib/code.ts'
import { LinkEffects, LinkWriter } from './writer.ts'

const code = (text: string) => text as Code
const link = { id: 1, code: code('SPRING'), accountId: 7, url: null, createdAt: 0 }
const author = { accountId: 7, now: 0 }
const quota = { linksMax: 0, urlBytesMax: 0 }
const create = { accountId: 7, createdAt: 0, items: [], quota }
const reserve = {
  accountId: 7,
  createdAt: 0,
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
  const note = (what: string) => (of?: string) => {
    effects.push(of ? `${what} ${of}` : what)
  }
  const all = new LinkEffects({
    versions: { change: note('change'), changeAll: note('change all') },
    codes: { add: note('add') },
    hitLimits: { drop: note('drop hits of'), clear: note('drop all hits') },
    images: { prepare: ({ code }) => note('prepare')(code), remove: note('remove') },
    indexer: { wake: note('wake') },
  })
  const callWriter = async () => result()
  const options = { db: new Database(), callReader: callWriter, callWriter, effects: [all] }
  const links = new LinkWriter(
    openSubjects({ links: subject({ writes: subjects.links.writes }) }, options),
  )
  const after = (name: string) => effectsOfOthers(subjects, [all])(name, result())
  return { links, effects, after }
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
      'prepare SPRING',
      'add REUSED',
      'change REUSED',
      'drop hits of REUSED',
      'wake',
    ],
  },
  {
    name: 'a reservation with an alias',
    result: {
      link: { ...link, reused: false },
      aliases: { changed: ['old-path'], isAnyCase: false },
    },
    run: (links: LinkWriter) => links.createLink(reserve),
    effects: [
      'add SPRING',
      'change SPRING',
      'drop hits of SPRING',
      'prepare SPRING',
      'wake',
      'add old-path',
      'change old-path',
    ],
  },
  {
    name: 'a change of the URL',
    result: link,
    run: (links: LinkWriter) => links.changeUrl(change),
    effects: ['change SPRING', 'drop hits of SPRING'],
  },
  {
    name: 'other aliases, one of them in any case',
    result: {
      codes: ['SPRING'],
      addressed: [],
      aliases: { changed: ['old-path', 'Spring'], isAnyCase: true },
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
      'add SPRING',
      'change Spring',
      'change all',
    ],
  },
  {
    name: 'a deletion',
    result: link,
    run: (links: LinkWriter) => links.delete({ id: 1, author }),
    effects: ['change SPRING', 'drop hits of SPRING', 'remove SPRING'],
  },
  {
    name: 'the deletion of links of an account',
    result: ['SPRING', 'SUMMER'],
    run: (links: LinkWriter) => links.deleteSome({ accountId: 7, most: 2 }),
    effects: [
      'change SPRING',
      'drop hits of SPRING',
      'remove SPRING',
      'change SUMMER',
      'drop hits of SUMMER',
      'remove SUMMER',
    ],
  },
  {
    name: 'a change of properties',
    result: { codes: ['SPRING', 'SUMMER'], addressed: [] },
    run: (links: LinkWriter) =>
      links.patchLinks({ ids: [1, 2], patch: { paused: true }, quota, author }),
    effects: ['change SPRING', 'drop hits of SPRING', 'change SUMMER', 'drop hits of SUMMER'],
  },
  {
    name: 'a scheduled deletion',
    result: ['SPRING'],
    run: (links: LinkWriter) => links.scheduleDeletion({ ids: [1], deleteAt: 1, author }),
    effects: ['change SPRING', 'drop hits of SPRING'],
  },
  {
    name: 'an undone deletion',
    result: ['SPRING'],
    run: (links: LinkWriter) => links.undoDeletion({ ids: [1], author }),
    effects: ['change SPRING', 'drop hits of SPRING'],
  },
  {
    name: 'a deletion that was due',
    result: ['SPRING'],
    run: (links: LinkWriter) => links.deleteDue({ now: 0, most: 9 }),
    effects: ['change SPRING', 'drop hits of SPRING', 'remove SPRING'],
  },
]

test.each(committed)(
  'what follows the commit of $name',
  async ({ result, run, effects: wanted }) => {
    const { links, effects } = setUp(() => result)
    await run(links)
    expect(effects).toEqual(wanted)
  },
)

test.each(committed)('nothing follows when the disk refuses $name', async ({ run }) => {
  const { links, effects } = setUp(() => {
    throw new Error('database or disk is full')
  })
  await expect(run(links)).rejects.toThrow('disk is full')
  expect(effects).toEqual([])
})

const refused = [
  { name: 'a change by a key that has expired', result: 'not_active', error: 'invalid_api_key' },
  { name: 'a change over the quota', result: 'urlBytesMax', error: 'quota_exceeded' },
] as const
test.each(refused)('nothing follows $name', async ({ result, error }) => {
  const { links, effects } = setUp(() => result)
  await expect(links.changeUrl(change)).rejects.toMatchObject({ code: error })
  expect(effects).toEqual([])
})

test('caches follow the aliases that another host of a cluster has set', () => {
  const { after, effects } = setUp(() => ({
    codes: ['SPRING'],
    addressed: ['SPRING'],
    aliases: { changed: ['old-path'], isAnyCase: false },
  }))
  after('links.patch')
  expect(effects).toEqual([
    'change SPRING',
    'drop hits of SPRING',
    'remove SPRING',
    'add old-path',
    'change old-path',
  ])
})

test('caches follow an import that keeps a link whose deletion was scheduled', () => {
  const { after, effects } = setUp(() => ({ results: '[]', restored: ['SPRING'] }))
  after('imports.add')
  expect(effects).toEqual(['wake', 'change SPRING', 'drop hits of SPRING'])
})

test.each([
  'moderation.disable',
  'moderation.enable',
  'accounts.disable',
  'accounts.enable',
  'accounts.setUpOwner',
])('caches follow %s of another host of a cluster', (name) => {
  const { after, effects } = setUp(() => undefined)
  after(name)
  expect(effects).toEqual(['change all'])
})
