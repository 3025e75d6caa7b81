import { expect, test } from 'bun:test'
import { addDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** Import of a file and export of all links in the dashboard, without scripts. */

const PATH = '/app/links/import'
const ALL = { env: { IMPORT_ALIASES: 'all' } }

async function upload(app: TestApp, user: Visitor, content: string, more = {}, name = 'links.csv') {
  const { csrf } = await user.get(PATH)
  const body = new FormData()
  for (const [field, value] of Object.entries({ csrf, ...more })) body.set(field, String(value))
  body.set('file', new File([content], name))
  const cookie = [...user.cookies].map(([key, value]) => `${key}=${value}`).join('; ')
  return fetch(`${app.url}${PATH}`, {
    method: 'POST',
    body,
    redirect: 'manual',
    headers: { cookie, 'sec-fetch-site': 'same-origin', 'x-forwarded-for': '192.0.2.50' },
  })
}

/** The page when nothing runs any more. */
async function finished(user: Visitor): Promise<string> {
  let text = ''
  await eventually('the import has ended', async () => {
    const page = await user.get(PATH)
    expect(page.status).toBe(200)
    text = page.text
    return !text.includes('<progress')
  })
  return text
}

const CSV = [
  'Short URL,Long URL,Title,Clicks',
  'https://go.test/spring26,https://example.com/1,One,7',
  'https://go.test/spring-sale,https://example.com/2,<b>,',
  'https://go.test/api/<i>,https://example.com/3,,',
].join('\n')

test('a file is checked, imported, and has a report', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  expect((await upload(app, free, CSV)).status).toBe(303)
  const checked = await finished(free)
  expect(checked).toContain('Recognized as CSV')
  expect(checked).toContain('Import 2 links')
  expect(checked).toContain('/api/&lt;i&gt;')
  expect(checked).not.toContain('<i>')
  expect((await app.call('GET', '/spring-sale')).status).toBe(404)
  expect((await free.post(`${PATH}/start`, {}, { from: PATH })).status).toBe(303)
  const done = await finished(free)
  expect(done).toContain('2 links imported')
  expect(done).toContain('See these links')
  const { headers } = await app.call('GET', '/spring-sale')
  expect(headers.get('location')).toBe('https://example.com/2')
  const report = await free.get(`${PATH}/report.csv`)
  expect(report.text.trim().split('\r\n')).toHaveLength(4)
  const file = await free.get(`${PATH}/export/jsonl`)
  // What the file is, two links, and their import in the history.
  expect(file.text.trim().split('\n')).toHaveLength(4)
  // Spreadsheets read the file, and programs that of the API, which has no byte order mark.
  const bytesOf = async (path: string, key?: string) =>
    Buffer.from((await app.call('GET', path, key ? { key } : { headers: { cookie } })).bytes)
  const cookie = [...free.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const table = await bytesOf(`${PATH}/export/csv`)
  const plain = await bytesOf('/api/export?format=csv', 'free')
  expect(plain.toString()).toStartWith('Short URL,Short code')
  expect(table).toEqual(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), plain]))
})

test('columns that are not read are named before and after the import', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  const rows = 'Short URL,Long URL,Team,<i>\nhttps://go.test/spring-sale,https://example.com/2,IT,x'
  await upload(app, free, rows)
  const named = 'These columns were not read: Team, &lt;i&gt;.'
  expect(await finished(free)).toContain(named)
  await free.post(`${PATH}/start`, {}, { from: PATH })
  const done = await finished(free)
  expect(done).toContain('1 link imported')
  expect(done).toContain(named)
})

test('of a file with several domains, the user chooses some without uploading it again', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  const file = [
    'Short URL,Long URL',
    'https://a.test/menu-a,https://example.com/a',
    'https://<b>.test/menu-b,https://example.com/b',
    'https://c.test/menu-c,https://example.com/c',
    'https://c.test/menu-a,https://example.com/c2',
  ].join('\n')
  await upload(app, free, file)
  const asked = await finished(free)
  const offered = [...asked.matchAll(/name="domain" value="([^"]*)"/g)].map(([, name]) => name)
  expect(offered).toEqual(['c.test', 'a.test', '&lt;b&gt;.test'])
  const choose = (fields: Record<string, string>) =>
    free.post(`${PATH}/domains`, fields, { from: PATH })
  expect((await choose({})).status).toBe(422)
  expect((await choose({ domain: 'other.test' })).status).toBe(422)
  expect((await free.get(PATH)).text).toContain('c.test')
  expect((await choose({ domain: 'c.test' })).status).toBe(303)
  const checked = await finished(free)
  expect(checked).toContain('Import 2 links')
  expect(checked).not.toContain('name="domain"')
  await free.post(`${PATH}/start`, {}, { from: PATH })
  await finished(free)
  const follow = async (path: string) =>
    (await app.call('GET', `/${path}`)).headers.get('location') ?? 'none'
  expect([await follow('menu-a'), await follow('menu-b'), await follow('menu-c')]).toEqual([
    'https://example.com/c2',
    'none',
    'https://example.com/c',
  ])
  // The choice is over: an old page changes nothing.
  await choose({ domain: 'a.test' })
  expect(await finished(free)).toContain('2 links imported')
})

test('links of a domain of the service stay on it, and the user chooses among the others', async () => {
  await using app = await testApp(ALL)
  await addDomain(app.administration, operatorOf(app.administration), {
    host: 'go.test',
    for: 'all',
  })
  await addDomain(app.administration, operatorOf(app.administration), { host: 'owners.test' })
  const free = await makeMember(app, 'free@example.com')
  const rows = ['Short URL,Long URL', 'https://go.test/menu,https://example.com/go']
  await upload(app, free, [...rows, 'https://hop.test/menu,https://example.com/hop'].join('\n'))
  expect(await finished(free)).toContain('Import 2 links')
  const more = ['old', 'owners'].map((name) => `https://${name}.test/x,https://example.com/${name}`)
  await upload(app, free, [...rows, ...more].join('\n'))
  const asked = await finished(free)
  const boxes = [...asked.matchAll(/name="domain" value="([^"]*)"( checked)?/g)]
  expect(boxes.map(([, host, checked]) => [host, checked !== undefined])).toEqual([
    ['go.test', true],
    ['old.test', false],
    ['owners.test', false],
  ])
  await free.post(`${PATH}/domains`, { domain: ['go.test', 'old.test'] }, { from: PATH })
  expect(await finished(free)).toContain('Import 2 links')
  await free.post(`${PATH}/start`, {}, { from: PATH })
  await finished(free)
  const lead = async (host: string, path: string) =>
    (await app.call('GET', path, { headers: { host } })).headers.get('location')
  expect([await lead('go.test', '/menu'), await lead('hop.test', '/x')]).toEqual([
    'https://example.com/go',
    'https://example.com/old',
  ])
})

test('a file with a domain in each row offers the first ones, and says how many there are', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  const rows = Array.from({ length: 5000 }, (_, n) => `https://d${n}.test/x${n},https://e.com/${n}`)
  const most = 'https://d4999.test/y,https://e.com/y'
  await upload(app, free, ['Short URL,Long URL', ...rows, most, ',https://e.com/z'].join('\n'))
  const asked = await finished(free)
  const offered = [...asked.matchAll(/name="domain" value="([^"]*)"/g)].map(([, name]) => name)
  expect([offered.length, offered[0]]).toEqual([50, 'd4999.test'])
  expect(asked).toContain('4,950 more domains')
  expect(asked).toContain('1 link without a domain')
  expect(asked.length).toBeLessThan(50_000)
})

test('the order of dates and what becomes of disabled links can be chosen', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const file = 'url,slug,created,disabled\nhttps://example.com/,DATED26,02.01.2024,\n'
  await upload(app, free, file)
  expect(await finished(free)).toContain('Which part of 02.01.2024 is the day?')
  const more = { date_format: 'dmy', skip_disabled: 1 }
  await upload(app, free, `${file}https://example.com/,PAUSED26,02.01.2024,1\n`, more)
  const checked = await finished(free)
  expect(checked).toContain('Import 1 link')
  expect(checked).toContain('Left out')
  await free.post(`${PATH}/start`, {}, { from: PATH })
  await finished(free)
  const { body } = await app.call('GET', '/api/links/DATED26', { key: 'free' })
  expect(body.created_at).toBe('2024-01-02T00:00:00.000Z')
})

const REFUSED: [name: string, content: string, message: RegExp][] = [
  ['no destination', 'a,b\n1,2\n', /no column that Hopcode takes for a destination/],
  ['more than 100,000 rows', `url\n${'x\n'.repeat(100_001)}`, /has more than 100,000 rows/],
  ['a database of a member', `SQLite format 3\0${'x'.repeat(4096)}`, /only owners/],
]
test.each(REFUSED)('a file with %s is refused with the reason', async (_, content, message) => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  await upload(app, free, content)
  expect(await finished(free)).toMatch(message)
})

test('a form without a file or from another site changes nothing, and nobody sees the job of another', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  const pro = await makeMember(app, 'pro@example.com')
  expect((await upload(app, free, '')).status).toBe(422)
  expect((await upload(app, free, CSV, { csrf: 'x' })).status).toBe(403)
  await upload(app, free, CSV)
  await finished(free)
  expect((await pro.get(PATH)).text).not.toContain('Import 2 links')
  expect((await pro.get(`${PATH}/report.csv`)).status).toBe(404)
  await pro.post(`${PATH}/start`, {}, { from: PATH })
  expect((await app.call('GET', '/spring-sale')).status).toBe(404)
})

test('a report of any length can be downloaded', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  // The report has each quote twice: 18 MB.
  const row = `https://example.com/,x${'"'.repeat(900_000)}\n`
  expect((await upload(app, owner, `url,slug\n${row.repeat(10)}`)).status).toBe(303)
  await finished(owner)
  const { status, text } = await owner.get(`${PATH}/report.csv`)
  expect([status, text.split('invalid_path').length]).toEqual([200, 11])
})

test('a second file while the first one is checked is refused with the reason', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await upload(app, free, `url\n${'x\n'.repeat(50_000)}`)
  const second = await upload(app, free, CSV)
  expect([second.status, await second.text()]).toEqual([
    503,
    expect.stringContaining('Other imports are running'),
  ])
})

test('a member uploads as much as the page says: 8 MiB, and no more', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const row = `https://example.com/${'a'.repeat(2028)}\n`
  const file = `url\n${row.repeat(4090)}`
  expect(file.length).toBeLessThan(8 * 1024 * 1024)
  expect((await upload(app, free, file)).status).toBe(303)
  expect((await upload(app, free, file + row.repeat(80))).status).toBe(413)
})
