import { expect, test } from 'bun:test'
import { HOUR } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { OWNER, setUpOwner, Visitor } from '../support/dashboard.ts'
import { temporaryFolder } from '../support/folder.ts'
import { sharedApp } from '../support/shared.ts'

/** The page Analytics, and the hits of one link: hits over time, reports, most followed links. */

const DAY = 24 * HOUR
const ENV = { HIT_FLUSH_MS: '1', ANONYMOUS_READS_PER_MINUTE: '0', SESSION_IDLE_MINUTES: '10080' }

interface Analytics {
  /** What stands above the chart. */
  sum: number
  /** Each row of the table behind the chart, newest first. */
  rows: number[]
  text: string
}

async function analyticsOf(visitor: Visitor, path: string): Promise<Analytics> {
  const { status, text } = await visitor.get(path)
  expect([path, status]).toEqual([path, 200])
  const number = (shown = '') => Number(shown.replaceAll(',', ''))
  const table = /<table[\s\S]*?<\/table>/.exec(text.split('id="hits-table"')[1] ?? '')?.[0] ?? ''
  return {
    sum: number(/<dt>Hits<\/dt>\s*<dd><strong>([\d,]+)/.exec(text)?.[1] ?? '0'),
    rows: [...table.matchAll(/data-label="Hits"><div>([\d,]+)/g)].map(([, count]) => number(count)),
    text,
  }
}

const hitCount = async (app: TestApp, code: string): Promise<number> =>
  Number((await app.call('GET', `/api/lookup/${code}`)).body.hit_count)

async function follow(app: TestApp, code: string, times = 1): Promise<void> {
  for (let i = 0; i < times; i++) {
    expect((await app.call('GET', `/${code}`)).status).toBe(302)
  }
}

/** Waits until the account's series, which is as old as the last flush, has so many hits. */
const counted = (visitor: Visitor, hits: number): Promise<void> =>
  eventually(`${hits} hits are counted`, async () => {
    const { text } = await visitor.get('/app/analytics?range=all')
    return new RegExp(`<dt>Hits</dt>\\s*<dd><strong>${hits.toLocaleString('en')}<`).test(text)
  })

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, n) => sum + n, 0)

// spec: Code (short link) | hit_count
test('after hits over several hours and a restart, every range that covers them adds up to hit_count', async () => {
  using folder = temporaryFolder()
  const dataDir = folder.path
  let elapsed = 0
  const perHour = [3, 0, 1, 4, 0, 2]
  let code = ''
  {
    await using app = await testApp({ env: ENV, dataDir })
    const { owner, key } = await setUpOwner(app)
    code = (await app.shorten('https://example.com/spring', key)).code
    let all = 0
    for (const hits of perHour) {
      await follow(app, code, hits)
      all += hits
      await counted(owner, all)
      app.advance(HOUR)
      elapsed += HOUR
    }
    await follow(app, code, 5)
  }
  await using app = await testApp({ env: ENV, dataDir })
  app.advance(elapsed + HOUR)
  await follow(app, code, 2)
  const owner = new Visitor(app)
  await owner.signIn(OWNER)
  await counted(owner, 17)
  expect(await hitCount(app, code)).toBe(17)
  for (const range of ['24h', '7d', '30d', '90d', '12m', 'all']) {
    for (const path of [`/app/analytics?range=${range}`, `/app/links/${code}?range=${range}`]) {
      const { sum, rows, text } = await analyticsOf(owner, path)
      expect({ path, sum, rows: sumOf(rows) }).toEqual({ path, sum: 17, rows: 17 })
      expect(text).toContain('17 all time')
    }
  }
  const { rows } = await analyticsOf(owner, `/app/links/${code}?range=24h`)
  expect(rows).toHaveLength(24)
  // The last hits of the first run were counted in their own hour, before it ended.
  expect(rows.slice(0, 8)).toEqual([2, 5, ...perHour.toReversed()])
})

test('a link’s numbers include the redirect served just before', async () => {
  await using app = await testApp({ env: { ...ENV, HIT_FLUSH_MS: '60000' } })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  for (let hits = 1; hits <= 5; hits++) {
    await follow(app, code)
    expect((await analyticsOf(owner, `/app/links/${code}?range=24h`)).sum).toBe(hits)
  }
})

test('a range that does not cover every hit says how many came before', async () => {
  await using app = await testApp({ env: { ...ENV, SESSION_MAX_HOURS: '2160' } })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  await follow(app, code, 4)
  await counted(owner, 4)
  app.advance(2 * DAY)
  await follow(app, code, 1)
  await counted(owner, 5)
  for (const path of ['/app/analytics', `/app/links/${code}`]) {
    const day = await analyticsOf(owner, `${path}?range=24h`)
    expect([day.sum, sumOf(day.rows)]).toEqual([1, 1])
    expect(day.text).toContain('5 all time')
    expect((await analyticsOf(owner, `${path}?range=7d`)).sum).toBe(5)
  }
})

test('the account keeps the hits of a link that is deleted', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const { code, passcode } = await app.shorten('https://example.com/spring', key)
  await follow(app, code, 3)
  await counted(owner, 3)
  await app.call('POST', '/api/delete', { key, json: { code, passcode } })
  expect((await analyticsOf(owner, '/app/analytics')).sum).toBe(3)
})

test('the links with the most hits in the range come first, and those without are left out', async () => {
  await using app = await testApp({ env: { ...ENV, SESSION_MAX_HOURS: '2160' } })
  const { owner, key } = await setUpOwner(app)
  for (const [code, hits] of [
    ['SPRING', 1],
    ['SUMMER', 3],
    ['AUTUMN', 0],
    ['WINTER', 2],
  ] as const) {
    await app.claim(code, `https://example.com/${code}`, key)
    await follow(app, code, hits)
  }
  await counted(owner, 6)
  const { text } = await analyticsOf(owner, '/app/analytics')
  const top = [...text.matchAll(/href="\/app\/links\/([A-Z]{6})"/g)].map(([, code]) => code)
  expect(top).toEqual(['SUMMER', 'WINTER', 'SPRING'])
  app.advance(2 * DAY)
  await follow(app, 'SPRING')
  await counted(owner, 7)
  const day = await analyticsOf(owner, '/app/analytics?range=24h')
  const links = [...day.text.matchAll(/href="\/app\/links\/([A-Z]{6})"/g)].map(([, code]) => code)
  expect(links).toEqual(['SPRING'])
})

test('an account without hits is told what to do, and so is a link', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  await app.reserve('SUMMER', key)
  const shown = await Promise.all(
    ['/app/analytics', `/app/links/${code}`, '/app/links/SUMMER'].map((path) => owner.get(path)),
  )
  for (const { text } of shown) expect(text).toContain('No hits yet')
  // Where to begin: with the list.
  expect(shown[0]?.text).toContain('<a class="button primary" href="/app/links">')
})

test('a refresh brings the parts that change and no page around them', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  await follow(app, code, 2)
  await counted(owner, 2)
  const hx = { 'hx-request': 'true' }
  const all = await owner.get('/app/analytics?range=24h', hx)
  const one = await owner.get(`/app/analytics/${code}?range=24h`, hx)
  for (const { text } of [all, one]) {
    expect(text).not.toMatch(/<html|<nav|<h1|csrf/)
    expect(text).toMatch(/<dt>Hits<\/dt>\s*<dd><strong>2<\/strong>/)
    expect(text).toContain('Hits in the last 24 hours')
    expect(text).toContain('hx-swap-oob="innerHTML:#hits-table"')
  }
  const plain = await owner.get(`/app/analytics/${code}?range=24h`)
  expect(plain.location).toBe(`/app/links/${code}?range=24h`)
})

const withOwner = sharedApp(setUpOwner, { env: ENV })

test.each(['', '?range=', '?range=1h', '?range=toString', '?range=%00'])(
  'an unknown range is the usual one: %s',
  async (query) => {
    const { owner } = await withOwner()
    const { text } = await analyticsOf(owner, `/app/analytics${query}`)
    expect(text).toMatch(/range=30d#hits-section" aria-current="true"/)
  },
)

test('a report has the hits and the links of a tag, or of a selection', async () => {
  await using app = await testApp({ env: ENV })
  const { owner, key } = await setUpOwner(app)
  for (const [code, hits, tags] of [
    ['SPRING', 1, ['print']],
    ['SUMMER', 3, ['print', 'a & b']],
    ['WINTER', 2, []],
  ] as const) {
    await app.claim(code, `https://example.com/${code}`, key)
    await app.call('PATCH', `/api/links/${code}`, { key, json: { tags } })
    await follow(app, code, hits)
  }
  await counted(owner, 6)
  const codesOf = ({ text }: Analytics) =>
    [...text.matchAll(/href="\/app\/links\/([A-Z]{6})"/g)].map(([, code]) => code)
  for (const [query, sum, codes] of [
    ['tag=print', 4, ['SUMMER', 'SPRING']],
    ['tag=a+%26+b', 3, ['SUMMER']],
    ['tag=none', 0, []],
    ['links=WINTER,SPRING', 3, ['WINTER', 'SPRING']],
  ] as const) {
    const report = await analyticsOf(owner, `/app/analytics?${query}&range=24h`)
    expect([query, report.sum, codesOf(report)]).toEqual([query, sum, [...codes]])
    // Another range stays with the report, and so does its file.
    const other = new RegExp(`/app/analytics\\?${query.split('=')[0]}=[^"]*&amp;range=7d#`)
    expect(report.text).toMatch(other)
    const file = await owner.get(`/app/analytics.csv?${query}&range=24h`)
    const total = file.text
      .split('\r\n')
      .slice(1, -1)
      .map((line) => Number(line.split(',')[1]))
    expect([query, sumOf(total)]).toEqual([query, sum])
  }
})

test('a report of another account’s links is not found', async () => {
  await using app = await testApp({ env: ENV })
  const { owner } = await setUpOwner(app)
  await app.claim('SPRING', 'https://example.com/spring', 'pro')
  await app.call('PATCH', '/api/links/SPRING', { key: 'pro', json: { tags: ['print'] } })
  await follow(app, 'SPRING')
  expect((await owner.get('/app/analytics?links=SPRING')).status).toBe(404)
  expect((await analyticsOf(owner, '/app/analytics?tag=print')).sum).toBe(0)
})

test('a range without hits has no chart, and top links have their title and their displayed address', async () => {
  const env = { ...ENV, SESSION_MAX_HOURS: '2160', ALIASES: 'all' }
  await using app = await testApp({ env })
  const { owner, key } = await setUpOwner(app)
  const { code } = await app.shorten('https://example.com/spring', key)
  const json = { title: 'Spring sale', aliases: ['Spring-Menu'] }
  await app.call('PATCH', `/api/links/${code}`, { key, json })
  await follow(app, code)
  await counted(owner, 1)
  const { text } = await analyticsOf(owner, '/app/analytics?range=24h')
  const [top = ''] = /<h2>Top links<\/h2>[\s\S]*/.exec(text) ?? []
  expect(top).toContain('<strong>Spring sale</strong>')
  expect(top).toContain('hop.test/Spring-Menu → https://example.com/spring')
  expect(top.replace(/href="[^"]*"/g, '')).not.toContain(code)
  app.advance(3 * DAY)
  const later = await analyticsOf(owner, '/app/analytics?range=24h')
  expect(later.text).not.toContain('data-chart')
  expect(later.text).toContain('No hits in the last 24 hours.')
})
