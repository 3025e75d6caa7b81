import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'

/** The spec's chapter "POST /api/reserve". */

const reserve = (app: TestApp, code: unknown, key = 'enterprise') =>
  app.call('POST', '/api/reserve', { key, json: { code } })

// spec: What the service does | A caller can also reserve
// spec: Endpoints | POST /api/reserve
// spec: POST /api/reserve | code
// spec: POST /api/reserve | Response 201
// spec: Code (short link) | reserved
test('POST /api/reserve claims a code, stored uppercase, and gives its passcode once', async () => {
  await using app = await testApp()
  const answer = await reserve(app, 'spring26', 'free')
  expect(answer.status).toBe(201)
  expect(answer.headers.get('x-ratelimit-remaining')).toBe('59')
  expect(answer.body).toEqual({
    code: 'SPRING26',
    passcode: expect.stringMatching(/^[A-Z0-9]{24}$/),
    url: null,
    short_url: 'http://hop.test/SPRING26',
    reserved: true,
    created_at: '2026-03-01T12:00:00.000Z',
  })
  const lookup = await app.call('GET', '/api/lookup/SPRING26')
  expect(lookup.text).not.toContain(answer.body.passcode as string)
})

// spec: States and transitions | reserved
test('a reserved code has no destination: visiting it is 404, looking it up is not', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26')
  expect(await app.call('GET', '/SPRING26')).toMatchObject({
    status: 404,
    body: { error: 'Code not found: SPRING26' },
  })
  expect(await app.call('GET', '/api/lookup/spring26')).toMatchObject({
    status: 200,
    body: { code: 'SPRING26', url: null, hit_count: 0 },
  })
})

test('a code that was asked for before anyone had it leads as soon as it is claimed', async () => {
  await using app = await testApp()
  const paths = ['/SPRING26', '/api/lookup/SPRING26', '/qr/SPRING26', '/api/qr-image/SPRING26']
  for (const path of paths) expect((await app.call('GET', path)).status).toBe(404)
  const { passcode } = await app.reserve('SPRING26')
  for (const path of paths.slice(1)) expect((await app.call('GET', path)).status).not.toBe(404)
  const json = { code: 'SPRING26', passcode, url: 'https://example.com/' }
  await app.call('POST', '/api/update', { key: 'free', json })
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
})

const WORDS = [
  'STATUS',
  'LOOKUP',
  'SHORTEN',
  'RESERVE',
  'UPDATE',
  'DELETE',
  'PUBLIC',
  'HEALTH',
  'METRICS',
  'FAVICON',
  'ROBOTS',
  'SWAGGER',
  'OPENAPI',
  'ASSETS',
  'STATIC',
  'DASHBOARD',
  'ACCOUNT',
  'LOGOUT',
  'CONSTRUCTOR',
  'TOSTRING',
  'VALUEOF',
  'UNDEFINED',
  '000000',
  '123456',
  'A'.repeat(20),
  '9'.repeat(20),
  'ILLOO0011',
]
// spec: Limits | Code length
// design: 3 no word is reserved
test('every code of 6 to 20 letters and digits can be claimed and used', async () => {
  await using app = await testApp()
  for (const word of WORDS) {
    const { status, body } = await reserve(app, word.toLowerCase())
    expect({ word, status, code: body.code }).toEqual({ word, status: 201, code: word })
    const url = `https://example.com/${word}`
    const json = { code: word, passcode: body.passcode, url }
    expect((await app.call('POST', '/api/update', { key: 'enterprise', json })).status).toBe(200)
    for (const path of [`/${word}`, `/${word.toLowerCase()}`]) {
      const followed = await app.call('GET', path)
      expect({ path, location: followed.headers.get('location') }).toEqual({ path, location: url })
    }
  }
})

// spec: Errors | 409 code already in use
test('a code in use is refused to every account, its owner too, and stays as it is', async () => {
  await using app = await testApp()
  const reserved = await app.reserve('SPRING26', 'free')
  const active = await app.shorten('https://example.com/', 'free')
  app.advance(1000)
  for (const key of ['free', 'pro']) {
    for (const code of ['Spring26', 'SPRING26', active.code, active.code.toLowerCase()]) {
      const { status, body } = await reserve(app, code, key)
      const error = `Code already in use: ${code.toUpperCase()}`
      expect({ code, status, body }).toEqual({ code, status: 409, body: { error } })
    }
  }
  expect((await app.call('GET', '/api/lookup/SPRING26')).body).toMatchObject({
    url: null,
    created_at: '2026-03-01T12:00:00.000Z',
  })
  expect((await app.call('GET', `/${active.code}`)).status).toBe(302)
  const json = { ...reserved, url: 'https://example.com/mine' }
  expect((await app.call('POST', '/api/update', { key: 'free', json })).status).toBe(200)
  expect((await app.call('GET', '/api/list', { key: 'pro' })).body.total).toBe(0)
})

test('50 simultaneous reserves of one code give one 201', async () => {
  await using app = await testApp()
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) => reserve(app, i % 2 ? 'LAUNCH' : 'launch', `pro-${i % 5}`)),
  )
  const statuses = answers.map(({ status }) => status).sort()
  expect(statuses).toEqual([201, ...Array(49).fill(409)])
  const winner = answers.findIndex(({ status }) => status === 201)
  for (const i of [0, 1, 2, 3, 4]) {
    const { body } = await app.call('GET', '/api/list', { key: `pro-${i}` })
    expect(body.total).toBe(i === winner % 5 ? 1 : 0)
  }
})

test('an account may reserve many codes: no URL means no "same URL"', async () => {
  await using app = await testApp()
  const codes = ['AAAAAA', 'BBBBBB', 'CCCCCC']
  const answers = await Promise.all(codes.map((code) => reserve(app, code)))
  expect(answers.map(({ status, body }) => [status, body.code])).toEqual(
    codes.map((code) => [201, code]),
  )
  expect(new Set(answers.map(({ body }) => body.passcode)).size).toBe(3)
})
