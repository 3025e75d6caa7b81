import { expect, spyOn, test } from 'bun:test'
import { parse } from 'csv-parse/sync'
import { Thread } from '../../src/lib/thread.ts'
import { type TestApp, testApp } from '../support/app.ts'
import type { Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** All links of an account as one file. */

const EXPORT = '/app/links/export.csv'

const rowsOf = (text: string) => parse(text, { columns: true }) as Record<string, string>[]

const makeLinks = async (app: TestApp, count: number) =>
  (await makeSecretLinks(app, count)).map(({ code }) => code)

async function makeSecretLinks(app: TestApp, count: number, key = 'enterprise') {
  const urls = Array.from({ length: count }, (_, n) => `https://example.com/page-${n}`)
  const { body } = await app.call('POST', '/api/bulk-shorten', { key, json: { urls } })
  return body.results as { code: string; passcode: string }[]
}

const cookieOf = ({ cookies }: Visitor) =>
  [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')

test('the file has every link of the account once, newest first, and no passcode', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'enterprise@example.com')
  const codes = await makeLinks(app, 1750)
  const { passcode } = await app.reserve('SPRING26', 'enterprise')
  for (let n = 0; n < 2; n++) await app.call('GET', `/${codes[0]}`)
  await app.shorten('https://foreign.example/', 'pro')
  const { headers, text } = await member.get(EXPORT)
  expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(headers.get('content-disposition')).toBe(
    'attachment; filename="hopcode-links-2026-03-01.csv"',
  )
  expect(text).not.toContain(passcode)
  const rows = rowsOf(text)
  expect(rows.map(({ code }) => code)).toEqual(['SPRING26', ...codes.toReversed()])
  expect(rows[0]).toEqual({
    code: 'SPRING26',
    short_url: 'http://hop.test/SPRING26',
    url: '',
    hits: '0',
    created_at: '2026-03-01T12:00:00.000Z',
    title: '',
    tags: '',
    note: '',
    paused: 'false',
    protected: 'false',
    starts_at: '',
    expires_at: '',
    max_hits: '',
    expired_url: '',
    forward_query: 'false',
    forward_path: 'off',
    no_index: 'false',
    destinations: '',
    domain: '',
  })
  expect(rows.at(-1)).toMatchObject({ url: 'https://example.com/page-0', hits: '2' })
})

test('spreadsheets read each CSV file of the dashboard as UTF-8 by its mark', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'enterprise@example.com')
  const [code = ''] = await makeLinks(app, 1)
  const headers = { cookie: cookieOf(member), 'sec-fetch-site': 'same-origin' }
  const startOf = async (path: string) =>
    [...new Uint8Array(await (await fetch(app.url + path, { headers })).arrayBuffer())].slice(0, 3)
  const files = [
    EXPORT,
    '/app/links/import/export/csv',
    '/app/analytics.csv',
    '/app/analytics/visits.csv?by=country',
    `/app/links/${code}/hits.csv`,
    `/app/links/${code}/visits.csv?by=country`,
  ]
  for (const path of files) expect([path, await startOf(path)]).toEqual([path, [0xef, 0xbb, 0xbf]])
})

test('an account without links gets the names of the columns', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  expect((await ann.get(EXPORT)).text).toBe(
    'code,short_url,url,created_at,hits,title,tags,note,paused,starts_at,expires_at,max_hits,' +
      'expired_url,forward_query,forward_path,no_index,destinations,domain,protected\r\n',
  )
})

test('a URL with commas, quotes and letters from everywhere is in its cell as it was stored', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const urls = [
    'https://example.com/,"\';=1+1|x',
    'https://münchen.example/straße',
    'https://a.example/\u202Ex',
  ]
  for (const url of urls) await app.shorten(url)
  expect(rowsOf((await free.get(EXPORT)).text).map(({ url }) => url)).toEqual(urls.toReversed())
})

test('the file has the links that the search and the tag of the list select, with properties', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'enterprise@example.com')
  const codes = await makeLinks(app, 130)
  const patch = (code: string | undefined, json: object) =>
    app.call('PATCH', `/api/links/${code}`, { key: 'enterprise', json })
  await patch(codes[3], { tags: ['spring', 'poster'], title: 'Sum, of "it"', max_hits: 5 })
  await patch(codes[7], { tags: ['spring'], note: 'Line one\nline two', paused: true })
  const exported = async (query: string) => rowsOf((await member.get(EXPORT + query)).text)
  const tagged = await exported('?tag=spring')
  expect(tagged).toMatchObject([
    { code: codes[7], tags: 'spring', note: 'Line one\nline two', paused: 'true' },
    { code: codes[3], tags: 'poster, spring', max_hits: '5' },
  ])
  expect((await exported('?q=LINE+two')).map(({ code }) => code)).toEqual([codes[7] ?? ''])
  expect(await exported('?q=nothing&tag=spring')).toEqual([])
  const all = await exported('?q=page-')
  expect(all.map(({ code }) => code)).toEqual(codes.toReversed())
})

test.each(['=cmd|calc', '+1+1', '-1+1', '@SUM(A1)', '＝1'])(
  'a spreadsheet shows the title, tag and note %s as text and does not evaluate it',
  async (text) => {
    await using app = await testApp()
    const member = await makeMember(app, 'free@example.com')
    const { code } = await app.shorten('https://example.com/')
    const json = { title: text, tags: [text], note: text }
    const { status } = await app.call('PATCH', `/api/links/${code}`, { key: 'free', json })
    const [row] = rowsOf((await member.get(EXPORT)).text)
    expect({ status, row }).toMatchObject({
      status: 200,
      row: { title: `'${text}`, tags: `'${text.toLowerCase()}`, note: `'${text}` },
    })
  },
)

test('a client that stops reading stops the export: no further links are read', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'enterprise@example.com')
  // More than the connection itself holds.
  for (const half of [0, 1]) {
    const url = (n: number) => `https://example.com/${half}/${n}/`.padEnd(8000, 'x')
    const urls = Array.from({ length: 1000 }, (_, n) => url(n))
    await app.call('POST', '/api/bulk-shorten', { key: 'enterprise', json: { urls } })
  }
  using calls = spyOn(Thread.prototype, 'call')
  const reads = () => calls.mock.calls.filter(([name]) => name === 'lists.below').length
  expect(rowsOf((await member.get(EXPORT)).text)).toHaveLength(2000)
  const whole = reads()
  for (let n = 0; n < 3; n++) {
    const answer = await fetch(app.url + EXPORT, { headers: { cookie: cookieOf(member) } })
    const reader = answer.body?.getReader()
    await reader?.read()
    await reader?.cancel()
  }
  // One that went on would have ended before this one, which waits behind it.
  await member.get(EXPORT)
  expect(whole).toBeGreaterThan(3)
  expect(reads()).toBeLessThan(2 * whole + 3 * (whole - 1))
  expect(app.log.join()).not.toContain('"level":"error"')
})

test('a link that is deleted meanwhile neither breaks the export nor hides another', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'enterprise@example.com')
  const links = await makeSecretLinks(app, 3000)
  const codes = links.map(({ code }) => code)
  const removed = links.filter((_, n) => n % 100 === 0)
  const deleted = removed.map(({ code }) => code)
  const [{ text }] = await Promise.all([
    member.get(EXPORT),
    ...removed.map(({ code, passcode }) =>
      app.call('POST', '/api/delete', { key: 'enterprise', json: { code, passcode } }),
    ),
  ])
  const found = rowsOf(text).map(({ code }) => code ?? '')
  const stays = new Set(codes.filter((code) => !deleted.includes(code)))
  expect(found.filter((code) => stays.has(code))).toEqual([...stays].toReversed())
  expect(new Set(found).size).toBe(found.length)
})
