import { expect, test } from 'bun:test'
import { HOUR } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { type Seen, setUpOwner, Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** The page Keys: making, rotating, revoking and ending API keys. */

const DAY = 24 * HOUR

const secretIn = ({ text }: Seen): string => /value="(hop_\w+)"/.exec(text)?.[1] ?? ''
const statusOf = async (app: TestApp, key: string): Promise<number> =>
  (await app.call('GET', '/api/list', { key })).status

/** The id of the active key, as the page's own form names it; empty without one. */
async function activeKey(visitor: Visitor): Promise<string> {
  return /name="replaces" value="(\d*)"/.exec((await visitor.get('/app/keys')).text)?.[1] ?? ''
}

async function rotate(visitor: Visitor): Promise<{ seen: Seen; key: string }> {
  const replaces = await activeKey(visitor)
  const seen = await visitor.post('/app/keys/new', { replaces }, { from: '/app/keys' })
  return { seen, key: secretIn(seen) }
}

/** The id of the key that ends with these characters, from the link that ends it. */
async function idOf(visitor: Visitor, key: string): Promise<string> {
  const { text } = await visitor.get('/app/keys')
  return (
    new RegExp(`key=(\\d+)"\\s+aria-label="End the key \\S+…${key.slice(-4)} now"`).exec(
      text,
    )?.[1] ?? ''
  )
}

const end = (visitor: Visitor, key: string): Promise<Seen> =>
  visitor.post('/app/keys/end', { key }, { from: '/app/account' })

// spec: Authentication | 4
test('after a rotation both keys work, and 24 hours later the old one is refused', async () => {
  await using app = await testApp({ env: { SESSION_IDLE_MINUTES: '10080' } })
  const { owner, key: old } = await setUpOwner(app)
  const { seen, key: next } = await rotate(owner)
  expect(seen.status).toBe(200)
  expect(next).toMatch(/^hop_\w{36}$/)
  expect(next).not.toBe(old)
  for (const key of [old, next]) expect(await statusOf(app, key)).toBe(200)
  app.advance(DAY - 1)
  for (const key of [old, next]) expect(await statusOf(app, key)).toBe(200)
  app.advance(2)
  expect(await statusOf(app, old)).toBe(401)
  expect(await statusOf(app, next)).toBe(200)
})

test('a whole key stands in the answer that makes it, and in no later page, address, cookie or log line', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'all' } })
  const { owner, key: first } = await setUpOwner(app)
  const { seen, key } = await rotate(owner)
  expect(seen.text).toContain(key)
  expect(seen.text).not.toContain(first)
  expect(seen.headers.get('cache-control')).toBe('no-store')
  expect(`${seen.location}${seen.setCookies}`).not.toContain(key)
  const id = await idOf(owner, first)
  const pages = ['/app/keys', '/app/keys/revoke', `/app/keys/end?key=${id}`, '/app/account']
  for (const path of [...pages, '/app/service', '/app/service/accounts/1', '/app/analytics']) {
    const { status, text } = await owner.get(path)
    expect([path, status]).toEqual([path, 200])
    for (const secret of [first, key]) expect(text).not.toContain(secret)
  }
  const { text } = await owner.get('/app/keys')
  expect(text).toContain(`${key.slice(0, 8)}…${key.slice(-4)}`)
  for (const secret of [first, key]) expect(app.log.join('\n')).not.toContain(secret)
})

test('a leaked key is ended at once, after a page that says what that means', async () => {
  await using app = await testApp()
  const { owner, key: old } = await setUpOwner(app)
  const { key: next } = await rotate(owner)
  const id = await idOf(owner, old)
  const asked = await owner.get(`/app/keys/end?key=${id}`)
  expect(asked.text).toContain('immediately.</strong>')
  expect(asked.text).toContain('get 401')
  expect(await statusOf(app, old)).toBe(200)
  const { status, location } = await end(owner, id)
  expect([status, location]).toEqual([303, '/app/keys?done=ended'])
  expect(await statusOf(app, old)).toBe(401)
  expect(await statusOf(app, next)).toBe(200)
  expect((await owner.get('/app/keys')).text).not.toContain(old.slice(-4))
})

test('a revoked key works 24 hours more, and no other takes its place', async () => {
  await using app = await testApp({ env: { SESSION_IDLE_MINUTES: '10080' } })
  const { owner, key } = await setUpOwner(app)
  const asked = await owner.get('/app/keys/revoke')
  expect(asked.text).toMatch(/expires in 24\s+hours/)
  const id = await activeKey(owner)
  const sent = await owner.post('/app/keys/revoke', { key: id }, { from: '/app/keys' })
  expect(sent.location).toBe('/app/keys?done=revoked')
  const { text } = await owner.get('/app/keys')
  expect(text).toContain('data-countdown>24 h 0 min</time>')
  expect(text).toContain('No active key')
  app.advance(DAY - 1)
  expect(await statusOf(app, key)).toBe(200)
  // Revoking it again must not lengthen its life.
  await owner.signIn('owner@example.com')
  await owner.post('/app/keys/revoke', { key: id }, { from: '/app/keys' })
  app.advance(1)
  expect(await statusOf(app, key)).toBe(401)
  const empty = await owner.get('/app/keys')
  expect(empty.text).toContain('No API key')
  expect(empty.text).not.toContain('<table')
  const made = await owner.post('/app/keys/new', { replaces: '' }, { from: '/app/keys' })
  expect(await statusOf(app, secretIn(made))).toBe(200)
})

test('revoking the key of a page that is out of date leaves the newer key alone', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const seenBefore = await activeKey(owner)
  const { key } = await rotate(owner)
  await owner.post('/app/keys/revoke', { key: seenBefore }, { from: '/app/keys' })
  app.advance(DAY + 1)
  expect(await statusOf(app, key)).toBe(200)
})

test('a form that is sent twice makes one key', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const replaces = await activeKey(owner)
  const { csrf } = await owner.get('/app/keys')
  const answers = await Promise.all(
    [1, 2, 3].map(() => owner.post('/app/keys/new', { replaces, csrf })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 422, 422])
  expect(answers.map(secretIn).filter((key) => key !== '')).toHaveLength(1)
  const { text } = await owner.get('/app/keys')
  expect(text.match(/End now…/g)).toHaveLength(2)
})

test('keys that work at once are at most ten', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  for (let i = 0; i < 9; i++) expect((await rotate(owner)).seen.status).toBe(200)
  const { seen, key } = await rotate(owner)
  expect([seen.status, key]).toEqual([422, ''])
  expect(seen.text).toContain('10 keys of this account still work')
})

test('another account’s key cannot be seen, ended or revoked', async () => {
  await using app = await testApp()
  const { owner, key } = await setUpOwner(app)
  const eve = await makeMember(app, 'eve@example.com')
  const id = await activeKey(owner)
  const seen = await eve.get(`/app/keys/end?key=${id}`)
  expect(seen.location).toBe('/app/keys')
  for (const verb of ['end', 'revoke']) {
    const { status } = await eve.post(`/app/keys/${verb}`, { key: id }, { from: '/app/keys' })
    expect([verb, status]).toEqual([verb, 404])
  }
  const { status } = await eve.post('/app/keys/new', { replaces: id }, { from: '/app/keys' })
  expect(status).toBe(422)
  app.advance(DAY + 1)
  expect(await statusOf(app, key)).toBe(200)
})

test('the page says when a key was last used, and that a new one never was', async () => {
  await using app = await testApp()
  const { owner, key } = await setUpOwner(app)
  const { text } = await owner.get('/app/keys')
  expect(text).toContain('<div>never</div>')
  expect(text).toContain('<strong>active</strong>')
  app.advance(90 * 1000)
  await app.call('GET', '/api/list', { key })
  await eventually('the use is on the page', async () =>
    (await owner.get('/app/keys')).text.includes('datetime="2026-03-01T12:01:30.000Z"'),
  )
})

test('a client without a session is sent to the sign-in page, and nothing is changed', async () => {
  await using app = await testApp()
  const { owner, key } = await setUpOwner(app)
  const id = await activeKey(owner)
  const anonymous = new Visitor(app)
  for (const path of ['/app/keys', '/app/keys/revoke']) {
    expect((await anonymous.get(path)).location).toStartWith('/app/sign-in')
  }
  for (const [verb, field] of [
    ['new', 'replaces'],
    ['end', 'key'],
    ['revoke', 'key'],
  ] as const) {
    const sent = { [field]: id, csrf: 'A'.repeat(43) }
    expect((await anonymous.post(`/app/keys/${verb}`, sent)).status).toBe(303)
    expect((await owner.post(`/app/keys/${verb}`, sent)).status).toBe(403)
  }
  app.advance(DAY + 1)
  expect(await statusOf(app, key)).toBe(200)
})
