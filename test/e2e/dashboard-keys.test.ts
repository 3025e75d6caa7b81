import { expect, test } from 'bun:test'
import { HOUR } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { type Seen, setUpOwner, type Visitor } from '../support/dashboard.ts'
import { nameOf, pathOf, READS } from '../support/endpoints.ts'
import { makeMember } from '../support/members.ts'

/** The page Keys: creating, rotating, revoking and ending API keys, and what they can do. */

const DAY = 24 * HOUR
const ENV = { ANONYMOUS_READS_PER_MINUTE: '0', SESSION_IDLE_MINUTES: '10080' }

const secretIn = ({ text }: Seen): string => /value="(hop_\w+)"/.exec(text)?.[1] ?? ''
const statusOf = async (app: TestApp, key: string): Promise<number> =>
  (await app.call('GET', '/api/list', { key })).status

/** The id of the newest active key, as the page's own form names it; empty without one. */
async function activeKey(visitor: Visitor): Promise<string> {
  return /name="key" value="(\d+)"/.exec((await visitor.get('/app/keys')).text)?.[1] ?? ''
}

async function rotate(visitor: Visitor): Promise<{ seen: Seen; key: string }> {
  const key = await activeKey(visitor)
  const seen = await visitor.post('/app/keys/rotate', { key }, { from: '/app/keys' })
  return { seen, key: secretIn(seen) }
}

async function create(visitor: Visitor, name: string, scope = 'write', more = {}) {
  const seen = await visitor.post('/app/keys/new', { name, scope, ...more }, { from: '/app/keys' })
  return { seen, key: secretIn(seen) }
}

/** The id of the key that ends with these characters, from a button of its row. */
async function idOf(visitor: Visitor, key: string): Promise<string> {
  const { text } = await visitor.get('/app/keys')
  const link = new RegExp(`key=(\\d+)"\\s+aria-label="[^"]*…${key.slice(-4)}( now)?"`)
  return link.exec(text)?.[1] ?? ''
}

/** The button that each key on the page has. */
const KEY_ROWS = /aria-label="(Revoke|End) the key /g

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
  const pages = [
    '/app/keys',
    `/app/keys/revoke?key=${await activeKey(owner)}`,
    `/app/keys/end?key=${id}`,
    '/app/account',
  ]
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
  expect(asked.notices).toEqual(['alert'])
  expect(asked.text).toContain('>Revoke the key now</button>')
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
  const id = await activeKey(owner)
  const asked = await owner.get(`/app/keys/revoke?key=${id}`)
  expect(asked.text).toMatch(/expires in 24\s+hours/)
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
  const made = await create(owner, 'Website')
  expect(await statusOf(app, made.key)).toBe(200)
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

test.each([
  { name: 'rotates', path: '/app/keys/rotate', fields: { key: '1' } },
  { name: 'creates', path: '/app/keys/new', fields: { name: 'Website', scope: 'write' } },
])('a form that $name a key and is sent three times makes one', async ({ path, fields }) => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const { csrf } = await owner.get('/app/keys')
  const answers = await Promise.all([1, 2, 3].map(() => owner.post(path, { ...fields, csrf })))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 422, 422])
  expect(answers.map(secretIn).filter((key) => key !== '')).toHaveLength(1)
  expect((await owner.get('/app/keys')).text.match(KEY_ROWS)).toHaveLength(2)
})

test('an account has at most 20 keys, and as many that expire', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  for (let i = 1; i < 20; i++) expect((await create(owner, `Key ${i}`)).seen.status).toBe(200)
  const { seen, key } = await create(owner, 'One more')
  expect([seen.status, seen.notices, key]).toEqual([422, ['alert'], ''])
  for (let i = 0; i < 20; i++) expect((await rotate(owner)).seen.status).toBe(200)
  const last = await rotate(owner)
  expect([last.seen.status, last.key]).toEqual([422, ''])
})

test('each key is listed with its name and access, and a name cannot be markup', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const name = '<b>Küche</b> "1"'
  const { seen, key } = await create(owner, name, 'read')
  for (const { text } of [seen, await owner.get('/app/keys')]) {
    expect(text).toContain('<strong>&lt;b&gt;Küche&lt;/b&gt; &quot;1&quot;</strong>')
    expect(text).not.toContain('<b>')
    expect(text).toContain('read only</span>')
    expect(text).toContain('read and write</span>')
  }
  expect(seen.text).toContain(`curl http://hop.test/api/list -H &#39;X-API-Key: ${key}&#39;`)
})

test('rotating or revoking one key leaves the others alone, and the new one has its name and access', async () => {
  await using app = await testApp({ env: { SESSION_IDLE_MINUTES: '10080' } })
  const { owner, key: first } = await setUpOwner(app)
  const shop = await create(owner, 'Shop', 'read')
  const blog = await create(owner, 'Blog')
  const key = await idOf(owner, shop.key)
  const rotated = await owner.post('/app/keys/rotate', { key }, { from: '/app/keys' })
  expect(rotated.text).toContain('Your new key “Shop”')
  const next = secretIn(rotated)
  const json = { code: 'SPRING26' }
  expect(await app.call('POST', '/api/reserve', { key: next, json })).toMatchObject({ status: 403 })
  await owner.post('/app/keys/revoke', { key: await idOf(owner, blog.key) }, { from: '/app/keys' })
  app.advance(DAY)
  const statuses = [first, shop.key, blog.key, next].map((key) => statusOf(app, key))
  expect(await Promise.all(statuses)).toEqual([200, 401, 401, 200])
})

test('a read-only key reads', async () => {
  await using app = await testApp()
  const { owner, key } = await setUpOwner(app)
  const { key: reader } = await create(owner, 'Reader', 'read')
  const { code } = await app.shorten('https://example.com/', key)
  for (const endpoint of READS) {
    const at = nameOf(endpoint)
    const { status } = await app.call('GET', pathOf(endpoint, code), { key: reader })
    expect({ at, isServed: status === 200 || status === 302 }).toEqual({ at, isServed: true })
  }
})

test('a refused change of a read-only key is charged to the account, after 503, 429 and 401', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'free@example.com')
  const { key: reader } = await create(ann, 'Reader', 'read')
  const write = (key: string) => app.call('POST', '/api/reserve', { key, json: {} })
  expect((await write(reader)).headers.get('x-ratelimit-remaining')).toBe('59')
  expect((await write(app.key('free'))).headers.get('x-ratelimit-remaining')).toBe('58')
  for (let i = 0; i < 58; i++) expect((await write(reader)).status).toBe(403)
  expect((await write(reader)).status).toBe(429)
  app.maintenance(app.now() + HOUR)
  expect((await write(reader)).status).toBe(503)
  app.maintenance(undefined)
  await end(ann, await idOf(ann, reader))
  expect((await write(reader)).status).toBe(401)
})

test('a form with an unknown access creates a read-only key', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const { key } = await create(owner, 'Odd', 'admin')
  const json = { code: 'SPRING26' }
  expect(await app.call('POST', '/api/reserve', { key, json })).toMatchObject({ status: 403 })
})

test('a key that creates is listed with its limit and its origins, which a rotation keeps', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const origins = 'https://shop.example, http://localhost:8080'
  const page = await create(owner, 'Page', 'create', { per_minute: '5', origins })
  expect((await owner.get('/app/keys')).text).toContain(
    `create only, 5 requests a minute, ${origins}`,
  )
  const key = await idOf(owner, page.key)
  const rotated = await owner.post('/app/keys/rotate', { key }, { from: '/app/keys' })
  const json = { url: 'https://example.com/' }
  for (const key of [page.key, secretIn(rotated)]) {
    const headers = { origin: 'https://shop.example' }
    const answer = await app.call('POST', '/api/shorten', { key, json, headers })
    expect(answer.headers.get('x-ratelimit-limit')).toBe('5')
    expect(answer.headers.get('access-control-allow-origin')).toBe(headers.origin)
  }
})

test.each([
  ['per_minute', '0'],
  ['per_minute', 'many'],
  ['origins', '*'],
  ['origins', 'https://shop.example/path'],
])('a key that creates is refused with the %s %s, at the field', async (field, value) => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const { seen } = await create(owner, 'Page', 'create', { [field]: value })
  expect([seen.status, secretIn(seen)]).toEqual([422, ''])
  expect(seen.text).toContain(`id="field-${field}-error"`)
})

test('the page says what each access permits, and creates a key that manages', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const { text } = await owner.get('/app/keys')
  const offered = [...text.matchAll(/name="scope" value="(\w+)"( checked)?>\s*([^<]+)/g)]
  expect(offered.map(([, scope]) => scope)).toEqual(['write', 'read', 'create', 'manage'])
  for (const [, , , label = ''] of offered) expect(label.length).toBeGreaterThan(20)
  // What belongs to a key that creates is no part of another one.
  const { key } = await create(owner, 'Robot', 'manage', { per_minute: '1', origins: 'x' })
  const { code } = await app.shorten('https://example.com/', key)
  const removed = await app.call('DELETE', `/api/links/${code}`, { key })
  expect(removed.status).toBe(200)
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

// spec: Limits | Write budget, Free
test('the budgets of the plan stand beside what the last minute took, and a look takes nothing', async () => {
  await using app = await testApp({ env: ENV })
  const member = await makeMember(app, 'free@example.com')
  const used = async () =>
    [...(await member.get('/app/keys')).text.matchAll(/([\d,]+ of [\d,]+) used<\/meter>/g)].map(
      ([, text]) => text,
    )
  expect(await used()).toEqual(['0 of 60', '0 of 300'])
  expect((await member.get('/app/keys')).text).toContain('100 at most')
  await app.shorten('https://example.com/spring', 'free')
  app.advance(30_000)
  for (let i = 0; i < 4; i++) await app.call('GET', '/api/list', { key: 'free' })
  expect(await used()).toEqual(['1 of 60', '4 of 300'])
  expect(await used()).toEqual(['1 of 60', '4 of 300'])
  const { headers } = await app.call('GET', '/api/list', { key: 'free' })
  expect(headers.get('x-ratelimit-remaining')).toBe('295')
  app.advance(30_000)
  expect(await used()).toEqual(['0 of 60', '5 of 300'])
  for (let i = 0; i < 60; i++) await app.shorten(`https://example.com/${i}`, 'free')
  app.setPlan('free', 'pro')
  expect(await used()).toEqual(['60 of 600', '5 of 3,000'])
})

test('a budget of 0 is shown as no limit', async () => {
  const env = { ...ENV, ENTERPRISE_WRITES_PER_MINUTE: '0', ENTERPRISE_READS_PER_MINUTE: '0' }
  await using app = await testApp({ env })
  const { owner } = await setUpOwner(app)
  const { text } = await owner.get('/app/keys')
  expect(text.match(/no limit/g)).toHaveLength(2)
  expect(text).not.toContain('<meter')
})
