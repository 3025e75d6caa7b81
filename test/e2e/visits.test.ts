import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { invalid } from '../support/refusals.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0'
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1'
const SLACKBOT = 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)'

const appWith = (env: Record<string, string> = {}) => testApp({ visitFlushMs: 20, env })

async function shorten(app: TestApp, url = 'https://example.com/'): Promise<string> {
  const { body } = await app.call('POST', '/api/shorten', { key: 'free', json: { url } })
  return body.code as string
}

/** Resolves with the values of a link once `hits` of them have details. */
async function visits(app: TestApp, code: string, by: string, known: number, more = '') {
  let body: Record<string, unknown> = {}
  await eventually(`${known} details of ${code}`, async () => {
    const answer = await app.call('GET', `/api/links/${code}/visits?by=${by}${more}`, {
      key: 'free',
    })
    body = answer.body
    return body.known === known
  })
  return body
}

test('referrer, device, browser and system of people are counted, bots apart', async () => {
  await using app = await appWith()
  const code = await shorten(app)
  const follow = (headers: Record<string, string>, query = '') =>
    app.call('GET', `/${code}${query}`, { headers })
  await follow({ 'user-agent': FIREFOX, referer: 'https://www.google.de/search?q=secret' })
  await follow({ 'user-agent': FIREFOX, referer: 'https://google.com/' })
  await follow({ 'user-agent': IPHONE })
  await follow({ 'user-agent': IPHONE, referer: 'https://x.com/' }, '?utm_source=Newsletter')
  await follow({ 'user-agent': SLACKBOT })

  expect(await visits(app, code, 'referrer', 5)).toEqual({
    code,
    by: 'referrer',
    from: '2026-01-31T00:00:00.000Z',
    to: '2026-03-02T00:00:00.000Z',
    hits: 5,
    known: 5,
    estimated: false,
    people: 4,
    bots: 1,
    values: [
      { value: 'google.com', name: 'Google', hits: 2 },
      { value: 'direct', name: 'Direct, app or QR code', hits: 1 },
      { value: 'newsletter', name: 'newsletter', hits: 1 },
    ],
    other: 0,
  })
  expect((await visits(app, code, 'device', 5)).values).toEqual([
    { value: 'desktop', name: 'Desktop', hits: 2 },
    { value: 'phone', name: 'Phone', hits: 2 },
  ])
  expect((await visits(app, code, 'browser', 5, '&limit=1')).values).toEqual([
    { value: 'firefox', name: 'Firefox', hits: 2 },
  ])
  expect(await visits(app, code, 'browser', 5, '&limit=1')).toMatchObject({ other: 2 })
  expect((await visits(app, code, 'os', 5)).values).toEqual([
    { value: 'ios', name: 'iOS', hits: 2 },
    { value: 'linux', name: 'Linux', hits: 2 },
  ])
  expect((await visits(app, code, 'bot', 5)).values).toEqual([
    { value: 'slack', name: 'Slack (Link preview)', hits: 1 },
  ])
  const ofAccount = await app.call('GET', '/api/visits?by=device', { key: 'free' })
  expect(ofAccount.body).toMatchObject({ known: 5, people: 4, bots: 1 })
  const csv = await app.call('GET', `/api/links/${code}/visits?by=device&format=csv`, {
    key: 'free',
  })
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(csv.text).toBe('value,name,hits\r\ndesktop,Desktop,2\r\nphone,Phone,2\r\n')
})

test('a visitor who asks not to be tracked is counted without details', async () => {
  await using app = await appWith()
  const code = await shorten(app)
  await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX, dnt: '1' } })
  await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX, 'sec-gpc': '1' } })
  await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX } })
  expect(await visits(app, code, 'browser', 1)).toMatchObject({ hits: 3, people: 1 })
})

test('links with a maximum of hits have details too, and refused redirects have none', async () => {
  await using app = await appWith()
  const code = await shorten(app)
  await app.call('PATCH', `/api/links/${code}`, { key: 'free', json: { max_hits: 2 } })
  for (let i = 0; i < 4; i++) {
    await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX } })
  }
  await app.call('HEAD', `/${code}`, { headers: { 'user-agent': FIREFOX } })
  expect(await visits(app, code, 'browser', 2)).toMatchObject({ hits: 2 })
})

test('COUNTRY_HEADER is believed from a trusted proxy', async () => {
  await using app = await appWith({ COUNTRY_HEADER: 'CF-IPCountry' })
  const code = await shorten(app)
  const headers = { 'user-agent': FIREFOX }
  await app.call('GET', `/${code}`, { headers: { ...headers, 'cf-ipcountry': 'NO' } })
  await app.call('GET', `/${code}`, { headers: { ...headers, 'cf-ipcountry': '<script>' } })
  await app.call('GET', `/${code}`, { headers })
  expect((await visits(app, code, 'country', 3)).values).toEqual([
    { value: 'unknown', name: 'Unknown', hits: 2 },
    { value: 'NO', name: 'Norway', hits: 1 },
  ])
})

test('COUNTRY_HEADER is ignored from anybody else', async () => {
  await using app = await appWith({ COUNTRY_HEADER: 'CF-IPCountry', TRUSTED_PROXIES: '192.0.2.99' })
  const code = await shorten(app)
  await app.call('GET', `/${code}`, {
    headers: { 'user-agent': FIREFOX, 'cf-ipcountry': 'NO' },
  })
  expect((await visits(app, code, 'country', 1)).values).toEqual([
    { value: 'unknown', name: 'Unknown', hits: 1 },
  ])
})

test('COUNTRY_FILE may be the text file of tor-geoipdb, with that for IPv6 beside it', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'geoip')
  writeFileSync(file, '# comment\n16777216,16777471,AU\n3221225984,3221226239,DE\n')
  writeFileSync(`${file}6`, '# comment\n2001:db8:1::,2001:db8:1:ffff:ffff:ffff:ffff:ffff,NO\n')
  await using app = await appWith({ COUNTRY_FILE: file })
  const code = await shorten(app)
  for (const from of ['192.0.2.7', '1.0.0.1', '2001:db8:1:2::9', '2001:db8:2::1']) {
    await app.call('GET', `/${code}`, { from, headers: { 'user-agent': FIREFOX } })
  }
  expect((await visits(app, code, 'country', 4)).values).toEqual([
    { value: 'AU', name: 'Australia', hits: 1 },
    { value: 'DE', name: 'Germany', hits: 1 },
    { value: 'NO', name: 'Norway', hits: 1 },
    { value: 'unknown', name: 'Unknown', hits: 1 },
  ])
})

test.each(['absent', 'damaged'])(
  'a COUNTRY_FILE that is %s never stops a redirect',
  async (kind) => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'geoip.mmdb')
    if (kind === 'damaged')
      writeFileSync(file, `${'x'.repeat(5000)}\xab\xcd\xefMaxMind.com`, 'latin1')
    await using app = await appWith({ COUNTRY_FILE: file })
    const code = await shorten(app)
    const answer = await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX } })
    expect(answer.status).toBe(302)
    expect((await visits(app, code, 'country', 1)).values).toEqual([
      { value: 'unknown', name: 'Unknown', hits: 1 },
    ])
    await eventually('the log says so', () =>
      app.log.some((line) => line.includes('visits.country_file')),
    )
  },
)

test('with VISIT_DETAILS=off no details are counted', async () => {
  await using app = await appWith({ VISIT_DETAILS: 'off' })
  const code = await shorten(app)
  await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX } })
  const { body } = await app.call('GET', `/api/links/${code}/visits?by=os`, { key: 'free' })
  expect(body).toMatchObject({ hits: 1, known: 0, values: [] })
})

test('the details of a link are deleted with it', async () => {
  await using app = await appWith()
  const code = await shorten(app)
  await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX } })
  await visits(app, code, 'os', 1)
  const scopes = () =>
    app.administer(({ db }) =>
      db
        .query<{ scope: number }, []>(
          'SELECT scope FROM hit_days WHERE parts IS NOT NULL ORDER BY scope',
        )
        .all()
        .map(({ scope }) => scope),
    )
  expect(scopes()).toEqual([0, 1])
  const { body } = await app.call('POST', '/api/shorten', {
    key: 'free',
    json: { url: 'https://example.com/other' },
  })
  const other = { code: body.code, passcode: body.passcode }
  await app.call('GET', `/${other.code}`, { headers: { 'user-agent': FIREFOX } })
  await visits(app, String(other.code), 'os', 1)
  expect(scopes()).toEqual([0, 0, 1])
  await app.call('POST', '/api/delete', { key: 'free', json: other })
  expect(scopes()).toEqual([0, 1])
})

const refusals = [
  { query: '?by=ip', field: 'by' },
  { query: '?by=os&limit=0', field: 'limit' },
  { query: '?by=os&format=xml', field: 'format' },
  { query: '?by=os&from=yesterday', field: 'from' },
]
test.each(refusals)('GET /api/visits$query is refused', async ({ query, field }) => {
  await using app = await testApp()
  expect(await app.call('GET', `/api/visits${query}`, { key: 'free' })).toMatchObject({
    status: 400,
    body: { error: invalid(field) },
  })
})
