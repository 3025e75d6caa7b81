import { expect, test } from 'bun:test'
import { DAY } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'

/** The panels of Analytics and of a link's page: where visitors come from, and what they use. */

const ENV = { HIT_FLUSH_MS: '1', ANONYMOUS_READS_PER_MINUTE: '0', COUNTRY_HEADER: 'CF-IPCountry' }
const CHROME =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36'

const { test: testInBrowser, browser } = browserTests()

async function followed(app: TestApp, env: { times?: number } = {}) {
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  const times = env.times ?? 12
  for (let i = 0; i < times; i++) {
    await app.call('GET', `/${code}`, {
      headers: {
        'user-agent': i === 0 ? 'Slackbot 1.0' : CHROME,
        referer: `https://host-${i}.example/private?q=${i}`,
        'cf-ipcountry': 'NO',
      },
    })
  }
  await shows(owner, '/app/analytics', times === 1 ? 'all 1 hit.' : `all ${times} hits.`)
  return { owner, code }
}

const shows = (owner: Visitor, path: string, text: string) =>
  eventually(`${path} shows ${text}`, async () => (await owner.get(path)).text.includes(text))

const sections = ['Sources', 'Countries', 'Devices', 'Browsers', 'Systems', 'Bots']

testInBrowser('the panels show ten values each, and lead to all of them', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: ENV })
  const { owner, code } = await followed(app)
  await using opened = await openAs(browser(), { app, visitor: owner })
  const { page, problems } = opened
  for (const path of ['/app/analytics', `/app/links/${code}`]) {
    await page.goto(app.url + path)
    for (const name of sections) await page.getByRole('region', { name }).waitFor()
    const sources = page.getByRole('region', { name: 'Sources' })
    // The heading is a row, too.
    expect(await sources.getByRole('row').count()).toBe(11)
    expect(await page.getByRole('region', { name: 'Countries' }).textContent()).toContain('Norway')
    expect(await page.getByRole('region', { name: 'Bots' }).textContent()).toContain('Slack')
    expect(await violations(page)).toEqual([])
    await sources.getByRole('link', { name: 'All 11' }).click()
    await page.getByRole('heading', { name: 'Sources' }).waitFor()
    expect(await page.getByRole('row').count()).toBe(12)
    expect(await violations(page)).toEqual([])
  }
  expect(problems).toEqual([])
})

test('a panel is a file without anything but hosts, names and numbers', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: ENV })
  const { owner, code } = await followed(app, { times: 2 })
  for (const path of ['/app/analytics', `/app/links/${code}`]) {
    const { text } = await owner.get(`${path}/visits.csv?by=referrer`)
    expect(text).toBe('value,name,hits\r\nhost-1.example,host-1.example,1\r\n')
  }
})

test('markup and formulas in what visitors send are shown as text', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: ENV })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  const source = '=cmd|<script>alert(1)</script>'
  await app.call('GET', `/${code}?utm_source=${encodeURIComponent(source)}`, {
    headers: { 'user-agent': CHROME, referer: 'https://"><script>.example/' },
  })
  await shows(owner, '/app/analytics', 'all 1 hit.')
  const { text } = await owner.get('/app/analytics')
  expect(text).not.toContain('<script>alert')
  expect(text).toContain('&lt;script&gt;alert(1)')
  const csv = await owner.get('/app/analytics/visits.csv?by=referrer')
  expect(csv.text).toContain("'=cmd|")
})

test('without a source of countries, the panel says how to get one', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: { ...ENV, COUNTRY_HEADER: '' } })
  const { owner } = await followed(app, { times: 1 })
  const { text } = await owner.get('/app/analytics')
  expect(text).toContain('COUNTRY_FILE')
})

const LONG_SESSIONS = { SESSION_IDLE_MINUTES: '10080', SESSION_MAX_HOURS: '168' }

/** The text of an element of a page, without markup. */
function textOf(markup: string, element: RegExp): string {
  const [found = ''] = element.exec(markup) ?? []
  return found
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

test('hits without bots, bots and each source are compared with the period before, like all hits', async () => {
  await using app = await testApp({ visitFlushMs: 20, env: { ...ENV, ...LONG_SESSIONS } })
  const { owner, code } = await followed(app, { times: 5 })
  const path = `/app/links/${code}`
  const follow = async (times: number, headers: Record<string, string>) => {
    for (let i = 0; i < times; i++) await app.call('GET', `/${code}`, { headers })
  }
  const onDay = (day: number) => `${path}?from=2026-03-0${day}&to=2026-03-0${day}`
  const tilesOf = async (day: number) =>
    textOf((await owner.get(onDay(day))).text, /<dl class="tiles".*?<\/dl>/s)
  // Four people and a bot.
  expect(await tilesOf(1)).toContain('Without bots 4')
  await app.untilCounted()
  app.advance(DAY)
  await follow(6, { 'user-agent': CHROME })
  await shows(owner, onDay(2), 'all 6 hits.')
  await app.untilCounted()
  app.advance(DAY)
  expect(await tilesOf(2)).toContain(
    'Hits 6 ▲ 20 % more 5 before Without bots 6 ▲ 50 % more 4 before Bots 0 ▼ 100 % fewer 1 before',
  )
  const { text } = await owner.get(onDay(2))
  // Fewer bots are neither good nor bad.
  expect(text).toMatch(/<span class="badge">▼ 100 %/)
  const sources = textOf(text, /<section aria-labelledby="panel-referrer">.*?<\/section>/s)
  expect(sources).toContain('Source Hits Share Change')
  expect(sources).toMatch(/6 100 % (new|\+\d+ %)/)
  await follow(3, { 'user-agent': CHROME })
  await follow(1, { 'user-agent': CHROME, dnt: '1' })
  await shows(owner, onDay(3), 'Details of 3 of 4 hits.')
  // Of one hit nothing is known: it counts as the others.
  expect(await tilesOf(3)).toContain('Without bots 4 ▼ 33 % fewer 6 before')
})
