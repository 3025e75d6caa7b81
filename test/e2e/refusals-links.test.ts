import { disableLink } from '../support/administration.ts'
import type { TestApp } from '../support/app.ts'
import { setUpOwner } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { messageOf } from '../support/refusals.ts'
import { each, type Scenario, scenarios } from '../support/scenario.ts'
import { sharedApp } from '../support/shared.ts'

/** What forms about links refuse: at which field, and that nothing typed is lost. */

const LINKS = '/app/links'
const LINK = `${LINKS}/SPRING26`
const RULES = `${LINK}/destinations`
const SETTINGS = `${LINK}/settings`

/** `free` may have no aliases, the owner may. TAKEN26 is of a third account. */
async function links(app: TestApp) {
  const { owner, key } = await setUpOwner(app)
  const free = await makeMember(app, 'free@example.com')
  for (const code of ['TAKEN26', 'STOPPED26']) await app.reserve(code, 'pro')
  await app.claim('SECRET26', 'https://secret.example/', 'pro')
  await disableLink(app, 'STOPPED26', 'Reported')
  const { passcode } = await app.reserve('GONE2026', 'pro')
  await app.call('POST', '/api/delete', { key: 'pro', json: { code: 'GONE2026', passcode } })
  const urls = Array.from({ length: 100 }, (_, n) => `https://example.com/${n}`)
  await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
  await app.claim('SPRING26')
  const json = { url: 'https://example.com/', aliases: ['taken', 'Menu', 'grün'] }
  await app.call('POST', '/api/shorten', { key, json })
  const version = /name="version" value="(\w+)"/.exec((await free.get(RULES)).text)?.[1] ?? ''
  return { who: { free, owner }, names: { version } }
}

type Who = 'free' | 'owner'

const TYPED = { url: 'https://example.com/typed', title: 'Kept title' }
const NO_URLS = ['', 'nonsense', 'javascript:alert(1)', 'https://a b.example', 'http://hop.test/A']
const ORDER = { starts_at: '2030-01-01T10:00', expires_at: '2029-01-01T10:00' }
const OPEN = '<details class="more-fields" open>'

const NEW: Scenario<Who>[] = [
  {
    who: ['free', 'owner'],
    request: `POST ${LINKS}`,
    refused: { url: each('url', NO_URLS) },
    keeps: ['url'],
  },
  {
    who: 'free',
    request: `POST ${LINKS}`,
    refused: {
      url: each('url', ['ftp://x', 'http://hop.test/A'], { ...TYPED, code: 'AUTUMN' }),
      code: each('code', ['TAKEN26', 'MY-CODE', 'menu'], TYPED),
      tags: [{ ...TYPED, tags: 'x'.repeat(60) }],
      expires_at: [
        { ...TYPED, expires_at: '2026-02-30T10:00' },
        { ...TYPED, ...ORDER },
      ],
      max_hits: [{ ...TYPED, max_hits: '0' }],
    },
    keeps: ['url', 'title', 'code', 'tags', 'starts_at', 'expires_at', 'max_hits'],
    body: OPEN,
  },
  {
    who: 'owner',
    request: `POST ${LINKS}`,
    refused: { code: each('code', ['TAKEN26', 'taken', 'a//b', 'api/x', 'x'.repeat(300)], TYPED) },
    keeps: ['url', 'title', 'code'],
    body: OPEN,
  },
  {
    who: 'free',
    request: `POST ${LINKS}`,
    refused: { code: each('code', ['TAKEN26', 'MY-CODE'], { url: '' }) },
    keeps: ['code'],
  },
]

const asked = (paths: readonly string[]) =>
  paths.map((path) => `GET ${LINKS}/code?${new URLSearchParams({ code: path })}` as const)
const SHORT = ['MY-CODE', 'short', '<b>', 'menu']
const TAKEN = ['taken', 'Menu', 'mENU', '/grün', 'http://hop.test/gr%C3%BCn', 'api/x']

/** What the form says while a path is typed. */
const WHILE_TYPED: Scenario<Who>[] = [
  {
    who: 'free',
    request: asked(['taken26', ' TAKEN26 ', 'STOPPED26']),
    status: 200,
    body: />Taken</,
  },
  { who: 'free', request: asked(['summer26', 'GONE2026']), status: 200, body: />Free</ },
  { who: 'free', request: asked(SHORT), status: 200, body: '6 to 20 letters', not: /<b>/ },
  { who: 'free', request: asked(['']), status: 200, not: /Taken|Free|letters/ },
  { who: 'owner', request: asked(TAKEN), status: 200, body: />Taken</ },
  { who: 'owner', request: asked(['menu-2', 'm']), status: 200, body: />Free</ },
  { who: 'owner', request: asked(['a?b']), status: 200, body: 'must not contain' },
]

const EVENING = { hours: '25:00-26:00', zone: 'Europe/Berlin' }
const BACKWARDS = { from: '2026-03-02T10:00', until: '2026-03-01T10:00' }
const rule = (own: Record<string, string>) => ({
  version: '{version}',
  action: 'save',
  at: '',
  url: TYPED.url,
  ...own,
})

const ONE: Scenario<Who>[] = [
  {
    who: 'free',
    request: `POST ${SETTINGS}`,
    refused: { url: each('url', NO_URLS) },
    from: SETTINGS,
    keeps: ['url'],
  },
  { who: 'free', request: `GET ${SETTINGS}`, status: 200, not: 'New address' },
  {
    who: 'free',
    request: `POST ${SETTINGS}`,
    fields: { add: 'a-b' },
    from: SETTINGS,
    status: 403,
  },
  {
    who: 'free',
    request: `POST ${RULES}`,
    refused: {
      '': [{}, { zone: 'Europe/Berlin' }].map(rule),
      url: ['https://', 'https://hop.test/x', 'javascript:alert(1)'].map((url) =>
        rule({ url, os: 'ios', query: 'keep=1' }),
      ),
      query: [rule({ query: 'v=2&v=3' })],
      language: [rule({ query: 'keep=1', language: 'deutsch' })],
      hours: [rule({ query: 'keep=1', ...EVENING })],
      until: [rule({ query: 'keep=1', ...BACKWARDS })],
      from: [rule({ query: 'keep=1', from: '2026-02-30T10:00' })],
    },
    keeps: ['url', 'query'],
  },
]

const PRESET = { name: 'Poster', dark: '#112233' }

const OTHERS: Scenario<Who>[] = [
  {
    who: 'free',
    request: ['', '?q=secret', '?sort=hits', '/export.csv'].map(
      (at) => `GET ${LINKS}${at}` as const,
    ),
    status: 200,
    not: /SECRET26|secret\.example\//,
  },
  {
    who: 'free',
    request: 'POST /app/qr/presets',
    refused: {
      name: [
        { ...PRESET, name: '' },
        { ...PRESET, logo: '1' },
      ],
      '': [
        { ...PRESET, margin: '17' },
        { ...PRESET, dark: '#fefefe' },
      ],
    },
    from: '/app/qr',
    keeps: ['dark'],
  },
  {
    who: 'free',
    request: 'POST /app/theme',
    fields: each('next', ['https://e.test/', '//e.test/', '/app/../api', 'javascript:alert(1)'], {
      theme: 'dark',
    }),
    from: '/app/account',
    status: 303,
    body: /^\/app\/account$/,
  },
]

const select = (action: string, code: readonly string[], tag = '') => ({ action, code, tag })
const MANY = Array.from({ length: 51 }, (_, n) => `CODE${100 + n}`)
const NOT_FOUND = { from: LINKS, status: 404, body: messageOf('code_not_found', 'TAKEN26') }

const SELECTED: Scenario<Who>[] = [
  {
    who: 'free',
    request: `POST ${LINKS}/batch`,
    refused: {
      '': [
        select('pause', []),
        select('delete', MANY),
        select('', ['SPRING26']),
        select('tag', ['SPRING26'], ' '),
        select('tag', ['SPRING26'], 'a,b'),
        // All that match: more than the plan has at once, or than can be undone or packed.
        { all: '1', at: '', action: 'pause' },
        { all: '1', at: '?q=SPRING26', action: 'delete' },
        { all: '1', at: '?q=SPRING26', action: 'qr' },
        { all: '1', at: '?q=SPRING26', action: 'none' },
      ],
    },
    from: LINKS,
    body: /role="alert"[\s\S]*value="SPRING26"/,
  },
  {
    who: 'free',
    request: `POST ${LINKS}/batch`,
    fields: ['pause', 'delete', 'tag', 'export', 'qr'].map((action) =>
      select(action, ['SPRING26', 'TAKEN26'], 'x'),
    ),
    ...NOT_FOUND,
  },
  {
    who: 'free',
    request: `POST ${LINKS}/undo`,
    fields: { code: 'TAKEN26' },
    not: 'action="/app/links/undo"',
    ...NOT_FOUND,
  },
]

scenarios(sharedApp(links, { env: { ALIASES: 'owners' } }), [
  ...NEW,
  ...WHILE_TYPED,
  ...ONE,
  ...OTHERS,
  ...SELECTED,
])
