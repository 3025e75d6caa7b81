import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Answer, type CallOptions, type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder, temporaryFolderInMemory } from '../support/folder.ts'

/** What GET /{code} answers for a link with rules. */

const CODE = 'SPRING26'
const URL = 'https://example.com/landing'
const OVER = 'https://example.com/over'

async function claimWith(app: TestApp, properties: object): Promise<void> {
  await app.claim(CODE, URL)
  await change(app, properties)
}

async function change(app: TestApp, json: object): Promise<void> {
  const { status, text } = await app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json })
  if (status !== 200) throw new Error(text)
}

const visit = (app: TestApp, options: CallOptions & { method?: string; query?: string } = {}) =>
  app.call(options.method ?? 'GET', `/${CODE}${options.query ?? ''}`, options)

const hitsOf = async (app: TestApp) => (await app.call('GET', `/api/lookup/${CODE}`)).body.hit_count

function expectRedirect(answer: Answer, location = URL): void {
  expect(answer.status).toBe(302)
  expect(answer.headers.get('location')).toBe(location)
  expect(answer.headers.get('x-service-code')).toBe(CODE)
  expect(answer.headers.get('cache-control')).toBe('no-store')
}

function expectRefused(answer: Answer, status: number, error: string): void {
  expect(answer).toMatchObject({ status, body: { error } })
  expect(answer.headers.get('location')).toBeNull()
  expect(answer.headers.get('x-service-code')).toBeNull()
}

const expectUnknown = (answer: Answer) => expectRefused(answer, 404, `Code not found: ${CODE}`)
const expectExpired = (answer: Answer) => expectRefused(answer, 410, `Link expired: ${CODE}`)

test('a paused link is unknown to visitors at once, and redirects again at once', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  expectRedirect(await visit(app))
  await change(app, { paused: true, expires_at: '2020-01-01T00:00:00Z' })
  expectUnknown(await visit(app))
  expect(
    await app.call('POST', '/api/reserve', { key: 'pro', json: { code: CODE } }),
  ).toMatchObject({ status: 409 })
  await change(app, { paused: null, expires_at: null })
  expectRedirect(await visit(app))
  expect(await hitsOf(app)).toBe(2)
})

test('the limit of a paused link is that of an unknown code, so it does not tell them apart', async () => {
  const env = { ANONYMOUS_READS_PER_MINUTE: '3' }
  await using app = await testApp({ env })
  await claimWith(app, { paused: true })
  const limits: unknown[] = []
  for (const path of [`/${CODE}`, '/UNKNOWN1', `/${CODE}`, `/${CODE}`]) {
    const { status, headers } = await app.call('GET', path, { from: '192.0.2.9' })
    limits.push([status, headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')])
  }
  expect(limits).toEqual([
    [404, '3', '2'],
    [404, '3', '1'],
    [404, '3', '0'],
    [429, '3', '0'],
  ])
})

test('a link redirects from its start on and until its end, to the millisecond', async () => {
  await using app = await testApp()
  const at = (seconds: number) => new Date(app.now() + seconds * 1000).toISOString()
  await claimWith(app, { starts_at: at(10), expires_at: at(20) })
  app.stepWall(9999)
  expectUnknown(await visit(app))
  app.stepWall(1)
  expectRedirect(await visit(app))
  app.stepWall(9999)
  expectRedirect(await visit(app))
  app.stepWall(1)
  expectExpired(await visit(app))
  // The wall clock decides, also when it is set back.
  app.stepWall(-1)
  expectRedirect(await visit(app))
  expect(await hitsOf(app)).toBe(3)
})

test('after its end a link redirects to expired_url, without a hit', async () => {
  await using app = await testApp()
  await claimWith(app, { max_hits: 1, expired_url: OVER })
  expectRedirect(await visit(app))
  for (const method of ['GET', 'HEAD', 'GET']) {
    const answer = await visit(app, { method })
    expect(answer.status).toBe(302)
    expect(answer.headers.get('location')).toBe(OVER)
    expect(answer.headers.get('x-service-code')).toBeNull()
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(Number(answer.headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0)
  }
  expect(await hitsOf(app)).toBe(1)
  await change(app, { expired_url: null })
  expectExpired(await visit(app))
  await change(app, { max_hits: 2 })
  expectRedirect(await visit(app))
  expectExpired(await visit(app))
})

test('an expired link does not redirect to a host that was blocked later', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'hosts.txt')
  const options = { dataDir: folder.path, env: { BLOCKLIST_FILES: list } }
  const later = 'https://blocked.example/over'
  writeFileSync(list, '')
  {
    await using app = await testApp(options)
    await claimWith(app, { expires_at: '2020-01-01T00:00:00Z', expired_url: later })
    expect((await visit(app)).headers.get('location')).toBe(later)
  }
  writeFileSync(list, '0.0.0.0 blocked.example\n')
  await using app = await testApp(options)
  expectExpired(await visit(app))
})

test('max_hits is the number of redirects, however many requests come at once', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  expectRedirect(await visit(app))
  await change(app, { max_hits: 10 })
  const heads = await Promise.all(Array.from({ length: 5 }, () => visit(app, { method: 'HEAD' })))
  expect(heads.map(({ status }) => status)).toEqual([302, 302, 302, 302, 302])
  const answers = await Promise.all(Array.from({ length: 40 }, () => visit(app)))
  expect(answers.filter(({ status }) => status === 302)).toHaveLength(9)
  expect(answers.filter(({ status }) => status === 410)).toHaveLength(31)
  expect((await visit(app, { method: 'HEAD' })).status).toBe(410)
  expect(await hitsOf(app)).toBe(10)
})

test('max_hits of a code that is claimed again counts from 0', async () => {
  await using app = await testApp()
  const { passcode } = await app.claim(CODE, URL)
  await change(app, { max_hits: 1 })
  expectRedirect(await visit(app))
  await app.call('POST', '/api/delete', { key: 'free', json: { code: CODE, passcode } })
  await claimWith(app, { max_hits: 1 })
  expectRedirect(await visit(app))
  expectExpired(await visit(app))
})

test('max_hits counts on after a restart', async () => {
  const { path } = temporaryFolderInMemory()
  try {
    let left = 5
    for (const visits of [2, 1, 4]) {
      await using app = await testApp({ dataDir: path })
      if (left === 5) await claimWith(app, { max_hits: left })
      const answers: Answer[] = []
      for (let n = 0; n < visits; n++) answers.push(await visit(app))
      const redirects = Math.min(left, visits)
      expect(answers.filter(({ status }) => status === 302)).toHaveLength(redirects)
      left -= redirects
    }
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
})

test('the query string of a visit is forwarded only where that is chosen', async () => {
  await using app = await testApp()
  const url = 'https://example.com/landing?a=1&b=2#top'
  await app.claim(CODE, url)
  expectRedirect(await visit(app, { query: '?b=3&c=%20x' }), url)
  await change(app, { forward_query: true })
  const forwarded = 'https://example.com/landing?a=1&b=3&c=%20x#top'
  expectRedirect(await visit(app, { query: '?b=3&c=%20x' }), forwarded)
  expectRedirect(await visit(app), url)
  const answer = await visit(app, { query: '?x=ü"<' })
  expectRedirect(answer, 'https://example.com/landing?a=1&b=2&x=%C3%BC%22%3C#top')
  expect(await hitsOf(app)).toBe(4)
})

test('search engines are asked not to list a link only where that is chosen', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const tag = async () => (await visit(app)).headers.get('x-robots-tag')
  expect(await tag()).toBeNull()
  await change(app, { no_index: true })
  expect(await tag()).toBe('noindex')
  await change(app, { no_index: false })
  expect(await tag()).toBeNull()
})

test('a change of the URL keeps the rules, and a code that is claimed again has none', async () => {
  await using app = await testApp()
  const { passcode } = await app.claim(CODE, URL)
  await change(app, { max_hits: 1 })
  expectRedirect(await visit(app))
  const json = { code: CODE, passcode, url: OVER }
  await app.call('POST', '/api/update', { key: 'free', json })
  expectExpired(await visit(app))
  await app.call('POST', '/api/delete', { key: 'free', json: { code: CODE, passcode } })
  expectUnknown(await visit(app))
  await app.claim(CODE, URL, 'pro')
  for (let n = 0; n < 3; n++) expectRedirect(await visit(app))
})

test('a browser that opens an expired link gets a page in its language', async () => {
  await using app = await testApp()
  await claimWith(app, { expires_at: '2020-01-01T00:00:00Z' })
  const headers = { 'sec-fetch-dest': 'document', 'accept-language': 'fr' }
  const page = await visit(app, { headers })
  expect(page.status).toBe(410)
  expect(page.text).toContain('<h1>Ce lien a expiré</h1>')
})
