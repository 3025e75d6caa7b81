import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestApp, testApp } from '../support/app.ts'
import {
  A,
  BERLIN,
  CODE,
  E,
  FIVE,
  IPHONE,
  patch,
  placeOf,
  ua,
  withRules,
  Z,
} from '../support/destination-rules.ts'
import { temporaryFolder } from '../support/folder.ts'
import { makeMember } from '../support/members.ts'

/** What `destinations` of a link may contain, and where it is kept. */

describe('a request is refused', () => {
  const one = (when: unknown, url: unknown = A) => [{ when, url }]
  const OS = 'must be some of android, ios, windows, macos, linux, chromeos'
  const zoned = (when: object) => one({ ...when, zone: BERLIN })
  const LIST = 'Invalid destinations: must be a list of at most 20'
  const atWhen = (reason: string, name = '') => `Invalid destinations[0].when${name}: ${reason}`
  const LANGUAGE = atWhen('must be 1 to 10 languages such as de or pt-BR', '.language')
  const COUNTRY = atWhen('must be 1 to 50 codes of countries such as DE or GB', '.country')
  const QUERY = atWhen('must have 1 to 5 parameters, each with a text or true', '.query')
  const HOURS = atWhen('must be like 08:00-17:30', '.hours')
  const ZONE = atWhen('must be a time zone such as Europe/Berlin', '.zone')
  const BAD_URL = 'must start with http:// or https://'
  const KNOWN = 'os, device, language, country, query, from, until, days, hours, zone'

  const refused: [destinations: unknown, error: string][] = [
    ['x', LIST],
    [{}, LIST],
    [Array.from({ length: 21 }, () => FIVE[0]), LIST],
    [[null], 'Invalid destinations[0]: must have when and url'],
    [['x'], 'Invalid destinations[0]: must have when and url'],
    [[{ when: { os: ['ios'] } }], `Invalid destinations[0].url: ${BAD_URL}`],
    [
      [{ ...FIVE[0], note: '' }],
      'Invalid destinations[0]: note is no field. The fields are when, url',
    ],
    [one({}), atWhen('must have a condition')],
    [[FIVE[0], ...one({})], 'Invalid destinations[1].when: must have a condition'],
    [one({ zone: BERLIN }), atWhen('must have a condition')],
    [[{ url: A }], atWhen('must have a condition')],
    [one(null), atWhen('must have a condition')],
    [one({ ip: ['192.0.2.1'] }), atWhen(`ip is no condition. The conditions are ${KNOWN}`)],
    [one({ os: ['ios', 'beos'] }), atWhen(OS, '.os')],
    [one({ os: 'ios' }), atWhen(OS, '.os')],
    [one({ os: [] }), atWhen(OS, '.os')],
    [one({ os: null }), atWhen(OS, '.os')],
    [one({ device: ['tv'] }), atWhen('must be some of phone, tablet, desktop', '.device')],
    [one({ language: ['deutsch'] }), LANGUAGE],
    [one({ language: [] }), LANGUAGE],
    [one({ language: Array.from({ length: 11 }, () => 'de') }), LANGUAGE],
    [one({ country: ['Germany'] }), COUNTRY],
    [one({ country: ['UK'] }), COUNTRY],
    [one({ country: ['ZZ'] }), COUNTRY],
    [one({ country: [] }), COUNTRY],
    [one({ query: {} }), QUERY],
    [one({ query: { v: 2 } }), QUERY],
    [one({ query: { v: false } }), QUERY],
    [one({ query: { '': 'x' } }), QUERY],
    [one({ query: ['v'] }), QUERY],
    [one({ query: { a: '', b: '', c: '', d: '', e: '', f: '' } }), QUERY],
    [
      one({ from: '2026-02-30T00:00:00Z' }),
      atWhen('must be a time such as 2026-03-01T12:00:00.000Z', '.from'),
    ],
    [
      one({ until: 'tomorrow' }),
      atWhen('must be a time such as 2026-03-01T12:00:00.000Z', '.until'),
    ],
    [
      one({ from: '2026-03-02T00:00:00Z', until: '2026-03-02T01:00:00+01:00' }),
      atWhen('must be after from', '.until'),
    ],
    [
      zoned({ days: ['monday'] }),
      atWhen('must be some of mon, tue, wed, thu, fri, sat, sun', '.days'),
    ],
    [zoned({ hours: '8:00-17:30' }), HOURS],
    [zoned({ hours: '24:00-02:00' }), HOURS],
    [zoned({ hours: '08:60-17:30' }), HOURS],
    [zoned({ hours: '08:00-08:00' }), HOURS],
    [zoned({ hours: '08:00' }), HOURS],
    [one({ hours: '08:00-17:30' }), ZONE],
    [one({ days: ['mon'] }), ZONE],
    [one({ days: ['mon'], zone: 'Mars/Olympus' }), ZONE],
    [one({ os: ['ios'], zone: BERLIN }), atWhen('needs days or hours', '.zone')],
    [one({ os: ['ios'] }, 'javascript:alert(1)'), `Invalid destinations[0].url: ${BAD_URL}`],
    [one({ os: ['ios'] }, 'a.example'), `Invalid destinations[0].url: ${BAD_URL}`],
    [one({ os: ['ios'] }, null), `Invalid destinations[0].url: ${BAD_URL}`],
    [
      one({ os: ['ios'] }, 'https://'),
      'Invalid destinations[0].url: must be a well-formed address with a host',
    ],
    [
      Array.from({ length: 3 }, () => ({ ...FIVE[0], url: `${A}?${'x'.repeat(6000)}` })),
      'Invalid destinations: must have at most 16,384 bytes as JSON',
    ],
  ]

  let app: TestApp
  beforeAll(async () => {
    app = await testApp({
      env: { ENTERPRISE_WRITES_PER_MINUTE: '0', COUNTRY_HEADER: 'CF-IPCountry' },
    })
    await app.claim(CODE, Z, 'enterprise')
  })
  afterAll(() => app[Symbol.asyncDispose]())

  test.each(refused.map(([sent, error], n) => [n, error, sent] as const))(
    '%d: %s',
    async (_, error, destinations) => {
      const key = 'enterprise'
      const path = `/api/links/${CODE}`
      const answer = await app.call('PATCH', path, { key, json: { destinations } })
      expect(answer).toMatchObject({ status: 400, body: { error } })
      const created = await app.call('POST', '/api/shorten', {
        key,
        json: { url: Z, destinations },
      })
      expect(created).toMatchObject({ status: 400, body: { error } })
      expect((await app.call('GET', path, { key })).body.destinations).toEqual([])
    },
  )
})

test('a URL on the blocklist or of the service itself is refused at any place', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'hosts.txt')
  writeFileSync(list, '0.0.0.0 bad.example\n')
  await using app = await testApp({ env: { BLOCKLIST_FILES: list } })
  await app.claim(CODE, Z)
  const error = 'Destination URL is not allowed (host on abuse blocklist)'
  for (const url of ['https://bad.example/x', `http://hop.test/${CODE}`]) {
    const destinations = [...FIVE, { when: { os: ['linux'] }, url }]
    expect(await patch(app, { destinations })).toMatchObject({ status: 422, body: { error } })
    const json = { url: Z, code: 'NEWCODE1', destinations }
    const created = await app.call('POST', '/api/shorten', { key: 'free', json })
    expect(created).toMatchObject({ status: 422, body: { error } })
  }
  expect(await placeOf(app, ua(IPHONE))).toBe(Z)
})

test('values are stored in one form', async () => {
  await using app = await testApp({ env: { COUNTRY_HEADER: 'CF-IPCountry' } })
  await app.claim(CODE, Z)
  const when = {
    os: ['ios', 'android', 'ios'],
    language: ['PT-br', 'zh-hant-tw', 'pt-BR'],
    country: ['de', 'DE'],
    query: { 'größe "x"': '☃' },
    from: '2026-03-01T00:00:00+01:00',
    days: ['sun', 'mon'],
    zone: 'europe/berlin',
  }
  const stored = {
    os: ['android', 'ios'],
    language: ['pt-BR', 'zh-Hant-TW'],
    country: ['DE'],
    query: { 'größe "x"': '☃' },
    from: '2026-02-28T23:00:00.000Z',
    days: ['mon', 'sun'],
    zone: BERLIN,
  }
  const { body } = await patch(app, { destinations: [{ url: 'https://ü.example/ü', when }] })
  expect(body.destinations).toEqual([{ when: stored, url: 'https://ü.example/ü' }])
  const headers = { ...ua(IPHONE), 'accept-language': 'pt-br', 'cf-ipcountry': 'DE' }
  const query = `?${new URLSearchParams({ 'größe "x"': '☃' })}`
  const expected = 'https://xn--tda.example/%C3%BC'
  expect(await placeOf(app, headers, { query })).toBe(expected)
})

test('a new link can have destinations, and its bytes count towards the quota', async () => {
  await using app = await testApp({ env: { FREE_URL_BYTES_MAX: '400' } })
  const json = { url: Z, code: CODE, destinations: FIVE.slice(0, 3) }
  expect(await app.call('POST', '/api/shorten', { key: 'free', json })).toMatchObject({
    status: 201,
  })
  expect(await placeOf(app, ua(IPHONE))).toBe(A)
  const refused = await patch(app, { destinations: [...FIVE, ...FIVE] })
  expect(refused).toMatchObject({ status: 422 })
  expect(refused.body.error).toStartWith('Quota exceeded')
  expect(await patch(app, { destinations: [] })).toMatchObject({ status: 200 })
  expect(await patch(app, { destinations: FIVE.slice(1, 4) })).toMatchObject({ status: 200 })
})

test('DESTINATION_RULES=owners: others cannot add any, but move, remove and keep those they have', async () => {
  using folder = temporaryFolder()
  const error = 'Only owners of the service can add destinations'
  let key = ''
  {
    await using app = await testApp({ dataDir: folder.path, env: { DESTINATION_RULES: 'all' } })
    await withRules(app)
    key = app.key('free')
  }
  await using app = await testApp({ dataDir: folder.path, env: { SIGNUP: 'open' } })
  const send = (json: object) => app.call('PATCH', `/api/links/${CODE}`, { key, json })
  const added = [...FIVE, { when: { os: ['linux'] }, url: E }]
  expect(await send({ destinations: added })).toMatchObject({ status: 403, body: { error } })
  const [first, ...rest] = FIVE
  expect(await send({ destinations: [...rest, first] })).toMatchObject({ status: 200 })
  expect(await send({ destinations: rest })).toMatchObject({ status: 200 })
  expect(await send({ destinations: FIVE })).toMatchObject({ status: 403, body: { error } })
  const json = { url: 'https://other.example/', destinations: FIVE }
  const created = await app.call('POST', '/api/shorten', { key, json })
  expect(created).toMatchObject({ status: 403, body: { error } })
})

test('an export and its import have equal destinations', async () => {
  await using app = await testApp()
  await withRules(app)
  const { text } = await app.call('GET', '/api/export', { key: 'free' })
  await using other = await testApp()
  const headers = { 'content-type': 'application/x-ndjson' }
  const imported = await other.call('POST', '/api/import', { key: 'free', raw: text, headers })
  expect(imported.status).toBe(200)
  const { body } = await other.call('GET', `/api/links/${CODE}`, { key: 'free' })
  expect(body.destinations).toEqual(FIVE)
  const again = await other.call('GET', '/api/export', { key: 'free' })
  const rows = (lines: string) => lines.trim().split('\n').slice(1)
  expect(rows(again.text)).toEqual(rows(text))
  expect(await placeOf(other, ua(IPHONE))).toBe(A)
})

test('the search of the dashboard finds a link by a destination, also after a change', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const json = { url: Z, code: CODE, destinations: FIVE }
  expect(await app.call('POST', '/api/shorten', { key: 'free', json })).toMatchObject({
    status: 201,
  })
  const finds = async (text: string) =>
    (await free.get(`/app/links?q=${encodeURIComponent(text)}`)).text.includes(CODE)
  expect(await finds('c.example/c')).toBe(true)
  expect(await finds('f.example')).toBe(false)
  const destinations = [{ when: { os: ['ios'] }, url: 'https://f.example/' }]
  await app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json: { destinations } })
  expect(await finds('c.example/c')).toBe(false)
  expect(await finds('f.example')).toBe(true)
})

test('50 links that are paused together keep their destinations', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const codes = Array.from({ length: 50 }, (_, n) => `PAUSED${n}`)
  for (const code of codes) {
    const json = { url: `${Z}?${code}`, code, destinations: FIVE }
    const { status } = await app.call('POST', '/api/shorten', { key: 'free', json })
    expect(status).toBe(201)
  }
  const done = await free.post(
    '/app/links/batch',
    { action: 'pause', code: codes },
    { from: '/app/links' },
  )
  expect(done.status).toBe(303)
  for (const code of codes) {
    const { body } = await app.call('GET', `/api/links/${code}`, { key: 'free' })
    expect(body).toMatchObject({ paused: true, destinations: FIVE })
  }
})
