import { expect } from 'bun:test'
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { type TestApp, testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import { PASSWORD, Visitor } from '../support/dashboard.ts'
import { inviteTo, makeMember } from '../support/members.ts'

/** The page of a link in a real browser. */

const CODE = 'SPRING26'
const PATH = `/app/links/${CODE}`

const { test, browser } = browserTests()

async function open(app: TestApp, options: BrowserContextOptions = {}, tab = '') {
  const free = await makeMember(app, 'free@example.com')
  await app.claim(CODE, 'https://www.example.com/a-long-path/'.repeat(3))
  const opened = await openAs(browser(), { app, visitor: free, options })
  await opened.page.goto(app.url + PATH + tab)
  return opened
}

const patch = (app: TestApp, json: unknown) =>
  app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json })
const stored = async (app: TestApp) =>
  (await app.call('GET', `/api/links/${CODE}`, { key: 'free' })).body

const RULES = [
  { when: { os: ['ios'], language: ['de'] }, url: `https://example.com/${'ios'.repeat(40)}` },
  {
    when: { days: ['mon', 'tue', 'wed'], hours: '09:00-17:00', zone: 'Europe/Berlin' },
    url: 'https://example.com/open',
  },
  { when: { query: { v: '2' } }, url: 'https://example.com/v2' },
]

/** Presses Tab until an element matches. Fails if the keyboard does not reach one. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(`document.activeElement.matches('${selector}')`)) return
  }
  throw new Error(`Tab does not reach ${selector}`)
}

test('address, actions, chart, QR code, destination and sources are on the first screen', async () => {
  await using app = await testApp()
  await using opened = await open(app, { viewport: { width: 1280, height: 800 } })
  const { page } = opened
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: app.url })
  const all = ['.link-short', '.link-actions', '.link-qr img', '.destination', '#hits-section']
  for (const selector of all) {
    const box = await page.locator(selector).boundingBox()
    expect((box?.y ?? 9999) + (box?.height ?? 0), selector).toBeLessThan(800)
  }
  await page.getByRole('button', { name: 'Copy the short URL' }).click()
  await page.getByText('Copied.', { exact: true }).waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`http://hop.test/${CODE}`)
  expect(await page.getByRole('link', { name: `hop.test/${CODE}` }).getAttribute('href')).toBe(
    `http://hop.test/${CODE}`,
  )
  expect(await page.locator('.button.primary').count()).toBe(1)
})

test('the settings are one form: a refused field is marked and nothing typed is lost', async () => {
  await using app = await testApp()
  await using opened = await open(app)
  const { page, problems } = opened
  await page.getByRole('link', { name: 'Edit', exact: true }).click()
  await page.locator('#field-url:focus').fill('https://example.com/summer')
  await page.getByLabel('Title').fill('Camera autofocus poster')
  await page.getByLabel('Tags').fill('print, poster')
  await page.getByLabel('Note').fill('Main station')
  await page.getByLabel('New address').fill('summer-sale')
  await page.getByLabel('Starts').fill('2026-03-02T10:00')
  await page.getByLabel('Expires').fill('2026-03-02T09:00')
  await page.getByLabel('Password for visitors').fill('open sesame')
  await page.getByLabel('Show the page').check()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The link must expire after it starts.').waitFor()
  await page.locator('#field-expires_at:focus').waitFor()
  expect(await stored(app)).toMatchObject({ title: null, aliases: [], protected: false })
  // Leaving asks, and staying keeps what was typed.
  page.once('dialog', (dialog) => void dialog.dismiss())
  await Promise.all([
    page.waitForEvent('dialog'),
    page.getByRole('link', { name: 'Overview' }).click(),
  ])
  expect(await page.getByLabel('Title').inputValue()).toBe('Camera autofocus poster')
  await page.getByLabel('Expires').fill('2026-03-03T09:00')
  await page.evaluate('scrollTo(0, 400)')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved.').waitFor()
  await page.locator('#save-settings:focus').waitFor()
  await page.evaluate(
    'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
  )
  expect(await page.evaluate('scrollY')).toBe(400)
  expect(await page.getByLabel('Its address').inputValue()).toContain('/app/shared/SPRING26-')
  await page.reload()
  expect(await page.getByLabel('Title').inputValue()).toBe('Camera autofocus poster')
  expect(await page.getByLabel('hop.test/summer-sale').first().isChecked()).toBe(true)
  await page.getByRole('link', { name: 'Overview' }).click()
  await page.getByText('Visitors get 404 until 2 Mar 2026, 10:00').waitFor()
  expect(await stored(app)).toMatchObject({
    url: 'https://example.com/summer',
    title: 'Camera autofocus poster',
    tags: ['poster', 'print'],
    note: 'Main station',
    aliases: ['summer-sale'],
    starts_at: '2026-03-02T10:00:00.000Z',
    protected: true,
  })
  expect(problems).toEqual([])
})

test('the preview of the QR code follows the colors, and is downloaded and copied', async () => {
  await using app = await testApp()
  await using opened = await open(app, {}, '/qr')
  const { page, problems } = opened
  await page.clock.install()
  await page.reload()
  await page.getByLabel('Background').fill('#223355')
  await page.clock.runFor(1000)
  await page.locator('#qr-error-dark').getByText('Must be much darker').waitFor()
  expect(await page.locator('.printed').count()).toBe(0)
  await page.getByLabel('Background').fill('#ddeeff')
  await page.clock.runFor(1000)
  await page.locator('.printed').waitFor()
  expect(await page.locator('.printed img').getAttribute('src')).toContain('light=%23ddeeff')
  expect(await page.locator('#qr-error-dark').textContent()).toBe('')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    (async () => {
      await page.getByRole('button', { name: 'Download' }).click()
      await page.getByRole('button', { name: /^PNG/ }).click()
    })(),
  ])
  expect(download.suggestedFilename()).toBe('SPRING26.png')
  await page.getByRole('button', { name: 'Copy as image' }).click()
  await page.getByText('The image is copied.').waitFor()
  await page.clock.runFor(4000)
  await page.getByText('The image is copied.').waitFor({ state: 'hidden' })
  expect(problems).toEqual([])
})

test('only the QR code and its short URL are printed', async () => {
  await using app = await testApp()
  await using opened = await open(app, {}, '/qr')
  const { page } = opened
  await page.emulateMedia({ media: 'print' })
  const frames = await page.evaluate(`[...document.querySelectorAll('body *')]
      .filter((element) => element.getClientRects().length > 0 && !element.closest('.printed'))
      .filter((element) => {
        const { borderTopWidth, borderTopColor } = getComputedStyle(element)
        return borderTopWidth !== '0px' && borderTopColor !== 'rgba(0, 0, 0, 0)'
      })
      .map((element) => element.className)`)
  expect(frames).toEqual([])
  expect(await page.evaluate('document.body.innerText.trim()')).toBe(`hop.test/${CODE}`)
  expect(await page.locator('img:visible').count()).toBe(1)
})

test('the time until a deleted link is gone counts down', async () => {
  await using app = await testApp()
  await using opened = await open(app)
  const { page } = opened
  await page.clock.install({ time: app.now() })
  await page.goto(`${app.url}${PATH}/delete`)
  await page.getByRole('button', { name: `Delete ${CODE}` }).click()
  await page.getByText('1 link deleted.').waitFor()
  await page.goto(app.url + PATH)
  const notice = page.getByText('This link will be deleted in')
  const [first = 0, second = 0] = [await secondsIn(notice), await later(page, notice)]
  expect(first).toBeGreaterThan(second)
  expect(second).toBeGreaterThan(0)
})

const secondsIn = async (notice: Locator) =>
  Number(/(\d+) s/.exec((await notice.textContent()) ?? '')?.[1])

async function later(page: Page, notice: Locator): Promise<number> {
  await page.clock.runFor(5000)
  return secondsIn(notice)
}

test('a suggested tag is added to the earlier ones', async () => {
  await using app = await testApp()
  await using opened = await open(app, {}, '/settings')
  await patch(app, { tags: ['poster'] })
  const { page } = opened
  await page.reload()
  const options = () =>
    page.evaluate('[...document.getElementById("tags").options].map((o) => o.value)')
  await page.getByLabel('Tags').fill('pos')
  expect(await options()).toEqual(['poster'])
  await page.getByLabel('Tags').fill('print, pos')
  expect(await options()).toEqual(['print, poster'])
})

test('without scripts the link is edited, paused, deleted and kept', async () => {
  await using app = await testApp()
  await using opened = await open(app, { javaScriptEnabled: false })
  const { page } = opened
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.locator('#field-url:focus').fill('example.com/summer')
  await page.getByLabel('Title').fill('Summer')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('heading', { name: 'Summer' }).waitFor()
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('The link is paused.').waitFor()
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('link', { name: 'Delete…' }).click()
  await page.getByRole('button', { name: `Delete ${CODE}` }).click()
  await page.goto(app.url + PATH)
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('The link is not deleted.').waitFor()
  expect(await stored(app)).toMatchObject({
    url: 'https://example.com/summer',
    title: 'Summer',
    paused: true,
    delete_at: null,
  })
})

test('the keyboard reaches the menu and Save, in every theme and width nothing is cut or inaccessible', async () => {
  await using app = await testApp()
  await using opened = await open(app)
  const { page, problems } = opened
  await patch(app, {
    title: 'A title as long as people write them when they have a lot to say about a link',
    tags: ['a tag with exactly the forty characters 4', 'poster', 'print'],
    note: 'One\nTwo',
    expires_at: '2026-03-05T00:00:00Z',
    max_hits: 500,
    expired_url: `https://example.com/${'a'.repeat(300)}`,
  })
  await patch(app, { destinations: RULES })
  await page.reload()
  await tabTo(page, '[popovertarget=link-menu]')
  await page.keyboard.press('Enter')
  await tabTo(page, '.menu-item')
  expect(await page.evaluate('document.activeElement.textContent.trim()')).toBe('Pause')
  await page.keyboard.press('Escape')
  expect(await page.locator('#link-menu').isVisible()).toBe(false)
  await page.getByRole('link', { name: 'Settings', exact: true }).click()
  await tabTo(page, '#save-settings')
  const faults: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    for (const tab of ['', '/qr', '/settings', '/destinations', '/destinations?edit=0']) {
      await page.goto(app.url + PATH + tab)
      faults.push(...(await violations(page)))
      for (const width of [320, 390, 768, 1920]) {
        await page.setViewportSize({ width, height: 900 })
        const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
        if (wide > width) faults.push(`${tab}: ${wide} pixels wide in a window of ${width}`)
      }
    }
  }
  expect([...faults, ...problems]).toEqual([])
})

const ruleUrls = async (app: TestApp): Promise<string[]> =>
  ((await stored(app)).destinations as { url: string }[]).map(({ url }) => url.slice(-4))

test.each([true, false])(
  'a destination is refused, corrected, tried, moved and removed (scripts: %p)',
  async (javaScriptEnabled) => {
    await using app = await testApp()
    await using opened = await open(app, { javaScriptEnabled })
    const { page, problems } = opened
    await page.getByRole('link', { name: 'Destinations' }).click()
    const menu = page.getByRole('button', { name: 'Add a condition' })
    expect(await page.locator('[data-line]').filter({ visible: true }).count()).toBe(0)
    for (const condition of ['System', 'Language']) {
      await menu.click()
      await page.locator('#condition-menu').getByText(condition).click()
      if (!javaScriptEnabled) await page.keyboard.press('Escape')
    }
    expect(await page.getByLabel('Countries').count()).toBe(0)
    expect(await page.locator('#field-query').isVisible()).toBe(false)
    await page.getByLabel('Languages').fill('klingon')
    await page.getByText('iPhone or iPad').click()
    await page.getByLabel('Go to').fill('example.com/ios')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.locator('#field-language:focus').waitFor()
    expect(await page.getByLabel('Go to').inputValue()).toBe('example.com/ios')
    await page.getByLabel('Languages').fill('German')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText('If iPhone or iPad and German (de)').waitFor()
    expect(await ruleUrls(app)).toEqual(['/ios'])
    await patch(app, { destinations: RULES })
    await page.reload()
    expect(await page.locator('.hit').textContent()).toContain('Everybody else')
    await page.locator('.try #field-query').fill('v=2')
    if (!javaScriptEnabled) await page.getByRole('button', { name: 'Try', exact: true }).click()
    await page.locator('.hit', { hasText: '?v=2' }).getByText('This visitor').waitFor()
    const act = async (row: number, name: string) => {
      await page.getByRole('button', { name: `Actions for destination ${row}` }).click()
      await page
        .locator(`#rule-${row - 1}`)
        .getByText(name, { exact: true })
        .click()
      await page.getByText('Saved.').waitFor()
    }
    await act(3, 'Move up')
    expect(await ruleUrls(app)).toEqual(['sios', 'm/v2', 'open'])
    await page.goto(`${app.url}${PATH}/destinations`)
    await act(1, 'Remove')
    expect(await ruleUrls(app)).toEqual(['m/v2', 'open'])
    if (javaScriptEnabled) {
      page.on('dialog', ({ message }) => problems.push(`asks ${message()}`))
      await page.goto(`${app.url}${PATH}/destinations?edit=0`)
      await page.getByRole('button', { name: 'Remove the condition Query' }).click()
      expect(await page.locator('#field-query').isVisible()).toBe(false)
      await page.getByRole('link', { name: 'Cancel' }).click()
      await page.locator('.try').waitFor()
      await page.locator('[data-at="1"] .grip').dragTo(page.locator('[data-at="0"]'))
      await page.getByText('Saved.').waitFor()
      expect(await ruleUrls(app)).toEqual(['open', 'm/v2'])
    }
    // Without scripts, the browser reports the status of the refusal.
    expect(problems.filter((text) => javaScriptEnabled || !/ 422 /.test(text))).toEqual([])
  },
)

test('tags can be typed in an account that has none', async () => {
  await using app = await testApp()
  await using opened = await open(app, {}, '/settings')
  const { page, problems } = opened
  const ann = await makeMember(app, 'ann@example.com')
  await using other = await openAs(browser(), { app, visitor: ann })
  await other.page.goto(`${app.url}/app/links`)
  await other.page.locator('#create summary').first().click()
  for (const shown of [page, other.page]) {
    const tags = shown.locator('[data-tags]')
    await tags.pressSequentially('menu, spring')
    expect(await tags.inputValue()).toBe('menu, spring')
  }
  expect([...problems, ...other.problems]).toEqual([])
})

test('every key of the list works without links, and for a person who may only read', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const reader = new Visitor(app)
  await reader.post(await inviteTo(ann, 'viewer@example.com', 'viewer'), { password: PASSWORD })
  for (const [visitor, hasLink] of [
    [ann, false],
    [reader, false],
    [reader, true],
  ] as const) {
    if (hasLink) await ann.post('/app/links', { url: 'https://example.com/a', code: CODE })
    await using opened = await openAs(browser(), { app, visitor })
    const { page, problems } = opened
    await page.goto(`${app.url}/app/links`)
    for (const key of ['j', 'k', 'x', 'c', 'q', 'Escape', 'j', 'x', '?', 'Escape', 'n', 'Escape']) {
      await page.keyboard.press(key)
    }
    expect({ hasLink, problems }).toEqual({ hasLink, problems: [] })
  }
})
