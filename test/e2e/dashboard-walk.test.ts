import { expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { disableLink } from '../support/administration.ts'
import { testApp } from '../support/app.ts'
import { browserTests } from '../support/browser.ts'
import { PASSWORD, setUpOwner } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import {
  addMany,
  WALK_ENV as ENV,
  fillAccount,
  follow,
  keyField,
  LONGEST_CODE,
  listWith,
  openMenu,
  passwordField,
  press,
  setUp,
  setupAddress,
  signIn,
  signOut,
  watch,
} from '../support/walk.ts'

/** The dashboard from the first start to the last link, as somebody sees it who has only it. */

const { test, browser } = browserTests()

async function deleteInDashboard(page: Page, code: string): Promise<void> {
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('link', { name: 'Delete…' }).click()
  await page.getByText('You can undo this for 30 seconds.').waitFor()
  await press(page, `Delete ${code}`)
  await page.getByText('1 link deleted.').waitFor()
}

/** As extensions of browsers do, and a browser itself when a text field is resized. */
const styleElements = (page: Page) =>
  page.locator('main [id]').evaluateAll((elements) => {
    for (const element of elements) element.style.outlineOffset = '3px'
  })

test('from the first start’s link to a code that is gone: key, link, hit, rotation, deletion', async () => {
  await using app = await testApp({ env: ENV })
  await using watched = await watch(browser(), app)
  const { page, said } = watched
  const permissions = ['clipboard-read', 'clipboard-write']
  await page.context().grantPermissions(permissions, { origin: app.url })

  await setUp(page, app)
  await press(page, 'Copy API key')
  await page.getByText('Copied.', { exact: true }).waitFor()
  const first = String(await page.evaluate('navigator.clipboard.readText()'))

  const { code } = await app.shorten('https://example.com/spring', first)
  await page.getByRole('link', { name: 'Links', exact: true }).click()
  await page.locator('.links .name').getByRole('link', { name: code }).click()
  const count = page.locator('#hit-count')
  expect(await count.textContent()).toBe('0')
  expect(await follow(app, code)).toBe(302)
  await page.clock.runFor(10_000)
  await page.locator('#hit-count', { hasText: '1' }).waitFor()
  await page.locator('.tiles', { hasText: 'Hits 1' }).waitFor()

  await page.getByRole('link', { name: 'Keys', exact: true }).click()
  await page.getByRole('button', { name: /^Rotate the key/ }).click()
  const second = await keyField(page).inputValue()
  expect(second).not.toBe(first)
  expect([await listWith(app, first), await listWith(app, second)]).toEqual([200, 200])

  await page.goto(`${app.url}/app/links/${code}`)
  await deleteInDashboard(page, code)
  expect(await follow(app, code)).toBe(404)
  expect(said).toEqual([])
})

test('without scripts: signed in, a URL shortened, its passcode seen, a key rotated, a code deleted', async () => {
  await using app = await testApp({ env: ENV })
  const { key: first } = await setUpOwner(app)
  await using watched = await watch(browser(), app, { javaScriptEnabled: false })
  const { page, said } = watched
  await signIn(page, app)
  await page.getByLabel('Shorten a URL').fill('https://example.com/spring')
  await press(page, 'Shorten')
  await page.getByText('For the API: passcode').click()
  const passcode = await page.getByLabel('Passcode', { exact: true }).inputValue()
  expect(passcode).toMatch(/^[A-Z0-9]{24}$/)
  const short = page.locator('.toast a.code')
  const code = (await short.textContent())?.slice(-8) ?? ''
  expect(await follow(app, code)).toBe(302)

  await page.getByRole('link', { name: 'Keys', exact: true }).click()
  await page.getByRole('button', { name: /^Rotate the key/ }).click()
  const second = await keyField(page).inputValue()
  expect([await listWith(app, first), await listWith(app, second)]).toEqual([200, 200])

  await page.goto(`${app.url}/app/links/${code}`)
  expect(await page.content()).not.toContain(passcode)
  await deleteInDashboard(page, code)
  expect(await follow(app, code)).toBe(404)
  expect(said).toEqual([])
})

test('the auth pages are accessible and fit every width: setting up, signing in, welcome, errors', async () => {
  await using app = await testApp({ env: ENV })
  await using watched = await watch(browser(), app)
  const { page, said, faults, look } = watched
  await page.goto(setupAddress(app))
  await look('setup')
  await setUp(page, app, 'password')
  await look('setup-refused')
  await passwordField(page).fill(PASSWORD)
  await press(page, 'Create account')
  await look('welcome')
  for (const path of ['links', 'analytics', 'keys']) {
    await page.goto(`${app.url}/app/${path}`)
    await look(`${path}-empty`)
  }
  await signOut(page)
  await passwordField(page).fill(PASSWORD)
  await press(page, 'Show the password')
  expect(await passwordField(page).getAttribute('type')).toBe('text')
  await look('sign-in')
  await signIn(page, app, 'not the password')
  await look('sign-in-refused')
  await page.goto(setupAddress(app))
  await look('error-link-over')
  expect({ faults, said }).toEqual({ faults: [], said: [] })
})

test('the pages of links are accessible and fit every width, full of them', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  await fillAccount(app, key)
  await owner.post('/app/links/SPRING26/settings', {
    url: `https://example.com/${'x'.repeat(300)}`,
  })
  await using watched = await watch(browser(), app)
  const { page, said, faults, look } = watched
  await signIn(page, app)
  await look('links')
  await page.goto(`${app.url}/app/links?q=nothing+like+it`)
  await look('links-none-found')
  await page.goto(`${app.url}/app/links`)
  await styleElements(page)
  await page.getByLabel('Shorten a URL').fill('https://www.example.org/a-new-one')
  await press(page, 'Shorten')
  await page.getByRole('heading', { name: 'Your short link is ready' }).waitFor()
  await look('link-made')
  await page.getByLabel('Custom path').fill('SPRING26')
  await press(page, 'Shorten')
  await page.getByText('Code already in use: SPRING26').waitFor()
  await look('link-refused')
  for (const path of [
    'links?sort=hits',
    'links/SPRING26',
    'links/SPRING26/history',
    'links/SPRING26/settings',
    `links/${LONGEST_CODE}`,
    `links/${LONGEST_CODE}/qr?dark=%23ffffff`,
    `links/${LONGEST_CODE}/settings`,
    `links/${LONGEST_CODE}/delete`,
  ]) {
    await page.goto(`${app.url}/app/${path}`)
    await look(path.replaceAll(/\W+/g, '-'))
  }
  await page.goto(`${app.url}/app/links/bulk`)
  await look('bulk')
  const lines = ['https://a.example.com/new', 'ftp://example.com/no', 'https://example.com/jobs']
  await page
    .getByLabel('URLs, one per line')
    .fill([...lines, 'https://menu.example.com/summer'].join('\n'))
  await press(page, 'Shorten all')
  await page.getByText('2 new links. 1 URL already had a link. 1 line failed.').waitFor()
  await look('bulk-result')
  await addMany(app, key)
  await page.goto(`${app.url}/app/links?page=2`)
  await look('links-page-2')
  await page.goto(`${app.url}/app/links?q=without-an-end`)
  await look('links-long-url')
  await page.locator('.links .name a').click()
  await look('link-long-url')
  await page.goto(`${app.url}/app/links/NOSUCHCODE`)
  await look('error-not-found')
  expect({ faults, said }).toEqual({ faults: [], said: [] })
})

test('the other pages are accessible and fit every width: keys, analytics, service, account', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const from = '/app/service/accounts'
  await owner.post(`${from}/invites`, { email: '', plan: 'pro' }, { from })
  await makeMember(app, 'pro@example.com')
  await makeMember(app, 'somebody.with.a.long.address@department.example.org')
  await fillAccount(app, key)
  await app.claim('DISABLED26', `https://example.com/${'endless'.repeat(100)}`, key)
  await app.claim('ACTIVE26', 'https://example.com/', key)
  await disableLink(app, 'DISABLED26', 'Reported '.repeat(20))
  await using watched = await watch(browser(), app)
  const { page, said, faults, look } = watched
  await signIn(page, app)
  await page.waitForURL('**/app/links')
  for (const path of [
    'service/links',
    'service/links/DISABLED26',
    'service/links/ACTIVE26',
    'service/links?code=NOBODYS1',
    'links',
    'links/DISABLED26',
    'keys',
    'keys/revoke?key=1',
    'analytics',
    'analytics?range=24h',
    'analytics?range=90d',
    'analytics?range=12m',
    'analytics?from=2026-02-01&to=2026-02-28',
    'service',
    'service/accounts',
    'service/accounts/1',
    'service/accounts/2',
    'service/accounts/2/disable',
    'service/hosts',
    'service/domains',
    'service/domains/go.example.com/apps',
    'service/unknown-paths',
    'service/settings',
    'account',
    'account/activity',
    'account/domains',
    'account/members',
    'account/security',
    'campaigns',
    'account/delete',
    'account/two-factor',
    'qr',
    'nothing',
  ]) {
    await page.goto(`${app.url}/app/${path}`)
    await look(path.replaceAll(/\W+/g, '-'))
  }
  await openMenu(page)
  await look('menu')
  await page.goto(`${app.url}/docs`)
  await page.locator('.opblock').first().waitFor()
  await look('docs')
  await page.goto(`${app.url}/app/analytics`)
  await page.getByText('Show as table').click()
  await look('analytics-table')
  await page.goto(`${app.url}/app/keys`)
  await page.getByRole('button', { name: /^Rotate the key/ }).click()
  await keyField(page).waitFor()
  await look('keys-rotated')
  await page
    .getByRole('link', { name: /^Revoke the key .* now$/ })
    .first()
    .click()
  await look('keys-end')
  await page.goto(`${app.url}/app/service`)
  await press(page, 'Start maintenance')
  await page.getByText('Maintenance has started.').waitFor()
  await look('service-maintenance')
  expect({ faults, said }).toEqual({ faults: [], said: [] })
})
