import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { type TestApp, toAnswer } from './app.ts'
import { onScriptError, violations } from './browser.ts'
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

const FOLDER = join(import.meta.dir, '../.artifacts/screens')

/** `SCREENS=1` stores a screenshot of each page in each look. */
const STORES = process.env.SCREENS === '1'
/** axe takes half a second: one phone and one desktop show each layout and each theme. */
const JUDGED = [
  { name: 'phone-light', width: 390, height: 844, colorScheme: 'light', hasAxe: true },
  { name: 'desktop-dark', width: 1280, height: 800, colorScheme: 'dark', hasAxe: true },
  { name: 'wide-light', width: 1920, height: 1080, colorScheme: 'light', hasAxe: false },
] as const
const FURTHER = [
  { name: 'phone-dark', width: 390, height: 844, colorScheme: 'dark', hasAxe: false },
  { name: 'desktop-light', width: 1280, height: 800, colorScheme: 'light', hasAxe: false },
  { name: 'wide-dark', width: 1920, height: 1080, colorScheme: 'dark', hasAxe: false },
] as const
/** Pages fit this width too, without a picture. */
const NARROWEST = { width: 320, height: 640 }

export interface Watched extends AsyncDisposable {
  page: Page
  /**
   * Each console message, violation of the policy, exception and failed request, except the status
   * of a page that is refused.
   */
  said: string[]
  /** Adds the faults of the page to `faults`, a line each. */
  look(name: string): Promise<void>
  faults: string[]
}

/** A browser that starts at the time of the test, and whose every word is heard. */
export async function watch(
  browser: Browser,
  app: TestApp,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext(options)
  if (options.javaScriptEnabled !== false) await context.clock.install({ time: app.now() })
  const page = await context.newPage()
  const said: string[] = []
  page.on('console', (message) => {
    const isStatus = /^Failed to load resource: .* a status of \d+/.test(message.text())
    if (isStatus && message.location().url === page.url()) return
    said.push(`${message.type()}: ${message.text()} (${message.location().url})`)
  })
  onScriptError(page, (message) => said.push(`thrown: ${message}`))
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText
    // A page that is left, a search that is replaced and a download end requests of their own.
    if (reason !== 'net::ERR_ABORTED') said.push(`failed: ${request.url()} (${reason})`)
  })
  // Nothing comes from other hosts.
  page.on('request', (request) => {
    if (!request.url().startsWith(app.url)) said.push(`elsewhere: ${request.url()}`)
  })
  const faults: string[] = []
  const look = async (name: string) => {
    faults.push(...(await judge(page, name)))
  }
  return { page, said, faults, look, [Symbol.asyncDispose]: () => context.close() }
}

/** The faults of the page, a line each. */
async function judge(page: Page, name: string): Promise<string[]> {
  const faults: string[] = []
  for (const { name: look, width, height, colorScheme, hasAxe } of [
    ...JUDGED,
    ...(STORES ? FURTHER : []),
  ]) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    if (STORES) {
      mkdirSync(FOLDER, { recursive: true })
      // A wide window shows most of a page at once.
      const path = join(FOLDER, `${name}-${look}.jpg`)
      await page.screenshot({ path, fullPage: width < 1920 })
    }
    const found = hasAxe ? await violations(page) : []
    faults.push(...(await tooWide(page, width)), ...found.map((fault) => `${look}: ${fault}`))
  }
  await page.setViewportSize(NARROWEST)
  faults.push(...(await tooWide(page, NARROWEST.width)))
  return faults.map((fault) => `${name}, ${fault}`)
}

async function tooWide(page: Page, width: number): Promise<string[]> {
  const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
  return wide > width ? [`${wide} pixels wide in a window of ${width}`] : []
}

const CAMPAIGNS = [
  'https://shop.example.com/spring?utm_source=flyer&utm_medium=print&utm_campaign=spring-2026',
  'https://www.example.org/events/2026/open-day',
  'https://docs.example.com/handbook/getting-started',
  'https://maps.example.net/place/Old+Harbour/@53.5461,9.9661,17z/data=!3m1!4b1!4m6!3m5!1s0x47b18f',
  'https://menu.example.com/summer',
  'https://tickets.example.com/concerts/chamber-orchestra?seat=any&date=2026-06-20',
  'https://example.com/newsletter',
  'https://example.com/jobs/2026/front-of-house?ref=poster',
]

/** As wide as a code can be. */
export const LONGEST_CODE = 'WWWWAUTUMNWWWW2026WW'
/** No shorter than a screen. */
const LONG_URL = `https://www.example.com/${'a-path-without-an-end/'.repeat(30)}`

/**
 * An account as people have them: codes of their own and made ones, long URLs, hits over a day and
 * a half. Moves the clock.
 */
export async function fillAccount(app: TestApp, key: string): Promise<void> {
  await app.reserve(LONGEST_CODE, key)
  const codes = [(await app.claim('SPRING26', CAMPAIGNS[0], key)).code]
  codes.push((await app.shorten(LONG_URL, key)).code)
  for (const url of CAMPAIGNS.slice(1)) {
    app.advance(4 * 3_600_000)
    codes.push((await app.shorten(url, key)).code)
    for (const [at, code] of codes.entries()) {
      for (let hit = 0; hit < 1 + ((codes.length * (at + 3)) % 5); hit++) {
        await follow(app, code)
      }
    }
  }
}

/** A page of further links. */
export async function addMany(app: TestApp, key: string): Promise<void> {
  const urls = Array.from({ length: 50 }, (_, n) => `https://example.com/archive/page-${n + 1}`)
  await app.call('POST', '/api/bulk-shorten', { key, json: { urls } })
}

/** As a visitor does who has the short link. */
export async function follow(app: TestApp, code: string): Promise<number> {
  const { status } = await toAnswer(await fetch(`${app.url}/${code}`, { redirect: 'manual' }))
  return status
}
