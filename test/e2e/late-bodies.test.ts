import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { HOUR } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { slowly } from '../support/late-body.ts'
import { disable } from '../support/members.ts'

/** A key and an account are judged when a write is stored, not only when its request begins. */

const OLD = 'https://example.com/old'
const NEW = 'https://example.com/new'

type Link = { code: string; passcode: string }

const writes = [
  { path: '/api/shorten', json: () => ({ url: NEW }) },
  { path: '/api/bulk-shorten', json: () => ({ urls: [NEW] }) },
  { path: '/api/reserve', json: () => ({ code: 'LATE2026' }) },
  { path: '/api/update', json: (link: Link) => ({ ...link, url: NEW }) },
  { path: '/api/delete', json: (link: Link) => link },
]

const endings = [
  { name: 'its key is ended', end: (app: TestApp) => app.revokeKey('free', { now: true }) },
  {
    name: 'its key is rotated and the old one ended',
    end: (app: TestApp) => void app.rotateKey('free', { now: true }),
  },
  {
    name: 'the 24 hours of its rotated key are over',
    end: (app: TestApp) => {
      app.revokeKey('free')
      app.advance(24 * HOUR)
    },
  },
  { name: 'its account is disabled', end: (app: TestApp) => disable(app, 'free@example.com') },
]

const cases = writes.flatMap((write) => endings.map((ending) => ({ ...write, ...ending })))

/** Sends a write of the Free account, whose key or account ends while the body is held back. */
async function writeLate(app: TestApp, { path, json, end }: (typeof cases)[number]) {
  const link = await app.claim('SPRING26', OLD)
  const head = [
    `POST ${path} HTTP/1.1`,
    `X-API-Key: ${app.key('free')}`,
    'Content-Type: application/json',
  ]
  return await slowly(app, { head, body: JSON.stringify(json(link)) }, async () => end(app))
}

test.each(cases)('$path changes nothing when $name while the body arrives', async (late) => {
  await using app = await testApp()
  const { status, text, headers } = await writeLate(app, late)
  expect({ status, body: JSON.parse(text) }).toEqual({
    status: 401,
    body: { error: 'Invalid or missing API key' },
  })
  expect(headers.get('x-ratelimit-limit')).toBe('60')
  expect((await app.call('GET', '/SPRING26')).headers.get('location')).toBe(OLD)
  using db = new Database(join(app.dataDir, 'hopcode.db'), { readonly: true, strict: true })
  expect(db.query('SELECT code, url FROM links').all()).toEqual([{ code: 'SPRING26', url: OLD }])
})

test.each(writes)('$path goes on when another key of the account ends meanwhile', async (write) => {
  await using app = await testApp()
  const old = app.key('free')
  app.rotateKey('free')
  const end = () => {
    expect(app.key('free')).not.toBe(old)
    app.advance(24 * HOUR)
  }
  const { status } = await writeLate(app, { ...write, name: '', end })
  expect([200, 201]).toContain(status)
})
