/** Requests of every endpoint, good and bad: plans that are made concrete when their turn comes. */

import fc from 'fast-check'
import type { Account } from './accounts.ts'
import { type Call, LINES_TYPE, type Model } from './model.ts'

/** What a run has seen so far: plans point into it by number. */
export interface Scene {
  model: Model
  /** Sets the run's codes apart from other runs' over the same database. */
  prefix: string
  addresses: readonly string[]
  /** Every code that was ever held, with every passcode that it had. */
  seen: { code: string; passcode: string }[]
  /** How often each endpoint has answered with each status, over all runs. */
  met: Map<string, number>
}

type Make = (scene: Scene) => Call

export interface Plan {
  make: Make
  /** For reports of failures. */
  about: string
}

const at = <Item>(items: readonly Item[], n: number): Item | undefined =>
  items[n % Math.max(1, items.length)]

const LONG = `https://example.com/${'x'.repeat(8192)}`

const GOOD_URLS = [
  'https://example.com/a',
  'HTTPS://EXAMPLE.com:443/a',
  'https://example.com/x/../a',
  'https://example.com/a#top',
  'http://example.com/a',
  'https://example.com/A',
  'https://example.com/ä?q=ü',
  'https://bücher.example/',
  'https://example.com/50%_off?a=b&c',
  'https://user:pass@example.com/',
  'http://[2001:db8::1]:8080/',
  'https://notblocked.example',
  LONG.slice(0, 8192),
  "https://example.com/'quoted'\\",
  'https://example.com/STRASSE?Utm=Ä',
]
const BLOCKED_URLS = [
  'http://blocked.example/',
  'https://Sub.BLOCKED.example./x',
  'http://hop.test/ABCDEF',
  'https://HOP.test:8080/',
  'http://later.example/',
  'https://user@blocked.example:1/',
]
const BAD_URLS = [
  '',
  'ftp://example.com',
  'javascript:alert(1)',
  'https://',
  'http:/example.com',
  '//x.example',
  'http://a b/',
  'https://exa\u0000mple.com',
  'http:///path',
  ' https://example.com',
  LONG,
  'https://example.com/\ud800',
  'http://[::1',
  'https://example.com/\u2028',
  'http://?q',
  5,
  null,
  true,
  ['https://example.com'],
  { url: 'https://example.com' },
  undefined,
]

const url = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom<unknown>(...GOOD_URLS) },
  { weight: 2, arbitrary: fc.webUrl({ withQueryParameters: true, withFragments: true }) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(...BLOCKED_URLS) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(...BAD_URLS) },
)

const BAD_CODES = ['ABCDE', 'A'.repeat(21), 'MY-CODE', 'my_code', 'CODE 26', 'STRAßE', 'ÄBCDEF', '']
const number = fc.nat(1000)

/** A code as text: held, held once, of the run's own few names, unknown or malformed. */
const code = fc
  .record({
    kind: fc.oneof(
      { weight: 8, arbitrary: fc.constant('seen') },
      { weight: 3, arbitrary: fc.constant('named') },
      { weight: 1, arbitrary: fc.constant('unknown') },
      { weight: 3, arbitrary: fc.constant('alias') },
      { weight: 1, arbitrary: fc.constant('bad') },
    ),
    n: number,
    isLower: fc.boolean(),
  })
  .map(({ kind, n, isLower }) => (scene: Scene): string => {
    const text = codeOf(scene, kind, n)
    return isLower && kind !== 'alias' ? text.toLowerCase() : text
  })

function codeOf(scene: Scene, kind: string, n: number): string {
  if (kind === 'bad') return at(BAD_CODES.slice(0, -1), n) ?? ''
  if (kind === 'alias') return aliasOf(scene, n)
  if (kind === 'unknown') return `NO${scene.prefix}${n}`
  // Six names, of six characters to twenty.
  const name = `${scene.prefix}${n % 6}${'Z'.repeat([1, 2, 3, 7, 14, 15][n % 6] ?? 1)}`
  return kind === 'named' ? name : (at(scene.seen, n)?.code ?? name)
}

/** Paths of the run: two pairs differ in letter case only, and one has a few codes in that case. */
function aliasOf({ prefix }: Scene, n: number): string {
  const [big, small] = [`X${prefix}`, `x${prefix.toLowerCase()}`]
  const paths = [`${big}-a`, `${small}-a`, `${big}Yz`, `${small}yZ`, `${small}/b`, `${prefix}0z`]
  return paths[n % paths.length] as string
}

/** The passcode of that code: its own, or another's, or one that cannot be. */
const passcode = fc
  .record({
    kind: fc.oneof(
      { weight: 8, arbitrary: fc.constant('own') },
      { weight: 1, arbitrary: fc.constantFrom('old', 'other', 'lower', 'short', 'none', 'number') },
    ),
    n: number,
  })
  .map(({ kind, n }) => ({ seen }: Scene, code: string): unknown => {
    const own = seen.filter((one) => one.code === code.toUpperCase()).map((one) => one.passcode)
    const last = own.at(-1) ?? 'A'.repeat(24)
    if (kind === 'none') return undefined
    if (kind === 'number') return n
    if (kind === 'old') return own[0] ?? last
    if (kind === 'other') return at(seen, n)?.passcode ?? last
    return kind === 'lower' ? last.toLowerCase() : kind === 'short' ? last.slice(1) : last
  })

const who = fc.record({
  account: number,
  key: fc.oneof(
    { weight: 14, arbitrary: fc.constant('last') },
    { weight: 3, arbitrary: fc.constant('any') },
    { weight: 1, arbitrary: fc.constantFrom('none', 'empty', 'wrong') },
  ),
  n: number,
  /** The account that holds the code, if any does, in place of the one of the number. */
  isHolder: fc.boolean(),
})
type Who = typeof who extends fc.Arbitrary<infer T> ? T : never

function keyOf({ model }: Scene, { account, key, n, isHolder }: Who, code = '') {
  const holder = isHolder ? model.links.find(code)?.owner : undefined
  const keys = (holder ?? (at(model.accounts, account) as Account)).keys.map((one) => one.key)
  if (key === 'none') return undefined
  if (key === 'empty') return ''
  if (key === 'wrong') return `${keys[0]?.slice(0, -1)}!`
  return key === 'last' ? keys.at(-1) : at(keys, n)
}

const JSON_TYPES = ['application/json', 'Application/JSON; charset=utf-8']
const transport = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.constantFrom(...JSON_TYPES).map((type) => ({ type, raw: undefined })),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constantFrom('text/plain', 'application/jsonp', ...JSON_TYPES),
      raw: fc.constantFrom(undefined, '{', '', '[]', 'null', '5', '{"url":"https://x.example"'),
    }),
  },
)

type MakeBody = (scene: Scene) => { body: Record<string, unknown>; code?: string }

function post(path: string, body: fc.Arbitrary<MakeBody>): fc.Arbitrary<Plan> {
  return fc.record({ who, from: number, transport, body }).map((plan) => ({
    about: `POST ${path}`,
    make: (scene) => {
      const { body, code } = plan.body(scene)
      const key = keyOf(scene, plan.who, code)
      const { type, raw = JSON.stringify(body) } = plan.transport
      const from = at(scene.addresses, plan.from) ?? ''
      return { method: 'POST', path, from, body: raw, type, ...(key !== undefined && { key }) }
    },
  }))
}

const fieldsLeftOut = fc.oneof(
  { weight: 20, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.constantFrom('code', 'passcode', 'url') },
)
const change = fc.record({ code, passcode, url, without: fieldsLeftOut }).map(
  ({ code, passcode, url, without }): MakeBody =>
    (scene) => {
      const text = code(scene)
      const body = { code: text, passcode: passcode(scene, text), url }
      return { body: { ...body, ...(without && { [without]: undefined }) }, code: text }
    },
)
const deletion = fc.record({ change, hasUrl: fc.integer({ min: 0, max: 20 }) }).map(
  ({ change, hasUrl }): MakeBody =>
    (scene) => {
      const { body, ...rest } = change(scene)
      return { ...rest, body: hasUrl === 0 ? body : { ...body, url: undefined } }
    },
)
const newCode = fc.oneof(
  { weight: 6, arbitrary: code },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...BAD_CODES, 5, null, undefined).map((bad) => () => bad),
  },
)
const urls = fc.oneof(
  { weight: 8, arbitrary: fc.array(url, { maxLength: 7 }) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(100, 101, 1000, 1001)
      .map((length) => Array<unknown>(length).fill(GOOD_URLS[0])),
  },
  { weight: 1, arbitrary: fc.constantFrom<unknown>('https://example.com', null, {}, undefined) },
)

const row = fc.record(
  { code, url, aliases: fc.array(number, { maxLength: 3 }), hasCode: fc.boolean(), hits: number },
  { requiredKeys: ['code', 'url', 'aliases', 'hasCode'] },
)
const imports: fc.Arbitrary<Plan> = fc
  .record({ who, from: number, rows: fc.array(row, { minLength: 1, maxLength: 6 }) })
  .map((plan) => ({
    about: 'POST /api/import',
    make: (scene) => {
      const lines = plan.rows.map(({ code, url, aliases, hasCode, hits }) => {
        const text = code(scene)
        const isCode = hasCode && /^[A-Za-z0-9]{6,20}$/.test(text)
        const paths = aliases.map((n) => aliasOf(scene, n))
        // JSON leaves an undefined URL out, and the service refuses null without a code.
        const to = url === null ? undefined : url
        return JSON.stringify({ ...(isCode && { code: text }), url: to, aliases: paths, hits })
      })
      const key = keyOf(scene, plan.who)
      const from = at(scene.addresses, plan.from) ?? ''
      const body = lines.join('\n')
      const call = { method: 'POST', path: '/api/import', from, body, type: LINES_TYPE }
      return { ...call, ...(key !== undefined && { key }) }
    },
  }))

const WRITES: readonly fc.Arbitrary<Plan>[] = [
  post(
    '/api/shorten',
    url.map(
      (url): MakeBody =>
        () => ({ body: { url } }),
    ),
  ),
  post(
    '/api/reserve',
    newCode.map(
      (code): MakeBody =>
        (scene) => ({ body: { code: code(scene) } }),
    ),
  ),
  imports,
  post('/api/update', change),
  post('/api/delete', deletion),
  post(
    '/api/bulk-shorten',
    urls.map(
      (urls): MakeBody =>
        () => ({ body: { urls } }),
    ),
  ),
]

type Query = Record<string, string | undefined>

function get(
  path: string,
  { chosen = false, query = fc.constant<(scene: Scene) => Query>(() => ({})) } = {},
): fc.Arbitrary<Plan> {
  const method = fc.oneof(
    { weight: 12, arbitrary: fc.constant('GET') },
    { weight: 2, arbitrary: fc.constant('HEAD') },
    { weight: 1, arbitrary: fc.constantFrom('PUT', 'DELETE', 'PATCH') },
  )
  return fc
    .record({ who, anonymous: fc.boolean(), from: number, method, code, query })
    .map((plan) => ({
      about: `GET ${path}`,
      make: (scene) => {
        const text = chosen ? plan.code(scene) : ''
        const isOpen = path !== '/api/list' && plan.anonymous
        const key = isOpen ? undefined : keyOf(scene, plan.who, text)
        const entries = Object.entries(plan.query(scene)).filter(([, value]) => value !== undefined)
        const search = new URLSearchParams(entries as [string, string][]).toString()
        return {
          method: plan.method,
          path: `${path}${encodeURIComponent(text)}${search && `?${search}`}`,
          from: at(scene.addresses, plan.from) ?? '',
          ...(key !== undefined && { key }),
        }
      },
    }))
}

/** Absent half of the time, else good ten times as often as bad. */
const mostly = <Value>(good: readonly Value[], bad: readonly Value[]) =>
  fc.oneof(
    { weight: 11, arbitrary: fc.constant(undefined) },
    { weight: 10, arbitrary: fc.constantFrom(...good) },
    { weight: 1, arbitrary: fc.constantFrom(...bad) },
  )
const PARTS = [
  '',
  'a',
  'EXAMPLE',
  '%',
  '_',
  "'",
  '\\',
  'http',
  'com/a',
  'nowhere',
  '?q=ü',
  '"',
  'xx',
]
const listQuery = fc
  .record({
    limit: mostly(['1', '2', '3', '200'], ['0', '201', '-1', '1.5', 'x', '', '1e1']),
    offset: mostly(['0', '1', '2', '5', '1000'], ['-1', 'x', '0x1']),
    search: mostly<string | number>([...PARTS, 0, 1, 2, 3], ['\u0000']),
  })
  .map((query) => (scene: Scene): Query => {
    const { search } = query
    const part = typeof search === 'number' ? scene.prefix.toLowerCase().slice(search) : search
    return { ...query, search: part }
  })
/** Colors that readers can tell apart: src/draw/options.test.ts has others. */
const colors = (good: string[]) => mostly(good, ['12345', 'red', '#gggggg', ''])
const qrQuery = fc
  .record({
    format: mostly(['png', 'svg'], ['gif', '']),
    size: mostly(['64', '65', '300'], ['63', '2049', 'x', '64.5', '', '-64', '1e2']),
    dark: colors(['#000', '#1a2e4f', '2Ab']),
    light: colors(['#fff', '#fdf6e3', 'fFf']),
  })
  .map((query) => (): Query => query)

const READS: readonly fc.Arbitrary<Plan>[] = [
  get('/', { chosen: true }),
  get('/', { chosen: true }),
  get('/api/lookup/', { chosen: true }),
  get('/api/list', { query: listQuery }),
  get('/api/qr/', { chosen: true, query: qrQuery }),
  get('/qr/', { chosen: true }),
  get('/api/qr-image/', { chosen: true }),
  get('/api/status'),
]

/** A request of any of the twelve endpoints. */
export const plans: fc.Arbitrary<Plan> = fc.oneof(...WRITES, ...WRITES, ...READS, ...READS)
