import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { sharedApp } from '../support/shared.ts'

/** What all pages of the dashboard share: navigation, theme, compression. */

const COOKIE = 'hopcode-theme'
const shownTheme = (text: string) => /<html lang="en" data-theme="(\w+)"/.exec(text)?.[1]

test('the chosen theme is in every page from then on, also before sign-in, and can be undone', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  expect(shownTheme((await ann.get('/app/account')).text)).toBeUndefined()
  for (const theme of ['dark', 'light']) {
    const from = '/app/analytics?range=24h'
    const { status, location } = await ann.post('/app/theme', { theme, next: from }, { from })
    expect({ status, location }).toEqual({ status: 303, location: from })
    const { text } = await ann.get('/app/account')
    expect(shownTheme(text)).toBe(theme)
    expect(text).toContain(`<meta name="color-scheme" content="${theme}">`)
  }
  await ann.post('/app/sign-out', {}, { from: '/app/account' })
  expect(shownTheme((await ann.get('/app/sign-in')).text)).toBe('light')
  await ann.signIn('ann@example.com')
  await ann.post('/app/theme', { theme: 'system' }, { from: '/app/account' })
  expect(ann.cookies.has(COOKIE)).toBe(false)
})

test.each(['"><script>alert(1)</script>', 'blue', ''])(
  'a theme cookie of %p changes nothing',
  async (value) => {
    await using app = await testApp()
    const { owner } = await setUpOwner(app)
    const before = await owner.get('/app/account')
    owner.cookies.set(COOKIE, encodeURIComponent(value))
    const after = await owner.get('/app/account')
    const plain = (text: string) => text.replace(/name="csrf" value="[^"]+"/g, '')
    expect(plain(after.text)).toBe(plain(before.text))
  },
)

test('a form’s token differs from page to page, and each of them is accepted', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const tokens = [(await owner.get('/app/account')).csrf, (await owner.get('/app/account')).csrf]
  expect(tokens[0]).not.toBe(tokens[1])
  for (const csrf of tokens) {
    expect((await owner.post('/app/theme', { theme: 'dark', csrf })).status).toBe(303)
  }
})

/** The headers of a page, without decompression. */
async function headersOf(
  app: { url: string },
  { cookies }: Visitor,
  path: string,
  { method = 'GET', ...headers }: Record<string, string> = {},
) {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const init = { method, headers: { cookie, ...headers }, decompress: false }
  const response = await fetch(new URL(path, app.url), init as RequestInit)
  const bytes = (await response.arrayBuffer()).byteLength
  const { status, headers: answered } = response
  return {
    status,
    bytes,
    length: Number(answered.get('content-length')),
    encoding: answered.get('content-encoding'),
    vary: answered.get('vary'),
  }
}

test('pages are compressed for browsers that accept it, and say so to caches', async () => {
  await using app = await testApp()
  const { owner, key } = await setUpOwner(app)
  const urls = Array.from({ length: 50 }, (_, n) => `https://example.com/archive/page-${n + 1}`)
  await app.call('POST', '/api/bulk-shorten', { key, json: { urls } })
  const gzip = { 'accept-encoding': 'gzip, deflate, br' }
  const list = await headersOf(app, owner, '/app/links', gzip)
  expect(list).toMatchObject({ status: 200, encoding: 'gzip', vary: 'accept-encoding' })
  expect(list.bytes).toBe(list.length)
  expect(list.bytes).toBeLessThan(15_000)
  const plain = await headersOf(app, owner, '/app/links', { 'accept-encoding': 'identity' })
  expect(plain).toMatchObject({ status: 200, encoding: null, vary: 'accept-encoding' })
  expect(plain.bytes).toBeGreaterThan(2 * list.bytes)
  const head = await headersOf(app, owner, '/app/links', { method: 'HEAD', ...gzip })
  expect(head).toMatchObject({ status: 200, bytes: 0, encoding: 'gzip' })
})

const withOwner = sharedApp(setUpOwner)

test.each([
  { name: 'refuses gzip', headers: { 'accept-encoding': 'gzip;q=0, identity' } },
  { name: 'comes from another site', headers: { 'sec-fetch-site': 'cross-site' } },
  { name: 'comes from a sister host', headers: { 'sec-fetch-site': 'same-site' } },
])('a page is not compressed for a request that $name', async ({ headers }) => {
  const { app, owner } = await withOwner()
  const all = { 'accept-encoding': 'gzip', ...headers }
  expect(await headersOf(app, owner, '/app/account', all)).toMatchObject({ encoding: null })
})

const SECTION_PAGES = [
  ['Account', '/app/account', 'General'],
  ['Account', '/app/account/delete', 'General'],
  ['Account', '/app/account/members', 'Members'],
  ['Account', '/app/account/activity', 'Activity'],
  ['Account', '/app/account/domains', 'Domains'],
  ['Account', '/app/qr', 'QR codes'],
  ['Account', '/app/campaigns', 'Campaigns'],
  ['Account', '/app/account/webhooks', 'Webhooks'],
  ['Account', '/app/account/security', 'Security'],
  ['Account', '/app/account/two-factor', 'Security'],
  ['Account', '/app/keys', 'API keys'],
  ['Service', '/app/service', 'Health'],
  ['Service', '/app/service/accounts', 'Accounts'],
  ['Service', '/app/service/accounts/1', 'Accounts'],
  ['Service', '/app/service/accounts/new', 'Accounts'],
  ['Service', '/app/service/links', 'Links'],
  ['Service', '/app/service/domains', 'Domains'],
  ['Service', '/app/service/domains/hop.test/apps', 'Domains'],
  ['Service', '/app/service/unknown-paths', 'Unknown paths'],
  ['Service', '/app/service/hosts', 'Blocked hosts'],
  ['Service', '/app/service/settings', 'Settings'],
] as const
test.each(SECTION_PAGES)(
  'a page of a section has its navigation, with one current entry: %s, %s',
  async (section, path, entry) => {
    const { owner } = await withOwner()
    const { status, text } = await owner.get(path)
    const [, side = ''] = new RegExp(`aria-label="${section}">([\\s\\S]*?)</nav>`).exec(text) ?? []
    const current = [...side.matchAll(/aria-current="page">([^<]*)/g)].map(([, label]) => label)
    expect([status, current]).toEqual([200, [entry]])
    const entries = SECTION_PAGES.filter(([of]) => of === section).map(([, , label]) => label)
    const links = [...side.matchAll(/<a [^>]*>([^<]*)/g)].map(([, label]) => label)
    expect(links).toEqual([...new Set(entries)])
  },
)

test.each(['/app/nothing', '/app/links/NOSUCH26', '/app/service/nothing'])(
  'a missing page keeps the navigation for a signed-in user alone: %s',
  async (path) => {
    const { owner } = await withOwner()
    const seen = await owner.get(path)
    expect(seen.status).toBe(404)
    expect(seen.text).toContain('href="/app/analytics"')
    expect(seen.text).toContain('owner@example.com')
    const anonymous = await owner.get(path, { cookie: '' })
    expect(anonymous.text).not.toContain('owner@example.com')
  },
)

test('a text browser, which shows all elements, does not show the dialogs that a script opens', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  await ann.post('/app/links', { url: 'https://example.com/' })
  const { text } = await ann.get('/app/links')
  expect(text).toContain('Download PNG')
  const shown = new HTMLRewriter().on('script', { element: (script) => void script.remove() })
  expect(shown.transform(text)).not.toMatch(/Download PNG|Keyboard shortcuts|<dialog/)
})
