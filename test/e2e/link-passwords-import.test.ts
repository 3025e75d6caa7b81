import { expect, test } from 'bun:test'
import { SECOND } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { patch } from '../support/destination-rules.ts'
import {
  basic,
  cookieOf,
  LOCKED,
  SECRET_URL,
  send,
  WORD,
  withPassword,
} from '../support/link-passwords.ts'

/** Passwords of links in imports and exports. */

async function importLines(app: TestApp, lines: readonly object[], query = '') {
  const raw = lines.map((line) => JSON.stringify(line)).join('\n')
  const headers = { 'content-type': 'application/x-ndjson' }
  const { status, body } = await app.call('POST', `/api/import${query}`, {
    key: 'pro',
    raw,
    headers,
  })
  expect(status).toBe(200)
  return body.results as { outcome: string; message: string }[]
}

const hashOf = (app: TestApp, code = LOCKED) =>
  app.administer(({ db }) => {
    const row = db.query<{ password: string }, [string]>(
      'SELECT password FROM links WHERE code = ?',
    )
    return row.get(code)?.password
  })

test('an export says that a link has a password, and its import is paused until one is set', async () => {
  await using app = await testApp()
  await withPassword(app)
  const { text } = await app.call('GET', '/api/export', { key: 'free' })
  expect(text).toContain('"protected":true')
  expect(text).not.toMatch(/argon2|sesame/)
  await using other = await testApp()
  const line = JSON.parse(text.trim().split('\n')[1] ?? '') as object
  const [result] = await importLines(other, [line])
  expect(result?.outcome).toBe('created_paused')
  expect(result?.message).toContain('password')
  expect((await other.call('GET', `/${LOCKED}`)).status).toBe(404)
})

test('a password in plain text is hashed and kept, of any length', async () => {
  await using app = await testApp()
  const lines = [
    { code: LOCKED, url: SECRET_URL, password: WORD },
    { code: 'SHORT026', url: 'https://d.example/short', password: 'abc' },
    { code: 'EMPTY026', url: 'https://d.example/empty', password: '' },
  ]
  const dry = await importLines(app, lines, '?dry_run=true')
  expect(dry.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'bad_row'])
  expect(hashOf(app)).toBeUndefined()
  const real = await importLines(app, lines)
  expect(real.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'bad_row'])
  expect(hashOf(app)).toStartWith('$argon2id$')
  expect((await app.call('GET', `/${LOCKED}`)).status).toBe(401)
  expect((await send(app, WORD)).status).toBe(303)
  expect((await send(app, 'abc', '/SHORT026')).status).toBe(303)
  expect((await importLines(app, lines))[0]?.outcome).toBe('exists')
})

test('more passwords than one request may have are refused, and none of their links is open', async () => {
  await using app = await testApp()
  const lines = Array.from({ length: 52 }, (_, n) => ({
    code: `LOCKED${n}X`,
    url: `https://d.example/${n}`,
    password: WORD,
  }))
  const outcomes = (await importLines(app, lines)).map(({ outcome }) => outcome)
  expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(50)
  expect(outcomes.slice(50)).toEqual(['bad_row', 'bad_row'])
  expect((await app.call('GET', '/LOCKED51X')).status).toBe(404)
}, 30_000)

test('a visitor with the right password passes also while its hash cannot be replaced', async () => {
  await using app = await testApp()
  const hash = Bun.password.hashSync(WORD, { algorithm: 'bcrypt', cost: 4 })
  await importLines(app, [{ code: LOCKED, url: SECRET_URL, password_hash: hash }])
  app.administer(({ db }) => {
    db.run(`CREATE TRIGGER refuse BEFORE UPDATE OF password ON links
      BEGIN SELECT RAISE(ABORT, 'the disk refuses'); END`)
  })
  const sent = await send(app, WORD)
  expect([sent.status, hashOf(app)]).toEqual([303, hash])
  expect((await app.call('GET', `/${LOCKED}`, { headers: cookieOf(sent) })).status).toBe(302)
})

test('a hash of bcrypt is verified, and replaced at the first success', async () => {
  await using app = await testApp()
  const hash = Bun.password.hashSync(WORD, { algorithm: 'bcrypt', cost: 4 })
  const [result] = await importLines(app, [{ code: LOCKED, url: SECRET_URL, password_hash: hash }])
  expect(result?.outcome).toBe('created')
  expect((await send(app, 'wrong one')).status).toBe(403)
  expect(hashOf(app)).toBe(hash)
  const sent = await send(app, WORD)
  expect(sent.status).toBe(303)
  const renewed = hashOf(app)
  expect(renewed).toStartWith('$argon2id$')
  expect((await app.call('GET', `/${LOCKED}`, { headers: cookieOf(sent) })).status).toBe(302)
  app.advance(SECOND)
  expect((await app.call('GET', `/${LOCKED}`, { headers: basic(WORD) })).status).toBe(302)
  expect(hashOf(app)).toBe(renewed)
  expect((await patch(app, { password: null }, LOCKED)).status).toBe(404)
})

test.each([
  [
    'of a higher cost',
    Bun.password.hashSync(WORD, { algorithm: 'bcrypt', cost: 4 }).replace('$04$', '$13$'),
  ],
  ['of another form', '$argon2id$v=19$m=4194304,t=50,p=1$YWJjZGVmZ2g$YWJjZGVmZ2g'],
  ['that is no hash', 'open sesame'],
])('a hash %s is refused', async (_, password_hash) => {
  await using app = await testApp()
  const [result] = await importLines(app, [{ code: LOCKED, url: SECRET_URL, password_hash }])
  expect(result?.outcome).toBe('bad_row')
  expect((await app.call('GET', `/${LOCKED}`)).status).toBe(404)
})
