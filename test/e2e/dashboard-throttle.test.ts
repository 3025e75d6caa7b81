import { expect, test } from 'bun:test'
import { MINUTE } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** Guessing passwords is slow, and locks nobody out who has been here before. */

const ANN = 'ann@example.com'

async function guess(app: TestApp, from: string, times: number, email = ANN): Promise<number[]> {
  const visitor = new Visitor(app, { from })
  const { csrf } = await visitor.get('/app/sign-in')
  const statuses: number[] = []
  for (let i = 0; i < times; i++) {
    const sent = { email, password: `guess number ${i}`, csrf }
    statuses.push((await visitor.post('/app/sign-in', sent)).status)
  }
  return statuses
}

test('one address has five guesses at an account, then one a minute', async () => {
  await using app = await testApp()
  await makeMember(app, ANN)
  expect(await guess(app, '192.0.2.66', 7)).toEqual([401, 401, 401, 401, 401, 429, 429])
  const visitor = new Visitor(app, { from: '192.0.2.66' })
  const seen = await visitor.signIn(ANN)
  expect({ status: seen.status, wait: seen.headers.get('retry-after') }).toEqual({
    status: 429,
    wait: '60',
  })
  expect(seen.headers.get('content-type')).toBe('text/html; charset=utf-8')
  app.advance(MINUTE)
  expect((await visitor.signIn(ANN)).status).toBe(303)
})

test('guesses sent all at once are no more than those sent one after another', async () => {
  await using app = await testApp()
  await makeMember(app, ANN)
  const visitor = new Visitor(app, { from: '192.0.2.66' })
  const { csrf } = await visitor.get('/app/sign-in')
  const seen = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      visitor.post('/app/sign-in', { email: ANN, password: `guess number ${i}`, csrf }),
    ),
  )
  expect(seen.filter(({ status }) => status === 401)).toHaveLength(5)
  expect(seen.filter(({ status }) => status === 429)).toHaveLength(15)
})

test('one address has thirty guesses at all accounts together', async () => {
  await using app = await testApp()
  const statuses: number[] = []
  for (let i = 0; i < 8; i++) {
    statuses.push(...(await guess(app, '192.0.2.66', 4, `user${i}@example.com`)))
  }
  expect(statuses.filter((status) => status === 401)).toHaveLength(30)
  expect(statuses.slice(30)).toEqual([429, 429])
  expect(await guess(app, '192.0.2.67', 1)).toEqual([401])
})

test('anonymous clients slow each other down, and lock no browser out that has signed in', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  await ann.post('/app/sign-out', {}, { from: '/app/account' })
  const addresses = Array.from({ length: 11 }, (_, i) => `198.51.100.${i + 1}`)
  const statuses = (await Promise.all(addresses.map((from) => guess(app, from, 5)))).flat()
  expect(statuses.filter((status) => status === 401)).toHaveLength(50)
  expect(await guess(app, '198.51.100.99', 1)).toEqual([429])
  expect((await ann.signIn(ANN)).status).toBe(303)
})

test('an anonymous client at the same address locks no browser out that has signed in', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, ANN)
  await ann.post('/app/sign-out', {}, { from: '/app/account' })
  expect((await guess(app, '192.0.2.50', 6)).at(-1)).toBe(429)
  expect((await ann.signIn(ANN)).status).toBe(303)
})

test('a browser that has signed in to another account is no exception', async () => {
  await using app = await testApp()
  await makeMember(app, ANN)
  const eve = await makeMember(app, 'eve@example.com')
  await eve.post('/app/sign-out', {}, { from: '/app/account' })
  for (let i = 0; i < 5; i++) await eve.signIn(ANN, 'not the password')
  expect((await eve.signIn(ANN)).status).toBe(429)
  expect(eve.cookies.get('hopcode-known')).toMatch(/^[\w-]{22}\.[\w-]{43}$/)
})

test('an unknown address is slowed down like a known one', async () => {
  await using app = await testApp()
  await makeMember(app, ANN)
  const known = await guess(app, '192.0.2.66', 7)
  expect(await guess(app, '192.0.2.67', 7, 'nobody@example.com')).toEqual(known)
})

test('a stop does not wait for a login flood: each pending sign-in gets an answer', async () => {
  await using app = await testApp()
  const flood = Array.from({ length: 60 }, (_, i) => guess(app, `198.51.100.${i + 1}`, 1))
  const [first] = await Promise.race(flood)
  expect(first).toBe(401)
  await app.beginStop()
  const statuses = (await Promise.all(flood)).flat()
  expect(new Set(statuses)).toEqual(new Set([401, 503]))
  expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(30)
})
