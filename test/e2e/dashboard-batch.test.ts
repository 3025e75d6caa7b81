import { expect, test } from 'bun:test'
import { parse } from 'csv-parse/sync'
import { unzipSync } from 'fflate'
import { type TestApp, testApp } from '../support/app.ts'
import type { Visitor } from '../support/dashboard.ts'
import { decodeQr } from '../support/decode-qr.ts'
import { makeMember } from '../support/members.ts'

/** What the list of links does with the selected ones, as a form without scripts sends it. */

const LINKS = '/app/links'
const BATCH = `${LINKS}/batch`

type Fields = readonly (readonly [string, string])[]

/** Sends a form in which a field may occur several times. */
async function send(app: TestApp, visitor: Visitor, path: string, fields: Fields) {
  const { csrf } = await visitor.get(LINKS)
  const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const body = new URLSearchParams({ csrf })
  for (const [name, value] of fields) body.append(name, value)
  const response = await fetch(new URL(path, app.url), {
    method: 'POST',
    headers: { cookie, 'sec-fetch-site': 'same-origin', 'x-forwarded-for': '192.0.2.50' },
    body,
    redirect: 'manual',
  })
  const { status, headers } = response
  const bytes = await response.bytes()
  return { status, headers, bytes, text: new TextDecoder().decode(bytes) }
}

const selected = (...codes: string[]) => codes.map((code) => ['code', code] as const)

async function setUp() {
  const app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  for (const code of ['SPRING26', 'SUMMER26', 'AUTUMN26']) {
    await app.claim(code, `https://example.com/${code}`)
  }
  const tagsOf = async (code: string) =>
    (await app.call('GET', `/api/links/${code}`, { key: 'free' })).body.tags
  const isPaused = async (code: string) =>
    (await app.call('GET', `/api/links/${code}`, { key: 'free' })).body.paused
  return { app, free, tagsOf, isPaused, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
}

test('selected links get a tag, and lose it, and the list stays as it was', async () => {
  await using service = await setUp()
  const { app, free, tagsOf } = service
  const both = selected('SPRING26', 'summer26')
  const at = ['at', '?q=26&sort=hits&page=1&evil=%2F%2Fevil.example'] as const
  const done = await send(app, free, BATCH, [...both, at, ['action', 'tag'], ['tag', ' Print ']])
  expect(done.status).toBe(303)
  expect(done.headers.get('location')).toBe('/app/links?q=26&sort=hits&done=tagged&n=2')
  expect([await tagsOf('SPRING26'), await tagsOf('SUMMER26')]).toEqual([['print'], ['print']])
  expect(await tagsOf('AUTUMN26')).toEqual([])
  const page = await free.get('/app/links?tag=print&done=tagged&n=2')
  expect(page.text).toContain('2 links tagged.')
  expect(page.text).toContain('<option value="print" selected>print</option>')
  expect(page.text).toContain('2 of 3 links')
  await send(app, free, BATCH, [...selected('SPRING26'), ['action', 'untag'], ['tag', 'print']])
  expect([await tagsOf('SPRING26'), await tagsOf('SUMMER26')]).toEqual([[], ['print']])
})

test('selected links are paused and resumed', async () => {
  await using service = await setUp()
  const { app, free, isPaused } = service
  const both = selected('SPRING26', 'SUMMER26')
  await send(app, free, BATCH, [...both, ['action', 'pause']])
  expect([await isPaused('SPRING26'), await isPaused('AUTUMN26')]).toEqual([true, false])
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
  await send(app, free, BATCH, [...both, ['action', 'resume']])
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
})

test('selected links are deleted, and Undo brings them back with their hits', async () => {
  await using service = await setUp()
  const { app, free } = service
  await app.call('GET', '/SPRING26')
  const both = selected('SPRING26', 'SUMMER26')
  const deleted = await send(app, free, BATCH, [...both, ['action', 'delete']])
  const location = deleted.headers.get('location') ?? ''
  expect(location).toBe('/app/links?done=deleted&n=2&undo=SPRING26%2CSUMMER26')
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
  const page = await free.get(location)
  expect(page.text).toContain('2 links deleted.')
  expect(page.text).toContain('<span class="badge bad">Deleted</span>')
  expect(page.text).toContain('action="/app/links/undo"')
  expect(
    (await app.call('POST', '/api/reserve', { key: 'pro', json: { code: 'SPRING26' } })).status,
  ).toBe(409)
  const undone = await send(app, free, `${LINKS}/undo`, both)
  expect(undone.headers.get('location')).toBe('/app/links?done=restored&n=2')
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
  const { body } = await app.call('GET', '/api/lookup/SPRING26')
  expect(body.hit_count).toBe(2)
})

test('Undo that is refused for now can be pressed again', async () => {
  await using service = await setUp()
  const { app, free } = service
  await send(app, free, BATCH, [...selected('SPRING26'), ['action', 'delete']])
  app.maintenance(app.now() + 5000)
  const refused = await send(app, free, `${LINKS}/undo`, selected('SPRING26'))
  expect(refused.status).toBe(503)
  expect(refused.text).toContain('action="/app/links/undo"')
  expect(refused.text).toContain('<input type="hidden" name="code" value="SPRING26">')
  app.advance(5000)
  const undone = await send(app, free, `${LINKS}/undo`, selected('SPRING26'))
  expect(undone.headers.get('location')).toBe('/app/links?done=restored&n=1')
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
})

test('selected links are exported as CSV', async () => {
  await using service = await setUp()
  const { app, free } = service
  const file = await send(app, free, BATCH, [
    ...selected('AUTUMN26', 'SPRING26'),
    ['action', 'export'],
  ])
  expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  const rows = parse(file.text, { columns: true }) as Record<string, string>[]
  expect(rows).toMatchObject([
    { code: 'AUTUMN26', url: 'https://example.com/AUTUMN26', hits: '0' },
    { code: 'SPRING26', short_url: 'http://hop.test/SPRING26' },
  ])
})

test('the QR codes of selected links come as a ZIP, and two decoders read each', async () => {
  await using service = await setUp()
  const { app, free } = service
  const file = await send(app, free, BATCH, [
    ...selected('SPRING26', 'SUMMER26', 'SPRING26'),
    ['action', 'qr'],
  ])
  expect(file.headers.get('content-type')).toBe('application/zip')
  expect(file.headers.get('content-disposition')).toContain('hopcode-qr-codes.zip')
  const { 'codes.csv': list, ...images } = unzipSync(file.bytes)
  expect(new TextDecoder().decode(list)).toContain('SUMMER26.png,http://hop.test/SUMMER26,')
  expect(Object.keys(images)).toEqual(['SPRING26.png', 'SUMMER26.png'])
  for (const [name, image] of Object.entries(images)) {
    const { text, readers } = await decodeQr(image)
    expect(text).toBe(`http://hop.test/${name.replace('.png', '')}?ref=qr`)
    expect(readers).toEqual(['jsQR', 'zxing'])
  }
})

test('each QR code costs a read, so that files cannot keep the renderer busy', async () => {
  await using service = await setUp()
  const { app, free } = service
  const urls = Array.from({ length: 50 }, (_, n) => `https://example.com/page-${n}`)
  const { body } = await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
  const codes = (body.results as { code: string }[]).map(({ code }) => code)
  const statuses: number[] = []
  for (let n = 0; n < 7; n++) {
    const { status } = await send(app, free, BATCH, [...selected(...codes), ['action', 'qr']])
    statuses.push(status)
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429])
})

test('a change of selected links costs one write, and waits during maintenance', async () => {
  await using service = await setUp()
  const { app, free, isPaused } = service
  app.maintenance(app.now() + 60_000)
  const during = await send(app, free, BATCH, [...selected('SPRING26'), ['action', 'pause']])
  expect(during.status).toBe(503)
  expect(during.headers.get('retry-after')).toBe('60')
  app.advance(60_000)
  expect(await isPaused('SPRING26')).toBe(false)
})

test('all links that match are changed by the filter, and those of other accounts and searches stay', async () => {
  await using service = await setUp()
  const { app, free, tagsOf, isPaused } = service
  const other = await app.claim('SPRINGX26', 'https://example.com/SPRING', 'pro')
  const all = [['all', '1'] as const, ['at', '?q=s&page=2'] as const]
  const tag = await send(app, free, BATCH, [...all, ['action', 'tag'], ['tag', 'print']])
  expect(tag.headers.get('location')).toBe('/app/links?q=s&page=2&done=tagged&n=3')
  const byTag = [['all', '1'] as const, ['at', '?tag=print&q=spring'] as const]
  const paused = await send(app, free, BATCH, [...byTag, ['action', 'pause']])
  expect(paused.headers.get('location')).toBe('/app/links?q=spring&tag=print&done=paused&n=1')
  expect([await isPaused('SPRING26'), await isPaused('SUMMER26')]).toEqual([true, false])
  // The change ends the match: each link is still changed once.
  const untag = await send(app, free, BATCH, [
    ['all', '1'],
    ['at', '?tag=print'],
    ['action', 'untag'],
    ['tag', 'print'],
  ])
  expect(untag.headers.get('location')).toBe('/app/links?tag=print&done=untagged&n=3')
  for (const code of ['SPRING26', 'SUMMER26', 'AUTUMN26']) expect(await tagsOf(code)).toEqual([])
  const foreign = await app.call('GET', '/api/links/SPRINGX26', { key: 'pro' })
  expect(foreign.body).toMatchObject({ tags: [], paused: false })
  expect(other).toBeDefined()
})

test.each([
  { action: 'analytics', fields: selected('SPRING26', 'SUMMER26'), to: '?links=SPRING26,SUMMER26' },
  {
    action: 'analytics',
    fields: [
      ['all', '1'],
      ['at', '?tag=print'],
    ],
    to: '?tag=print',
  },
  {
    action: 'analytics',
    fields: [
      ['all', '1'],
      ['at', '?q=SPRING'],
    ],
    to: '?links=SPRING26',
  },
] as const)('a report is about $fields', async ({ fields, action, to }) => {
  await using service = await setUp()
  const { app, free } = service
  const { headers } = await send(app, free, BATCH, [...fields, ['action', action]])
  expect(headers.get('location')).toBe(`/app/analytics${to}`)
  expect((await free.get('/app/links?tag=print')).text).toContain('/app/analytics?tag=print')
})

test('the list of a state has its links only, and so do the actions on all its matches', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const urls = Array.from({ length: 53 }, (_, n) => `https://example.com/page-${n}`)
  const made = await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
  const codes = (made.body.results as { code: string }[]).map(({ code }) => code)
  const expires_at = new Date(app.now() + 1000).toISOString()
  const patch = await app.call('PATCH', `/api/links/${codes[52]}`, {
    key: 'free',
    json: { expires_at },
  })
  expect(patch.status).toBe(200)
  app.advance(60_000)
  await send(app, free, BATCH, [...selected(...codes.slice(0, 50)), ['action', 'pause']])
  await send(app, free, BATCH, [...selected(codes[50] ?? ''), ['action', 'pause']])
  const list = async (query: string) => {
    const { text } = await free.get(`${LINKS}?${query}`)
    return [...text.matchAll(/name="code" value="([A-Z0-9]+)"/g)].map(([, code]) => code ?? '')
  }
  expect((await list('state=paused')).length).toBe(50)
  expect((await list('state=paused&page=2')).length).toBe(1)
  expect(await list('state=active')).toEqual([codes[51] ?? ''])
  expect(await list('state=expired')).toEqual([codes[52] ?? ''])
  expect((await list('state=nonsense')).length).toBe(50)
  expect((await free.get(`${LINKS}?state=scheduled`)).text).toContain('Nothing found')
  const all: Fields = [
    ['all', '1'],
    ['at', '?state=paused'],
    ['action', 'resume'],
  ]
  const resumed = await send(app, free, BATCH, all)
  expect(resumed.headers.get('location')).toBe('/app/links?state=paused&done=resumed&n=51')
  expect(await list('state=paused')).toEqual([])
  expect((await list('state=active')).length).toBe(50)
})
