import { expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { AliasReads } from '../../src/addresses/names.ts'
import type { DestinationReads } from '../../src/links/destination.ts'
import { freshIpv4, guessedCodes, ipv6Networks } from '../abuse/addresses.ts'
import { type Answer, type CallOptions, eventually, type TestApp, testApp } from '../support/app.ts'
import { breakDatabase } from '../support/database.ts'
import { LOCKED, send, WORD, withPassword } from '../support/link-passwords.ts'
import { messageOf } from '../support/refusals.ts'

/** Limits of addresses without an API key: redirects, unknown codes, images, and floods. */

const WINDOW = 60_000
/** The address of a school, or of a scanner behind it. */
const SCHOOL = '198.51.100.20'

const budgetOf = ({ status, headers }: Answer) => ({
  status,
  limit: headers.get('x-ratelimit-limit'),
  remaining: headers.get('x-ratelimit-remaining'),
})

/** The statuses of requests sent one after the other. */
async function statusesOf(app: TestApp, paths: Iterable<string>, options: CallOptions = {}) {
  const statuses: Record<number, number> = {}
  for (const path of paths) {
    const { status } = await app.call('GET', path, options)
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  return statuses
}

const repeated = (path: string, times: number) => Array<string>(times).fill(path)
const guesses = (count: number) => Array.from(guessedCodes(count), (code) => `/${code}`)

async function metric(app: TestApp, series: string): Promise<number> {
  const page = await (await fetch(`${app.url}/-/metrics`)).text()
  const line = page.split('\n').find((text) => text.startsWith(`${series} `))
  return Number(line?.split(' ').at(-1))
}

const lookUpsInVain = (app: TestApp) =>
  metric(app, 'hopcode_link_cache_misses_total{kind="unknown"}')

// design: 4.5 redirects that find their link have a limit of their own
test('a school behind one address scans a poster 1,000 times, and 300 a minute stop nobody', async () => {
  await using app = await testApp()
  await app.claim('POSTER26')
  expect(await statusesOf(app, repeated('/POSTER26', 1000), { from: SCHOOL })).toEqual({
    302: 1000,
  })
  const next = await app.call('GET', '/POSTER26', { from: SCHOOL })
  expect(budgetOf(next)).toEqual({ status: 302, limit: '6000', remaining: '4999' })
})

// design: 4.5 redirects that find their link have a limit of their own
test('the headers describe the limit that was charged: redirects their own, all else the reads', async () => {
  await using app = await testApp({ env: { ANONYMOUS_REDIRECTS_PER_MINUTE: '40' } })
  await app.claim('POSTER26')
  await app.reserve('RESERVED')
  const rows = [
    ['GET', '/POSTER26', 302, '40', '39'],
    ['GET', '/poster26/?utm=1', 302, '40', '38'],
    ['HEAD', '/POSTER26', 302, '40', '37'],
    ['GET', '/NOBODY99', 404, '300', '299'],
    ['GET', '/RESERVED', 404, '300', '298'],
    ['GET', '/not-a-code', 404, '300', '297'],
    ['HEAD', '/NOBODY99', 404, '300', '296'],
    ['POST', '/POSTER26', 405, '300', '295'],
    ['GET', '/qr/POSTER26', 302, '300', '294'],
    ['GET', '/api/lookup/POSTER26', 200, '300', '293'],
    ['GET', '/POSTER26', 302, '40', '36'],
  ] as const
  for (const [method, path, status, limit, remaining] of rows) {
    const answer = await app.call(method, path, { from: SCHOOL })
    expect({ method, path, ...budgetOf(answer) }).toEqual({
      method,
      path,
      status,
      limit,
      remaining,
    })
  }
})

// design: 4.5 a valid key on a public endpoint is charged to its account
test('a redirect with a valid key is charged to the reads of its account, an invalid key is ignored', async () => {
  await using app = await testApp({ env: { ANONYMOUS_REDIRECTS_PER_MINUTE: '2' } })
  await app.claim('POSTER26')
  for (const remaining of ['299', '298', '297']) {
    const answer = await app.call('GET', '/POSTER26', { key: 'free' })
    expect(budgetOf(answer)).toEqual({ status: 302, limit: '300', remaining })
  }
  const ignored = await app.call('GET', '/POSTER26', { key: 'nonsense' })
  expect(budgetOf(ignored)).toEqual({ status: 302, limit: '2', remaining: '1' })
  const lookups = await statusesOf(app, repeated('/NOBODY99', 298), { key: 'free' })
  expect(lookups).toEqual({ 404: 297, 429: 1 })
  expect((await app.call('GET', '/POSTER26', { key: 'free' })).status).toBe(429)
})

// design: 4.5 the window is exact
test('redirects beyond their limit are 429, exactly, and the one after Retry-After passes', async () => {
  await using app = await testApp({ env: { ANONYMOUS_REDIRECTS_PER_MINUTE: '3' } })
  await app.claim('POSTER26')
  const visit = () => app.call('GET', '/POSTER26', { from: SCHOOL })
  for (const wait of [0, 10_000, 10_500]) {
    app.advance(wait)
    expect((await visit()).status).toBe(302)
  }
  const refused = await visit()
  expect(budgetOf(refused)).toEqual({ status: 429, limit: '3', remaining: '0' })
  expect(refused.headers.get('retry-after')).toBe('40')
  expect(refused.body).toEqual({ error: messageOf('rate_limited', '40') })
  // The reads of the address are its own matter.
  const status = await app.call('GET', '/api/status', { from: SCHOOL })
  expect(budgetOf(status)).toEqual({ status: 200, limit: '300', remaining: '299' })
  app.advance(39_499)
  expect((await visit()).status).toBe(429)
  app.advance(1)
  expect((await visit()).status).toBe(302)
  expect((await visit()).status).toBe(429)
  app.advance(WINDOW)
  expect(await statusesOf(app, repeated('/POSTER26', 5), { from: SCHOOL })).toEqual({
    302: 3,
    429: 2,
  })
  expect((await app.call('GET', '/api/lookup/POSTER26')).body.hit_count).toBe(7)
})

// design: 2 a budget of 0 means no limit
test('ANONYMOUS_REDIRECTS_PER_MINUTE=0 means no limit, and unknown codes keep theirs', async () => {
  const env = { ANONYMOUS_REDIRECTS_PER_MINUTE: '0', ANONYMOUS_READS_PER_MINUTE: '5' }
  await using app = await testApp({ env })
  await app.claim('POSTER26')
  expect(await statusesOf(app, repeated('/POSTER26', 50))).toEqual({ 302: 50 })
  const { headers } = await app.call('GET', '/POSTER26')
  expect(Number(headers.get('x-ratelimit-remaining'))).toBeGreaterThan(1_000_000)
  expect(await statusesOf(app, guesses(20))).toEqual({ 404: 5, 429: 15 })
})

// design: 4.5 unknown codes without a database lookup once the reads are used up
test('a scanner that used up its reads gets 429 for unknown codes without a look-up, while every link works', async () => {
  await using app = await testApp()
  for (const code of ['POSTER26', 'POSTER27']) await app.claim(code)
  expect(await statusesOf(app, guesses(301), { from: SCHOOL })).toEqual({ 404: 300, 429: 1 })
  // The first such request starts to read the codes in use.
  const fresh = guessedCodes(2000, 'FRESH')
  await eventually('unknown codes are told without a look-up', async () => {
    const before = await lookUpsInVain(app)
    await app.call('GET', `/${fresh.next().value}`, { from: SCHOOL })
    return (await lookUpsInVain(app)) === before
  })
  const before = await lookUpsInVain(app)
  const others = Array.from(guessedCodes(400, 'OTHER'), (code) => `/${code}`)
  expect(await statusesOf(app, others, { from: SCHOOL })).toEqual({ 429: 400 })
  // A few unknown codes look like known ones.
  expect((await lookUpsInVain(app)) - before).toBeLessThan(20)
  const refused = await app.call('GET', '/NOBODY99', { from: SCHOOL })
  expect(budgetOf(refused)).toEqual({ status: 429, limit: '300', remaining: '0' })
  expect(refused.headers.get('retry-after')).toBe('60')
  // Links that no visitor has followed yet, and one that is younger than the scan.
  await app.claim('POSTER28')
  for (const code of ['POSTER26', 'POSTER27', 'POSTER28']) {
    const answer = await app.call('GET', `/${code}`, { from: SCHOOL })
    expect(budgetOf(answer)).toMatchObject({ status: 302, limit: '6000' })
  }
  const withBadKey = await app.call('GET', '/POSTER26', { from: SCHOOL, key: 'nonsense' })
  expect(withBadKey.status).toBe(302)
})

// design: 4.5 redirects that find their link have a limit of their own
test('an address that used up its reads without guessing still reaches links that are not in memory', async () => {
  await using app = await testApp()
  await app.claim('POSTER26')
  const status = await statusesOf(app, repeated('/api/status', 301), { from: SCHOOL })
  expect(status).toEqual({ 200: 300, 429: 1 })
  const answer = await app.call('GET', '/POSTER26', { from: SCHOOL })
  expect(budgetOf(answer)).toMatchObject({ status: 302, limit: '6000' })
})

// design: 4.4 every request but a 429 takes a slot
test('a look-up that fails is 500, is charged like an unknown code and tells no other caller’s figures', async () => {
  await using app = await testApp()
  await app.claim('POSTER26')
  await app.stop()
  await using again = await testApp({ dataDir: app.dataDir, env: { LINK_CACHE_MAX: '1' } })
  for (let i = 0; i < 3; i++) await again.call('GET', '/api/status', { from: '203.0.113.1' })
  using _broken = breakDatabase(again.dataDir)
  for (const remaining of ['299', '298']) {
    const answer = await again.call('GET', '/POSTER26', { from: SCHOOL })
    expect(budgetOf(answer)).toEqual({ status: 500, limit: '300', remaining })
  }
})

const imageFile = ({ dataDir }: TestApp, code: string) => join(dataDir, 'cdn', 'qr', `${code}.png`)

const stored = (app: TestApp, code: string) =>
  eventually(`the image of ${code} is stored`, () => existsSync(imageFile(app, code)))

test('guessing codes through /cdn/qr/<CODE>.png is charged like a look-up and stops after 300', async () => {
  await using app = await testApp()
  await app.claim('SALE09')
  await stored(app, 'SALE09')
  const images = Array.from(guessedCodes(400), (code) => `/cdn/qr/${code}.png`)
  const first = await app.call('GET', images[0] as string, { from: SCHOOL })
  expect(budgetOf(first)).toEqual({ status: 404, limit: '300', remaining: '299' })
  expect(first.body.error).toStartWith('Code not found: ')
  expect(await statusesOf(app, images.slice(1), { from: SCHOOL })).toEqual({ 404: 299, 429: 100 })
  const before = await lookUpsInVain(app)
  const refused = await app.call('GET', '/cdn/qr/NOBODY99.png', { from: SCHOOL })
  expect(budgetOf(refused)).toEqual({ status: 429, limit: '300', remaining: '0' })
  expect(refused.headers.get('retry-after')).toBe('60')
  expect(await lookUpsInVain(app)).toBe(before)
  // The same reads as those of a look-up.
  expect((await app.call('GET', '/api/lookup/SALE09', { from: SCHOOL })).status).toBe(429)
  expect((await app.call('GET', '/cdn/qr/not-a-code.png', { from: SCHOOL })).status).toBe(429)
})

test('a proxy that fetches thousands of stored images is charged for none, and has no X-RateLimit headers', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '5' } })
  await app.claim('POSTER26')
  await stored(app, 'POSTER26')
  const image = repeated('/cdn/qr/POSTER26.png', 400)
  expect(await statusesOf(app, image, { from: SCHOOL })).toEqual({ 200: 400 })
  const { headers } = await app.call('GET', '/cdn/qr/POSTER26.png', { from: SCHOOL })
  expect([...headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([])
  const status = await app.call('GET', '/api/status', { from: SCHOOL })
  expect(budgetOf(status)).toEqual({ status: 200, limit: '5', remaining: '4' })
  // Misses of others behind the same proxy do not take its stored images away.
  await statusesOf(app, repeated('/cdn/qr/NOBODY99.png', 10), { from: SCHOOL })
  expect(await statusesOf(app, image.slice(0, 20), { from: SCHOOL })).toEqual({ 200: 20 })
})

test('an image that must be made is charged to the reads, and 429 once they are used up', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '2' } })
  await app.claim('POSTER26')
  await stored(app, 'POSTER26')
  const fetchMissing = async () => {
    rmSync(imageFile(app, 'POSTER26'), { force: true })
    return app.call('GET', '/cdn/qr/POSTER26.png', { from: SCHOOL })
  }
  for (const remaining of ['1', '0']) {
    expect(budgetOf(await fetchMissing())).toEqual({ status: 200, limit: '2', remaining })
    await stored(app, 'POSTER26')
  }
  const refused = await fetchMissing()
  expect(budgetOf(refused)).toEqual({ status: 429, limit: '2', remaining: '0' })
  expect(existsSync(imageFile(app, 'POSTER26'))).toBe(false)
  app.advance(WINDOW)
  expect((await app.call('GET', '/cdn/qr/POSTER26.png', { from: SCHOOL })).status).toBe(200)
})

const OVERFLOW = 'hopcode_limiter_overflow_total{callers="address",budget="redirect"}'
const UNCOUNTED = 'hopcode_limiter_uncounted_total{callers="address",budget="redirect"}'

test('when more addresses come than the limiter tells apart, links go on for 400 new visitors', async () => {
  await using app = await testApp({ addressesMax: 64 })
  await app.claim('POSTER26')
  await app.claim('POSTER27')
  for (const from of freshIpv4(200, 10)) {
    expect((await app.call('GET', '/POSTER26', { from })).status).toBe(302)
    await app.call('GET', '/NOBODY99', { from })
  }
  for (const from of freshIpv4(400, 11)) {
    const { status, headers } = await app.call('GET', '/POSTER26', { from })
    expect([from, status, headers.get('x-ratelimit-limit')]).toEqual([from, 302, '6000'])
  }
  // The first of them asks for a link that is not in memory.
  for (const from of freshIpv4(3, 12)) {
    expect((await app.call('GET', '/POSTER27', { from })).status).toBe(302)
  }
  expect(await metric(app, OVERFLOW)).toBe(200 - 64 + 400 + 3)
  expect(await metric(app, UNCOUNTED)).toBe(200 - 64 + 400 + 3)
  expect((await app.call('GET', '/api/lookup/POSTER26')).body.hit_count).toBe(600)
  // Unknown codes share what is left of one budget: a flood does not lift the limit of a scanner.
  const scanned = await statusesOf(app, repeated('/NOBODY99', 310), { from: '203.0.113.9' })
  expect(scanned[429]).toBeGreaterThan(0)
})

test('an IPv6 /45 cannot fill the limiter: under pressure new networks are counted by /48', async () => {
  await using app = await testApp({ addressesMax: 64 })
  await app.claim('POSTER26')
  for (const from of ipv6Networks(400, { prefixLength: 45 })) {
    expect((await app.call('GET', '/POSTER26', { from })).status).toBe(302)
  }
  const size = await metric(app, 'hopcode_limiter_callers{callers="address",budget="redirect"}')
  // Half of the table, one more, and the eight /48 of the /45.
  expect(size).toBeLessThanOrEqual(32 + 1 + 8)
  expect(await metric(app, OVERFLOW)).toBe(0)
  const visitor = await app.call('GET', '/POSTER26', { from: '203.0.113.9' })
  expect(budgetOf(visitor)).toEqual({ status: 302, limit: '6000', remaining: '5999' })
})

/** Counts the look-ups of links and aliases in the database for requests of the control thread. */
function countLookUps(app: TestApp): () => number {
  const service = app.administration as unknown as {
    destinations: DestinationReads
    data: { aliases: AliasReads }
  }
  let count = 0
  const counted = <Args extends unknown[], Found>(find: (...args: Args) => Found) => {
    return (...args: Args): Found => {
      count++
      return find(...args)
    }
  }
  const { destinations, data } = service
  const { aliases } = data
  destinations.findByCode = counted(destinations.findByCode.bind(destinations))
  aliases.findByPath = counted(aliases.findByPath.bind(aliases))
  return () => count
}

test('a flood of POST to unknown paths is refused without a look-up in the database', async () => {
  await using app = await testApp({
    env: { ANONYMOUS_READS_PER_MINUTE: '3', ANONYMOUS_REDIRECTS_PER_MINUTE: '0' },
  })
  const lookUps = countLookUps(app)
  const post = (path: string) => app.call('POST', path, { from: SCHOOL })
  const answers = [await post('/NOBODY99'), await post('/no/such/path'), await post('/nothing')]
  expect(answers.map(({ status }) => status)).toEqual([405, 404, 405])
  const before = lookUps()
  expect(before).toBeGreaterThan(0)
  for (const path of ['/NOBODY99', '/no/such/path', '/nothing', '/POSTER26']) {
    expect(budgetOf(await post(path))).toEqual({ status: 429, limit: '3', remaining: '0' })
  }
  expect(lookUps()).toBe(before)
})

test('the form of a link with a password finds the link once', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  await withPassword(app)
  const json = { aliases: ['menu'] }
  await app.call('PATCH', `/api/links/${LOCKED}`, { key: 'free', json })
  const lookUps = countLookUps(app)
  expect((await send(app, WORD)).status).toBe(303)
  expect(lookUps()).toBe(1)
  // The alias, and its link.
  expect((await send(app, WORD, '/menu')).status).toBe(303)
  expect(lookUps()).toBe(3)
})
