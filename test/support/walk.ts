import type { Page } from 'playwright-core'
import type { TestApp } from './app.ts'
import { OWNER, PASSWORD } from './dashboard.ts'

/** What a person does on the pages of the dashboard, for the tests that walk through them. */

export const WALK_ENV = {
  BASE_URL: 'http://go.example.com',
  HIT_FLUSH_MS: '1',
  ANONYMOUS_READS_PER_MINUTE: '0',
  SESSION_IDLE_MINUTES: '10080',
  SESSION_MAX_HOURS: '720',
}

export const press = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).click()
export const setupAddress = (app: TestApp) => app.url + new URL(app.setupLink).pathname
export const passwordField = (page: Page) => page.getByLabel('Password', { exact: true })
export const keyField = (page: Page) => page.getByLabel('API key', { exact: true })

/** Sends the form of the set-up link. */
export async function setUp(page: Page, app: TestApp, password = PASSWORD): Promise<void> {
  await page.goto(setupAddress(app))
  await page.getByLabel('E-mail address').fill(OWNER)
  await passwordField(page).fill(password)
  await press(page, 'Create account')
}

export async function signIn(page: Page, app: TestApp, password = PASSWORD): Promise<void> {
  await page.goto(`${app.url}/app`)
  await page.getByLabel('E-mail address').fill(OWNER)
  await passwordField(page).fill(password)
  await press(page, 'Sign in')
}

/** Opens the menu under the e-mail address. */
export const openMenu = (page: Page) => page.locator('[popovertarget=account-menu]').click()

export async function signOut(page: Page): Promise<void> {
  await openMenu(page)
  await press(page, 'Sign out')
}

/** The status of the API for a key. */
export const listWith = async (app: TestApp, key: string): Promise<number> =>
  (await app.call('GET', '/api/list', { key })).status
