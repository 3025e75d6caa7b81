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
  await page.goto(`${app.url}/app/account/security`)
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
  for (let i = 0; i < 7; i++) {
    await page.keyboard.press('Tab')
    inMenu.push(String(await page.evaluate('document.activeElement.textContent.trim()')))
  }
  expect(inMenu).toEqual([
    'New account…',
    'Account',
    'Security',
    'System',
    'Light',
    'Dark',
    'Sign out',
  ])
  await page.keyboard.press('Escape')
  expect(await page.locator('#account-menu').isVisible()).toBe(false)
  await context.close()
})

test.each([true, false])(
  'pages of settings refuse, keep what was typed, save and show it after a reload; scripts: %p',
  async (javaScriptEnabled) => {
    await using app = await testApp()
    const { owner, key } = await setUpOwner(app)
    await app.claim('PHISH001', 'https://login.phish.example/', key)
    const options = { javaScriptEnabled }
    await using opened = await openAs(browser(), { app, visitor: owner, options })
    const { page } = opened
    const side = (name: string) =>
      page.locator('.side').getByRole('link', { name, exact: true }).click()
    const isRefused = async (label: string, value: string) => {
      const field = page.getByLabel(label, { exact: true })
      expect(await field.getAttribute('aria-invalid')).toBe('true')
      expect(await field.inputValue()).toBe(value)
    }
    await page.goto(`${app.url}/app/account`)
    await page.getByLabel('Name').fill('17')
    await page.getByLabel('Time zone').selectOption('Asia/Tokyo')
    await press(page, 'Save')
    await isRefused('Name', '17')
    expect(await page.getByLabel('Time zone').inputValue()).toBe('Asia/Tokyo')
    await page.getByLabel('Name').fill('Acme')
    await press(page, 'Save')
    await page.getByText('Saved.').waitFor()
    await page.reload()
    expect(await page.getByLabel('Name').inputValue()).toBe('Acme')
    expect(await page.getByLabel('Time zone').inputValue()).toBe('Asia/Tokyo')

    await side('Members')
    await page.getByLabel('E-mail address').fill(OWNER)
    await press(page, 'Create an invitation')
    await isRefused('E-mail address', OWNER)
    await page.getByLabel('E-mail address').fill('bob@example.com')
    await press(page, 'Create an invitation')
    const link = page.getByLabel('Link for your colleague', { exact: true })
    expect(await link.inputValue()).toContain('/app/join/')

    await page.getByRole('link', { name: 'Service' }).click()
    await side('Links')
    await page.getByRole('searchbox').fill('phish.example')
    await press(page, 'Find')
    await page.getByRole('button', { name: /^Actions for/ }).click()
    await page.getByRole('link', { name: 'Block its host…' }).click()
    expect(await page.getByLabel('Host or URL').inputValue()).toBe('login.phish.example')
    await page.getByLabel('Host or URL').fill('com')
    await page.getByLabel('Reason').fill('Reported')
    await press(page, 'Block the host')
    await isRefused('Host or URL', 'com')
    await page.getByLabel('Host or URL').fill('phish.example')
    await press(page, 'Block the host')
    await press(page, 'Block the host and stop 1 link')
    await page.getByText('phish.example is blocked: 1 link stopped.').waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Actions for phish.example' }).click()
    await press(page, 'Remove: its links work again')
    await page.getByText('The host is not blocked here any more.').waitFor()
    await page.reload()
    expect(await page.getByText('No hosts.').count()).toBe(1)
  },
)

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

test('Chromium installs the dashboard as an app that is in the share menu', async () => {
  await using app = await testApp()
  const { owner: visitor } = await setUpOwner(app)
  await using opened = await openAs(browser(), { app, visitor })
  const { page, problems } = opened
  await page.goto(`${app.url}/app/links`)
  const devtools = await page.context().newCDPSession(page)
  const { installabilityErrors } = await devtools.send('Page.getInstallabilityErrors')
  // The browser of a test has no profile in which an app could be stored.
  const ids = installabilityErrors.map(({ errorId }) => errorId)
  expect(ids.filter((id) => id !== 'in-incognito')).toEqual([])
  const { data, errors } = await devtools.send('Page.getAppManifest')
  expect(errors).toEqual([])
  const { start_url, icons, share_target: share } = JSON.parse(data ?? '{}')
  for (const { src, sizes, type } of icons) {
    const { headers, bytes } = await app.call('GET', src)
    expect(headers.get('content-type')).toBe(type)
    // Width and height of a PNG file.
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    expect(`${view.getUint32(16)}x${view.getUint32(20)}`).toBe(sizes)
  }
  expect((await page.goto(app.url + start_url))?.status()).toBe(200)
  // As Android sends a page that another app shares.
  const { title, text } = share.params
  const sent = { [title]: 'Spring sale', [text]: 'See https://example.com/spring' }
  await page.goto(`${app.url}${share.action}?${new URLSearchParams(sent)}`)
  expect(await page.inputValue('#field-url')).toBe('https://example.com/spring')
  expect(await page.inputValue('#field-title')).toBe('Spring sale')
  expect(problems).toEqual([])
})
