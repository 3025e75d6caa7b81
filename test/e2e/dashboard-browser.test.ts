import { expect } from 'bun:test'
import type { BrowserContext, Page } from 'playwright-core'
import { type TestApp, testApp } from '../support/app.ts'
import { browserTests, openAs, problemsOf, straysFrom } from '../support/browser.ts'
import { OWNER, PASSWORD, setUpOwner } from '../support/dashboard.ts'
import { openMenu, press, signOut } from '../support/walk.ts'

/** The dashboard in a real browser: with scripts, without them, and by keyboard. */

const { test, browser } = browserTests()

/** A page that reaches only its own origin: `strays` are what it wanted elsewhere. */
async function openPage(context: BrowserContext, origin: string) {
  const page = await context.newPage()
  return { page, strays: await straysFrom(page, origin), problems: problemsOf(page) }
}

const setupPath = (app: TestApp) => app.url + new URL(app.setupLink).pathname

async function setUp(page: Page, app: TestApp, password = PASSWORD): Promise<void> {
  await page.goto(setupPath(app))
  await page.getByLabel('E-mail address').fill(OWNER)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Create account' }).click()
}

test('the owner sets the account up, copies the key, signs out and in again', async () => {
  await using app = await testApp()
  const context = await browser().newContext()
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: app.url })
  const { page, strays, problems } = await openPage(context, app.url)
  await setUp(page, app)
  const key = await page.getByLabel('API key', { exact: true }).inputValue()
  await page.getByRole('button', { name: 'Copy API key' }).click()
  await page.getByText('Copied.', { exact: true }).waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(key)
  expect(page.url()).not.toContain(key)
  await page.goto(`${app.url}/app/account`)
  await signOut(page)
  await page.getByText('You are signed out.').waitFor()
  await page.getByLabel('E-mail address').fill(OWNER)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Show the password' }).click()
  expect(await page.getByLabel('Password', { exact: true }).getAttribute('type')).toBe('text')
  await page.getByLabel('Password', { exact: true }).press('Enter')
  await page.waitForURL('**/app/links')
  const all = problems.filter((text) => !/404/.test(text))
  expect({ strays, problems: all }).toEqual({ strays: [], problems: [] })
  await context.close()
})

test('without scripts the account is set up, and its password is changed', async () => {
  await using app = await testApp()
  const context = await browser().newContext({ javaScriptEnabled: false })
  const { page } = await openPage(context, app.url)
  await setUp(page, app, 'password')
  expect(await page.getByLabel('E-mail address').inputValue()).toBe(OWNER)
  const field = page.getByLabel('Password', { exact: true })
  expect(await field.getAttribute('aria-invalid')).toBe('true')
  await field.fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account' }).click()
  expect(await page.getByLabel('API key', { exact: true }).inputValue()).toStartWith('hop_')
  await page.goto(`${app.url}/app/account`)
  await page.getByLabel('Current password').fill(PASSWORD)
  await page.getByLabel('New password').fill('eleven silent bees')
  await page.getByRole('button', { name: 'Change the password' }).click()
  await page.getByText('The password is changed').waitFor()
  expect(await page.locator('time').first().textContent()).toMatch(/UTC$/)
  await context.close()
})

test.each([true, false])(
  'the account menu switches the theme, with scripts: %p',
  async (javaScriptEnabled) => {
    await using app = await testApp()
    const { owner } = await setUpOwner(app)
    const options = { javaScriptEnabled, colorScheme: 'light' } as const
    await using opened = await openAs(browser(), { app, visitor: owner, options })
    const { page, problems } = opened
    await page.goto(`${app.url}/app/analytics?range=24h`)
    await openMenu(page)
    const answered = page.waitForResponse((response) => response.url().endsWith('/app/theme'))
    await press(page, 'Dark')
    await answered
    await page.locator('html[data-theme=dark]').waitFor()
    expect(new URL(page.url()).search).toBe('?range=24h')
    await page.reload()
    const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor')
    expect(ground).toBe('rgb(14, 16, 20)')
    expect(problems).toEqual([])
  },
)

test('the keyboard reaches everything in order, from a link that skips to the content', async () => {
  await using app = await testApp()
  const context = await browser().newContext()
  const { page } = await openPage(context, app.url)
  await setUp(page, app)
  await page.goto(`${app.url}/app/account`)
  const focused: string[] = []
  for (let i = 0; i < 7; i++) {
    await page.keyboard.press('Tab')
    focused.push(String(await page.evaluate('document.activeElement.textContent.trim()')))
  }
  expect(focused).toEqual([
    'Skip to the content',
    'Hopcode',
    'Links',
    'Analytics',
    'Keys',
    'Service',
    OWNER,
  ])
  await page.keyboard.press('Enter')
  const inMenu: string[] = []
  for (let i = 0; i < 6; i++) {
    await page.keyboard.press('Tab')
    inMenu.push(String(await page.evaluate('document.activeElement.textContent.trim()')))
  }
  expect(inMenu).toEqual(['Account', 'Security', 'System', 'Light', 'Dark', 'Sign out'])
  await page.keyboard.press('Escape')
  expect(await page.locator('#account-menu').isVisible()).toBe(false)
  await context.close()
})
