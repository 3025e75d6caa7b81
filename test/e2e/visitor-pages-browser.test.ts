import { expect } from 'bun:test'
import { testApp } from '../support/app.ts'
import { browserTests, problemsOf, violations } from '../support/browser.ts'
import { withPassword } from '../support/link-passwords.ts'

/** Pages that visitors see, in a real browser as wide as a phone. */

const { browser, test } = browserTests()

const LONG = `https://www.a-rather-long-name-of-a-host.example/${'landing'.repeat(30)}?a=1&b=%22%3E`
const PAGES = [
  { name: 'preview', path: '/SPRING26+', status: 200 },
  { name: 'preview of a link with a password', path: '/LOCKED26+', status: 200 },
  { name: 'form of a password', path: '/LOCKED26', status: 200 },
  { name: 'unknown code', path: '/NOSUCH26', status: 404 },
]

test.each(['de', 'en', 'es', 'fr', 'ja', 'zh'])(
  'pages for visitors are accessible and fit a phone in %s',
  async (language) => {
    await using app = await testApp()
    await app.claim('SPRING26', LONG)
    const json = { destinations: [{ when: { os: ['ios'] }, url: 'https://example.com/ios' }] }
    await app.call('PATCH', '/api/links/SPRING26', { key: 'free', json })
    await withPassword(app)
    for (const colorScheme of ['light', 'dark'] as const) {
      const viewport = { width: 390, height: 844 }
      const context = await browser().newContext({ locale: language, viewport, colorScheme })
      const page = await context.newPage()
      const problems = problemsOf(page)
      for (const { name, path, status } of PAGES) {
        const response = await page.goto(app.url + path)
        expect([name, response?.status()]).toEqual([name, status])
        expect([name, await page.getAttribute('html', 'lang')]).toEqual([name, language])
        expect([name, await violations(page)]).toEqual([name, []])
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect([name, width]).toEqual([name, viewport.width])
      }
      // Browsers report each status above 399.
      expect(problems.filter((text) => !/status of 404/.test(text))).toEqual([])
      await context.close()
    }
  },
)
