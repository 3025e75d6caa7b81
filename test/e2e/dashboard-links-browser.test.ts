import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { parse } from 'csv-parse/sync'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { type TestApp, testApp } from '../support/app.ts'
import { browserTests, openAs } from '../support/browser.ts'
import type { Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** The pages of links in a real browser: what scripts add, and what works without them. */

const { test, browser } = browserTests()

const open = (app: TestApp, visitor: Visitor, options: BrowserContextOptions = {}) =>
  openAs(browser(), { app, visitor, options })

const shown = (page: Page) => page.locator('#list tbody tr')

test('typing searches, and the address follows; the field keeps the focus', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  await app.claim('SUMMER26')
  await using opened = await open(app, free)
  const { page, problems } = opened
  await page.goto(`${app.url}/app/links`)
  expect(await shown(page).count()).toBe(2)
  await page.getByLabel('Search links').pressSequentially('spring')
  await page.waitForURL('**/app/links?q=spring')
  expect(await shown(page).count()).toBe(1)
  // What matches is counted after the rows are shown.
  await page.locator('#found').getByText('1 of 2 links', { exact: true }).waitFor()
  expect(await page.evaluate('document.activeElement.id')).toBe('field-q')
  await page.getByLabel('Search links').fill('')
  await page.waitForURL('**/app/links')
  expect(await shown(page).count()).toBe(2)
  expect(problems).toEqual([])
})

test('without scripts a URL is shortened and found', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await using opened = await open(app, free, { javaScriptEnabled: false })
  const { page } = opened
  await page.goto(`${app.url}/app/links`)
  await page.getByLabel('Shorten a URL').fill('https://example.com/spring')
  await page.getByRole('button', { name: 'Shorten' }).click()
  await page.getByText('For the API: passcode').click()
  expect(await page.getByLabel('Passcode', { exact: true }).inputValue()).toMatch(/^[A-Z0-9]{24}$/)
  await page.getByLabel('Search links').fill('nothing like it')
  await page.getByRole('button', { name: 'Search' }).click()
  expect(await page.locator('#list').textContent()).toContain('Nothing found')
  expect(await page.getByRole('button', { name: 'Copy' }).count()).toBe(0)
})

test('a new link is shown in place: its passcode is copied, and a reload makes nothing again', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await using opened = await open(app, free)
  const { page, problems } = opened
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: app.url })
  await page.goto(`${app.url}/app/links`)
  await page.getByLabel('Shorten a URL').fill('https://example.com/spring')
  await page.getByRole('button', { name: 'Shorten' }).click()
  await page.getByRole('heading', { name: 'Your short link is ready' }).waitFor()
  expect(page.url()).toBe(`${app.url}/app/links`)
  await page.getByText('For the API: passcode').click()
  const passcode = await page.getByLabel('Passcode', { exact: true }).inputValue()
  await page.getByRole('button', { name: 'Copy Passcode' }).click()
  await page.getByText('Copied.', { exact: true }).waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(passcode)
  await page.getByRole('button', { name: 'Close' }).click()
  const [row] = await shown(page).all()
  await row?.hover()
  await row?.getByRole('button', { name: /^Copy short URL/ }).click()
  await page.waitForFunction('navigator.clipboard.readText().then((t) => t.startsWith("http"))')
  await page.reload()
  expect(await page.content()).not.toContain(passcode)
  expect(await shown(page).count()).toBe(1)
  expect(problems).toEqual([])
})

test('a code that is taken is told beside its field, which has the focus and its text', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.reserve('TAKEN26', 'pro')
  await using opened = await open(app, free)
  const { page } = opened
  await page.goto(`${app.url}/app/links`)
  await page.getByLabel('Shorten a URL').fill('https://example.com/kept')
  await page.getByLabel('Custom code').fill('taken26')
  await page.getByText('Taken', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Shorten' }).click()
  await page.getByText('Code already in use: TAKEN26').waitFor()
  expect(await page.getByLabel('Shorten a URL').inputValue()).toBe('https://example.com/kept')
  await page.locator('#field-code:focus').waitFor()
  expect(await page.getByLabel('Custom code').inputValue()).toBe('taken26')
})

test('a link’s page counts while it is looked at, and its preview follows the colors', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  await using opened = await open(app, free)
  const { page, problems } = opened
  await page.clock.install()
  await page.goto(`${app.url}/app/links/SPRING26`)
  await app.call('GET', '/SPRING26')
  await page.clock.runFor(10_000)
  await page.locator('#hit-count', { hasText: '1' }).waitFor()
  await page.getByLabel('Background').fill('#223355')
  await page.clock.runFor(1000)
  await page.getByText('The two colors are too similar').waitFor()
  expect(await page.locator('.printed img').getAttribute('src')).toContain('light=%23223355')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download PNG' }).click(),
  ])
  expect(download.suggestedFilename()).toBe('SPRING26.png')
  await page.getByRole('button', { name: 'Copy as image' }).click()
  await page.getByText('The image is copied.').waitFor()
  await page.clock.runFor(4000)
  await page.getByText('The image is copied.').waitFor({ state: 'hidden' })
  expect(problems).toEqual([])
})

test('on paper a link’s page is its QR code and its short URL alone', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  await using opened = await open(app, free)
  const { page } = opened
  await page.goto(`${app.url}/app/links/SPRING26`)
  await page.emulateMedia({ media: 'print' })
  expect(await page.evaluate('document.body.innerText.trim()')).toBe('hop.test/SPRING26')
  expect(await page.locator('img:visible').count()).toBe(1)
})

test('the new rows of a bulk are saved as a file, from the page and in its place', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await using opened = await open(app, free)
  const { page, problems } = opened
  await page.goto(`${app.url}/app/links/bulk`)
  const save = async (name: string) => {
    const button = page.getByRole('button', { name })
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
    const text = readFileSync(await download.path(), 'utf8')
    return parse(text, { columns: true }) as Record<string, string>[]
  }
  const field = page.getByLabel('URLs, one per line')
  await field.fill('https://a.example/?q="1,2"')
  const [first] = await save('Shorten and download CSV')
  await page.getByText('The file contains all results, failed lines first.').waitFor()
  expect(first).toMatchObject({ url: 'https://a.example/?q="1,2"', note: 'new' })
  // The page stays, and its form can be sent again.
  await field.fill('https://b.example/\nnonsense')
  await page.getByRole('button', { name: 'Shorten all' }).click()
  await page.getByText('1 new link. 1 line failed.').waitFor()
  expect(await field.inputValue()).toBe('nonsense')
  const [second] = await save('Download as CSV')
  expect(second).toMatchObject({ url: 'https://b.example/', note: 'new' })
  expect(second?.passcode).toMatch(/^[A-Z0-9]{24}$/)
  expect(problems).toEqual([])
})
