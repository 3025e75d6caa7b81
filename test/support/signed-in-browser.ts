import { readFileSync } from 'node:fs'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { TestApp } from './app.ts'
import type { Visitor } from './dashboard.ts'

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

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
  const problems: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.message))
  return { page, problems, [Symbol.asyncDispose]: () => context.close() }
}

/** Rules of WCAG 2.2 AA that a page breaks. */
export async function violations(page: Page): Promise<string[]> {
  // Evaluated by the debugger, which a content security policy does not bind.
  return page.evaluate(`(async () => {
    ${AXE}
    const found = await axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'] })
    return found.violations.map(({ id, nodes }) => id + ': ' + nodes.map((n) => n.html).join(' '))
  })()`) as Promise<string[]>
}
