import { afterAll, beforeAll } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { assert } from '../../src/lib/assert.ts'
import type { TestApp } from './app.ts'
import type { Visitor } from './dashboard.ts'
import { findBrowser, hasTool, testWith } from './tools.ts'

/** Of a test, or of what comes before it: installing and starting a browser takes its time. */
export const BROWSER_MS = 300_000

/** The browser starts as root, and does nothing over the network on its own account. */
export const BROWSER_FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: findBrowser() ?? '', args: BROWSER_FLAGS })

/** Tests of a file with one browser. Call it at the top level. */
export function browserTests() {
  let browser: Browser | undefined
  beforeAll(async () => {
    if (hasTool('browser')) browser = await launchBrowser()
  }, BROWSER_MS)
  afterAll(() => browser?.close())
  const test = testWith('browser')
  return {
    browser: () => {
      assert(browser, 'the browser is launched before the first test')
      return browser
    },
    test: Object.assign((name: string, run: () => Promise<void>) => test(name, run, BROWSER_MS), {
      each:
        <Row>(rows: readonly Row[]) =>
        (name: string, run: (row: Row) => Promise<void>) =>
          test.each([...rows])(name, run, BROWSER_MS),
    }),
  }
}

export interface Opened extends AsyncDisposable {
  page: Page
  /** What the browser complained about. */
  problems: string[]
}

/** A page of a browser that is signed in as the visitor is. */
export async function openAs(
  browser: Browser,
  { app, visitor, options }: { app: TestApp; visitor: Visitor; options?: BrowserContextOptions },
): Promise<Opened> {
  const context = await browser.newContext(options)
  const cookies = [...visitor.cookies].map(([name, value]) => ({ name, value, url: app.url }))
  await context.addCookies(cookies)
  const page = await context.newPage()
  return { page, problems: problemsOf(page), [Symbol.asyncDispose]: () => context.close() }
}

/**
 * htmx logs as errors that a request is replaced by a newer one. Requests that fail have other
 * messages.
 */
const REPLACED = /^htmx:(sendAbort|afterRequest)\b/

/** What the browser complains about from now on. */
export function problemsOf(page: Page): string[] {
  const problems: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' && !REPLACED.test(message.text())) problems.push(message.text())
  })
  onScriptError(page, (message) => problems.push(message))
  return problems
}

/** Without the transition between two pages, which the browser leaves out when a page is slow. */
export function onScriptError(page: Page, note: (message: string) => void): void {
  page.on('pageerror', ({ message }) => {
    if (!/^Transition was (aborted|skipped)/.test(message)) note(message)
  })
}

/** Lets the page reach its own origin alone from now on. Returns what it wants elsewhere. */
export async function straysFrom(page: Page, origin: string): Promise<string[]> {
  const strays: string[] = []
  await page.route('**/*', async (route) => {
    const url = route.request().url()
    if (new URL(url).origin === origin) return route.continue()
    strays.push(url)
    return route.abort()
  })
  return strays
}

/** Rules of WCAG 2.2 AA that a page breaks. */
export async function violations(page: Page): Promise<string[]> {
  // Half a megabyte, which a page needs once.
  return (await runAxe(page, '')) ?? (await runAxe(page, AXE)) ?? ['axe is missing']
}

/** Undefined if the page has no axe and `setup` does not define it. */
function runAxe(page: Page, setup: string): Promise<string[] | undefined> {
  // Evaluated by the debugger, which a content security policy does not bind. Details of the
  // elements that break no rule would take half of the time.
  return page.evaluate(`(async () => {
    ${setup}
    if (!window.axe) return undefined
    const runOnly = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']
    const found = await axe.run({ runOnly, resultTypes: ['violations'] })
    return found.violations.map(({ id, nodes }) => id + ': ' + nodes.map((n) => n.html).join(' '))
  })()`)
}
