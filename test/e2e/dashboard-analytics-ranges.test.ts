import { expect, test } from 'bun:test'
import { inTransaction } from '../../src/db/open.ts'
import { countAdder } from '../../src/hits/store.ts'
import { HOUR } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { OWNER, setUpOwner, Visitor } from '../support/dashboard.ts'
import { sharedApp } from '../support/shared.ts'

/** Ranges of the analytics: dates, the account's time zone, the period before, CSV files. */

/** Stores hits of a link as earlier flushes would have. `hits`: UTC times and counts. */
function addHits(app: TestApp, code: string, hits: Readonly<Record<string, number>>): void {
  app.administer(({ db }) => {
    inTransaction(db, () => {
      const link = db
        .query<{ id: number }, [string]>('SELECT id FROM links WHERE code = ?')
        .get(code)
      if (!link) throw new Error(`no link ${code}`)
      const add = countAdder(db)
      for (const [time, count] of Object.entries(hits)) {
        add(Uint32Array.of(link.id, count), Date.parse(time))
      }
    })
  })
}

const setZone = (visitor: Visitor, zone: string) =>
  visitor.post('/app/account/time-zone', { zone }, { from: '/app/account' })

/** The owner with the link SPRING and its hits. The time is 2026-03-01T12:00Z. */
async function setUp(app: TestApp, hits: Readonly<Record<string, number>>) {
  const { owner, key } = await setUpOwner(app)
  await app.claim('SPRING', 'https://example.com/spring', key)
  addHits(app, 'SPRING', hits)
  return { owner, key }
}

const PATHS = ['/app/analytics', '/app/links/SPRING'] as const

/** The tile with the hits, and of which time they are. */
const sumOf = (text: string) => [
  /<dt>Hits<\/dt>\s*<dd><strong>([\d,]+)/.exec(text)?.[1],
  /<p class="hint">Hits ([^<,.]+)/.exec(text)?.[1],
]

/** Lines of a file without its head, by their first cell. */
async function csvOf(visitor: Visitor, path: string): Promise<Record<string, number>> {
  const { status, headers, text } = await visitor.get(path)
  expect([path, status, headers.get('content-type')]).toEqual([
    path,
    200,
    'text/csv; charset=utf-8',
  ])
  const [, ...lines] = text.trimEnd().split('\r\n')
  return Object.fromEntries(lines.map((line) => line.split(',')).map(([at, n]) => [at, Number(n)]))
}

test('two dates choose the range, both included', async () => {
  await using app = await testApp()
  const { owner } = await setUp(app, {
    '2026-02-09T23:00:00Z': 1,
    '2026-02-10T00:00:00Z': 10,
    '2026-02-12T23:00:00Z': 100,
    '2026-02-13T00:00:00Z': 1000,
  })
  for (const path of PATHS) {
    const { text } = await owner.get(`${path}?from=2026-02-10&to=2026-02-12`)
    expect([path, sumOf(text)]).toEqual([path, ['110', 'from 10 Feb 2026 to 12 Feb 2026']])
    const day = await owner.get(`${path}?from=2026-02-13&to=2026-02-13`)
    expect([path, sumOf(day.text)]).toEqual([path, ['1,000', 'on 13 Feb 2026']])
    expect(text).toMatch(/name="from" value="2026-02-10"/)
    expect(text).toContain('from=2026-02-10&amp;to=2026-02-12')
  }
})

const withHit = sharedApp((app) => setUp(app, { '2026-02-09T23:00:00Z': 1 }))

test.each([
  ['from=2026-02-12&to=2026-02-10', 'the wrong order'],
  ['from=2026-02-10', 'one date'],
  ['to=2026-02-10', 'the other date'],
  ['from=2026-02-30&to=2026-03-01', 'a date that does not exist'],
  ['from=%22%3E%3Cb%3E&to=2026-03-01', 'no date'],
])('?%s shows the usual range and what is wrong: %s', async (query) => {
  const { owner } = await withHit()
  const { status, text } = await owner.get(`/app/analytics?${query}`)
  expect([status, sumOf(text)]).toEqual([200, ['1', 'in the last 30 days']])
  expect(text).toMatch(/id="range-from"[^>]* aria-invalid="true" aria-describedby="range-error"/)
  expect(text).not.toContain('<b>')
  expect((await owner.get(`/app/analytics.csv?${query}`)).status).toBe(400)
})

test('days are those of the account’s time zone, also in its files and its top links', async () => {
  await using app = await testApp()
  // In Berlin these are 23:00 of the 9th, midnight of the 10th, and 23:00 of the 10th.
  const { owner } = await setUp(app, {
    '2026-02-09T22:00:00Z': 1,
    '2026-02-09T23:00:00Z': 10,
    '2026-02-10T22:00:00Z': 100,
    '2026-02-10T23:00:00Z': 1000,
  })
  expect((await setZone(owner, 'Europe/Berlin')).location).toBe('/app/account?done=saved')
  const path = 'analytics?from=2026-02-10&to=2026-02-10'
  const { text } = await owner.get(`/app/${path}`)
  expect(sumOf(text)).toEqual(['110', 'on 10 Feb 2026'])
  expect(text).toContain('Hours in Europe/Berlin')
  expect(text.split('Top links')[1]).toMatch(/data-label="Hits"><div>110</)
  expect(await csvOf(owner, '/app/analytics.csv?from=2026-02-09&to=2026-02-11&by=day')).toEqual({
    '2026-02-09': 1,
    '2026-02-10': 110,
    '2026-02-11': 1000,
  })
})

test('days on which the clocks change have 23 and 25 hours', async () => {
  await using app = await testApp()
  const hours = Array.from({ length: 72 }, (_, i) => Date.UTC(2026, 2, 28) + i * HOUR)
  await setUp(app, Object.fromEntries(hours.map((time) => [new Date(time).toISOString(), 1])))
  app.advance(30 * 24 * HOUR)
  const owner = new Visitor(app)
  await owner.signIn(OWNER)
  await setZone(owner, 'Europe/Berlin')
  const days = await csvOf(owner, '/app/analytics.csv?from=2026-03-28&to=2026-03-30&by=day')
  // The first hour of the 28th has no hits.
  expect(days).toEqual({ '2026-03-28': 23, '2026-03-29': 23, '2026-03-30': 24 })
  const file = await csvOf(owner, '/app/analytics.csv?from=2026-03-29&to=2026-03-29&by=hour')
  const [, before, after] = Object.keys(file)
  expect([before, after]).toEqual(['2026-03-29T01:00+01:00', '2026-03-29T03:00+02:00'])
  expect(Object.keys(file)).toHaveLength(23)
  await setZone(owner, 'America/Santiago')
  const { text } = await owner.get('/app/analytics?from=2025-04-05&to=2025-04-05')
  expect(text.match(/data-label="Hits"/g)).toHaveLength(25)
  expect(text).toContain('5 Apr 2025, 23:00 (UTC-03:00)<')
  expect(text).toContain('5 Apr 2025, 23:00 (UTC-04:00)<')
})

test('the range is compared with the period before', async () => {
  await using app = await testApp()
  const { owner } = await setUp(app, {
    '2026-02-15T00:00:00Z': 5,
    // The last day of the seven before, before and after the present time of day.
    '2026-02-22T12:00:00Z': 3,
    '2026-02-22T13:00:00Z': 90,
    '2026-02-23T00:00:00Z': 10,
    '2026-03-01T12:00:00Z': 2,
  })
  for (const path of PATHS) {
    const week = await owner.get(`${path}?range=7d`)
    expect(week.text).toMatch(/▲ 300 %[^.]*>3 before</)
    expect(week.text).toContain('1 Mar 2026: 2 hits so far, 3 hits before')
    const day = await owner.get(`${path}?from=2026-02-23&to=2026-02-24`)
    expect(day.text).toMatch(/▼ 89 %[^.]*>93 before</)
    const none = await owner.get(`${path}?from=2026-02-14&to=2026-02-15`)
    expect(none.text).not.toMatch(/[▲▼]/)
    const thisWeek = await owner.get(`${path}?range=week`)
    expect(sumOf(thisWeek.text)).toEqual(['12', 'this week'])
    const lastWeek = await owner.get(`${path}?range=last-week`)
    expect(sumOf(lastWeek.text)).toEqual(['93', 'last week'])
    expect(lastWeek.text).toContain('>5 before<')
    const month = await owner.get(`${path}?range=month`)
    expect(sumOf(month.text)).toEqual(['2', 'this month'])
    const lastMonth = await owner.get(`${path}?range=last-month`)
    expect(sumOf(lastMonth.text)).toEqual(['108', 'last month'])
    // What was before is not kept.
    const long = await owner.get(`${path}?range=12m`)
    expect(long.text).not.toMatch(/before/)
  }
})

test('months before the first hit are not drawn', async () => {
  await using app = await testApp()
  const { owner } = await setUp(app, { '2025-11-05T10:00:00Z': 4, '2026-03-01T10:00:00Z': 1 })
  for (const path of PATHS) {
    const { text } = await owner.get(`${path}?range=12m`)
    expect(sumOf(text)).toEqual(['5', 'in the last 12 months'])
    expect(text.match(/class="place"/g)).toHaveLength(17)
    expect(text).toContain('5 Nov to 9 Nov 2025: 4 hits')
    expect(sumOf((await owner.get(`${path}?range=all`)).text)).toEqual(['5', 'since 5 Nov 2025'])
  }
})

test('a file has the hours or days of its chart', async () => {
  await using app = await testApp()
  const { owner } = await setUp(app, { '2026-02-20T10:00:00Z': 4, '2026-03-01T10:00:00Z': 1 })
  const day = await csvOf(owner, '/app/links/SPRING/hits.csv?range=24h')
  expect([Object.keys(day).length, day['2026-03-01T10:00+00:00']]).toEqual([24, 1])
  const days = await csvOf(owner, '/app/links/SPRING/hits.csv?range=12m')
  expect(days).toMatchObject({ '2026-02-20': 4, '2026-02-21': 0, '2026-03-01': 1 })
  const { text, headers } = await owner.get('/app/analytics.csv?range=7d')
  expect(text.split('\r\n')[0]).toBe('day (UTC),hits')
  expect(headers.get('content-disposition')).toContain('hits-2026-02-23-to-2026-03-01.csv')
  expect((await owner.get('/app/analytics.csv?range=90d&by=hour')).status).toBe(400)
})

test('until the account chooses a time zone, days are those of the browser', async () => {
  await using app = await testApp()
  const { owner } = await setUp(app, { '2026-02-09T23:00:00Z': 10 })
  const at = async (zone: string) => {
    owner.cookies.set('hopcode-zone', zone)
    return sumOf((await owner.get('/app/analytics?from=2026-02-10&to=2026-02-10')).text)[0]
  }
  expect(await at('Europe/Berlin')).toBe('10')
  expect(await at('Mars/Phobos')).toBe('0')
  await setZone(owner, 'UTC')
  expect(await at('Europe/Berlin')).toBe('0')
})
