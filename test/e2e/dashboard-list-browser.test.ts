import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { type TestApp, testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import type { Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** The list of links as people use it all day: dense, by keyboard, with few clicks. */

/** Links with titles, tags and long destinations. */
async function createCampaign(app: TestApp, count = 50): Promise<void> {
  const path = 'campaign/2026/spring?utm_source=flyer&utm_medium=print&utm_campaign='
  const urls = Array.from({ length: count }, (_, n) => `https://shop-${n}.example.com/${path}${n}`)
  const { body } = await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
  const codes = (body.results as { code: string }[]).map(({ code }) => code)
  for (const [n, code] of codes.entries()) {
    const json = { title: `Flyer number ${n} of the spring campaign`, tags: ['print', `tag-${n}`] }
    const { status } = await app.call('PATCH', `/api/links/${code}`, { key: 'free', json })
    // Beyond the write budget of a minute.
    if (status === 429) app.advance(60_000)
  }
}

const { test, browser } = browserTests()

const GZIP_BYTES_MAX = 9000
const rows = (page: Page) => page.locator('.links tbody tr')
const clipboard = (page: Page) => page.evaluate('navigator.clipboard.readText()')
const focusedRow = (page: Page) =>
  page.evaluate("document.activeElement.closest('tr')?.querySelector('.code').textContent")

const LAPTOP = { width: 1280, height: 800 }

async function open(
  app: TestApp,
  visitor: Visitor,
  { viewport = LAPTOP, ...options }: BrowserContextOptions = {},
) {
  const opened = await openAs(browser(), { app, visitor, options: { viewport, ...options } })
  const permissions = ['clipboard-read', 'clipboard-write']
  await opened.page.context().grantPermissions(permissions, { origin: app.url })
  await opened.page.goto(`${app.url}/app/links`)
  return opened
}

/** The list of a service of its own, with links of these codes, or with as many as `fill` makes. */
async function openList(links: string[] | number = [], options?: BrowserContextOptions) {
  await using stack = new AsyncDisposableStack()
  const app = stack.use(await testApp())
  const free = await makeMember(app, 'free@example.com')
  if (typeof links === 'number') await createCampaign(app, links)
  else for (const code of links) await app.claim(code)
  const { page, problems } = stack.use(await open(app, free, options))
  const disposal = stack.move()
  return { app, page, problems, [Symbol.asyncDispose]: () => disposal.disposeAsync() }
}

test('an address is shown whole below a long title, with as many whole tags as fit and the number of the others', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const free = await makeMember(app, 'free@example.com')
  await createCampaign(app, 3)
  const tags = [1, 2, 3, 4, 5, 6].map((n) => `a-rather-long-tag-${n}`)
  const json = { title: 'W'.repeat(60), tags, aliases: ['frühling/alias-26'] }
  const { code } = await app.shorten('https://example.com/', 'free')
  await app.call('PATCH', `/api/links/${code}`, { key: 'free', json })
  for (const width of [1920, 1280, 1024, 360]) {
    await using opened = await open(app, free, { viewport: { width, height: 800 } })
    const { page, problems } = opened
    const cut = await page.evaluate(`[...document.querySelectorAll('.links .code')]
        .filter((code) => code.scrollWidth > code.clientWidth || code.clientWidth === 0)
        .map((code) => code.textContent)`)
    expect({ width, cut }).toEqual({ width, cut: [] })
    const first = rows(page).first()
    expect(await first.locator('.code').textContent()).toEndWith('/frühling/alias-26')
    expect((await first.locator('.title').boundingBox())?.width).toBeGreaterThan(20)
    if (width > 1000) {
      const chips = first.locator('.tag:not(.more):visible')
      const count = await chips.count()
      expect(await first.locator('.more').textContent()).toBe(`+${tags.length - count}`)
      const line = await first.locator('.tags').boundingBox()
      for (const chip of await chips.all()) {
        expect((await chip.boundingBox())?.y).toBeLessThan((line?.y ?? 0) + 4)
      }
      const narrowed = await page.evaluate(`[...document.querySelectorAll('.links .tag')]
          .filter((tag) => tag.scrollWidth > tag.clientWidth + 1).map((tag) => tag.textContent)`)
      expect(narrowed).toEqual([])
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    const search = page.getByRole('searchbox', { name: 'Search links' })
    expect((await search.boundingBox())?.width).toBeGreaterThanOrEqual(110)
    expect(problems).toEqual([])
  }
})

test('ten rows fit a laptop and eight a phone, the first is near the top, and a row has two tab stops', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await createCampaign(app)
  const sizes = [
    { width: 1280, height: 800, rowsMin: 10, topMax: 240 },
    { width: 390, height: 844, rowsMin: 8, topMax: 280 },
    { width: 320, height: 640, rowsMin: 3, topMax: 340 },
  ]
  for (const { rowsMin, topMax, ...size } of sizes) {
    await using opened = await open(app, free, { viewport: size })
    const { page, problems } = opened
    expect(await rows(page).count()).toBe(50)
    const boxes = await Promise.all((await rows(page).all()).map((row) => row.boundingBox()))
    const whole = boxes.filter((box) => box && box.y >= 0 && box.y + box.height <= size.height)
    expect(whole.length).toBeGreaterThanOrEqual(rowsMin)
    expect(boxes[0]?.y).toBeLessThan(topMax)
    const width = await page.evaluate('document.documentElement.scrollWidth')
    expect(width).toBe(size.width)
    const stops = await page.evaluate(`[...document.querySelectorAll('.links tbody tr')].map(
        (row) => [...row.querySelectorAll('a, button, input')].filter((e) => e.tabIndex >= 0).length
      )`)
    expect(Math.max(...(stops as number[]))).toBeLessThanOrEqual(2)
    expect(problems).toEqual([])
  }
  const { text } = await free.get('/app/links')
  expect(gzipSync(text).length).toBeLessThanOrEqual(GZIP_BYTES_MAX)
})

test('Enter creates the link, copies it and shows its QR code; the list and the focus stay', async () => {
  await using opened = await openList(30)
  const { app, page, problems } = opened
  await page.evaluate('scrollTo(0, 40)')
  const field = page.getByLabel('Shorten a URL')
  await field.fill('example.com/new')
  await field.press('Enter')
  const toast = page.locator('.toast')
  await toast.getByRole('heading', { name: 'and copied' }).waitFor()
  const shown = await toast.getByRole('link', { name: /^hop.test/ }).textContent()
  expect(await clipboard(page)).toBe(`http://${shown}`)
  expect(await toast.getByRole('img').getAttribute('src')).toContain('/qr.svg')
  expect(await toast.getByLabel('Passcode', { exact: true }).isVisible()).toBe(false)
  expect(await rows(page).count()).toBe(31)
  await page.locator('#field-url:focus').waitFor()
  expect(await field.inputValue()).toBe('')
  expect(await page.evaluate('scrollY')).toBe(40)
  await toast.getByText('For the API: passcode').click()
  const passcode = await toast.getByLabel('Passcode', { exact: true }).inputValue()
  await toast.getByRole('button', { name: 'Copy Passcode' }).click()
  await page.getByText('Copied.', { exact: true }).waitFor()
  expect(await clipboard(page)).toBe(passcode)
  await toast.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('deleted', { exact: false }).first().waitFor()
  const code = shown?.slice('hop.test/'.length)
  expect((await app.call('GET', `/${code}`)).status).toBe(404)
  // A reload shows no passcode and creates nothing again. A deleted link stays for Undo.
  await page.reload()
  expect(await page.content()).not.toContain(passcode)
  expect(await rows(page).count()).toBe(31)
  expect(problems).toEqual([])
})

test('keys move between rows, copy, select, search and open; a pasted URL is shortened', async () => {
  await using opened = await openList(['SPRING26', 'SUMMER26', 'AUTUMN26'])
  const { page, problems } = opened
  const { keyboard } = page
  await keyboard.press('j')
  expect(await focusedRow(page)).toBe('hop.test/AUTUMN26')
  await keyboard.press('j')
  await keyboard.press('j')
  await keyboard.press('k')
  expect(await focusedRow(page)).toBe('hop.test/SUMMER26')
  await keyboard.press('c')
  await page.getByText('Copied.', { exact: true }).waitFor()
  expect(await clipboard(page)).toBe('http://hop.test/SUMMER26')
  await keyboard.press('x')
  await page.getByText('1 selected').waitFor()
  await keyboard.press('ArrowLeft')
  expect(await page.evaluate('document.activeElement.type')).toBe('checkbox')
  await keyboard.press('q')
  await page.getByRole('dialog', { name: 'hop.test/SUMMER26' }).waitFor()
  await keyboard.press('Escape')
  await keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await keyboard.press('Escape')
  await keyboard.press('/')
  await page.locator('#field-q:focus').waitFor()
  // In a field, keys are text.
  await keyboard.press('n')
  expect(await page.getByLabel('Search links').inputValue()).toBe('n')
  await page.getByLabel('Search links').fill('')
  await page.evaluate('document.activeElement.blur()')
  await keyboard.press('n')
  await page.locator('#field-url:focus').waitFor()
  await page.evaluate('document.activeElement.blur()')
  await page.evaluate(`navigator.clipboard.writeText('https://example.com/pasted')`)
  await keyboard.press('Control+v')
  await page.locator('.toast').getByRole('heading', { name: 'and copied' }).waitFor()
  // The list follows its message.
  await rows(page).first().getByText('example.com/pasted').waitFor()
  await page.evaluate('document.activeElement.blur()')
  await keyboard.press('j')
  await keyboard.press('j')
  await keyboard.press('Enter')
  await page.waitForURL('**/app/links/AUTUMN26')
  expect(problems).toEqual([])
})

test('with a link selected by keyboard, the next Tab leads to the actions, and Shift+Tab back', async () => {
  await using opened = await openList(['SPRING26', 'SUMMER26', 'AUTUMN26'])
  const { page, problems } = opened
  const { keyboard } = page
  const isInActions = () => page.evaluate("!!document.activeElement.closest('.batch')")
  await keyboard.press('j')
  await keyboard.press('Tab')
  // Nothing is selected yet: Tab moves within the row.
  expect(await focusedRow(page)).toBe('hop.test/AUTUMN26')
  await keyboard.press('j')
  await keyboard.press('x')
  await page.getByText('1 selected').waitFor()
  await keyboard.press('Tab')
  expect(await isInActions()).toBe(true)
  await keyboard.press('Shift+Tab')
  expect(await focusedRow(page)).toBe('hop.test/SUMMER26')
  await keyboard.press('k')
  await keyboard.press('Tab')
  expect(await focusedRow(page)).toBe('hop.test/AUTUMN26')
  expect(problems).toEqual([])
})

test('while a path is typed the form says beside it whether it is free, also after a refusal', async () => {
  await using opened = await openList(['SPRING26'])
  const { page, problems } = opened
  const before = await rows(page).first().boundingBox()
  const field = page.getByLabel('Custom path')
  const says = async (typed: string, text: string) => {
    await field.fill(typed)
    await page.locator('#code-status').getByText(text, { exact: true }).waitFor()
  }
  for (const [typed, text] of [
    ['spring26', 'Taken'],
    ['spring27', 'Free'],
    ['spr', 'Free'],
  ] as const) {
    await says(typed, text)
    expect(await rows(page).first().boundingBox()).toEqual(before)
    const box = await field.boundingBox()
    const status = await page.locator('#code-status').boundingBox()
    expect(status?.y).toBeGreaterThanOrEqual((box?.y ?? 0) + (box?.height ?? 0))
  }
  // Sent all the same, both fields keep their text.
  await page.getByLabel('Shorten a URL').fill('https://example.com/kept')
  await field.fill('spring26')
  await page.getByRole('button', { name: 'Shorten', exact: true }).click()
  await page.getByText('Code already in use: spring26', { exact: true }).waitFor()
  await page.locator('#field-code:focus').waitFor()
  expect(await field.inputValue()).toBe('spring26')
  expect(await page.getByLabel('Shorten a URL').inputValue()).toBe('https://example.com/kept')
  await says('winter26', 'Free')
  expect(await page.locator('#create [aria-invalid], #create .error').count()).toBe(0)
  await field.press('Enter')
  await page.locator('.toast').getByRole('heading', { name: 'and copied' }).waitFor()
  expect(await clipboard(page)).toBe('http://hop.test/winter26')
  expect(problems).toEqual([])
})

test('a path that changes while it is looked up is looked up again, without an error', async () => {
  await using opened = await openList(['SPRING26'])
  const { page } = opened
  const errors: string[] = []
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  const first = Promise.withResolvers<void>()
  const isAsked = Promise.withResolvers<void>()
  await page.route('**/app/links/code?**', async (route) => {
    isAsked.resolve()
    await first.promise
    await route.continue()
  })
  await page.evaluate(`document.addEventListener('htmx:trigger', ({ target }) => {
    target.dataset.triggers = Number(target.dataset.triggers ?? 0) + 1
  })`)
  const field = page.getByLabel('Custom path')
  await field.fill('spring26')
  await isAsked.promise
  await field.fill('spring27')
  await page.locator('#field-code[data-triggers="2"]').waitFor()
  first.resolve()
  await page.locator('#code-status').getByText('Free', { exact: true }).waitFor()
  expect(errors).toEqual([])
})

test('a URL from a bookmarklet needs only Enter, and the message leads to the page, the file and the next link', async () => {
  await using opened = await openList(['SPRING26'])
  const { app, page, problems } = opened
  await page.goto(`${app.url}/app/links?url=${encodeURIComponent('https://example.com/mark')}`)
  await page.locator('#field-url:focus').waitFor()
  await page.keyboard.press('Enter')
  const toast = page.locator('.toast')
  await toast.getByRole('heading', { name: 'and copied' }).waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    toast.getByRole('link', { name: 'Download QR code' }).click(),
  ])
  expect(download.suggestedFilename()).toEndWith('.png')
  await rows(page).first().getByRole('checkbox').check()
  const header = await page.locator('header.top').boundingBox()
  const bar = await page.getByRole('group', { name: 'Selected links' }).boundingBox()
  const box = await toast.boundingBox()
  expect(box?.y).toBeGreaterThan((header?.y ?? 0) + (header?.height ?? 0))
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(bar?.y ?? 0)
  await toast.getByRole('link', { name: 'Create another' }).click()
  expect(await toast.count()).toBe(0)
  await page.locator('#field-url:focus').waitFor()
  expect(problems).toEqual([])
})

test('a click anywhere on a row opens the link, and selected links are changed together', async () => {
  await using opened = await openList(['SPRING26', 'SUMMER26', 'AUTUMN26'])
  const { app, page, problems } = opened
  await page.getByLabel('Select hop.test/SPRING26').check()
  await page.getByLabel('Select hop.test/SUMMER26').check()
  await page.getByText('2 selected').waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'QR codes' }).click(),
  ])
  expect(download.suggestedFilename()).toBe('hopcode-qr-codes.zip')
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('2 links deleted.').waitFor()
  expect(page.url()).toBe(`${app.url}/app/links`)
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('2 links restored.').waitFor()
  await page.getByLabel('Select all').check()
  await page.getByText('3 selected').waitFor()
  const message = await page.locator('.toast').boundingBox()
  const bar = await page.getByRole('group', { name: 'Selected links' }).boundingBox()
  expect(message && message.y + message.height).toBeLessThan(bar?.y ?? 0)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('3 links paused.').waitFor()
  await page.goto(`${app.url}/app/links`)
  await rows(page).first().getByText('Paused').waitFor()
  // The link covers its whole row, so the cell itself receives no click.
  await rows(page).first().locator('.age').click({ force: true })
  await page.waitForURL('**/app/links/AUTUMN26')
  expect(problems).toEqual([])
})

test('Shift+click selects a range, and all that match are changed on all pages', async () => {
  await using opened = await openList(60)
  const { app, page, problems } = opened
  const box = (at: number) => rows(page).nth(at).getByRole('checkbox')
  await box(2).check()
  await box(21).click({ modifiers: ['Shift'] })
  await page.getByText('20 selected').waitFor()
  await box(4).click({ modifiers: ['Shift'] })
  await page.getByText('2 selected').waitFor()
  await page.getByLabel('All 60 links').check()
  expect(await page.locator('.links .pick input[name=code]:checked').count()).toBe(50)
  await box(0).uncheck()
  expect(await page.getByLabel('All 60 links').isChecked()).toBe(false)
  await page.getByLabel('Search links').fill('spring campaign')
  await page.getByLabel('All 60 that match').waitFor({ state: 'attached' })
  await box(0).check()
  await page.getByLabel('All 60 that match').check()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('60 links paused.').waitFor()
  const paused = app.administer(({ db }) =>
    db.query('SELECT count(*) AS count FROM links WHERE paused = 1').get(),
  )
  expect(paused).toEqual({ count: 60 })
  expect(problems).toEqual([])
})

test('on a phone all actions for selected links are in view, and every row can be scrolled above them', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await createCampaign(app, 12)
  for (const size of [
    { width: 390, height: 844 },
    { width: 320, height: 640 },
  ]) {
    await using opened = await open(app, free, { viewport: size })
    const { page } = opened
    await rows(page).first().getByRole('checkbox').check()
    const bar = page.getByRole('group', { name: 'Selected links' })
    const actions = await bar.getByRole('button').all()
    expect(actions.length).toBe(9)
    for (const action of actions) {
      const box = await action.boundingBox()
      expect(box && box.x >= 0 && box.x + box.width <= size.width).toBe(true)
      expect(box && box.y >= 0 && box.y + box.height <= size.height).toBe(true)
    }
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
    const last = await rows(page).last().boundingBox()
    const top = (await bar.boundingBox())?.y
    expect(last && last.y + last.height).toBeLessThanOrEqual(top ?? 0)
  }
})

test('without scripts selected links are changed together, and an own code is claimed', async () => {
  await using opened = await openList(['SPRING26'], { javaScriptEnabled: false })
  const { app, page } = opened
  expect(await page.getByRole('button', { name: 'Pause' }).isVisible()).toBe(false)
  await page.getByLabel('Select hop.test/SPRING26').check()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('1 link paused.').waitFor()
  expect(await rows(page).first().textContent()).toContain('Paused')
  await page.getByLabel('Shorten a URL').fill('example.com')
  await page.getByLabel('Custom path').fill('summer26')
  await page.getByRole('button', { name: 'Shorten' }).click()
  await page.getByRole('heading', { name: 'Your short link is ready' }).waitFor()
  expect((await app.call('GET', '/SUMMER26')).headers.get('location')).toBe('https://example.com')
  await page.getByLabel('Search links').fill('spring')
  await page.getByRole('button', { name: 'Search' }).click()
  expect(await rows(page).count()).toBe(1)
  expect(await page.getByRole('button', { name: 'Copy' }).count()).toBe(0)
})

test('typing searches, and the address follows; the field keeps the focus', async () => {
  await using opened = await openList(['SPRING26', 'SUMMER26'])
  const { page, problems } = opened
  expect(await rows(page).count()).toBe(2)
  await page.getByLabel('Search links').pressSequentially('spring')
  await page.waitForURL('**/app/links?q=spring')
  expect(await rows(page).count()).toBe(1)
  // What matches is counted after the rows are shown.
  await page.locator('#found').getByText('1 of 2 links', { exact: true }).waitFor()
  await page.locator('#field-q:focus').waitFor()
  await page.getByLabel('Search links').fill('')
  await page.waitForURL('**/app/links')
  expect(await rows(page).count()).toBe(2)
  expect(problems).toEqual([])
})

test('the new rows of a bulk are saved as a file, from the page and in its place', async () => {
  await using opened = await openList()
  const { app, page, problems } = opened
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
  await field.fill('https://b.example/?q="1,2"\nnonsense')
  await page.getByRole('button', { name: 'Shorten all' }).click()
  await page.getByText('1 new link. 1 line failed.').waitFor()
  expect(await field.inputValue()).toBe('nonsense')
  const [second] = await save('Download as CSV')
  expect(second).toMatchObject({ url: 'https://b.example/?q="1,2"', note: 'new' })
  expect(second?.passcode).toMatch(/^[A-Z0-9]{24}$/)
  expect(problems).toEqual([])
})

test('new hits appear while one looks, their row is marked once, and the first hit of all is noticed', async () => {
  await using opened = await openList(['SPRING26', 'SUMMER26'])
  const { app, page, problems } = opened
  const asked: string[] = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (!pathname.startsWith('/app/assets/')) asked.push(pathname)
  })
  const look = (hidden: boolean) =>
    page.evaluate(`(() => {
        Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true })
        htmx.trigger('#live', 'live')
      })()`)
  await app.call('GET', '/SPRING26')
  await look(true)
  expect(asked).toEqual([])
  await look(false)
  const row = rows(page).filter({ hasText: 'SPRING26' })
  await row.locator('.hits', { hasText: '1' }).waitFor()
  expect(asked).toEqual(['/app/links/hits'])
  expect(await page.locator('.followed').count()).toBe(1)
  const toast = page.locator('.toast')
  await toast.getByText('Your first hit.').waitFor()
  await toast.getByRole('button', { name: 'Close' }).click()
  await app.call('GET', '/SUMMER26')
  await app.call('GET', '/SPRING26')
  await look(false)
  await row.locator('.hits', { hasText: '2' }).waitFor()
  expect(await page.locator('.followed').count()).toBe(2)
  expect(await toast.count()).toBe(0)
  // Of deleted links and those of others, the answer has nothing.
  await app.claim('OTHERS26', 'https://example.com/', 'pro')
  const answer = await page.evaluate(
    "fetch('/app/links/hits?codes=SPRING26,OTHERS26,NOTHING26,!').then((found) => found.text())",
  )
  expect(answer).toBe('<data value="SPRING26">2</data>')
  expect(problems).toEqual([])
})

test('a message covers no row, on a laptop and on a phone', async () => {
  for (const viewport of [LAPTOP, { width: 390, height: 844 }]) {
    await using opened = await openList(12, { viewport })
    const { page, problems } = opened
    await page.getByLabel('Shorten a URL').fill('https://example.com/new')
    await page.getByLabel('Shorten a URL').press('Enter')
    const toast = page.locator('.toast')
    await toast.getByRole('heading', { name: 'and copied' }).waitFor()
    const box = await toast.boundingBox()
    const first = await rows(page).first().boundingBox()
    expect(first?.y).toBeGreaterThanOrEqual((box?.y ?? 0) + (box?.height ?? 0))
    const code = toast.getByRole('link', { name: 'QR code of' })
    expect(await code.getAttribute('href')).toMatch(/^\/app\/links\/\w{8}\/qr$/)
    const picture = await code.getByRole('img').boundingBox()
    expect(Math.min(picture?.width ?? 0, picture?.height ?? 0)).toBeGreaterThanOrEqual(48)
    expect(await violations(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
    expect(problems).toEqual([])
  }
})
