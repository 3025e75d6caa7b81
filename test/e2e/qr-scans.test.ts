import { expect, test } from 'bun:test'
import { eventually, testApp } from '../support/app.ts'
import { decodeQr } from '../support/decode-qr.ts'
import { makeMember } from '../support/members.ts'
import { invalid } from '../support/refusals.ts'

/** `ref` in the address of a code: scans count apart from clicks. */

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) ' +
  'Version/18.5 Mobile/15E148 Safari/604.1'

async function withLink() {
  const app = await testApp({ visitFlushMs: 20 })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26', 'https://example.com/menu')
  return { app, free, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
}

test('the default image has exactly the short URL, and one with ref its source', async () => {
  await using it = await withLink()
  const read = async (query: string) => {
    const { status, bytes } = await it.app.call('GET', `/api/qr/SPRING26${query}`)
    expect([query, status]).toEqual([query, 200])
    const type = query.includes('svg') ? 'image/svg+xml' : 'image/png'
    return type === 'image/png' ? await decodeQr(bytes, type) : undefined
  }
  expect((await read(''))?.text).toBe('http://hop.test/SPRING26')
  for (const query of ['?ref=poster', '?ref=poster&caption=Menü', '?ref=poster&size=100']) {
    expect(await read(query)).toMatchObject({
      text: 'http://hop.test/SPRING26?ref=poster',
      readers: ['jsQR', 'zxing'],
    })
  }
  await read('?ref=poster&format=svg')
  expect((await read('?capitals=1&ref=poster'))?.text).toBe('HTTP://HOP.TEST/SPRING26?ref=poster')
  expect((await read('?capitals=1'))?.text).toBe('HTTP://HOP.TEST/SPRING26')
})

test('a size is refused where the modules with ref do not fit', async () => {
  await using it = await withLink()
  const long = '&ref=abcdefghijabcdefghij&margin=16&level=H'
  const { status, body } = await it.app.call('GET', `/api/qr/SPRING26?size=64${long}`)
  expect([status, body.error]).toEqual([400, expect.stringMatching(/^Invalid size: .* 73 /)])
})

test.each(['', 'A b', 'Poster', 'a'.repeat(21), 'menü', 'a_b', 'x%26y=1'])(
  'ref=%s is refused',
  async (ref) => {
    await using it = await withLink()
    const { status, body } = await it.app.call('GET', `/api/qr/SPRING26?ref=${ref}`)
    expect([status, body.error]).toEqual([400, invalid('ref')])
  },
)

test('scans of a code have a card of their own; the destination does not get the source', async () => {
  await using it = await withLink()
  const { app, free } = it
  const file = await free.get('/app/links/SPRING26/qr.svg?ref=poster')
  expect(file.status).toBe(200)
  // A preview is no code that somebody prints, and anybody can request an image of the API.
  await free.get('/app/links/SPRING26/qr.svg?ref=draft', { 'sec-fetch-dest': 'image' })
  await app.call('GET', '/api/qr/SPRING26?ref=stranger')
  for (const path of ['/SPRING26?ref=poster', '/SPRING26?ref=poster', '/SPRING26']) {
    const phone = { 'user-agent': IPHONE }
    const { status, headers } = await app.call('GET', path, { headers: phone })
    expect([status, headers.get('location')]).toEqual([302, 'https://example.com/menu'])
  }
  await app.call('HEAD', '/SPRING26?ref=poster')
  await eventually('the visits are stored', async () => {
    const { body } = await app.call('GET', '/api/links/SPRING26/visits?by=referrer', {
      key: 'free',
    })
    return body.known === 3
  })
  const { text } = await free.get('/app/analytics')
  const [, card = ''] = /id="panel-scans">([\s\S]*?)<\/section>/.exec(text) ?? []
  expect(card).toContain('poster')
  expect(card).toContain('2 scans')
  expect(card).not.toContain('draft')
  expect(card).not.toContain('stranger')
  // Together they are one source, also where all sources are listed.
  const [, panel = ''] = /id="panel-referrer">([\s\S]*?)<\/section>/.exec(text) ?? []
  const all = await free.get('/app/analytics/visits?by=referrer')
  for (const shown of [panel, all.text]) {
    expect(shown.match(/class="cut">[^<]*/g)).toEqual([
      'class="cut">QR codes',
      'class="cut">Direct, app or QR code',
    ])
  }
})

const sources = [
  { query: 'utm_source=poster', source: 'poster', scans: 0, shown: 'poster' },
  { query: 'source=poster', source: 'poster', scans: 0, shown: 'poster' },
  { query: 'ref=poster', source: 'poster', scans: 1, shown: 'QR codes' },
  { query: 'ref=poster-7', source: 'poster-7', scans: 1, shown: 'QR codes' },
  { query: 'utm_source=mail&ref=poster', source: 'mail', scans: 1, shown: 'mail' },
  { query: 'ref=poster&source=mail', source: 'mail', scans: 1, shown: 'mail' },
  { query: 'ref=other-word', source: 'other-word', scans: 0, shown: 'other-word' },
  { query: 'xref=poster', source: 'direct', scans: 0, shown: 'Direct, app or QR code' },
]

test.each(sources)('$query is a visit from $source and $scans scans', async (row) => {
  await using it = await withLink()
  const { app, free } = it
  await free.get('/app/links/SPRING26/qr.svg?ref=poster')
  await app.call('GET', `/SPRING26?${row.query}`, { headers: { 'user-agent': IPHONE } })
  const path = '/api/links/SPRING26/visits?by=referrer'
  await eventually('the visit is stored', async () => {
    return (await app.call('GET', path, { key: 'free' })).body.known === 1
  })
  const { body } = await app.call('GET', path, { key: 'free' })
  expect(body.values).toMatchObject([{ value: row.source, hits: 1 }])
  for (const page of ['/app/analytics', '/app/links/SPRING26']) {
    const { text } = await free.get(page)
    const [, card = ''] = /id="panel-scans">([\s\S]*?)<\/section>/.exec(text) ?? []
    expect([page, /(\d+) scan/.exec(card)?.[1]]).toEqual([page, String(row.scans)])
    const [, panel = ''] = /id="panel-referrer">([\s\S]*?)<\/section>/.exec(text) ?? []
    expect([page, /class="cut">([^<]*)/.exec(panel)?.[1]]).toEqual([page, row.shown])
  }
})

test('with forward_query the destination gets the source too', async () => {
  await using it = await withLink()
  const json = { forward_query: true }
  await it.app.call('PATCH', '/api/links/SPRING26', { key: 'free', json })
  const { headers } = await it.app.call('GET', '/SPRING26?ref=poster')
  expect(headers.get('location')).toBe('https://example.com/menu?ref=poster')
})

test('an account keeps its 50 newest sources', async () => {
  await using it = await withLink()
  for (let n = 0; n < 52; n++) {
    it.app.advance(1000)
    await it.free.get(`/app/links/SPRING26/qr.svg?ref=s-${n}`)
  }
  const refs = it.app.administer(({ db }) =>
    db
      .query<{ ref: string }, []>('SELECT ref FROM qr_refs')
      .all()
      .map(({ ref }) => ref),
  )
  expect(refs).toHaveLength(50)
  expect(refs).not.toContain('s-0')
  expect(refs).toContain('s-51')
})

test('codes downloaded in the dashboard count scans apart unless the word is cleared, those of the API do not', async () => {
  await using it = await withLink()
  const { app, free } = it
  const textOf = async (path: string) => {
    const response = await fetch(app.url + path, { headers: { cookie: free.cookie } })
    expect([path, response.status]).toEqual([path, 200])
    return (await decodeQr(await response.bytes())).text
  }
  const path = '/app/links/SPRING26/qr.png'
  expect(await textOf(path)).toBe('http://hop.test/SPRING26?ref=qr')
  expect(await textOf(`${path}?ref=`)).toBe('http://hop.test/SPRING26')
  expect(await textOf(`${path}?ref=poster`)).toBe('http://hop.test/SPRING26?ref=poster')
  const { bytes } = await app.call('GET', '/api/qr/SPRING26')
  expect((await decodeQr(bytes)).text).toBe('http://hop.test/SPRING26')
  const page = await free.get('/app/links/SPRING26/qr')
  expect(page.text).toMatch(/name="ref"[^>]* value="qr"/)
  expect((await free.get('/app/links/SPRING26/qr?ref=')).text).toMatch(/name="ref"[^>]* value=""/)
})

test('the first scan has a tile with its days, also before a word was chosen', async () => {
  await using it = await withLink()
  const { app, free } = it
  const shown = async () => {
    const { text } = await free.get('/app/links/SPRING26?range=7d')
    return { tile: /<dt>Scans<\/dt>[\s\S]*?<\/dl>/.exec(text)?.[0], text }
  }
  await app.call('GET', '/SPRING26', { headers: { 'user-agent': IPHONE } })
  await eventually('the visit is stored', async () => (await shown()).text.includes('all 1 hit.'))
  expect((await shown()).tile).toBeUndefined()
  for (let n = 0; n < 2; n++) {
    await app.call('GET', '/SPRING26?ref=qr', { headers: { 'user-agent': IPHONE } })
  }
  await eventually('the scans are stored', async () => (await shown()).text.includes('all 3 hits.'))
  const { tile } = await shown()
  expect(tile).toContain('<strong>2</strong>')
  expect(tile).toContain('aria-label="2 scans in 7 days"')
})
