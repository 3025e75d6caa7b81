import { expect } from 'bun:test'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'
import { messageOf } from '../support/refusals.ts'

/** The pages Keys, Analytics and Service in a real browser: what scripts add. */

const ENV = { HIT_FLUSH_MS: '1', ANONYMOUS_READS_PER_MINUTE: '0', SESSION_IDLE_MINUTES: '10080' }

const { test, browser } = browserTests()

/** Follows a link, and waits until the account's series has so many hits in all. */
async function follow(
  app: TestApp,
  { code, times, all, owner }: { code: string; times: number; all: number; owner: Visitor },
): Promise<void> {
  for (let i = 0; i < times; i++) await app.call('GET', `/${code}`)
  await eventually(`${all} hits are counted`, async () =>
    new RegExp(`<dt>Hits</dt>\\s*<dd><strong>${all}<`).test(
      (await owner.get('/app/analytics?range=all')).text,
    ),
  )
}

test('hits come in by themselves while somebody looks, in the account’s own zone', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  await follow(app, { code, times: 1, all: 1, owner })
  const options = { timezoneId: 'Asia/Tokyo', locale: 'en-US' }
  await using opened = await openAs(browser(), { app, visitor: owner, options })
  const { page, problems } = opened
  // The first page tells the service the browser's zone.
  await page.goto(`${app.url}/app/links`)
  await page.goto(`${app.url}/app/analytics?range=24h`)
  await page.getByText('Hours in Asia/Tokyo').waitFor()
  // 12:00 UTC is 21:00 in Tokyo.
  expect(await page.locator('.chart text', { hasText: '21:00' }).count()).toBe(1)
  await page.getByText('Show as table').click()

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
  await page.locator('.tiles', { hasText: 'Hits 3' }).waitFor()
  expect(asked).toHaveLength(1)
  // The table stays open, and is new too.
  const row = page.locator('#hits-table tbody tr').first()
  expect((await row.textContent())?.replace(/\s+/g, ' ')).toBe('1 Mar 2026, 21:003 so far0')
  expect(await row.isVisible()).toBe(true)
  expect(problems).toEqual([])
})

test('the arrow keys read the bars of a chart, and the pointer shows them', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  await follow(app, { code, times: 3, all: 3, owner })
  await using opened = await openAs(browser(), { app, visitor: owner })
  const { page, problems } = opened
  await page.goto(`${app.url}/app/links/${code}?range=7d`)
  const chart = page.locator('svg[data-chart]')
  const [tip, spoken] = [page.locator('.tip'), page.locator('.chart [role=status]')]
  await page.locator('#hits-section [popovertarget]').focus()
  for (let presses = 0; presses < 5; presses++) {
    if (await chart.evaluate((node) => node.matches(':focus'))) break
    await page.keyboard.press('Tab')
  }
  const steps = [
    ['ArrowLeft', '1 Mar 2026: 3 hits so far, 0 hits before'],
    ['ArrowLeft', '28 Feb 2026: 0 hits, 0 hits before'],
    ['Home', '23 Feb 2026: 0 hits, 0 hits before'],
    ['ArrowLeft', '23 Feb 2026: 0 hits, 0 hits before'],
    ['ArrowRight', '24 Feb 2026: 0 hits, 0 hits before'],
    ['End', '1 Mar 2026: 3 hits so far, 0 hits before'],
  ] as const
  for (const [pressed, text] of steps) {
    await page.keyboard.press(pressed)
    const shown = [pressed, await tip.textContent(), await spoken.textContent()]
    expect(shown).toEqual([pressed, text, text])
  }
  expect(await tip.isVisible()).toBe(true)
  // A chart that is being read is not replaced.
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  await page.evaluate("htmx.trigger('#hits', 'live')")
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    expect([colorScheme, await violations(page)]).toEqual([colorScheme, []])
  }
  await page.keyboard.press('Escape')
  expect([await tip.isVisible(), await spoken.textContent()]).toEqual([false, ''])
  expect(asked.filter((url) => url.includes('/analytics/'))).toEqual([])

  await chart.scrollIntoViewIfNeeded()
  await chart.locator('g > g').first().locator('.place').hover()
  expect(await tip.textContent()).toBe('23 Feb 2026: 0 hits, 0 hits before')
  await page.locator('.link-short').hover()
  expect(await tip.isVisible()).toBe(false)
  expect(problems).toEqual([])
})

test('without scripts two dates choose the range, and the tooltips have the values', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  await follow(app, { code, times: 2, all: 2, owner })
  const options = { javaScriptEnabled: false }
  await using opened = await openAs(browser(), { app, visitor: owner, options })
  const { page } = opened
  await page.goto(`${app.url}/app/analytics`)
  await page.getByRole('button', { name: 'Weeks, months, dates' }).click()
  await page.getByLabel('From').fill('2026-02-20')
  await page.getByLabel('to', { exact: true }).fill('2026-03-01')
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await page.getByText('Hits from 20 Feb 2026 to 1 Mar 2026,').waitFor()
  expect(await page.content()).toContain('<title>1 Mar 2026: 2 hits so far')
  await page.getByText('Show as table').click()
  expect(await page.locator('#hits-table tbody tr').count()).toBe(10)
  await page.goto(`${app.url}/app/account`)
  await page.getByLabel('Time zone').selectOption('Asia/Kolkata')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved.').waitFor()
})

test('the end of maintenance is typed in the visitor’s own zone', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const options = { timezoneId: 'Asia/Tokyo' }
  await using opened = await openAs(browser(), { app, visitor: owner, options })
  const { page } = opened
  await page.goto(`${app.url}/app/service`)
  expect(await page.getByText('In UTC').isVisible()).toBe(false)
  await page.getByLabel('Duration').selectOption('at')
  await page.getByLabel('Until').fill('2026-03-02T09:15')
  await page.getByRole('button', { name: 'Start maintenance' }).click()
  await page.getByText('Maintenance has started.').waitFor()
  const { body } = await app.call('GET', '/api/status')
  expect(body.error).toBe(messageOf('maintenance', '2026-03-02T00:15:00.000Z'))
})
