import { expect } from 'bun:test'
import { MINUTE } from '../../src/lib/clock.ts'
import { testApp } from '../support/app.ts'
import { browserTests } from '../support/browser.ts'
import { OWNER, PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { codeOf } from '../support/totp.ts'
import {
  WALK_ENV as ENV,
  keyField,
  listWith,
  openMenu,
  press,
  setUp,
  signIn,
  signOut,
  watch,
} from '../support/walk.ts'

/** The pages that ask for a password or a code, as a person sees them. */

const { test, browser } = browserTests()

test('the pages that ask for a password or a code once more are accessible and fit a phone and a desktop', async () => {
  await using app = await testApp({ env: { ...ENV, SIGNUP: 'open' } })
  const ann = new Visitor(app)
  await ann.signUp(OWNER)
  await using watched = await watch(browser(), app)
  const { page, said, faults, look } = watched
  const reload = () => page.goto(page.url())
  await setUp(page, app, 'eleven silent bees')
  await page.getByLabel('Current password of this account').fill('not this one')
  await look('setup-existing')
  await page.getByLabel('New password').fill(PASSWORD)
  await page.getByLabel('Current password of this account').fill(PASSWORD)
  await press(page, 'Create account')
  await page.waitForURL('**/app/keys?done=owner')
  await look('keys-owner')

  app.advance(10 * MINUTE)
  await page.goto(`${app.url}/app/account/two-factor`)
  await press(page, 'Set up two-factor sign-in')
  await page.getByLabel('Your password').fill('not this one')
  await look('confirm-password')
  await press(page, 'Set it up')
  await look('confirm-password-refused')
  await page.getByLabel('Your password').fill(PASSWORD)
  await press(page, 'Set it up')
  const key = await page.locator('#totp-key').textContent()
  await look('two-factor-secret')
  await page.getByLabel('Code', { exact: true }).fill('000000')
  await press(page, 'Turn it on')
  await look('two-factor-wrong-code')
  const code = codeOf(key?.replaceAll(' ', '') ?? '', app.now())
  await page.getByLabel('Code', { exact: true }).fill(code)
  await press(page, 'Turn it on')
  const codes = await page.getByLabel('Recovery codes', { exact: true }).inputValue()
  await look('two-factor-codes')
  await page.getByRole('link', { name: 'I have saved them' }).click()
  await page.getByRole('link', { name: 'Turn it off…' }).click()
  await look('two-factor-on')
  await signOut(page)
  await signIn(page, app)
  await page.waitForURL('**/app/sign-in/code**')
  await reload()
  await look('sign-in-code')
  await page.getByLabel('Code', { exact: true }).fill('000000')
  await press(page, 'Sign in')
  await look('sign-in-code-refused')
  await page.getByLabel('Code', { exact: true }).fill(codes.split('\n')[0] ?? '')
  await press(page, 'Sign in')
  await page.waitForURL('**/app/links')
  expect({ faults, said }).toEqual({ faults: [], said: [] })
})

test('without scripts: a second factor turned on, and a key rotated after the password was asked for again', async () => {
  await using app = await testApp({ env: ENV })
  const { key: first } = await setUpOwner(app)
  await using watched = await watch(browser(), app, { javaScriptEnabled: false })
  const { page, said } = watched
  await signIn(page, app)
  await openMenu(page)
  await page.getByRole('link', { name: 'Security', exact: true }).click()
  await press(page, 'Set up two-factor sign-in')
  const key = (await page.locator('#totp-key').textContent())?.replaceAll(' ', '') ?? ''
  await page.getByLabel('Code', { exact: true }).fill(codeOf(key, app.now()))
  await press(page, 'Turn it on')
  await page.getByRole('link', { name: 'I have saved them' }).click()
  await signOut(page)
  app.advance(MINUTE)
  await signIn(page, app)
  await page.getByLabel('Code', { exact: true }).fill(codeOf(key, app.now()))
  await press(page, 'Sign in')

  await page.getByRole('link', { name: 'Keys', exact: true }).click()
  app.advance(10 * MINUTE)
  await page.getByRole('button', { name: /^Rotate the key Default/ }).click()
  await page.getByText('Nothing has been changed yet.').waitFor()
  expect(page.url()).not.toContain('?')
  await page.getByLabel('Your password').fill(PASSWORD)
  await press(page, 'Rotate the key')
  const second = await keyField(page).inputValue()
  expect([await listWith(app, first), await listWith(app, second)]).toEqual([200, 200])
  expect(said).toEqual([])
})
