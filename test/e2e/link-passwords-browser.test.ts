import { expect } from 'bun:test'
import type { Page } from 'playwright-core'
import puppeteer from 'puppeteer-core'
import { type TestApp, testApp } from '../support/app.ts'
import { BROWSER_MS, browserTests, onScriptError, openAs, violations } from '../support/browser.ts'
import { setUpOwner } from '../support/dashboard.ts'
import { hitsOf, LOCKED, SECRET_URL, send, WORD } from '../support/link-passwords.ts'
import { testWith } from '../support/tools.ts'

/** The form for the password of a link, under its policy, in real browsers. */

const { browser, test } = browserTests()

/** A page on another origin, which records the referrer and origin of its visitors. */
function destinationSite() {
  const seen: (string | null)[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      if (new URL(request.url).pathname !== '/there') return new Response(null, { status: 204 })
      seen.push(request.headers.get('referer'), request.headers.get('origin'))
      return new Response('<title>There</title>', { headers: { 'content-type': 'text/html' } })
    },
  })
  const url = `http://127.0.0.1:${server.port}/there`
  return { url, seen, [Symbol.asyncDispose]: () => server.stop(true) }
}

async function lockedApp(url: string): Promise<TestApp> {
  const app = await testApp()
  await app.claim(LOCKED, url)
  const json = { password: WORD }
  expect((await app.call('PATCH', `/api/links/${LOCKED}`, { key: 'free', json })).status).toBe(200)
  return app
}

const problemsOf = (page: Page): string[] => {
  const problems: string[] = []
  // The status of a wrong password is logged as an error.
  page.on('console', (message) => {
    if (!/status of 403/.test(message.text())) problems.push(message.text())
  })
  onScriptError(page, (message) => problems.push(message))
  return problems
}

test.each([true, false])('Chromium opens a link with a password, scripts %p', async (scripts) => {
  await using site = destinationSite()
  await using app = await lockedApp(site.url)
  const context = await browser().newContext({ javaScriptEnabled: scripts, locale: 'fr-FR' })
  const page = await context.newPage()
  const problems = problemsOf(page)
  await page.goto(`${app.url}/${LOCKED}?a=b`)
  if (scripts) expect(await violations(page)).toEqual([])
  await page.keyboard.type('wrong one')
  await page.keyboard.press('Enter')
  await page.waitForSelector('[aria-invalid]')
  expect(page.url()).toBe(`${app.url}/${LOCKED}?a=b`)
  expect(await page.getAttribute('html', 'lang')).toBe('fr')
  await page.fill('input[type=password]', WORD)
  await page.click('button')
  await page.waitForURL(site.url)
  // The browser has the cookie now.
  await page.goto(`${app.url}/${LOCKED}`)
  expect(page.url()).toBe(site.url)
  expect(site.seen).toEqual([null, null, null, null])
  expect(await hitsOf(app)).toBe(2)
  expect(problems).toEqual([])
  await context.close()
})

test('Chromium without cookies is led there once', async () => {
  await using site = destinationSite()
  await using app = await lockedApp(site.url)
  const context = await browser().newContext()
  const page = await context.newPage()
  // Removes the cookie from each response, as a browser that keeps none does.
  await page.route(`${app.url}/**`, async (route) => {
    await context.clearCookies()
    await route.continue()
  })
  for (let i = 0; i < 2; i++) {
    await page.goto(`${app.url}/${LOCKED}`)
    await page.fill('input[type=password]', WORD)
    await page.click('button')
    await page.waitForURL(site.url)
  }
  await context.close()
})

testWith('firefox').each([true, false])(
  'Firefox opens a link with a password, scripts %p',
  async (scripts) => {
    await using site = destinationSite()
    await using app = await lockedApp(site.url)
    const firefox = await puppeteer.launch({
      browser: 'firefox',
      executablePath: Bun.which('firefox-esr') ?? '',
      extraPrefsFirefox: {
        'network.captive-portal-service.enabled': false,
        'javascript.enabled': scripts,
      },
    })
    try {
      const page = await firefox.newPage()
      await page.goto(`${app.url}/${LOCKED}`)
      await page.keyboard.type('wrong one')
      await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')])
      await page.keyboard.type(WORD)
      await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')])
      expect(page.url()).toBe(site.url)
      await page.goto(`${app.url}/${LOCKED}`)
      expect(page.url()).toBe(site.url)
    } finally {
      await firefox.close()
    }
    expect(site.seen).toEqual([null, null, null, null])
  },
  BROWSER_MS,
)

test('the password is set, changed and removed on the page of the link', async () => {
  await using app = await testApp()
  const { owner: visitor, key } = await setUpOwner(app)
  const json = { url: SECRET_URL, code: LOCKED }
  expect((await app.call('POST', '/api/shorten', { key, json })).status).toBe(201)
  await using opened = await openAs(browser(), { app, visitor })
  const { page, problems } = opened
  await page.goto(`${app.url}/app/links/${LOCKED}/settings`)
  // A message of the form before may still be shown.
  const save = () =>
    Promise.all([
      page.waitForResponse((response) => response.request().method() === 'POST'),
      page.click('#save-settings'),
    ])
  const set = async (password: string) => {
    await page.fill('#field-link_password', password)
    await save()
  }
  await set('12345')
  await page.waitForSelector('#field-link_password-error')
  expect((await app.call('GET', `/${LOCKED}`)).status).toBe(302)
  // What was refused stays in the field until the page is left.
  expect(await page.inputValue('#field-link_password')).toBe('12345')
  await set(WORD)
  await page.waitForSelector('.save-bar .done')
  expect(await page.inputValue('#field-link_password')).toBe('')
  expect(await violations(page)).toEqual([])
  expect(await page.content()).not.toMatch(/argon2|open sesame/)
  expect((await send(app, WORD)).status).toBe(303)
  await set('another one')
  await page.waitForSelector('.save-bar .done')
  expect((await send(app, WORD)).status).toBe(403)
  expect((await send(app, 'another one')).status).toBe(303)
  await page.check('[name=remove_password]')
  await save()
  await page.waitForSelector('.save-bar .done')
  expect((await app.call('GET', `/${LOCKED}`)).status).toBe(302)
  expect(problems.filter((text) => !/status of 422/.test(text))).toEqual([])
})
