// How long after Enter is a link shortened, copied and shown in the dashboard?
// npm run bench -- dashboard-create
import { type Browser, chromium } from 'playwright-core'
import { findBrowser } from '../../test/support/tools.ts'
import { issueResetPath, setPassword } from '../lib/dashboard-client.ts'
import { createAccount } from '../lib/hopcode-client.ts'
import { alternate, medianOf, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Launch, startServer } from '../lib/server.ts'
import { hopcode } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const PASSWORD = 'a password of the bench'
/** Links that a round creates, one after another. */
const CREATED = 20
const TARGET_MS = 300
const NAME = 'Enter'

const METRICS: Metric[] = [
  { key: 'median', label: 'median, ms', digits: 0, ratio: false },
  { key: 'max', label: `slowest of ${CREATED}, ms`, digits: 0, ratio: false },
]

export const dashboardCreate: Scenario = {
  name: 'dashboard-create',
  question: 'How long after Enter is a link shortened, copied and shown in the dashboard?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  const executablePath = findBrowser()
  if (!executablePath) throw new Error('this bench needs chromium')
  using workspace = await emptyWorkspace(options)
  const { program, dataDir } = workspace
  createAccount(program, dataDir)
  // Over plain http, so that the browser accepts the cookies.
  const launch = hopcode(program, dataDir, { BASE_URL: 'http://localhost' })
  const args = ['--headless', '--no-sandbox', '--disable-gpu']
  await using browser = await chromium.launch({ executablePath, args })
  const measure = () => measureRound(browser, launch, dataDir)
  const variants = await alternate([{ name: NAME }], options.rounds, measure, say)
  return {
    settings: { rounds: options.rounds, created: CREATED },
    metrics: METRICS,
    variants,
    summary: [
      {
        label: 'from Enter to copied and shown, median',
        value: medianOf(variants, NAME, 'median'),
        unit: ' ms',
        digits: 0,
        target: { sense: '≤', value: TARGET_MS },
      },
    ],
    notes: [
      `Headless Chromium on the same machine; ${CREATED} links, one after another.`,
      'The time ends when the message is in the page and the clipboard has the short URL.',
    ],
  }
}

async function measureRound(
  browser: Browser,
  launch: Launch,
  dataDir: string,
): Promise<RoundResult> {
  const resetPath = issueResetPath(dataDir)
  await using server = await startServer(launch)
  const cookie = await setPassword(server.origin, resetPath, PASSWORD)
  const context = await browser.newContext()
  const permissions = ['clipboard-read', 'clipboard-write']
  await context.grantPermissions(permissions, { origin: server.origin })
  await context.addCookies(
    cookie.split('; ').map((pair) => {
      const [name = '', value = ''] = pair.split('=')
      return { name, value, url: server.origin }
    }),
  )
  const page = await context.newPage()
  await page.goto(`${server.origin}/app/links`)
  const times: number[] = []
  for (let n = 0; n < CREATED; n++) {
    await page.getByLabel('Shorten a URL').fill(`example.com/${Date.now()}/${n}`)
    await page.evaluate(MEASURE_NEXT)
    await page.keyboard.press('Enter')
    const { elapsedMs, shown, copied } = (await page.evaluate('window.measured')) as Measured
    if (copied !== shown) throw new Error(`the clipboard has ${copied}, not ${shown}`)
    times.push(elapsedMs)
  }
  await context.close()
  await server.stop()
  times.sort((a, b) => a - b)
  const median = times[Math.floor(times.length / 2)] ?? Number.NaN
  return { figures: { median, max: times.at(-1) ?? Number.NaN } }
}

interface Measured {
  elapsedMs: number
  shown: string
  copied: string
}

/** Runs in the page: from the next Enter until the heading of the message says that it copied. */
const MEASURE_NEXT = `void (window.measured = new Promise((resolve) => {
  document.querySelector('.toast')?.remove()
  let startedAt
  const start = () => { startedAt = performance.now() }
  addEventListener('keydown', start, { capture: true, once: true })
  const observer = new MutationObserver(async () => {
    const toast = document.querySelector('.toast')
    if (!toast?.querySelector('h2').textContent.includes('copied')) return
    observer.disconnect()
    const elapsedMs = performance.now() - startedAt
    const copied = await navigator.clipboard.readText()
    resolve({ elapsedMs, shown: toast.querySelector('data').value, copied })
  })
  observer.observe(document.body, { subtree: true, childList: true, characterData: true })
}))`
