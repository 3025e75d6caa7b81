import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Answer, type TestApp, testApp } from '../support/app.ts'

/** The spec's chapter "Resources and their fields": the table "Code (short link)" and its rules. */

interface Answers {
  shortened: Answer
  again: Answer
  bulk: Answer
  reserved: Answer
  updated: Answer
  lookup: Answer
  list: Answer
  image: Answer
  deleted: Answer
}

/** Every kind of answer that tells of a code, from the life of two of one account. */
async function answersOf(app: TestApp): Promise<Answers> {
  const post = (path: string, json: unknown) => app.call('POST', path, { key: 'free', json })
  const shortened = await post('/api/shorten', { url: 'https://example.com/1' })
  const again = await post('/api/shorten', { url: 'https://example.com/1' })
  const bulk = await post('/api/bulk-shorten', {
    urls: ['https://example.com/1', 'https://a.example'],
  })
  const reserved = await post('/api/reserve', { code: 'spring26' })
  const { passcode } = reserved.body
  app.advance(1)
  const updated = await post('/api/update', {
    code: 'sprinG26',
    passcode,
    url: 'https://b.example',
  })
  await app.call('GET', '/spring26')
  const lookup = await app.call('GET', '/api/lookup/spring26')
  const list = await app.call('GET', '/api/list?search=spring', { key: 'free' })
  const image = await app.call('GET', '/api/qr-image/spring26')
  const deleted = await post('/api/delete', { code: 'spRing26', passcode })
  return { shortened, again, bulk, reserved, updated, lookup, list, image, deleted }
}

/** Every object of an answer that tells of a code. */
const codesIn = ({ body }: Answer): Record<string, unknown>[] =>
  (body.results as Record<string, unknown>[]) ?? (body.items as Record<string, unknown>[]) ?? [body]

/** The value of a field wherever it stands, by the kind of answer. */
function valuesOf(answers: Answers, field: string): Record<string, unknown[]> {
  const found: Record<string, unknown[]> = {}
  for (const [name, answer] of Object.entries(answers)) {
    const having = codesIn(answer).filter((view) => field in view)
    if (having.length > 0) found[name] = having.map((view) => view[field])
  }
  return found
}

// spec: Code (short link) | code
test('code: 6 to 20 uppercase letters and digits, however it was asked for', async () => {
  await using app = await testApp()
  const values = valuesOf(await answersOf(app), 'code')
  expect(Object.keys(values)).toHaveLength(9)
  for (const code of Object.values(values).flat()) expect(code).toMatch(/^[A-Z0-9]{6,20}$/)
  for (const name of ['reserved', 'updated', 'lookup', 'list', 'image', 'deleted']) {
    expect(values[name]).toEqual(['SPRING26'])
  }
})

test('code: one code is one link, across all accounts', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26', 'free')
  for (const key of ['free', 'free-2', 'pro']) {
    const { status } = await app.call('POST', '/api/reserve', { key, json: { code: 'spring26' } })
    expect(status).toBe(409)
  }
})

// spec: Code (short link) | url
test('url: the destination as it was sent, or null while the code is reserved', async () => {
  await using app = await testApp()
  const values = valuesOf(await answersOf(app), 'url')
  expect(values).toEqual({
    shortened: ['https://example.com/1'],
    again: ['https://example.com/1'],
    bulk: ['https://example.com/1', 'https://a.example'],
    reserved: [null],
    updated: ['https://b.example'],
    lookup: ['https://b.example'],
    list: ['https://b.example'],
    image: ['https://b.example'],
  })
})

// spec: Code (short link) | passcode
// spec: Limits | Passcode length
// spec: Authentication | 6
test('passcode: 24 uppercase letters and digits, in the answer of the creation alone', async () => {
  await using app = await testApp()
  const answers = await answersOf(app)
  const secret = expect.stringMatching(/^[A-Z0-9]{24}$/)
  expect(valuesOf(answers, 'passcode')).toEqual({
    shortened: [secret],
    again: [null],
    bulk: [null, secret],
    reserved: [secret],
  })
  const { shortened, reserved, ...others } = answers
  for (const passcode of [shortened.body.passcode, reserved.body.passcode] as string[]) {
    for (const [name, { text }] of Object.entries(others)) {
      expect({ name, told: text.includes(passcode) }).toEqual({ name, told: false })
    }
  }
})

test('passcode: no address gives one again or another', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/')
  const paths = ['rotate', 'passcode', 'recover', 'reset', 'rotate-passcode'].flatMap((word) => [
    `/api/${word}`,
    `/api/${word}/${code}`,
    `/api/${code}/${word}`,
    `/api/lookup/${code}/${word}`,
  ])
  for (const path of paths) {
    const answers = [
      await app.call('GET', path, { key: 'free' }),
      await app.call('POST', path, { key: 'free', json: { code, passcode } }),
    ]
    for (const { status, text } of answers) {
      expect({ path, status, told: text.includes(passcode) }).toEqual({
        path,
        status: 404,
        told: false,
      })
    }
  }
})

// design: 4.15 stored as a keyed hash
test('passcode: stored hashed, so that it is in no file and not in the log', async () => {
  await using app = await testApp()
  const { shortened, reserved } = await answersOf(app)
  const secrets = [shortened.body.passcode, reserved.body.passcode, app.key('free')] as string[]
  await app.call('POST', '/api/delete', {
    key: 'free',
    json: { code: 'NOBODYS1', passcode: shortened.body.passcode },
  })
  const files = readdirSync(app.dataDir, { recursive: true, withFileTypes: true })
    // Images come and go in the background, and hold what anyone may see.
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.png'))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)))
  expect(files.some((bytes) => bytes.includes(shortened.body.code as string))).toBe(true)
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThanOrEqual(24)
    expect(files.some((bytes) => bytes.includes(secret))).toBe(false)
    expect(app.log.some((line) => line.includes(secret))).toBe(false)
  }
})

// spec: Code (short link) | short_url
// spec: Code (short link) | qr_url
// spec: Code (short link) | qr_storage_url
test.each([
  { env: {}, base: 'http://hop.test', cdn: 'http://hop.test/cdn' },
  {
    env: { BASE_URL: 'https://sho.rt:8443', CDN_URL: 'https://img.example/hop' },
    base: 'https://sho.rt:8443',
    cdn: 'https://img.example/hop',
  },
])('short_url, qr_url, qr_storage_url: made of $base and $cdn and the code', async (row) => {
  await using app = await testApp({ env: row.env })
  const answers = await answersOf(app)
  for (const view of Object.values(answers).flatMap(codesIn)) {
    const { code, short_url = '', qr_url = '', qr_storage_url = '' } = view
    expect(['', `${row.base}/${code}`]).toContain(short_url as string)
    expect(['', `${row.base}/qr/${code}`]).toContain(qr_url as string)
    expect(['', `${row.cdn}/qr/${code}.png`]).toContain(qr_storage_url as string)
  }
  const having = (field: string) => Object.keys(valuesOf(answers, field))
  const creations = ['shortened', 'again', 'bulk']
  expect(having('short_url')).toEqual([...creations, 'reserved', 'updated', 'list', 'image'])
  expect(having('qr_url')).toEqual([...creations, 'list', 'image'])
  expect(having('qr_storage_url')).toEqual(['image'])
})

// spec: Code (short link) | created_at
test('created_at: when it was made, in ISO 8601, UTC, with milliseconds, for good', async () => {
  await using app = await testApp()
  app.advance(7)
  const values = valuesOf(await answersOf(app), 'created_at')
  const names = ['shortened', 'again', 'bulk', 'reserved', 'lookup', 'list']
  expect(Object.keys(values)).toEqual(names)
  expect(new Set(Object.values(values).flat())).toEqual(new Set(['2026-03-01T12:00:00.007Z']))
})

// spec: Code (short link) | hit_count
test('hit_count: a whole number that rises by one with each followed short link', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  const other = await app.shorten('https://example.com/other')
  for (const count of [0, 1, 2, 3]) {
    expect((await app.call('GET', `/api/lookup/${code}`)).body.hit_count).toBe(count)
    await app.call('GET', `/${code}`)
  }
  expect((await app.call('GET', `/api/lookup/${other.code}`)).body.hit_count).toBe(0)
  expect(Object.keys(valuesOf(await answersOf(app), 'hit_count'))).toEqual(['lookup', 'list'])
})

// spec: Code (short link) | reused
// spec: Code (short link) | reserved
// spec: Code (short link) | updated
// spec: Code (short link) | deleted
test('reused, reserved, updated, deleted: each in the answers of its own operation', async () => {
  await using app = await testApp()
  const answers = await answersOf(app)
  expect(valuesOf(answers, 'reused')).toEqual({
    shortened: [false],
    again: [true],
    bulk: [true, false],
  })
  expect(valuesOf(answers, 'reserved')).toEqual({ reserved: [true] })
  expect(valuesOf(answers, 'updated')).toEqual({ updated: [true] })
  expect(valuesOf(answers, 'deleted')).toEqual({ deleted: [true] })
})

// spec: Code rules | 1
test('rule 1: neither the passcode nor the API key stands in for the other', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/')
  const url = 'https://example.com/new'
  for (const path of ['/api/update', '/api/delete']) {
    const keyTwice = { key: 'free', json: { code, passcode: app.key('free'), url } }
    expect((await app.call('POST', path, keyTwice)).status).toBe(403)
    const passcodeTwice = { headers: { 'x-api-key': passcode }, json: { code, passcode, url } }
    expect((await app.call('POST', path, passcodeTwice)).status).toBe(401)
  }
  const list = await app.call('GET', '/api/list', { headers: { 'x-api-key': passcode } })
  expect(list.status).toBe(401)
  app.rotateKey('free', { now: true })
  const json = { code, passcode, url }
  expect((await app.call('POST', '/api/update', { key: 'free', json })).status).toBe(200)
})

// spec: Code rules | 2
test('rule 2: a URL begins with http:// or https://, wherever it is given', async () => {
  await using app = await testApp()
  const link = await app.reserve('SPRING26')
  const error = 'Invalid URL: must start with http:// or https://'
  for (const url of ['ftp://a.example/', 'javascript:alert(1)', 'a.example', '//a.example', '']) {
    const answers = [
      await app.call('POST', '/api/shorten', { key: 'free', json: { url } }),
      await app.call('POST', '/api/update', { key: 'free', json: { ...link, url } }),
      await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls: [url] } }),
    ]
    for (const { status, body } of answers) {
      expect({ url, status, body }).toEqual({ url, status: 400, body: { error } })
    }
  }
  for (const url of ['http://a.example/', 'https://a.example/', 'HTTP://b.example/']) {
    const { status } = await app.call('POST', '/api/shorten', { key: 'free', json: { url } })
    expect({ url, status }).toEqual({ url, status: 201 })
  }
})

// spec: Code rules | 3
test('rule 3: a lost passcode cannot be had again by shortening the same URL', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/')
  for (const path of ['/api/shorten', '/api/bulk-shorten']) {
    const json = { url: 'https://example.com/', urls: ['https://example.com/'] }
    const { text, ...answer } = await app.call('POST', path, { key: 'free', json })
    expect(codesIn({ text, ...answer })[0]).toMatchObject({ code, passcode: null, reused: true })
    expect(text).not.toContain(passcode)
  }
})

// spec: Code rules | 4
test('rule 4: one account, one URL, one code, however it is submitted', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  const urls = ['https://example.com/', 'HTTPS://EXAMPLE.COM']
  for (const url of urls) {
    const { body } = await app.call('POST', '/api/shorten', { key: 'free', json: { url } })
    expect(body).toMatchObject({ code, reused: true })
  }
  const { body } = await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
  expect(body.results).toMatchObject(urls.map(() => ({ ok: true, code, reused: true })))
  expect((await app.call('GET', '/api/list', { key: 'free' })).body.total).toBe(1)
  expect((await app.shorten('https://example.com/', 'free-2')).code).not.toBe(code)
})
