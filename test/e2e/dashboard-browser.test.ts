import { expect } from 'bun:test'
import { testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import { OWNER, PASSWORD, setUpOwner } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { openMenu, press, setUp } from '../support/walk.ts'

/** The dashboard in a real browser: with scripts, without them, and by keyboard. */

const { test, browser } = browserTests()

test('without scripts the account is set up, and its password is changed', async () => {
  await using app = await testApp()
  const context = await browser().newContext({ javaScriptEnabled: false })
  const page = await context.newPage()
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
  const page = await context.newPage()
  await setUp(page, app)
  await page.goto(`${app.url}/app/account`)
  const focused: string[] = []
  for (let i = 0; i < 8; i++) {
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
    'Go to Ctrl K',
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

test('Ctrl+K goes to a link, a page or an action from any page, and the address works without scripts', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const { code } = await app.shorten('https://example.com/spring', 'free')
  const json = { title: '<b>Import</b> poster' }
  await app.call('PATCH', `/api/links/${code}`, { key: 'free', json })
  await using opened = await openAs(browser(), { app, visitor: free })
  const { page, problems } = opened
  await page.goto(`${app.url}/app/keys`)
  await page.keyboard.press('Control+k')
  const dialog = page.getByRole('dialog', { name: 'Go to' })
  await dialog.waitFor()
  expect(await violations(page)).toEqual([])
  await page.keyboard.type('poster')
  await dialog.getByRole('option', { name: '<b>Import</b> poster' }).waitFor()
  expect(await dialog.getByRole('option', { selected: true }).getAttribute('href')).toEndWith(code)
  // A page whose name begins with the text comes before the link.
  await page.locator('#go-text').fill('import')
  await page.locator('#go-0', { hasText: 'Import links' }).waitFor()
  await dialog.getByRole('option', { name: '<b>Import</b> poster' }).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/app/links/import')
  await page.keyboard.press('Control+k')
  await dialog.waitFor()
  await page.keyboard.type('blocked hosts')
  await dialog.getByText('Nothing found').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  expect(problems).toEqual([])
  // The text is typed and entered faster than the service answers.
  await page.goto(`${app.url}/app/keys`)
  await page.keyboard.press('Control+k')
  await dialog.waitFor()
  await page.keyboard.type('analytics')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/app/analytics')
  // The option that screen readers name is the one that Enter opens, also after another answer.
  await page.keyboard.press('Control+k')
  await dialog.waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.type('import')
  await page.locator('#go-0', { hasText: 'Import links' }).waitFor()
  const field = page.locator('#go-text')
  const selected = await dialog.getByRole('option', { selected: true }).getAttribute('id')
  expect(await field.getAttribute('aria-activedescendant')).toBe(selected)
  expect(problems).toEqual([])
  const plain = await free.get(`/app/go?q=${encodeURIComponent('spring import')}`)
  expect(plain.text).toContain(`/app/links/${code}`)
  expect(plain.text).not.toContain('<b>Import')
})
