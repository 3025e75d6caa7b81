import { expect, test } from 'bun:test'
import { HOUR, SECOND } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { patch } from '../support/destination-rules.ts'
import { basic, LOCKED, send, WORD, withPassword } from '../support/link-passwords.ts'

/** Limits of guessing, over all ways to send the password of a link. */

const env = {
  IMPORT_ALIASES: 'all',
  ANONYMOUS_REDIRECTS_PER_MINUTE: '0',
}

async function lockedLinks(app: TestApp, count: number): Promise<string[]> {
  const codes = Array.from({ length: count }, (_, n) => `LOCKED${n}X`)
  for (const code of codes) await withPassword(app, code)
  return codes
}

test('the form, Basic and aliases count together, whether they are GET, HEAD or POST', async () => {
  await using app = await testApp({ env })
  await withPassword(app)
  expect((await patch(app, { aliases: ['menu', 'a/b'] }, LOCKED)).status).toBe(200)
  const wrong = { headers: basic('wrong one') }
  const statuses = [
    (await send(app, 'wrong one')).status,
    (await send(app, 'wrong one', '/menu')).status,
    (await send(app, 'wrong one', '/a/b')).status,
    (await app.call('GET', `/${LOCKED}?x=1`, wrong)).status,
    (await app.call('HEAD', '/menu', wrong)).status,
    (await app.call('GET', `/${LOCKED.toLowerCase()}`, wrong)).status,
    (await send(app, WORD, '/a/b')).status,
  ]
  expect(statuses).toEqual([403, 403, 403, 403, 403, 429, 429])
  // Another address is not affected.
  expect((await send(app, WORD, undefined, { from: '198.51.100.7' })).status).toBe(303)
})

test('one address has 20 attempts over all links, and a right one gives none back', async () => {
  await using app = await testApp({ env })
  const codes = await lockedLinks(app, 6)
  const statuses: number[] = []
  for (const code of codes.slice(0, 4)) {
    for (let i = 0; i < 5; i++) statuses.push((await send(app, `wrong ${i}`, `/${code}`)).status)
    if (statuses.length < 20) expect((await send(app, WORD, `/${codes[5]}`)).status).toBe(303)
  }
  expect(statuses).toEqual(Array(20).fill(403))
  expect((await send(app, WORD, `/${codes[4]}`)).status).toBe(429)
  app.advance(30 * SECOND)
  expect((await send(app, WORD, `/${codes[4]}`)).status).toBe(303)
})

test('1,000 guesses from one /48 are 60 attempts, and another network is not affected', async () => {
  await using app = await testApp({ env })
  const codes = await lockedLinks(app, 10)
  const counts: Record<number, number> = {}
  const guess = async (n: number) => {
    const from = `2001:db8:7:${n.toString(16)}::1`
    const { status } = await send(app, 'wrong one', `/${codes[n % 10]}`, { from })
    counts[status] = (counts[status] ?? 0) + 1
  }
  for (let n = 0; n < 1000; n += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, i) => guess(n + i)))
  }
  expect(counts).toEqual({ 403: 60, 429: 940 })
  const other = { from: '2001:db8:8::1' }
  expect((await send(app, WORD, `/${codes[0]}`, other)).status).toBe(303)
  app.advance(HOUR)
  expect((await send(app, WORD, `/${codes[0]}`, { from: '2001:db8:7::1' })).status).toBe(303)
}, 30_000)
