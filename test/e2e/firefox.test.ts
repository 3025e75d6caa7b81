import { expect } from 'bun:test'
import puppeteer from 'puppeteer-core'
import { testApp } from '../support/app.ts'
import { BROWSER_MS } from '../support/browser.ts'
import { OWNER, PASSWORD, setUpOwner } from '../support/dashboard.ts'
import { testWith } from '../support/tools.ts'

/** The main tasks in Firefox, which Playwright drives only in builds of its own. */

/** A page of a Firefox with a profile of its own, and what its console says. */
async function openFirefox() {
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: Bun.which('firefox-esr') ?? '',
    // Nothing over the network on its own account.
    extraPrefsFirefox: { 'network.captive-portal-service.enabled': false },
  })
  const page = await browser.newPage()
  await page.setViewport({ width: 1280, height: 800 })
  const said: string[] = []
  page.on('console', (message) => said.push(message.text()))
  page.on('pageerror', (error) => said.push(String(error)))
  return { page, said, [Symbol.asyncDispose]: () => browser.close() }
}

const test = testWith('firefox')
test(
  'Firefox signs in, creates, finds, edits, prints and signs out',
  async () => {
    await using app = await testApp()
    await setUpOwner(app)
    await using firefox = await openFirefox()
    const { page, said } = firefox
    await page.goto(`${app.url}/app/sign-in`)
    await page.type('input[type=email]', OWNER)
    await page.type('input[type=password]', PASSWORD)
    await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')])
    await page.type('#field-url', 'https://example.com/firefox')
    await page.type('#field-code', 'FIREFOX26')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.toast')
    await page.type('#field-q', 'firefox26')
    await page.waitForFunction("document.querySelectorAll('.links tbody tr').length === 1")
    await page.keyboard.down('Control')
    await page.keyboard.press('k')
    await page.keyboard.up('Control')
    await page.waitForSelector('#go[open]')
    await page.keyboard.type('FIREFOX26')
    await page.waitForSelector('#go-options a[href$=FIREFOX26]')
    await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')])
    await page.goto(`${app.url}/app/links/FIREFOX26/settings`)
    await page.locator('input[name=title]').fill('From Firefox')
    await page.click('#save-settings')
    await page.waitForFunction("document.querySelector('h1').textContent === 'From Firefox'")
    await page.goto(`${app.url}/app/links/FIREFOX26/qr?caption=Menü`)
    await page.waitForFunction("document.querySelector('main img.qr, main .qr img')?.complete")
    await page.goto(`${app.url}/app/print?q=FIREFOX26`)
    expect((await page.pdf({ format: 'A4' })).length).toBeGreaterThan(10_000)
    await page.goto(`${app.url}/app/analytics`)
    await page.click('.current-user-button')
    await Promise.all([page.waitForNavigation(), page.click('form.menu-last button')])
    expect(new URL(page.url()).pathname).toBe('/app/sign-in')
    expect(said).toEqual([])
  },
  BROWSER_MS,
)
