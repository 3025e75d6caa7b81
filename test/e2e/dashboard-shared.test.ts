import { expect, test } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { disableAccount, enableAccount } from '../../src/cli/accounts.ts'
import { DAY } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import { setUpOwner, Visitor } from '../support/dashboard.ts'
import { temporaryFolder } from '../support/folder.ts'
import { makeMember } from '../support/members.ts'

/** The public page of a link, and hits of the last half hour. */

const ENV = { HIT_FLUSH_MS: '1', ANONYMOUS_READS_PER_MINUTE: '20' }
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0'
const DESTINATION = 'https://example.com/private-plans'

const { test: testInBrowser, browser } = browserTests()

/** The services of tests begin on a Sunday. */
const nextMonday = (app: TestApp) => app.advance(DAY)

async function shared(app: TestApp, fields: Record<string, string> = {}) {
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten(DESTINATION, key)
  for (let i = 0; i < 6; i++) {
    const referer = i < 4 ? 'https://many.example/page' : `https://few-${i}.example/`
    await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX, referer } })
  }
  await eventually('the details are counted', async () =>
    (await owner.get('/app/analytics')).text.includes('all 6 hits'),
  )
  const path = `/app/links/${code}`
  const { status } = await owner.post(`${path}/settings`, { ...ON, ...fields })
  expect(status).toBe(303)
  return { owner, key, code, path, address: await addressOf(owner, path) }
}

/** Fields of the settings that switch the page on. */
const ON = { was_public: 'off', public: '1' }

/** The address of the page of a link, as its settings have it; empty without a page. */
const addressOf = async (visitor: Visitor, path: string): Promise<string> =>
  /\/app\/shared\/[\w-]+(?=")/.exec((await visitor.get(`${path}/settings`)).text)?.[0] ?? ''

test('everybody with the address sees the numbers of the link, but not its destination', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: ENV })
  const { address, code, key } = await shared(app)
  nextMonday(app)
  const { text, status, headers } = await new Visitor(app, { from: '192.0.2.77' }).get(address)
  expect(status).toBe(200)
  expect(text).toContain(`hop.test/${code}`)
  expect(text).toMatch(/<dt>Hits<\/dt>\s*<dd><strong>6</)
  expect(text).toContain('<title>Sunday, March 1, 2026: 6</title>')
  expect(text).toContain('many.example')
  expect(text).not.toContain('few-')
  expect(text).not.toContain('private-plans')
  expect(text).toContain('content="noindex"')
  expect(headers.get('cache-control')).toBe('no-store')
  // The address that people see is the alias, once there is one.
  await app.call('PATCH', `/api/links/${code}`, { key, json: { aliases: ['frühling'] } })
  const named = await new Visitor(app, { from: '192.0.2.78' }).get(address)
  expect(named.text).toContain('<h1>hop.test/frühling</h1>')
})

const RANGES = ['', '?range=24h', '?range=7d', '?range=all', '?from=2026-03-02&to=2026-03-02']

test('no two ranges or moments of a public page differ by the details of few visits', async () => {
  await using app = await testApp({
    visitFlushMs: 20,
    env: { ...ENV, ANONYMOUS_READS_PER_MINUTE: '0' },
  })
  const { key, address, code } = await shared(app)
  const guest = new Visitor(app, { from: '192.0.2.80' })
  const details = async (range: string) => {
    const { text } = await guest.get(address + range)
    return text.match(/<section class="card" id="visits">.*?<p class="hint">/s)?.[0]
  }
  // Nothing of a week that has not ended.
  for (const range of RANGES) expect(await details(range)).toBeUndefined()
  nextMonday(app)
  const complete = await details('')
  expect(complete).toContain('many.example')
  for (const range of RANGES) expect(await details(range)).toBe(complete as string)
  const referer = 'https://many.example/page'
  await app.call('GET', `/${code}`, { headers: { 'user-agent': FIREFOX, referer } })
  await eventually('the details are counted', async () => {
    const { body } = await app.call('GET', `/api/links/${code}/visits`, { key })
    return body.known === 7
  })
  for (const range of RANGES) expect(await details(range)).toBe(complete as string)
})

test('the owner of a link can show its destination', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: ENV })
  const { address } = await shared(app, { public_url: '1' })
  expect((await new Visitor(app).get(address)).text).toContain('private-plans')
})

test('an address ends with the next one, when the page is switched off, and with the link', async () => {
  await using app = await testApp({
    visitFlushMs: 20,
    env: { ...ENV, ANONYMOUS_READS_PER_MINUTE: '0' },
  })
  const { owner, path, address, code } = await shared(app)
  const guest = new Visitor(app, { from: '192.0.2.78' })
  const settings = `${path}/settings`
  const on = { was_public: 'on0', public: '1' }
  // Other changes keep the address, also of the page itself.
  await owner.post(settings, { ...on, title: 'Poster', public_url: '1' })
  expect(await addressOf(owner, path)).toBe(address)
  await owner.post(settings, { ...on, was_public: 'on1', public_new: '1' })
  const next = await addressOf(owner, path)
  expect((await guest.get(address)).status).toBe(404)
  expect((await guest.get(next)).status).toBe(200)
  await owner.post(settings, { was_public: 'on0' })
  expect(await addressOf(owner, path)).toBe('')
  expect((await guest.get(next)).status).toBe(404)
  await owner.post(settings, ON)
  const last = await addressOf(owner, path)
  expect([address, next]).not.toContain(last)
  expect((await guest.get(last)).status).toBe(200)
  await owner.post(`${path}/delete`, {}, { from: `${path}/delete` })
  app.advance(60_000)
  await eventually('the link is deleted', async () => (await guest.get(last)).status === 404)
  expect((await owner.get(`/app/links/${code}`)).status).toBe(404)
})

test('no public page outlives a takedown of the account or of the host, whatever it shows', async () => {
  using lists = temporaryFolder()
  const file = join(lists.path, 'list.txt')
  writeFileSync(file, 'other.example\n')
  const env = { ...ENV, ANONYMOUS_READS_PER_MINUTE: '0', BLOCKLIST_FILES: file }
  await using app = await testApp({ env })
  await setUpOwner(app)
  const email = 'free@example.com'
  const member = await makeMember(app, email)
  const { code } = await app.shorten(DESTINATION, 'free')
  const path = `/app/links/${code}`
  await member.post(`${path}/settings`, { ...ON, public_url: '1' })
  const address = await addressOf(member, path)
  const guest = new Visitor(app, { from: '192.0.2.81' })
  const seen = async () => {
    const page = await guest.get(address)
    return [page.status, page.text.includes('private-plans')]
  }
  expect(await seen()).toEqual([200, true])
  // Its links still redirect.
  await disableAccount(app.administration, { email, links: false })
  expect(await seen()).toEqual([200, true])
  await disableAccount(app.administration, { email, links: true })
  expect(await seen()).toEqual([404, false])
  await enableAccount(app.administration, { email })
  expect(await seen()).toEqual([200, true])
  writeFileSync(`${file}.new`, 'example.com\n')
  renameSync(`${file}.new`, file)
  await eventually('the page is gone', async () => (await seen())[0] === 404)
  expect(await seen()).toEqual([404, false])
})

test('a page that does not exist says so in the language of the visitor', async () => {
  await using app = await testApp({ env: ENV })
  const guest = new Visitor(app)
  const titles = new Set<string>()
  for (const language of ['de', 'en', 'es', 'fr', 'ja', 'zh']) {
    const path = `/app/shared/${'x'.repeat(22)}`
    const { status, text } = await guest.get(path, { 'accept-language': language })
    expect([status, /<html lang="(\w+)"/.exec(text)?.[1]]).toEqual([404, language])
    titles.add(/<h1>([^<]*)/.exec(text)?.[1] ?? '')
  }
  expect(titles.size).toBe(6)
})

test('a page that does not exist is a read, and reads are limited', async () => {
  await using app = await testApp({ env: ENV })
  const guest = new Visitor(app, { from: '192.0.2.79' })
  const statuses = new Set<number>()
  for (let i = 0; i < 30; i++) {
    statuses.add((await guest.get(`/app/shared/${'x'.repeat(22)}`)).status)
  }
  expect([...statuses]).toEqual([404, 429])
})

testInBrowser(
  'the public page is accessible, and the chart says how busy the link is now',
  async () => {
    await using app = await testApp({
      visitFlushMs: 20,
      env: { ...ENV, ANONYMOUS_READS_PER_MINUTE: '0' },
    })
    const { owner, address, path } = await shared(app)
    await using opened = await openAs(browser(), { app, visitor: owner })
    const { page, problems } = opened
    for (const place of [path, '/app/analytics']) {
      await page.goto(app.url + place)
      await page.locator('.tiles', { hasText: 'last 30 minutes' }).waitFor()
      await page.getByRole('img', { name: '6 hits in 30 minutes' }).waitFor()
      expect(await violations(page)).toEqual([])
    }
    nextMonday(app)
    for (const width of [1280, 390, 320]) {
      await page.setViewportSize({ width, height: 800 })
      await page.goto(app.url + address)
      await page.getByRole('img', { name: 'Hits: 6' }).waitFor()
      expect(await violations(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    }
    expect(problems).toEqual([])
  },
)

test('the page shows no destination of a link with a password, until it is removed', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: ENV })
  const { address, code, owner } = await shared(app, { public_url: '1' })
  const visitor = new Visitor(app, { from: '192.0.2.77' })
  const shows = async () => (await visitor.get(address)).text.includes('private-plans')
  const settings = `/app/links/${code}/settings`
  expect(await shows()).toBe(true)
  await owner.post(settings, { link_password: 'open sesame' })
  expect(await shows()).toBe(false)
  expect((await visitor.get(address)).status).toBe(200)
  await owner.post(settings, { remove_password: '1' })
  expect(await shows()).toBe(true)
})

test('the hits above and the hits below are those of the same week, in the language of the visitor', async () => {
  await using app = await testApp({
    visitFlushMs: 20,
    env: { ...ENV, ANONYMOUS_READS_PER_MINUTE: '0' },
  })
  const { address, code } = await shared(app)
  const languages = ['en', 'de', 'fr', 'es', 'ja', 'zh']
  const pageIn = async (language: string) =>
    (await new Visitor(app, { 'accept-language': `${language};q=0.9` }).get(address)).text
  const early = await pageIn('de')
  expect([early.includes('9. März 2026'), early.includes('id="visits"')]).toEqual([false, false])
  expect(early).toContain('2. März 2026')
  nextMonday(app)
  // Not of the complete week, but of all time.
  await app.call('GET', `/${code}`)
  const texts = new Set<string>()
  for (const language of languages) {
    const text = await pageIn(language)
    expect(text).toContain(`<html lang="${language}"`)
    const [, tiles = ''] = /<dl class="tiles">(.*?)<\/dl>/s.exec(text) ?? []
    const [above] = [...tiles.matchAll(/<strong>(\d+)</g)].map(([, n]) => Number(n))
    const [, panel = ''] = /id="panel-device"(.*?)<\/table>/s.exec(text) ?? []
    const below = [...panel.matchAll(/class="number"[^>]*><div>(\d+)</g)].map(([, n]) => Number(n))
    expect([language, above, below.reduce((sum, n) => sum + n, 0)]).toEqual([language, 6, 6])
    texts.add(/<p class="hint">([^<]*)<\/p>\s*<\/section>\s*<\/main>/.exec(text)?.[1] ?? '')
  }
  expect(texts.size).toBe(languages.length)
})

test('an address of a page from an earlier version stays, and its account reads a new one', async () => {
  await using app = await testApp({ env: { ...ENV, ANONYMOUS_READS_PER_MINUTE: '0' } })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten(DESTINATION, key)
  const former = 'x'.repeat(22)
  const { hasher } = app.administration
  app.administer(({ db }) =>
    db.run('INSERT INTO shared_pages (link_id, hash, shows_url) SELECT id, ?, 0 FROM links', [
      hasher.hash('shared-page', former),
    ]),
  )
  const path = `/app/links/${code}`
  const address = await addressOf(owner, path)
  const statuses = async () => {
    const guest = new Visitor(app)
    const wrong = address.replace(/.$/, (last) => (last === 'A' ? 'E' : 'A'))
    const all = [address, `/app/shared/${former}`, wrong]
    return Promise.all(all.map(async (one) => (await guest.get(one)).status))
  }
  expect(await statuses()).toEqual([200, 200, 404])
  await owner.post(`${path}/settings`, { was_public: 'on0', public: '1', public_new: '1' })
  expect(await statuses()).toEqual([404, 404, 404])
})
