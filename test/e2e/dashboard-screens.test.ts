import { afterAll, beforeAll, expect } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { testApp } from '../support/app.ts'
import { BROWSER_MS, launchBrowser, openAs, straysFrom, violations } from '../support/browser.ts'
import { setUpOwner } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { addMany, fillAccount } from '../support/screens.ts'
import { hasTool, testWith } from '../support/tools.ts'
import { openMenu, WALK_ENV } from '../support/walk.ts'

/** A picture of every page at three widths, in light and dark: for somebody who looks at them. */

const testInBrowser = testWith('browser')

const SIZES = [
  { width: 320, height: 640 },
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
  { width: 1920, height: 1080 },
]
/** Too narrow to be worth a picture. */
const NARROWEST = 320
const THEMES = ['light', 'dark'] as const

const PAGES = [
  '/app/links',
  '/app/links?q=spring',
  '/app/links?q=nothing',
  '/app/links/bulk',
  '/app/links/SPRING26',
  '/app/links/SPRING26/delete',
  '/app/analytics',
  '/app/keys',
  '/app/account',
  '/app/account/two-factor',
  '/app/account/delete',
  '/app/service',
  '/app/service/accounts',
  '/app/service/accounts/2',
  '/app/service/links',
  '/app/nothing',
  '/docs',
]

/** Rules that the API page's own markup breaks: Swagger UI has buttons within buttons. */
const KNOWN: Readonly<Record<string, RegExp>> = { '/docs': /^nested-interactive/ }

let browser: Browser

beforeAll(async () => {
  if (hasTool('browser')) browser = await launchBrowser()
}, BROWSER_MS)

afterAll(() => browser?.close())

async function look(page: Page, path: string, file: string): Promise<string[]> {
  const faults: string[] = []
  for (const { width, height } of SIZES) {
    await page.setViewportSize({ width, height })
    const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
    if (wide > width) faults.push(`${wide} pixels wide in a window of ${width}`)
    if (width > NARROWEST) await page.screenshot({ path: `${file}-${width}.png` })
  }
  const known = KNOWN[path]
  return [...faults, ...(await violations(page)).filter((fault) => !known?.test(fault))]
}

testInBrowser(
  'every page fits every width, breaks no rule of accessibility in light and dark, and loads nothing from elsewhere',
  async () => {
    await using app = await testApp({ env: WALK_ENV })
    const { owner, key } = await setUpOwner(app)
    await makeMember(app, 'somebody.with.a.long.address@department.example.org')
    await fillAccount(app, key)
    await addMany(app, key)
    const folder = mkdtempSync(join(tmpdir(), 'hopcode-screens-'))
    console.log(`screenshots: ${folder}`)
    const faults: string[] = []
    for (const colorScheme of THEMES) {
      const options = { colorScheme, reducedMotion: 'reduce' } as const
      await using opened = await openAs(browser, { app, visitor: owner, options })
      const { page } = opened
      const strays = await straysFrom(page, app.url)
      for (const path of PAGES) {
        await page.goto(app.url + path)
        if (path === '/docs') await page.locator('.opblock').first().waitFor()
        const name = `${path.replaceAll(/\W+/g, '-').slice(1)}-${colorScheme}`
        const found = await look(page, path, join(folder, name))
        faults.push(...found.map((fault) => `${name}: ${fault}`))
      }
      await page.goto(`${app.url}/app/account`)
      await openMenu(page)
      faults.push(...(await violations(page)).map((fault) => `menu-${colorScheme}: ${fault}`))
      faults.push(...strays)
    }
    expect(faults).toEqual([])
  },
  BROWSER_MS,
)
