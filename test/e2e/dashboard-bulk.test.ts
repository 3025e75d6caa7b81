import { expect, test } from 'bun:test'
import { parse } from 'csv-parse/sync'
import { type TestApp, testApp } from '../support/app.ts'
import { invalidIn, type Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { messageOf } from '../support/refusals.ts'
import { sharedApp } from '../support/shared.ts'

/** Many URLs at once: pasted or from a file, with nothing lost of what fails. */

const BULK = '/app/links/bulk'
const BAD_START = messageOf('invalid_url')

interface Sent {
  urls?: string
  file?: string | Uint8Array<ArrayBuffer>
  name?: string
  as?: string
  tags?: string
}

/** Sends the form as a browser does, with a file. */
async function send(app: TestApp, visitor: Visitor, { urls = '', file, name, as, tags }: Sent) {
  const body = new FormData()
  body.set('csrf', (await visitor.get(BULK)).csrf)
  body.set('urls', urls)
  body.set('file', new File([file ?? ''], file === undefined ? '' : (name ?? 'links.csv')))
  if (as) body.set('as', as)
  if (tags) body.set('tags', tags)
  const cookie = [...visitor.cookies].map(([key, value]) => `${key}=${value}`).join('; ')
  const headers = { cookie, 'sec-fetch-site': 'same-origin' }
  const answer = await fetch(app.url + BULK, { method: 'POST', headers, body })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, invalid: invalidIn(text) }
}

/** The number of rows of each table: of failed lines, new links, and links of before. */
const rowsOf = (text: string) =>
  [...text.matchAll(/<tbody>[\s\S]*?<\/tbody>/g)].map(([body]) => body.match(/<tr>/g)?.length)

/** What the text field holds. */
const kept = (text: string) =>
  /<textarea id="field-urls"[^>]*>\n([^<]*)<\/textarea>/.exec(text)?.[1] ?? 'no field'

const totalOf = async (app: TestApp) =>
  (await app.call('GET', '/api/list', { key: 'free' })).body.total

test('every line becomes a link with a passcode that works; failed lines come first and stay', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const had = await app.shorten('https://had.example/')
  const urls = [
    'https://a.example/',
    'not a url',
    'https://had.example/',
    '',
    'http://hop.test/LOOPED',
    'https://b.example/',
  ].join('\r\n')
  const { status, text } = await send(app, free, { urls })
  expect(status).toBe(200)
  expect(rowsOf(text)).toEqual([2, 2, 1])
  expect(text).toMatch(new RegExp(`Line 2</span></div></td><td[^>]*><div>${BAD_START}`))
  expect(text).toMatch(/Line 5<\/span><\/div><\/td><td[^>]*><div>Destination URL is not allowed/)
  expect(text.indexOf('<h2>Failed')).toBeLessThan(text.indexOf('<h2>New links'))
  expect(kept(text)).toBe('not a url\nhttp://hop.test/LOOPED')
  expect(text).toContain(`value="http://hop.test/${had.code}"`)
  const passcodes = [...text.matchAll(/passcode">([A-Z0-9]{24})</g)].map(([, found]) => found ?? '')
  expect(passcodes).toHaveLength(2)
  const code = /id="result-0" value="http:\/\/hop.test\/([A-Z0-9]+)"/.exec(text)?.[1]
  const json = { code, passcode: passcodes[0], url: 'https://c.example/' }
  expect((await app.call('POST', '/api/update', { key: 'free', json })).status).toBe(200)
  expect(app.log.join()).not.toContain(passcodes[0] ?? '?')
  expect(await totalOf(app)).toBe(3)
})

test('a CSV file and the field are taken together, and a failed row tells the file’s line', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const file = '\ufefftitle,url\r\n"One, two",https://a.example/\r\nthree,nonsense\r\n'
  const { text } = await send(app, free, { urls: 'https://b.example/', file, name: 'my<b>.csv' })
  expect(rowsOf(text)).toEqual([1, 2])
  expect(text).toContain('my&lt;b&gt;.csv, line 3')
  expect(kept(text)).toBe('nonsense')
})

test('where every line fails, nothing is made, each has its own reason, and all stay', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const urls = 'ftp://x\nhttp://hop.test/A\nhttps://a b'
  for (const as of ['', 'csv']) {
    const { status, text } = await send(app, free, { urls, as })
    expect(status).toBe(422)
    expect(text).toContain(BAD_START)
    expect(text).toContain('Destination URL is not allowed')
    expect(text).toContain('must not contain spaces')
    expect(kept(text)).toBe(urls)
  }
  expect(await totalOf(app)).toBe(0)
})

test('more URLs than the plan accepts create nothing, and what was pasted stays', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const urls = Array.from({ length: 101 }, (_, n) => `https://example.com/${n}`).join('\n')
  for (const sent of [{ urls }, { urls, file: urls }, { file: `url\n${urls}` }, { file: urls }]) {
    const { status, text, invalid } = await send(app, free, sent)
    expect([status, invalid.length]).toEqual([422, 1])
    // A form sends the ends of lines as CR LF.
    expect(kept(text).replaceAll('\r', '')).toBe(sent.urls ?? '')
  }
  expect(await totalOf(app)).toBe(0)
  const { text } = await send(app, free, { urls: urls.split('\n').slice(1).join('\n') })
  expect(text).toContain('100 new links.')
})

const refused = [
  { name: 'nothing', sent: {}, field: 'urls' },
  {
    name: 'a file that is no CSV',
    sent: { file: 'url\n"a', urls: 'https://a.example/' },
    field: 'file',
  },
]
const withFree = sharedApp(async (app) => ({ free: await makeMember(app, 'free@example.com') }))

test.each(refused)('$name is refused beside its field', async ({ sent, field }) => {
  const { app, free } = await withFree()
  const { status, text, invalid } = await send(app, free, sent)
  expect([status, invalid]).toEqual([422, [field]])
  expect(kept(text)).toBe(sent.urls ?? '')
  expect(await totalOf(app)).toBe(0)
})

test('one bulk takes one place of the write budget, and a full budget keeps what was pasted', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const before = await app.call('POST', '/api/reserve', { key: 'free', json: {} })
  await send(app, free, { urls: 'https://a.example/\nhttps://b.example/' })
  const after = await app.call('POST', '/api/reserve', { key: 'free', json: {} })
  const left = (answer: typeof after) => Number(answer.headers.get('x-ratelimit-remaining'))
  expect(left(before) - left(after)).toBe(2)
  for (let n = left(after); n > 0; n--)
    await app.call('POST', '/api/reserve', { key: 'free', json: {} })
  const full = await send(app, free, { urls: 'https://c.example/' })
  expect(full.status).toBe(429)
  expect(Number(full.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(kept(full.text)).toBe('https://c.example/')
})

test('a file of a spreadsheet in Windows-1252 or with a line for Excel creates its links', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const file = Buffer.from('sep=;\r\ntitle;url\r\nA;https://example.com/\xfc\r\n', 'latin1')
  const { status, text } = await send(app, free, { file })
  expect([status, rowsOf(text)]).toEqual([200, [1]])
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  const [link] = body.items as { code: string; url: string }[]
  expect(link?.url).toBe('https://example.com/ü')
  const { headers } = await app.call('GET', `/${link?.code}`)
  expect(headers.get('location')).toBe('https://example.com/%C3%BC')
})

test('the answer may be the file itself: new rows with their passcodes, failed ones first', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const urls = '=cmd|x\nhttps://a.example/?q=1,2\nhttps://b.example/"'
  const { status, headers, text } = await send(app, free, { urls, as: 'csv' })
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(headers.get('content-disposition')).toBe('attachment; filename="hopcode-new-links.csv"')
  expect(headers.get('cache-control')).toBe('no-store')
  const [failed, first, second] = parse(text, { columns: true }) as Record<string, string>[]
  expect(failed).toMatchObject({ url: "'=cmd|x", note: `failed (Line 1): ${BAD_START}` })
  expect(first).toMatchObject({ url: 'https://a.example/?q=1,2', note: 'new' })
  expect(second?.url).toBe('https://b.example/"')
  const { code, passcode } = first ?? {}
  const { status: deleted } = await app.call('POST', '/api/delete', {
    key: 'free',
    json: { code, passcode },
  })
  expect(deleted).toBe(200)
})

test('the form accepts at most 8 MiB on every plan', async () => {
  await using app = await testApp()
  for (const plan of ['free', 'pro', 'enterprise']) {
    const member = await makeMember(app, `${plan}@example.com`)
    const { status, text } = await send(app, member, { urls: 'x'.repeat(8 * 1024 * 1024) })
    expect({ plan, status }).toEqual({ plan, status: 413 })
    expect(text).toContain('at most 8 MiB')
  }
})

test('invisible characters at the ends of a pasted URL or a cell are not part of it', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const urls = '\u200bhttps://example.com/a\u2060\r\n\u00adexample.com/b\u202e'
  const file = 'url\n"\u2066https://example.com/c\u2069"\n'
  await send(app, free, { urls, file })
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  const found = (body.items as { url: string }[]).map(({ url }) => url).sort()
  expect(found).toEqual(['a', 'b', 'c'].map((one) => `https://example.com/${one}`))
})

test('all new links get the tags, and a link that the account had stays as it is', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const had = await app.shorten('https://a.example/')
  const urls = 'https://a.example/\nhttps://b.example/\nhttps://c.example/'
  expect((await send(app, free, { urls, tags: 'Print, spring' })).status).toBe(200)
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  for (const { code } of body.items as { code: string }[]) {
    const link = await app.call('GET', `/api/links/${code}`, { key: 'free' })
    expect(link.body.tags).toEqual(code === had.code ? [] : ['print', 'spring'])
  }
  const refused = await send(app, free, { urls: 'https://d.example/', tags: 'x'.repeat(50) })
  expect([refused.status, refused.invalid]).toEqual([422, ['tags']])
  expect(kept(refused.text)).toBe('https://d.example/')
  expect(await totalOf(app)).toBe(3)
})

test('lines of url,path have their own paths, from a file and pasted, and columns that are not read are named', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim('TAKEN026', 'https://taken.example/', 'pro')
  const file = [
    'Title,url,path,<b>',
    'One,https://a.example/,Spring-Team,x',
    'Two,https://b.example/,Summer26,',
    'Three,https://c.example/,,',
    'Four,https://d.example/,taken026,',
    'Five,https://e.example/,spring-team,',
    'Six,"https://f.example/?q=1,2",app,',
    'Seven,nonsense,seven-7,',
  ].join('\n')
  const urls = 'url;path\nhttps://g.example/;Menu/2026\nhttps://h.example/;\n'
  const { status, text } = await send(app, free, { urls, file })
  expect([status, rowsOf(text)]).toEqual([200, [4, 5]])
  for (const address of ['Spring-Team', 'Summer26', 'Menu/2026']) {
    expect(text).toContain(`value="http://hop.test/${address}"`)
  }
  expect(text).toContain('Title, &lt;b&gt;')
  for (const reason of ['Code already in use: taken026', 'Path already in use: spring-team']) {
    expect(text).toContain(reason)
  }
  expect(text).toContain('This path belongs to the service.')
  for (const [path, url] of [
    ['SPRING-team', 'https://a.example/'],
    ['summer26', 'https://b.example/'],
    ['menu/2026', 'https://g.example/'],
  ] as const) {
    expect((await app.call('GET', `/${path}`)).headers.get('location')).toBe(url)
  }
  expect(await totalOf(app)).toBe(5)
  // What failed can be sent again as it stands.
  const rest = kept(text)
    .replaceAll('&quot;', '"')
    .replaceAll('\r', '')
    .replace('taken026', 'free-26')
    .replace('"app"', '"our-app"')
  expect(rest).toStartWith('url,path\n"https://d.example/","free-26"\n')
  expect(rowsOf((await send(app, free, { urls: rest })).text)).toEqual([2, 2])
})

test('the same file with paths again finds its links, and an account without paths is told what helps', async () => {
  await using app = await testApp({ env: { ALIASES: 'owners' } })
  const free = await makeMember(app, 'free@example.com')
  const file = 'url,path\nhttps://a.example/,Summer26\nhttps://a.example/,spring-team\n'
  for (const rows of [
    [1, 1],
    [1, 1],
  ]) {
    const { text } = await send(app, free, { file })
    expect(rowsOf(text)).toEqual(rows)
    expect(text).toContain('such as springteam, or ask an owner of this service')
    expect(text).toContain('value="http://hop.test/Summer26"')
  }
  expect(await totalOf(app)).toBe(1)
})
