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
import { invalid, messageOf } from '../support/refusals.ts'

/** What `destinations` of a link may contain, and where it is kept. */

describe('a request is refused', () => {
  const one = (when: unknown, url: unknown = A) => [{ when, url }]
  const zoned = (when: object) => one({ ...when, zone: BERLIN })

  const refused: [destinations: unknown, place: string][] = [
    ['x', ''],
    [{}, ''],
    [Array.from({ length: 21 }, () => FIVE[0]), ''],
    [[null], '[0]'],
    [['x'], '[0]'],
    [[{ when: { os: ['ios'] } }], '[0].url'],
    [[{ ...FIVE[0], note: '' }], '[0]'],
    [one({}), '[0].when'],
    [[FIVE[0], ...one({})], '[1].when'],
    [one({ zone: BERLIN }), '[0].when'],
    [[{ url: A }], '[0].when'],
    [one(null), '[0].when'],
    [one({ ip: ['192.0.2.1'] }), '[0].when'],
    [one({ os: ['ios', 'beos'] }), '[0].when.os'],
    [one({ os: 'ios' }), '[0].when.os'],
    [one({ os: [] }), '[0].when.os'],
    [one({ os: null }), '[0].when.os'],
    [one({ device: ['tv'] }), '[0].when.device'],
    [one({ language: ['deutsch'] }), '[0].when.language'],
    [one({ language: [] }), '[0].when.language'],
    [one({ language: Array.from({ length: 11 }, () => 'de') }), '[0].when.language'],
    [one({ country: ['Germany'] }), '[0].when.country'],
    [one({ country: ['UK'] }), '[0].when.country'],
    [one({ country: ['ZZ'] }), '[0].when.country'],
    [one({ country: [] }), '[0].when.country'],
    [one({ query: {} }), '[0].when.query'],
    [one({ query: { v: 2 } }), '[0].when.query'],
    [one({ query: { v: false } }), '[0].when.query'],
    [one({ query: { '': 'x' } }), '[0].when.query'],
    [one({ query: ['v'] }), '[0].when.query'],
    [one({ query: { a: '', b: '', c: '', d: '', e: '', f: '' } }), '[0].when.query'],
    [one({ from: '2026-02-30T00:00:00Z' }), '[0].when.from'],
    [one({ until: 'tomorrow' }), '[0].when.until'],
    [one({ from: '2026-03-02T00:00:00Z', until: '2026-03-02T01:00:00+01:00' }), '[0].when.until'],
    [zoned({ days: ['monday'] }), '[0].when.days'],
    [zoned({ hours: '8:00-17:30' }), '[0].when.hours'],
    [zoned({ hours: '24:00-02:00' }), '[0].when.hours'],
    [zoned({ hours: '08:60-17:30' }), '[0].when.hours'],
    [zoned({ hours: '08:00-08:00' }), '[0].when.hours'],
    [zoned({ hours: '08:00' }), '[0].when.hours'],
    [one({ hours: '08:00-17:30' }), '[0].when.zone'],
    [one({ days: ['mon'] }), '[0].when.zone'],
    [one({ days: ['mon'], zone: 'Mars/Olympus' }), '[0].when.zone'],
    [one({ os: ['ios'], zone: BERLIN }), '[0].when.zone'],
    [one({ os: ['ios'] }, 'javascript:alert(1)'), '[0].url'],
    [one({ os: ['ios'] }, 'a.example'), '[0].url'],
    [one({ os: ['ios'] }, null), '[0].url'],
    [one({ os: ['ios'] }, 'https://'), '[0].url'],
    [Array.from({ length: 3 }, () => ({ ...FIVE[0], url: `${A}?${'x'.repeat(6000)}` })), ''],
  ]

  let app: TestApp
  beforeAll(async () => {
    app = await testApp({
      env: { ENTERPRISE_WRITES_PER_MINUTE: '0', COUNTRY_HEADER: 'CF-IPCountry' },
    })
    await app.claim(CODE, Z, 'enterprise')
  })
  afterAll(() => app[Symbol.asyncDispose]())

  test.each(refused.map(([sent, place], n) => [n, place, sent] as const))(
    '%d: destinations%s',
    async (_, place, destinations) => {
      const error = invalid(`destinations${place}`)
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
  const error = messageOf('url_blocked')
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
  const error = messageOf('destinations_not_allowed')
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
  const rows = (lines: string) => lines.split('\n').filter((line) => line.includes('"code"'))
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
