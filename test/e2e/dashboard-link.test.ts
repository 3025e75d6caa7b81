import { expect, test } from 'bun:test'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { decodeQr } from '../support/decode-qr.ts'
import { makeMember } from '../support/members.ts'

/** The page of one link: its destination, its hits, its QR code, its end. */

const pathOf = (code: string) => `/app/links/${code}`
const SETTINGS = `${pathOf('SPRING26')}/settings`

async function freeWithLink(app: TestApp, code = 'SPRING26') {
  const free = await makeMember(app, 'free@example.com')
  await app.claim(code)
  return free
}

test('a link’s page shows its short URL, destination, time and hits', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  for (let n = 0; n < 3; n++) await app.call('GET', '/SPRING26')
  for (const path of ['SPRING26', 'spring26'].map(pathOf)) {
    const { status, text } = await free.get(path)
    expect(status).toBe(200)
    expect(text).toContain('value="http://hop.test/SPRING26"')
    expect(text).toContain('https://<b>example.com</b>/landing')
    expect(text).toContain('datetime="2026-03-01T12:00:00.000Z"')
    expect(text).toMatch(/<dt>Hits<\/dt><dd><span id="hit-count">3<\/span>/)
  }
})

test('the destination is changed without the passcode, and counts from the next visit', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const url = 'https://example.com/summer'
  const seen = await free.post(SETTINGS, { url })
  expect(seen.location).toBe(`${SETTINGS}?done=saved`)
  expect((await app.call('GET', '/SPRING26')).headers.get('location')).toBe(url)
  expect((await free.get(seen.location ?? '')).text).toMatch(/role="status">Saved/)
})

test('a reserved code says that it has no destination, and its first one makes it work', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.reserve('SPRING26')
  expect((await free.get(pathOf('SPRING26'))).text).toContain('>No destination</span>')
  const titled = await free.post(SETTINGS, { url: '', was_url: '', title: 'Spring' })
  expect(titled.status).toBe(303)
  const url = 'https://example.com/'
  await free.post(SETTINGS, { url })
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
  expect((await free.post(SETTINGS, { url: '' })).invalid).toEqual(['url'])
  expect((await free.get(pathOf('SPRING26'))).text).not.toContain('>No destination</span>')
})

test('the destination is edited without scripts, and https:// is added', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const url = 'example.com/autumn'
  await free.post(SETTINGS, { url })
  const { headers } = await app.call('GET', '/SPRING26')
  expect(headers.get('location')).toBe('https://example.com/autumn')
})

test('a link is paused and resumed from its menu', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const press = (paused: string) =>
    free.post(`${pathOf('SPRING26')}/pause`, { paused }, { from: pathOf('SPRING26') })
  const paused = await free.get((await press('1')).location ?? '')
  expect(paused.notices).toEqual(['status'])
  expect(paused.text).toContain('>Paused</span>')
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
  const resumed = await free.get((await press('0')).location ?? '')
  expect(resumed.notices).toEqual(['status'])
  expect(resumed.text).not.toContain('>Paused</span>')
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
})

test('each tag on a link’s page leads to the links with this tag', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  await app.claim('OTHER26')
  const json = { tags: ['print', 'a & b'] }
  await app.call('PATCH', '/api/links/SPRING26', { key: 'free', json })
  const { text } = await free.get(pathOf('SPRING26'))
  const [path = ''] = /(?<=class="tag" href=")[^"]+(?=">a &amp; b<)/.exec(text) ?? []
  const found = await free.get(path)
  expect(found.text).toContain('1 of 2 links')
  expect(found.text).toContain('/app/links/SPRING26"')
})

test('a code is deleted behind a page that says what that means, and is free after 30 seconds', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const warning = await free.get(`${pathOf('SPRING26')}/delete`)
  expect(warning.notices).toEqual(['alert'])
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
  const seen = await free.post(`${pathOf('SPRING26')}/delete`, {})
  expect(seen.location).toBe('/app/links?done=deleted&undo=SPRING26')
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
  expect((await free.get(pathOf('SPRING26'))).text).toMatch(
    /will be deleted in <time [^>]*>30 s<\/time>,<\/strong> at\s+12:00:30 \(UTC\)/,
  )
  app.advance(30_000)
  await eventually(
    'the code is free',
    async () => (await app.call('GET', '/api/lookup/SPRING26')).status === 404,
  )
  await eventually(
    'its page is gone',
    async () => (await free.get(pathOf('SPRING26'))).status === 404,
  )
  expect(
    (await app.call('POST', '/api/reserve', { key: 'pro', json: { code: 'SPRING26' } })).status,
  ).toBe(201)
})

test('the number of hits is refreshed with the chart, and the page loads again if its link is gone', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  await app.call('GET', '/SPRING26')
  const refresh = (code: string) => free.get(`/app/analytics/${code}`, { 'hx-request': 'true' })
  expect((await refresh('SPRING26')).text).toContain('hx-swap-oob="innerHTML:#hit-count">1</div>')
  const { status, headers } = await refresh('UNKNOWN1')
  expect([status, headers.get('hx-redirect')]).toEqual([404, '/app/links/UNKNOWN1'])
})

test('the QR code comes as PNG and SVG in the size and colors that were chosen', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const cookie = [...free.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const load = (path: string) =>
    fetch(`${app.url}${pathOf('SPRING26')}${path}`, { headers: { cookie } })
  const query = 'size=300&dark=%23112233&light=%23ffeedd'
  const png = await load(`/qr.png?${query}`)
  expect(png.headers.get('content-type')).toBe('image/png')
  expect(png.headers.get('content-disposition')).toBe('attachment; filename="SPRING26.png"')
  const image = await decodeQr(new Uint8Array(await png.arrayBuffer()))
  expect(image).toMatchObject({ text: 'http://hop.test/SPRING26?ref=qr', width: 300, height: 300 })
  const svg = await (await load(`/qr.svg?${query}`)).text()
  expect(svg).toContain('fill="#112233"')
  expect(svg).toContain('fill="#ffeedd"')
  expect((await load('/qr.png?size=63')).status).toBe(400)
  expect((await load('/qr.svg?dark=red')).status).toBe(400)
})

test('previews are charged to nobody’s read budget, and to no write budget', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const before = await app.call('GET', '/api/list', { key: 'free' })
  for (let n = 0; n < 5; n++) await free.get(`${pathOf('SPRING26')}/qr.svg`)
  const after = await app.call('GET', '/api/list', { key: 'free' })
  const left = (answer: typeof after) => Number(answer.headers.get('x-ratelimit-remaining'))
  expect(left(before) - left(after)).toBe(1)
})

test('colors that cameras may not tell apart get a warning, and the preview has them', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const see = (query: string) => free.get(`${pathOf('SPRING26')}/qr${query}`)
  expect((await see('')).text).not.toContain('cameras')
  expect((await see('?dark=%23666666&light=%23aaaaaa')).text).toContain('some cameras may fail')
  for (const query of ['?dark=%23ffffff&light=%23000000', '?dark=%23ffff00']) {
    const { text } = await see(query)
    expect(text).toContain('role="status">Must be much darker than the background')
    expect(text).not.toContain('class="printed')
  }
  const { text } = await see('?size=9999&dark=%23123456')
  expect(text).toContain('id="qr-error-size" role="status">Must be an integer between 64 and 4096<')
  expect(text).toContain('value="9999"')
  expect(text).toContain('value="#123456"')
})
