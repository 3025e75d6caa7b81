import { afterAll, beforeAll, expect } from 'bun:test'
import type { Browser } from 'playwright-core'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { BROWSER_MS, launchBrowser, openAs } from '../support/browser.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'
import { hasTool, testWith } from '../support/tools.ts'

/** The pages Keys, Numbers and Service in a real browser: what scripts add. */

const ENV = { HIT_FLUSH_MS: '1', ANONYMOUS_READS_PER_MINUTE: '0', SESSION_IDLE_MINUTES: '10080' }

const testInBrowser = testWith('browser')

let browser: Browser

beforeAll(async () => {
  if (hasTool('browser')) browser = await launchBrowser()
}, BROWSER_MS)

afterAll(() => browser?.close())

/** Follows a link, and waits until the account's series has so many hits in all. */
async function follow(
  app: TestApp,
  { code, times, all, owner }: { code: string; times: number; all: number; owner: Visitor },
): Promise<void> {
  for (let i = 0; i < times; i++) await app.call('GET', `/${code}`)
  await eventually(`${all} hits are counted`, async () =>
    (await owner.get('/app/numbers?range=year')).text.includes(`<strong>${all}</strong>`),
  )
}

testInBrowser(
  'hits come in by themselves while somebody looks, in the visitor’s own zone',
  async () => {
    await using app = await testApp({ env: ENV })
    const { owner, key } = await setUpOwner(app)
    const { code } = await app.shorten('https://example.com/spring', key)
    await follow(app, { code, times: 1, all: 1, owner })
    const options = { timezoneId: 'Asia/Tokyo', locale: 'en-GB' }
    await using opened = await openAs(browser, { app, visitor: owner, options })
    const { page, problems } = opened
    await page.goto(`${app.url}/app/numbers?range=24h`)
    // 12:00 UTC is 21:00 in Tokyo.
    const newest = page.locator('.chart .wide text[data-at="2026-03-01T12:00:00.000Z"]')
    expect(await newest.textContent()).toBe('21:00')
    expect(await page.getByText(', of UTC').isVisible()).toBe(false)
    await page.getByText('The same as a table').click()

    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    const refresh = (hidden: boolean) =>
      page.evaluate(`(() => {
        Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true })
        htmx.trigger('#hits', 'live')
      })()`)
    await follow(app, { code, times: 2, all: 3, owner })
    await refresh(true)
    expect(asked).toEqual([])
    await refresh(false)
    await page.locator('.sum', { hasText: '3 hits in the last 24 hours' }).waitFor()
    expect(asked).toHaveLength(1)
    expect(await newest.textContent()).toBe('21:00')
    // The table stays open, and is new too.
    const row = page.locator('#hits-table tbody tr').first()
    expect((await row.textContent())?.replace(/\s+/g, ' ')).toBe('1 Mar 2026, 21:003 so far')
    expect(await row.isVisible()).toBe(true)
    expect(problems).toEqual([])
  },
  BROWSER_MS,
)

testInBrowser(
  'the end of maintenance is typed in the visitor’s own zone',
  async () => {
    await using app = await testApp()
    const { owner } = await setUpOwner(app)
    const options = { timezoneId: 'Asia/Tokyo' }
    await using opened = await openAs(browser, { app, visitor: owner, options })
    const { page } = opened
    await page.goto(`${app.url}/app/service`)
    expect(await page.getByText('In UTC').isVisible()).toBe(false)
    await page.getByLabel('It lasts').selectOption('at')
    await page.getByLabel('Until').fill('2026-03-02T09:15')
    await page.getByRole('button', { name: 'Begin maintenance' }).click()
    await page.getByText('Maintenance has begun.').waitFor()
    const { body } = await app.call('GET', '/api/status')
    expect(body.error).toBe('Service under maintenance until 2026-03-02T00:15:00.000Z')
  },
  BROWSER_MS,
)

testInBrowser(
  'without scripts a key is rotated, and the old one is ended after a page that asks',
  async () => {
    await using app = await testApp()
    const { owner, key: old } = await setUpOwner(app)
    const options = { javaScriptEnabled: false }
    await using opened = await openAs(browser, { app, visitor: owner, options })
    const { page } = opened
    await page.goto(`${app.url}/app/keys`)
    await page.getByRole('button', { name: 'Rotate the key' }).click()
    const key = await page.getByLabel('API key', { exact: true }).inputValue()
    expect(key).toStartWith('hop_')
    expect(await page.locator('time[data-countdown]').textContent()).toBe('24 h 0 min')
    await page
      .locator('tr', { hasText: old.slice(-4) })
      .getByRole('link', { name: 'End the key' })
      .click()
    await page.getByRole('button', { name: 'End the key now' }).click()
    await page.getByText('The key has ended').waitFor()
    expect((await app.call('GET', '/api/list', { key: old })).status).toBe(401)
    expect((await app.call('GET', '/api/list', { key })).status).toBe(200)
    expect(await page.content()).not.toContain(key)
  },
  BROWSER_MS,
)
