import { expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { testApp } from '../support/app.ts'
import { browserTests, straysFrom, violations } from '../support/browser.ts'
import { ENDPOINTS } from '../support/endpoints.ts'

/** The page /docs in a real browser. */

const { test, browser } = browserTests()

/** A page that reaches only its own origin: `strays` are what it wanted elsewhere. */
async function openPage(origin: string) {
  const page = await browser().newPage({ viewport: { width: 1280, height: 900 } })
  const strays = await straysFrom(page, origin)
  const problems: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}`))
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`)
  })
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) => {
    console.error('CSP: ' + event.violatedDirective + ' ' + event.blockedURI)
  })`)
  return { page, strays, problems }
}

const shows = (page: Page, text: string) =>
  page.getByText(text, { exact: true }).first().waitFor({ state: 'visible' })

// spec: What the service does | The API description is published as OpenAPI 3.0
test('the page /docs shows every endpoint in a browser without a network', async () => {
  await using app = await testApp()
  const { page, strays, problems } = await openPage(app.url)
  await page.goto(`${app.url}/docs`)
  for (const { path } of ENDPOINTS) await shows(page, path)
  expect(await page.title()).toMatch(/Hopcode/)
  expect({ strays, problems }).toEqual({ strays: [], problems: [] })
  await page.close()
})

test('an endpoint of the page opens to its parameters, its body and its answers', async () => {
  await using app = await testApp()
  const { page, strays, problems } = await openPage(app.url)
  await page.goto(`${app.url}/docs#/Links/shorten`)
  await shows(page, 'Request body')
  await shows(page, 'A new code, with its passcode.')
  await page.getByText('/api/qr/{code}', { exact: true }).first().click()
  await shows(page, 'size')
  expect(await violations(page)).toEqual([])
  const landmarks = await page.evaluate<string[]>(`axe.run({ runOnly: [
    'landmark-main-is-top-level', 'landmark-one-main', 'landmark-no-duplicate-main', 'region',
  ] }).then(({ violations }) => violations.map(({ id }) => id))`)
  expect(landmarks).toEqual([])
  expect({ strays, problems }).toEqual({ strays: [], problems: [] })
  await page.close()
})

test('a trial request goes to the origin of the page, whatever BASE_URL is', async () => {
  await using app = await testApp()
  const { page, strays, problems } = await openPage(app.url)
  await page.goto(`${app.url}/docs#/Status/status`)
  await page.getByRole('button', { name: 'Execute' }).click()
  await shows(page, `${app.url}/api/status`)
  await page.locator('.live-responses-table .response-col_status', { hasText: '200' }).waitFor()
  expect({ strays, problems }).toEqual({ strays: [], problems: [] })
  await page.close()
})
