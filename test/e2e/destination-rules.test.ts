import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { operatorOf } from '../../src/cli/administration.ts'
import { START, type TestApp, testApp } from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
import {
  A,
  ANDROID,
  ANDROID_TABLET,
  B,
  C,
  CHROMEBOOK,
  CODE,
  D,
  E,
  FIVE,
  type Headers,
  IPAD,
  IPHONE,
  LINUX,
  languages,
  MAC,
  patch,
  placeOf,
  setTime,
  TELEVISION,
  ua,
  visit,
  WINDOWS,
  withRules,
  Z,
} from '../support/destination-rules.ts'
import { temporaryFolder } from '../support/folder.ts'
import { invalid } from '../support/refusals.ts'

/** Which destination a visitor gets: `destinations` of a link. */

describe.each(['1', '2'])('with REDIRECT_THREADS=%s', (threads) => {
  let app: TestApp
  beforeAll(async () => {
    app = await testApp({ env: { REDIRECT_THREADS: threads, ANONYMOUS_REDIRECTS_PER_MINUTE: '0' } })
    await withRules(app)
  })
  afterAll(() => app[Symbol.asyncDispose]())

  test.each([
    ['an iPhone', ua(IPHONE), A],
    ['Chrome on Android', ua(ANDROID), B],
    ['Safari of an iPad, which claims to be a Mac', ua(MAC), Z],
    [
      'a tablet that asks for desktop pages',
      { ...ua(LINUX), 'sec-ch-ua-platform': '"Android"' },
      B,
    ],
    ['an old iPad', ua(IPAD), A],
    ['German first', languages('de-CH,de;q=0.9,en;q=0.8'), C],
    ['German last', languages('pl,de;q=0.9'), Z],
    ['German second of two with equal weights', languages('pl;q=0.9,de;q=0.9'), C],
    ['any language', languages('*'), Z],
    ['German refused', languages('de;q=0'), Z],
    ['a language that only begins alike', languages('den'), Z],
    ['German in capital letters', languages('DE-at'), C],
    ['no header at all', ua(LINUX), Z],
    ['an iPhone in German', { ...ua(IPHONE), 'accept-language': 'de' }, A],
    ['an unknown platform of an iPhone', { ...ua(IPHONE), 'sec-ch-ua-platform': '"Unknown"' }, A],
  ] as [string, Headers, string][])('%s', async (_, headers, location) => {
    expect(await placeOf(app, headers)).toBe(location)
  })

  test.each([
    ['?v=2', D],
    ['?v=2&v=3', D],
    ['?v=3&v=2', Z],
    ['?v=', Z],
    ['?v', Z],
    ['?V=2', Z],
    ['?%76=%32', D],
    ['?x=1&v=2', D],
    ['?v=2%', Z],
  ])('the query %s', async (query, location) => {
    expect(await placeOf(app, ua(LINUX), { query })).toBe(location)
  })

  test.each([
    ['2026-03-07T23:30:00+01:00', E],
    ['2026-03-07T17:59:59+01:00', Z],
    ['2026-03-07T18:00:00+01:00', E],
    ['2026-03-08T01:59:59+01:00', E],
    ['2026-03-08T02:00:00+01:00', Z],
    ['2026-03-09T01:59:59+01:00', E],
    ['2026-03-09T02:00:00+01:00', Z],
    ['2026-03-07T01:00:00+01:00', Z],
    // The change to summer time is on Sunday, 29 March, at 2:00.
    ['2026-03-28T17:59:59+01:00', Z],
    ['2026-03-28T18:00:00+01:00', E],
    ['2026-03-29T01:59:00+01:00', E],
    ['2026-03-29T17:59:59+02:00', Z],
    ['2026-03-29T18:00:00+02:00', E],
    ['2026-10-25T17:59:59+01:00', Z],
    ['2026-10-25T18:00:00+01:00', E],
  ])('at %s', async (time, location) => {
    setTime(app, time)
    expect(await placeOf(app, ua(LINUX))).toBe(location)
    setTime(app, new Date(START).toISOString())
  })

  test('HEAD has the same destination and counts no hit; three systems count three', async () => {
    const hits = async () => (await app.call('GET', `/api/lookup/${CODE}`)).body.hit_count as number
    const before = await hits()
    const head = await visit(app, { method: 'HEAD', headers: ua(IPHONE) })
    expect(head.headers.get('location')).toBe(A)
    expect(await hits()).toBe(before)
    for (const agent of [IPHONE, ANDROID, LINUX]) await placeOf(app, ua(agent))
    expect(await hits()).toBe(before + 3)
  })

  test('a cleared list is gone with the next redirect of every thread', async () => {
    const codes = ['CLEARED1', 'CLEARED2']
    for (const code of codes) {
      await app.claim(code, Z)
      await patch(app, { destinations: FIVE }, code)
      // Each connection may be that of another thread.
      const places = Array.from({ length: 8 }, () => placeOf(app, ua(IPHONE), { code }))
      expect(new Set(await Promise.all(places))).toEqual(new Set([A]))
      const cleared = await patch(app, { destinations: code === 'CLEARED1' ? [] : null }, code)
      expect(cleared).toMatchObject({ status: 200, body: { destinations: [] } })
      const after = Array.from({ length: 8 }, () => placeOf(app, ua(IPHONE), { code }))
      expect(new Set(await Promise.all(after))).toEqual(new Set([Z]))
    }
    expect(problemsOf(app)).toEqual([])
  })
})

test('the query of the request is added to the destination that was chosen', async () => {
  await using app = await testApp()
  await withRules(app, FIVE, { forward_query: true })
  const query = '?v=2&utm_source=x'
  expect(await placeOf(app, ua(LINUX), { query })).toBe(`${D}${query}`)
})

test('state comes first: paused, expired and used-up links have no destination by rule', async () => {
  await using app = await testApp()
  await withRules(app, FIVE, { expires_at: '2020-01-01T00:00:00Z' })
  expect(await visit(app, { headers: ua(IPHONE) })).toMatchObject({ status: 410 })
  await patch(app, { expired_url: 'https://over.example/' })
  expect((await visit(app, { headers: ua(IPHONE) })).headers.get('location')).toBe(
    'https://over.example/',
  )
  await patch(app, { expires_at: null, expired_url: null, paused: true })
  expect(await visit(app, { headers: ua(IPHONE) })).toMatchObject({ status: 404 })
  await patch(app, { paused: false, max_hits: 2 })
  expect(await placeOf(app, ua(IPHONE))).toBe(A)
  expect(await placeOf(app, ua(ANDROID))).toBe(B)
  expect(await visit(app, { headers: ua(IPHONE) })).toMatchObject({ status: 410 })
})

test('an alias has the destinations of its link, and a visitor with a key too', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  await withRules(app)
  await patch(app, { aliases: ['evening-menu'] })
  expect(await placeOf(app, ua(IPHONE), { code: 'evening-menu' })).toBe(A)
  expect(await placeOf(app, ua(IPHONE), { key: 'pro' })).toBe(A)
  const { body } = await app.call('GET', `/api/lookup/${CODE}`)
  expect(body.url).toBe(Z)
  expect(JSON.stringify(body)).not.toContain('a.example')
})

test('devices, times and parameters that only have to be present', async () => {
  await using app = await testApp()
  const destinations = [
    { when: { query: { preview: true } }, url: A },
    { when: { device: ['phone'], from: '2026-03-02T00:00:00.000Z' }, url: B },
    { when: { device: ['tablet'], until: '2026-03-02T00:00:00.000Z' }, url: C },
    { when: { os: ['windows', 'chromeos'], device: ['desktop'] }, url: D },
  ]
  await withRules(app, destinations)
  const places = async (...agents: string[]) => {
    const found: unknown[] = []
    for (const agent of agents) found.push(await placeOf(app, ua(agent)))
    return found
  }
  for (const query of ['?preview', '?preview=', '?preview=no']) {
    expect(await placeOf(app, ua(IPHONE), { query })).toBe(A)
  }
  expect(await places(IPHONE, ANDROID_TABLET, WINDOWS, CHROMEBOOK, MAC, TELEVISION)).toEqual([
    Z,
    C,
    D,
    D,
    Z,
    Z,
  ])
  setTime(app, '2026-03-01T23:59:59.999Z')
  expect(await places(IPHONE, IPAD)).toEqual([Z, C])
  setTime(app, '2026-03-02T00:00:00.000Z')
  expect(await places(IPHONE, IPAD)).toEqual([B, Z])
  const hints = { ...ua(LINUX), 'sec-ch-ua-mobile': '?1' }
  expect(await placeOf(app, hints)).toBe(B)
})

test('hours without days are those of every day, and days without hours whole days', async () => {
  await using app = await testApp()
  const destinations = [
    { when: { hours: '08:00-10:00', zone: 'Asia/Kolkata' }, url: A },
    { when: { days: ['wed'], zone: 'America/New_York' }, url: B },
    { when: { hours: '22:00-24:00', zone: 'UTC' }, url: C },
  ]
  await withRules(app, destinations)
  const times: [string, string][] = [
    ['2026-03-02T07:59:59+05:30', Z],
    ['2026-03-02T08:00:00+05:30', A],
    ['2026-03-02T10:00:00+05:30', Z],
    ['2026-03-03T23:59:59-05:00', Z],
    ['2026-03-04T00:00:00-05:00', B],
    ['2026-03-04T23:59:59-05:00', B],
    ['2026-03-05T23:59:59Z', C],
    ['2026-03-06T00:00:00Z', Z],
  ]
  for (const [time, location] of times) {
    setTime(app, time)
    expect(`${time} ${await placeOf(app, ua(LINUX))}`).toBe(`${time} ${location}`)
  }
})

test('a destination on a host that was blocked later is skipped', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'hosts.txt')
  writeFileSync(list, '')
  const options = { dataDir: folder.path, env: { BLOCKLIST_FILES: list } }
  {
    await using app = await testApp(options)
    await withRules(app)
    expect(await placeOf(app, ua(IPHONE))).toBe(A)
  }
  writeFileSync(list, '0.0.0.0 a.example\n')
  await using app = await testApp(options)
  expect(await placeOf(app, ua(IPHONE))).toBe(Z)
  expect(await placeOf(app, ua(ANDROID))).toBe(B)
})

test('a host that an owner blocks while the service runs is skipped from then on', async () => {
  await using app = await testApp()
  await withRules(app)
  expect(await placeOf(app, ua(IPHONE))).toBe(A)
  await app.administration.data.blockedHosts.block({
    author: operatorOf(app.administration),
    host: 'a.example',
    reason: 'x',
  })
  expect(await placeOf(app, ua(IPHONE))).toBe(Z)
})

describe('country', () => {
  const COUNTRIES = [{ when: { country: ['DE', 'AT'] }, url: A }]

  test('comes from COUNTRY_HEADER of a trusted proxy', async () => {
    await using app = await testApp({ env: { COUNTRY_HEADER: 'CF-IPCountry' } })
    await withRules(app, COUNTRIES)
    for (const [country, location] of [
      ['DE', A],
      ['at', A],
      ['FR', Z],
      ['XX', Z],
      ['T1', Z],
      ['', Z],
    ] as const) {
      expect(await placeOf(app, { 'cf-ipcountry': country })).toBe(location)
    }
  })

  test('is not believed from a visitor', async () => {
    const env = { COUNTRY_HEADER: 'CF-IPCountry', TRUSTED_PROXIES: '192.0.2.99' }
    await using app = await testApp({ env })
    await withRules(app, COUNTRIES)
    expect(await placeOf(app, { 'cf-ipcountry': 'DE' })).toBe(Z)
  })

  test('comes from COUNTRY_FILE by the address of the visitor', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'geoip')
    writeFileSync(file, '3221226496,3221226751,DE\n3325256704,3325256959,FR\n')
    for (const env of [{ COUNTRY_FILE: file }, { COUNTRY_FILE: file, COUNTRY_HEADER: 'X-Land' }]) {
      await using app = await testApp({ env })
      await withRules(app, COUNTRIES)
      const hasHeader = 'COUNTRY_HEADER' in env
      expect(await placeOf(app, {}, { from: '192.0.4.5' })).toBe(hasHeader ? Z : A)
      expect(await placeOf(app, {}, { from: '198.51.100.5' })).toBe(Z)
      expect((await app.call('GET', `/api/lookup/${CODE}`)).body.hit_count).toBe(2)
    }
  })

  test('needs one of them', async () => {
    await using app = await testApp()
    await app.claim(CODE, Z)
    expect(await patch(app, { destinations: COUNTRIES })).toMatchObject({
      status: 400,
      body: { error: invalid('destinations') },
    })
  })
})

test('hostile headers are answered as fast as others', async () => {
  await using app = await testApp({ env: { ANONYMOUS_REDIRECTS_PER_MINUTE: '0' } })
  const twenty = Array.from({ length: 20 }, (_, n) => ({
    when: { os: ['chromeos'], language: ['de'], query: { [`p${n}`]: 'x' } },
    url: `${A}?${'y'.repeat(700)}`,
  }))
  await withRules(app, twenty)
  const long = 7000
  for (const headers of [
    ua('CrOS '.repeat(long / 5)),
    ua('Android'.repeat(long / 7)),
    { 'accept-language': 'de;q=0.5,'.repeat(long / 9), ...ua(CHROMEBOOK) },
    { 'accept-language': ';'.repeat(long), ...ua(CHROMEBOOK) },
    { 'sec-ch-ua-platform': '"'.repeat(long), ...ua(CHROMEBOOK) },
  ] as Headers[]) {
    expect(await placeOf(app, headers, { query: `?${'&'.repeat(900)}` })).toBe(Z)
  }
  const query = '?p19=x'
  expect(await placeOf(app, languages('en'), { query })).toBe(Z)
  const german = { ...ua(CHROMEBOOK), 'accept-language': 'de' }
  expect(await placeOf(app, german, { query })).toStartWith(A)
})
