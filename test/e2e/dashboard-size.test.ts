import { expect, test } from 'bun:test'
import { parse } from 'csv-parse/sync'
import {
  failingLines,
  longUrls,
  OWNER_PATHS,
  pagePaths,
  WORST_TEXTS,
  WORST_URLS,
} from '../abuse/pages.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { type Seen, setUpOwner, type Visitor } from '../support/dashboard.ts'
import { addOneTimeLink, makeMember } from '../support/members.ts'

/**
 * Pages are cut at characters, so that no page is larger than 1 MB, whatever an account's links are
 * and whatever a form sends.
 */

const PAGE_BYTES_MAX = 1_000_000
const LINKS = '/app/links'
/** As long as a setting may be. */
const BASE_URL = `http://${'b'.repeat(60)}.${'b'.repeat(27)}.test`

/** The account has 60 links, with destinations as a release without today's limits stored them. */
async function fill(app: TestApp, url: (i: number) => string): Promise<string> {
  const urls = Array.from({ length: 60 }, (_, i) => `https://short.example/${i}`)
  const { body } = await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
  const codes = (body.results as { code: string }[]).map(({ code }) => code)
  app.administer(({ db }) => {
    const update = db.query('UPDATE links SET url = ?2 WHERE code = ?1')
    for (const [i, code] of codes.entries()) update.run(code, url(i))
  })
  for (const code of codes.slice(0, 12)) await app.call('GET', `/${code}`)
  return codes[0] ?? ''
}

/** What is too large, by its bytes. */
const tooLarge = (path: string, { text }: Seen | { text: string }) => {
  const bytes = Buffer.byteLength(text)
  return bytes > PAGE_BYTES_MAX ? [`${path.slice(0, 60)}: ${bytes}`] : []
}

test.each(WORST_URLS.map(({ name, url }) => ({ name, url })))(
  'pages of 60 links with $name stay small',
  async ({ url }) => {
    await using app = await testApp({ env: { BASE_URL, SIGNUP: 'open' } })
    const free = await makeMember(app, 'free@example.com')
    const code = await fill(app, url)
    const wrong: string[] = []
    for (const path of pagePaths(code)) {
      const seen = await free.get(path)
      expect([200, 303]).toContain(seen.status)
      wrong.push(...tooLarge(path, seen))
    }
    const part = await free.get(LINKS, { 'hx-request': 'true', 'hx-target': 'list' })
    expect([...wrong, ...tooLarge('the list alone', part)]).toEqual([])
  },
)

test('a destination in the list is cut, and the page of its link has all of it', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const url = `https://x.example/${'a'.repeat(4000)}`
  const { code } = await app.shorten(url)
  const { text } = await free.get(LINKS)
  expect(text).toMatch(/<span class="destination"><b>x\.example<\/b>\/a{150,200}…<\/span>/)
  expect(text).not.toContain(url)
  expect((await free.get(`${LINKS}/${code}/settings`)).text.split(url)).toHaveLength(2)
})

test('a destination is never cut before the end of its host', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.shorten(`https://bank.example%2F${'u'.repeat(1000)}@evil.example/login`)
  await app.shorten(`https://bank.example.${'h'.repeat(1000)}.evil.example/login`)
  const { text } = await free.get(LINKS)
  const hosts = [...text.matchAll(/<b>([^<]*)<\/b>/g)].map(([, host]) => host ?? '')
  expect(hosts).toHaveLength(2)
  for (const host of hosts) expect(host).toEndWith('evil.example')
})

test('what a refused form sends back stays small', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const code = await fill(app, WORST_URLS[0]?.url ?? String)
  const wrong: string[] = []
  for (const text of WORST_TEXTS) {
    for (const [path, fields] of [
      [LINKS, { url: text }],
      [LINKS, { code: text, url: text }],
      [`${LINKS}/${code}/settings`, { url: text }],
      [`${LINKS}/bulk`, { urls: text }],
    ] as const) {
      const seen = await free.post(path, fields, { from: LINKS })
      expect([413, 422]).toContain(seen.status)
      wrong.push(...tooLarge(path, seen))
    }
  }
  expect(wrong).toEqual([])
})

test('a destination of a refused form that is too long to be sent back says so', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const good = `https://x.example/${'a'.repeat(9000)}`
  const { status, text } = await free.post(LINKS, { url: good })
  expect(status).toBe(422)
  expect(text).toContain('at most 8192 characters')
  // Cut, it would be another address, and could be sent by mistake.
  expect(text).not.toContain('https://x.example/')
})

test('pages of the owner stay small', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const { owner } = await setUpOwner(app)
  const local = "a&'".repeat(20).slice(0, 60)
  app.administer(({ db }) => {
    const insert = db.query(
      `INSERT INTO accounts (name, plan, link_count, created_at)
       VALUES (?1, 'free', 0, 0)`,
    )
    for (let i = 0; i < 60; i++) insert.run(`${i}${local}@${"'".repeat(180)}.example`)
  })
  for (let i = 0; i < 100; i++) {
    const email = `${i}${"&'".repeat(28)}@${'a.'.repeat(90)}example.com`
    addOneTimeLink(app, { purpose: 'invite', plan: 'free', email })
  }
  const wrong: string[] = []
  for (const path of OWNER_PATHS) wrong.push(...tooLarge(path, await owner.get(path)))
  for (const text of WORST_TEXTS) {
    const sent = { length: 'at', at: text, utc: text }
    const path = '/app/service/maintenance'
    const seen = await owner.post(path, sent, { from: '/app/service' })
    expect([413, 422]).toContain(seen.status)
    wrong.push(...tooLarge(path, seen))
    const invites = '/app/service/accounts/invites'
    const invited = await owner.post(invites, { email: text, plan: text }, { from: '/app/service' })
    wrong.push(...tooLarge(invites, invited))
  }
  expect(wrong).toEqual([])
})

/** Sends the bulk form as a browser does, with a file. */
async function sendBulk(app: TestApp, visitor: Visitor, sent: { urls?: string; name?: string }) {
  const body = new FormData()
  body.set('csrf', (await visitor.get(`${LINKS}/bulk`)).csrf)
  const file = sent.name === undefined ? '' : (sent.urls ?? '')
  body.set('urls', sent.name === undefined ? (sent.urls ?? '') : '')
  body.set('file', new File([file], sent.name ?? ''))
  const cookie = [...visitor.cookies].map(([key, value]) => `${key}=${value}`).join('; ')
  const headers = { cookie, 'sec-fetch-site': 'same-origin' }
  const answer = await fetch(`${app.url}${LINKS}/bulk`, { method: 'POST', headers, body })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

const bulks = [
  { name: '100 URLs of the full length', plan: 'free', urls: longUrls(100, 8000), links: 100 },
  {
    name: 'lines of which half fail',
    plan: 'pro',
    urls: `${failingLines(300, 2000)}\n${longUrls(300, 500)}`,
    links: 300,
  },
]
test.each(bulks)('the answer to a bulk of $name is a file with every passcode', async (bulk) => {
  await using app = await testApp()
  const member = await makeMember(app, `${bulk.plan}@example.com`)
  const { status, headers, text } = await sendBulk(app, member, { urls: bulk.urls })
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
  const rows = parse(text, { columns: true }) as Record<string, string>[]
  expect(rows).toHaveLength(bulk.urls.split('\n').length)
  const made = rows.filter(({ passcode = '' }) => /^[A-Z0-9]{24}$/.test(passcode))
  expect(made).toHaveLength(bulk.links)
  expect(made.at(-1)?.url).toBe(bulk.urls.split('\n').at(-1))
})

test.each([
  { plan: 'enterprise', links: 5000 },
  { plan: 'pro', links: 1000 },
])('the answer to a bulk of $links short URLs is a page with every passcode', async (bulk) => {
  await using app = await testApp()
  const member = await makeMember(app, `${bulk.plan}@example.com`)
  const urls = `${longUrls(bulk.links - 1, 1)}\nnonsense`
  const { status, text } = await sendBulk(app, member, { urls })
  expect(status).toBe(200)
  expect(tooLarge('the page', { text })).toEqual([])
  const csv = /<textarea id="created-csv"[^>]*>([^<]*)</.exec(text)?.[1] ?? ''
  expect(csv.match(/,[A-Z0-9]{24},/g)).toHaveLength(bulk.links - 1)
  expect(text).toContain('1 line failed.')
  expect(text).toMatch(/<textarea id="field-urls"[^>]*>\nnonsense</)
})

const pages = [
  { name: 'the whole batch of a Free member', urls: longUrls(100, 20), status: 200 },
  { name: '100 lines that all fail', urls: failingLines(100, 8000), status: 422 },
  { name: 'more lines than the plan takes', urls: failingLines(4000, 500), status: 422 },
  {
    name: 'a file with a long name',
    urls: longUrls(50, 20),
    file: `${'n&'.repeat(50_000)}.csv`,
    status: 200,
  },
]
test.each(pages)('the page for a bulk of $name stays small', async (bulk) => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const sent = { urls: bulk.urls, ...(bulk.file !== undefined && { name: bulk.file }) }
  const { status, headers, text } = await sendBulk(app, free, sent)
  expect({ status, type: headers.get('content-type') }).toEqual({
    status: bulk.status,
    type: 'text/html; charset=utf-8',
  })
  expect(tooLarge(bulk.name, { text })).toEqual([])
})

test('5,000 lines that all fail are a small page that says how many it leaves out', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'enterprise@example.com')
  const { status, text } = await sendBulk(app, member, { urls: failingLines(5000, 100) })
  expect(status).toBe(422)
  expect(tooLarge('5,000 failing lines', { text })).toEqual([])
  expect(text).toContain('5,000 lines failed.')
  expect(text).toContain('The first 100 are shown.')
})
