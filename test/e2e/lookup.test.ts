import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'

/** The spec's chapter "GET /api/lookup/{code}", and what `hit_count` counts. */

const lookup = (app: TestApp, code: string) => app.call('GET', `/api/lookup/${code}`)

// spec: GET /api/lookup/{code} | Does not follow the redirect
// spec: Endpoints | GET /api/lookup/{code}
// spec: Authentication | 2
// spec: GET /api/lookup/{code} | Response 200
test('GET /api/lookup/{code} tells anyone where a code leads, without following it', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/landing')
  app.advance(1)
  for (const headers of [{}, { 'x-api-key': '' }, { 'x-api-key': 'hop_nonsense' }]) {
    const answer = await app.call('GET', `/api/lookup/${code}`, { headers })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(answer.headers.get('location')).toBeNull()
    expect(answer.body).toEqual({
      code,
      url: 'https://example.com/landing',
      created_at: '2026-03-01T12:00:00.000Z',
      hit_count: 0,
    })
    expect(answer.text).not.toContain(passcode)
  }
})

// design: 4.6 HEAD counts no hit
test('only a followed short link is a hit: no other read of a code, and no 404', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  await app.reserve('SPRING26')
  for (const path of [`/api/qr/${code}`, `/qr/${code}`, `/api/qr-image/${code}`, '/NOBODYS1']) {
    await app.call('GET', path)
  }
  await app.call('GET', '/api/list', { key: 'free' })
  await app.call('HEAD', `/${code}`)
  await app.call('POST', `/${code}`)
  await app.call('GET', '/SPRING26')
  await lookup(app, code)
  expect((await lookup(app, code)).body.hit_count).toBe(0)
  expect((await lookup(app, 'SPRING26')).body.hit_count).toBe(0)
})

const UNKNOWN = [
  { path: 'NOBODYS1', code: 'NOBODYS1' },
  { path: 'nobodys1', code: 'NOBODYS1' },
  { path: 'ABCDE', code: 'ABCDE' },
  { path: 'A'.repeat(21), code: 'A'.repeat(21) },
  { path: 'a'.repeat(100), code: 'A'.repeat(100) },
  { path: 'a'.repeat(101), code: `${'A'.repeat(100)}…` },
  { path: 'my-code', code: 'MY-CODE' },
  { path: 'my_code', code: 'MY_CODE' },
  { path: 'my%20code', code: 'MY CODE' },
  { path: 'my%2Fcode', code: 'MY/CODE' },
  { path: 'SPRING26%00', code: 'SPRING26\0' },
  { path: 'SPRING26%0A', code: 'SPRING26\n' },
  { path: 'SPRING26.png', code: 'SPRING26.PNG' },
  { path: '%C3%A4%C3%B6%C3%BCabc', code: 'ÄÖÜABC' },
  { path: '%27%3B--', code: "';--" },
  { path: 'constructor', code: 'CONSTRUCTOR' },
  { path: '__proto__', code: '__PROTO__' },
]
// spec: Errors | 404 code does not exist
// design: 4.9 public reads of a malformed code
test('a code that does not or cannot exist is 404, named in uppercase', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26')
  for (const { path, code } of UNKNOWN) {
    const { status, body } = await lookup(app, path)
    expect({ path, status, body }).toEqual({
      path,
      status: 404,
      body: { error: `Code not found: ${code}` },
    })
  }
})
