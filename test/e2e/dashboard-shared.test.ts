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
  const { text, status } = await owner.post(`${path}/share`, fields, { from: path })
  expect(status).toBe(200)
  const [, token = ''] = /app\/shared\/([\w-]{22})"/.exec(text) ?? []
  return { owner, key, code, path, address: `/app/shared/${token}` }
}

test('everybody with the address sees the numbers of the link, but not its destination', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: ENV })
  const { address, code, key } = await shared(app)
  nextMonday(app)
  const { text, status, headers } = await new Visitor(app, { from: '192.0.2.77' }).get(address)
  expect(status).toBe(200)
  expect(text).toContain(`hop.test/${code}`)
  expect(text).toMatch(/<dt>Hits<\/dt>\s*<dd><strong>6</)
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
    return text.match(/<section class="card" id="visits">.*?<p class="hint">Each panel/s)?.[0]
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
  const { address } = await shared(app, { url: '1' })
  expect((await new Visitor(app).get(address)).text).toContain('private-plans')
})

test('an address ends with the next one, when the page is switched off, and with the link', async () => {
  await using app = await testApp({
    visitFlushMs: 20,
    env: { ...ENV, ANONYMOUS_READS_PER_MINUTE: '0' },
  })
  const { owner, path, address, code } = await shared(app)
  const guest = new Visitor(app, { from: '192.0.2.78' })
  const renewed = await owner.post(`${path}/share`, {}, { from: path })
  const [, next = ''] = /(\/app\/shared\/[\w-]{22})"/.exec(renewed.text) ?? []
  expect((await guest.get(address)).status).toBe(404)
  expect((await guest.get(next)).status).toBe(200)
  const off = await owner.post(`${path}/unshare`, {}, { from: path })
  expect(off.location).toBe(`${path}/settings?done=unshared#public`)
  expect((await guest.get(next)).status).toBe(404)
  const again = await owner.post(`${path}/share`, {}, { from: path })
  const [, last = ''] = /(\/app\/shared\/[\w-]{22})"/.exec(again.text) ?? []
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
  const { text } = await member.post(`${path}/share`, { url: '1' }, { from: path })
  const [address = ''] = /\/app\/shared\/[\w-]{22}(?=")/.exec(text) ?? []
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
    for (const place of [address, path, '/app/analytics']) {
      await page.goto(app.url + place)
      await page.locator('.tiles', { hasText: 'last 30 minutes' }).waitFor()
      await page.getByRole('img', { name: '6 hits in 30 minutes' }).waitFor()
      expect(await violations(page)).toEqual([])
    }
    expect(problems).toEqual([])
  },
)

test('the page shows no destination of a link with a password, until it is removed', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: ENV })
  const { address, code, owner } = await shared(app, { url: '1' })
  const visitor = new Visitor(app, { from: '192.0.2.77' })
  const shows = async () => (await visitor.get(address)).text.includes('private-plans')
  const settings = { from: `/app/links/${code}/settings` }
  expect(await shows()).toBe(true)
  await owner.post(`/app/links/${code}/password`, { link_password: 'open sesame' }, settings)
  expect(await shows()).toBe(false)
  expect((await visitor.get(address)).status).toBe(200)
  await owner.post(`/app/links/${code}/password`, { remove: '1' }, settings)
  expect(await shows()).toBe(true)
})
