import { describe, expect, test } from 'bun:test'
import { DAY } from '../../src/lib/clock.ts'
import { eventually, testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import { invalidIn } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { Receiver } from '../support/receiver.ts'

/** Account → Webhooks. */

const PATH = '/app/account/webhooks'
const INSIDE = { OUTGOING_HOSTS: '127.0.0.1' }
const SECRET = /whsec_[A-Za-z0-9+/]{43}=/

const textOf = (html: string) => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

test('an admin adds a webhook, tests it, replaces its secret, disables and deletes it', async () => {
  await using app = await testApp({ env: INSIDE })
  using receiver = new Receiver()
  const free = await makeMember(app, 'free@example.com')
  const send = (action: string, fields = {}) =>
    free.post(`${PATH}/${action}`, { id: '1', ...fields }, { from: PATH })
  const added = await send('new', { url: receiver.url, events: 'link.created' })
  const secret = SECRET.exec(added.text)?.[0]
  expect([added.status, secret]).toEqual([200, expect.any(String)])
  expect((await free.get(PATH)).text).not.toMatch(SECRET)
  expect((await send('test')).location).toBe(`${PATH}?done=tested`)
  expect(receiver.bodies()).toMatchObject([{ type: 'ping' }])
  expect(textOf((await free.get(PATH)).text)).toContain('delivered (answered 200)')
  const rotated = await send('rotate')
  expect(SECRET.exec(rotated.text)?.[0]).not.toBe(secret as string)
  receiver.respond = () => new Response(null, { status: 404 })
  expect((await send('test')).location).toBe(`${PATH}?done=failed`)
  expect(textOf((await free.get(PATH)).text)).toContain('not delivered: answered 404')
  expect((await send('switch', { enabled: '0' })).location).toBe(`${PATH}?done=disabled`)
  expect((await send('switch', { enabled: '1' })).location).toBe(`${PATH}?done=enabled`)
  expect((await free.get(`${PATH}/delete?id=1`)).text).toContain(receiver.url)
  expect((await send('delete')).location).toBe(`${PATH}?done=deleted`)
  expect((await send('test')).status).toBe(404)
  expect((await free.get(PATH)).text).not.toContain(receiver.url)
})

test.each([
  [{ url: 'http://example.com/', events: 'link.created' }, ['url']],
  [{ url: 'https://10.0.0.5/', events: 'link.created' }, ['url']],
  [{ url: 'https://example.com/', events: '' }, []],
  [{ url: 'https://example.com/', events: 'ping' }, []],
])('the form with %p is refused, and keeps what was typed', async (fields, marked) => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const { status, text } = await free.post(`${PATH}/new`, fields, { from: PATH })
  expect([status, invalidIn(text)]).toEqual([422, marked])
  expect(text).toContain(`value="${fields.url}"`)
  const { body } = await app.call('GET', '/api/webhooks', { key: 'free' })
  expect(body).toEqual({ items: [] })
})

test('the page says why a webhook is disabled', async () => {
  await using app = await testApp({ env: INSIDE })
  using receiver = new Receiver()
  receiver.respond = () => new Response(null, { status: 500 })
  const json = { url: receiver.url, events: ['link.created'] }
  await app.call('POST', '/api/webhooks', { key: 'free', json })
  await app.shorten('https://example.com/')
  const attempts = async () =>
    ((await app.call('GET', '/api/webhooks/1/deliveries', { key: 'free' })).body.items as object[])
      .length
  await eventually('it has failed', async () => (await attempts()) === 1)
  app.advance(5 * DAY)
  await eventually('it has failed again', async () => (await attempts()) === 2)
  const free = await makeMember(app, 'free@example.com')
  const { text } = await free.get(PATH)
  expect(textOf(text)).toContain('no delivery has succeeded for five days')
})

test('the page says that a test could not be prepared', async () => {
  await using app = await testApp({ env: INSIDE })
  using receiver = new Receiver()
  const json = { url: receiver.url, events: ['link.created'] }
  await app.call('POST', '/api/webhooks', { key: 'free', json })
  app.administer(({ db }) => db.run(`UPDATE webhooks SET secret = x'00'`))
  const free = await makeMember(app, 'free@example.com')
  const { location } = await free.post(`${PATH}/test`, { id: '1' }, { from: PATH })
  expect(location).toBe(`${PATH}?done=failed`)
  expect(textOf((await free.get(PATH)).text)).toContain('could not prepare the request')
  expect(receiver.received).toEqual([])
})

describe('in a browser', () => {
  const { browser, test: inBrowser } = browserTests()

  inBrowser('the page has no violation of accessibility', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    const json = { url: receiver.url, events: ['link.created'] }
    await app.call('POST', '/api/webhooks', { key: 'free', json })
    await app.call('POST', '/api/webhooks/1/test', { key: 'free' })
    const visitor = await makeMember(app, 'free@example.com')
    await using opened = await openAs(browser(), { app, visitor })
    const { page } = opened
    await page.goto(app.url + PATH)
    expect(await violations(page)).toEqual([])
  })
})
