import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { invalid } from '../support/refusals.ts'

/** The spec's chapter "GET /api/list". */

interface Item {
  code: string
  url: string | null
  hit_count: number
}

async function list(app: TestApp, query: Record<string, string | number> = {}, key = 'enterprise') {
  const text = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  const answer = await app.call('GET', `/api/list?${text.join('&')}`, { key })
  return { ...answer, items: answer.body.items as Item[] }
}

// spec: GET /api/list | Passcodes are never included
// spec: Endpoints | GET /api/list
// spec: GET /api/list | limit
// spec: GET /api/list | offset
// spec: Limits | List limit
// spec: GET /api/list | Response 200
test("GET /api/list lists the account's codes, and nothing else of them", async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/1', 'free')
  app.advance(1000)
  const reserved = await app.reserve('SPRING26', 'free')
  await app.shorten('https://example.com/2', 'free-2')
  await app.call('GET', `/${code}`)
  const answer = await app.call('GET', '/api/list', { key: 'free' })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-ratelimit-limit')).toBe('300')
  expect(answer.body).toEqual({
    total: 2,
    limit: 50,
    offset: 0,
    count: 2,
    items: [
      {
        code: 'SPRING26',
        url: null,
        hit_count: 0,
        created_at: '2026-03-01T12:00:01.000Z',
        short_url: 'http://hop.test/SPRING26',
        qr_url: 'http://hop.test/qr/SPRING26',
      },
      {
        code,
        url: 'https://example.com/1',
        hit_count: 1,
        created_at: '2026-03-01T12:00:00.000Z',
        short_url: `http://hop.test/${code}`,
        qr_url: `http://hop.test/qr/${code}`,
      },
    ],
  })
  expect(answer.text).not.toContain(passcode)
  expect(answer.text).not.toContain(reserved.passcode)
})

// spec: GET /api/list | Lists the account
test('codes are listed newest first, in pages that neither repeat nor skip', async () => {
  await using app = await testApp()
  const codes: string[] = []
  for (let n = 0; n < 60; n++) {
    // Some share a millisecond: then the later one is still the newer.
    if (n % 3 === 0) app.advance(1)
    codes.unshift((await app.shorten(`https://example.com/${n}`, 'enterprise')).code)
  }
  const whole = await list(app, { limit: 200 })
  expect(whole.items.map(({ code }) => code)).toEqual(codes)
  expect(whole.body).toMatchObject({ total: 60, limit: 200, offset: 0, count: 60 })
  expect((await list(app)).items.map(({ code }) => code)).toEqual(codes.slice(0, 50))
  const pages: string[] = []
  for (let offset = 0; offset < 70; offset += 7) {
    const { items, body } = await list(app, { limit: 7, offset })
    const count = Math.max(0, Math.min(7, 60 - offset))
    expect(body).toMatchObject({ total: 60, limit: 7, offset, count })
    expect(items).toHaveLength(count)
    pages.push(...items.map(({ code }) => code))
  }
  expect(pages).toEqual(codes)
  expect((await list(app, { limit: 1, offset: 59 })).items.map(({ code }) => code)).toEqual(
    codes.slice(-1),
  )
  expect((await list(app, { offset: 999_999_999_999 })).body).toMatchObject({ total: 60, count: 0 })
})

test('an update keeps a code’s place, and a code claimed anew is the newest', async () => {
  await using app = await testApp()
  const [a, b] = [
    await app.reserve('AAAAAA', 'enterprise'),
    await app.reserve('BBBBBB', 'enterprise'),
  ]
  await app.reserve('CCCCCC', 'enterprise')
  app.advance(1000)
  const json = { ...a, url: 'https://example.com/' }
  await app.call('POST', '/api/update', { key: 'enterprise', json })
  expect((await list(app)).items.map(({ code }) => code)).toEqual(['CCCCCC', 'BBBBBB', 'AAAAAA'])
  await app.call('POST', '/api/delete', { key: 'enterprise', json: b })
  expect((await list(app)).body).toMatchObject({ total: 2, count: 2 })
  await app.reserve('BBBBBB', 'enterprise')
  expect((await list(app)).items.map(({ code }) => code)).toEqual(['BBBBBB', 'CCCCCC', 'AAAAAA'])
})

const LIMIT = invalid('limit')
const NUMBERLESS = [
  '',
  'abc',
  '1.5',
  '5.0',
  '1e2',
  '0x10',
  ' 5',
  '5 ',
  '+5',
  '5,',
  'NaN',
  'Infinity',
]
const STRANGE = ['null', 'true', '٣', '½', '-1', '5\n', '5\0', '1_0', '9'.repeat(400)]
// design: 4.11 list
test('a bad limit or offset is 400, not another page', async () => {
  await using app = await testApp()
  await app.shorten('https://example.com/', 'enterprise')
  for (const limit of [...NUMBERLESS, ...STRANGE, '0', '201', '1000']) {
    for (const offset of ['0', 'bad']) {
      const { status, body } = await list(app, { limit, offset })
      expect({ limit, status, body }).toEqual({ limit, status: 400, body: { error: LIMIT } })
    }
  }
  for (const offset of [...NUMBERLESS, ...STRANGE]) {
    const { status, body } = await list(app, { offset })
    const error = expect.stringMatching(/^Invalid offset: must be an integer/)
    expect({ offset, status, body }).toEqual({ offset, status: 400, body: { error } })
  }
  for (const limit of [1, 50, 200]) {
    expect((await list(app, { limit })).body).toMatchObject({ limit, count: 1 })
  }
})

const SHOP = 'https://shop.example'
const NEWS = 'https://news.example'
const STORED = {
  QQQQQ2: `${SHOP}/Summer-Sale?off=50%`,
  QQQQQ3: `${SHOP}/winter_sale?q="boots"`,
  QQQQQ4: `${SHOP}/winterXsale?q=boots&n=1%252B1`,
  QQQQQ5: `${SHOP}/o'neil*star+(new)`,
  QQQQQ6: `${NEWS}/cats+AND+dogs^8:NEAR`,
  QQQQQ7: `${NEWS}/radio\\{x}`,
  QQQQQ8: 'https://пример.рф/Ёлка',
  QQQQQ9: `${NEWS}/🎄tree`,
  ZEBRA1: null,
}
const FOUND: Record<string, string[]> = {
  QQQQQ2: ['summer', 'SUMMER-SALE', 'mEr-S', '50%', '=50%', 'QQQQQ2', 'qqqqq2', 'Q2', 'q2'],
  QQQQQ3: ['winter_sale', '_', 'r_s', '"', '"boots"', '"bo', '="'],
  QQQQQ4: ['%252B1', '1%2', 'XSALE', '&n', 'N=1%252b1'],
  QQQQQ5: ["o'neil", "'", 'neil*star', '*', 'r+(', '(', ')', '(new)', "O'"],
  QQQQQ6: ['AND', 'and', 'cats+AND', '^8', '^', 'NEAR', ':n', '8:near'],
  QQQQQ7: ['radio', 'IO', 'io', 'iO', '\\', '\\{x}', '{', '}'],
  QQQQQ8: ['Ёлка', 'ёлка', 'ЁЛКА', 'пример', 'ПРИМЕР', 'лка', 'лк', 'Ё', 'ё', 'ЛК', 'пР'],
  QQQQQ9: ['🎄', '🎄t', '🎄T', '🎄tree', '/🎄'],
  ZEBRA1: ['ZEBRA1', 'zebra1', 'ebr', 'A1', 'a1', 'Zebra'],
}
const SEVERAL: [string, string[]][] = [
  ['shop.example/w', ['QQQQQ4', 'QQQQQ3']],
  ['SALE', ['QQQQQ4', 'QQQQQ3', 'QQQQQ2']],
  ['%', ['QQQQQ4', 'QQQQQ2']],
  ['', Object.keys(STORED).reverse()],
]
const NOWHERE = [
  'winter sale',
  'cats AND dogs',
  'cats OR summer',
  'NOT sale',
  'summer*',
  'sum%',
  'sum_er',
  'url:shop',
  'code:zebra1',
  'url : shop',
  '{url}',
  '^https',
  '-sale-',
  'NEAR(cats dogs)',
  "' OR 1=1 --",
  '"shop" OR "news"',
  '""',
  '"""',
  '"a',
  'a"',
  '   ',
  ' ',
  '\t',
  '  ',
  '%%',
  '__',
  '🎅',
  '🎅🎅🎅',
  '\ufffd\ufffd\ufffd',
  'x'.repeat(200),
  'ZEBRA1https',
  '1h',
  'null',
  'Елка',
  '\0',
  'sum\0mer',
  '\0\0\0',
  'summer\0',
  '\0summer',
]
const SEARCHES: [string, string[]][] = [
  ...Object.entries(FOUND).flatMap(([code, texts]) =>
    texts.map((text): [string, string[]] => [text, [code]]),
  ),
  ...Object.entries(STORED).flatMap(([code, url]): [string, string[]][] =>
    url === null ? [] : [[url, [code]]],
  ),
  ...SEVERAL,
  ...NOWHERE.map((text): [string, string[]] => [text, []]),
]
// spec: GET /api/list | search
test('a search is for a part of a code or URL in any letter case and for nothing else', async () => {
  await using app = await testApp()
  for (const [code, url] of Object.entries(STORED)) {
    const json = { ...(await app.reserve(code, 'enterprise')), url }
    if (url !== null) await app.call('POST', '/api/update', { key: 'enterprise', json })
    await app.reserve(`${code}X`, 'enterprise-2')
  }
  const wrong: unknown[] = []
  for (const [search, codes] of SEARCHES) {
    const { status, body, items } = await list(app, { search })
    const found = items?.map(({ code }) => code)
    const right = { status: 200, total: codes.length, count: codes.length, found: codes }
    const answer = { status, total: body.total, count: body.count, found }
    if (!Bun.deepEquals(answer, right))
      wrong.push({ search: JSON.stringify(search), answer, right })
  }
  expect(wrong).toEqual([])
})

test('a search for more than 200 characters is refused, and costs nothing else', async () => {
  await using app = await testApp()
  const error = invalid('search')
  for (const text of ['x'.repeat(201), 'a'.repeat(15_000), '🎄'.repeat(201)]) {
    expect(await list(app, { search: text })).toMatchObject({ status: 400, body: { error } })
  }
  expect(await list(app, { search: '🎄'.repeat(200) })).toMatchObject({ status: 200 })
})

test('total counts every match of a search, count the ones of the page', async () => {
  await using app = await testApp()
  const codes: string[] = []
  for (const n of [1, 2, 3, 4, 5]) {
    codes.unshift((await app.shorten(`https://example.com/match/${n}`, 'enterprise')).code)
    await app.shorten(`https://example.com/other/${n}`, 'enterprise')
    await app.shorten(`https://example.com/match/${n}`, 'enterprise-2')
  }
  for (const search of ['/match/', 'MATCH']) {
    const found: string[] = []
    for (const offset of [0, 2, 4, 6]) {
      const { items, body } = await list(app, { search, limit: 2, offset })
      const count = [2, 2, 1, 0][offset / 2]
      expect(body).toMatchObject({ total: 5, limit: 2, offset, count })
      found.push(...items.map(({ code }) => code))
    }
    expect(found).toEqual(codes)
  }
})

test('a search knows every change at once: bulk, update, delete and a new owner', async () => {
  await using app = await testApp()
  const codesOf = async (search: string, key = 'enterprise') =>
    (await list(app, { search }, key)).items.map(({ code }) => code)
  const urls = ['https://example.com/first', 'https://example.com/second']
  await app.call('POST', '/api/bulk-shorten', { key: 'enterprise', json: { urls } })
  expect(await codesOf('/first')).toHaveLength(1)
  const link = await app.reserve('SPRING26', 'enterprise')
  for (const url of ['https://example.com/before', 'https://example.com/after']) {
    await app.call('POST', '/api/update', { key: 'enterprise', json: { ...link, url } })
  }
  expect(await codesOf('before')).toEqual([])
  expect(await codesOf('after')).toEqual(['SPRING26'])
  expect(await codesOf('/a')).toEqual(['SPRING26'])
  await app.call('POST', '/api/delete', { key: 'enterprise', json: link })
  for (const search of ['after', 'before', 'spring26', '26', '/a']) {
    // A random code may contain 26.
    expect(await codesOf(search)).not.toContain('SPRING26')
  }
  await app.reserve('SPRING26', 'enterprise-2')
  expect(await codesOf('spring26')).toEqual([])
  expect(await codesOf('spring26', 'enterprise-2')).toEqual(['SPRING26'])
  expect(await codesOf('after', 'enterprise-2')).toEqual([])
})

test('pages and totals of thousands of codes are true after every change', async () => {
  await using app = await testApp()
  const key = 'enterprise'
  const urls = Array.from({ length: 5000 }, (_, n) => `https://example.com/${n}`)
  await app.call('POST', '/api/bulk-shorten', { key, json: { urls } })
  const old = await app.reserve('AAAAAA', key)
  await app.call('POST', '/api/bulk-shorten', { key, json: { urls: urls.map((url) => `${url}x`) } })
  const searches = [{}, { search: 'example.com/' }, { search: 'EX' }, { search: 'aaaaaa' }]
  const totals = async () => {
    const answers = await Promise.all(searches.map((query) => list(app, { ...query, limit: 1 })))
    return answers.map(({ body }) => body.total)
  }
  const lastOf = async (search: string) => {
    const { items } = await list(app, { search, offset: 9999 })
    return items.map(({ url }) => url)
  }
  expect(await totals()).toEqual([10_001, 10_000, 10_000, 1])
  expect((await list(app, { limit: 200 })).items).toHaveLength(200)
  expect(await lastOf('example.com/')).toEqual(['https://example.com/0'])
  await app.call('POST', '/api/update', { key, json: { ...old, url: 'https://example.com/new' } })
  expect(await totals()).toEqual([10_001, 10_001, 10_001, 1])
  await app.shorten('https://example.com/newest', key)
  expect(await totals()).toEqual([10_002, 10_002, 10_002, 1])
  await app.call('POST', '/api/update', { key, json: { ...old, url: 'https://aaaaaa.net/' } })
  expect(await totals()).toEqual([10_002, 10_001, 10_001, 1])
  await app.call('POST', '/api/delete', { key, json: old })
  expect(await totals()).toEqual([10_001, 10_001, 10_001, 0])
  for (const search of ['example.com/', 'EX']) {
    expect(await lastOf(search)).toEqual(['https://example.com/1', 'https://example.com/0'])
  }
})
