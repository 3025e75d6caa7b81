import { expect, test } from 'bun:test'
import { type Answer, testApp } from '../support/app.ts'
import { type Bitmap, decodeQr, pixelAt } from '../support/decode-qr.ts'
import { invalid } from '../support/refusals.ts'

/**
 * The spec's chapters "GET /api/qr/{code}", "GET /qr/{code}" and "GET /api/qr-image/{code}". The
 * stored images are in qr-files.test.ts.
 */

const IMAGE_CACHING = 'public, max-age=86400, immutable'
const DARK = '#1a2e4f'
const LIGHT = '#ffffff'

const decoded = ({ bytes, headers }: Answer) =>
  decodeQr(bytes, headers.get('content-type') ?? undefined)

const pixelsOf = ({ width, height, data }: Bitmap) =>
  new Uint32Array(data.buffer, data.byteOffset, width * height)

function colorsOf(bitmap: Bitmap): string[] {
  const pixels = pixelsOf(bitmap)
  return [...new Set(pixels)]
    .map((pixel) => pixels.indexOf(pixel))
    .map((at) => pixelAt(bitmap, at % bitmap.width, Math.floor(at / bitmap.width)))
    .sort()
}

// spec: Endpoints | GET /api/qr/{code}
// spec: GET /api/qr/{code} | Response 200 for PNG
// spec: GET /api/qr/{code} | format
// spec: GET /api/qr/{code} | size
// spec: GET /api/qr/{code} | dark
// spec: GET /api/qr/{code} | light
// spec: Limits | QR size
// spec: Authentication | 2
test('GET /api/qr/{code} gives anyone a PNG of 512 px in #1a2e4f on #ffffff that encodes the short URL', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/landing')
  const answer = await app.call('GET', `/api/qr/${code}`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('image/png')
  expect(answer.headers.get('cache-control')).toBe(IMAGE_CACHING)
  expect(answer.headers.get('x-ratelimit-limit')).toBe('300')
  expect(answer.headers.get('x-ratelimit-remaining')).toBe('299')
  expect(answer.headers.get('retry-after')).toBeNull()
  const { text, width, height, bitmap } = await decoded(answer)
  expect([text, width, height]).toEqual([`http://hop.test/${code}`, 512, 512])
  expect(pixelAt(bitmap, 0, 0)).toBe(LIGHT)
  expect(colorsOf(bitmap)).toEqual([DARK, LIGHT])
  expect(answer.text).not.toContain(passcode)
  const explicit = '?format=png&size=512&dark=%231a2e4f&light=%23ffffff&other=1'
  const same = await app.call('GET', `/api/qr/${code.toLowerCase()}${explicit}`)
  expect(same.bytes).toEqual(answer.bytes)
  for (const size of [64, 2048]) {
    const { width, height } = await decoded(await app.call('GET', `/api/qr/${code}?size=${size}`))
    expect([width, height]).toEqual([size, size])
  }
})

// spec: GET /api/qr/{code} | format
// design: 4.10 SVG
test('format=svg gives image/svg+xml with the caching of the PNG, whatever the size says', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26')
  const answer = await app.call('GET', '/api/qr/SPRING26?format=svg')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('image/svg+xml')
  expect(answer.headers.get('cache-control')).toBe(IMAGE_CACHING)
  // Reads no more than plain filled paths: a script or an outside address would throw.
  const { text, bitmap } = await decoded(answer)
  expect(text).toBe('http://hop.test/SPRING26')
  expect(colorsOf(bitmap)).toEqual([DARK, LIGHT])
  for (const size of ['64', '2048', '9999', '0', 'wide']) {
    const sized = await app.call('GET', `/api/qr/SPRING26?size=${size}&format=svg`)
    expect([size, sized.status, sized.text]).toEqual([size, 200, answer.text])
  }
})

// spec: GET /api/qr/{code} | dark
// spec: GET /api/qr/{code} | light
// design: 4.10 colours
test('dark and light take 3 or 6 hex digits in any letter case, with %23 or without', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26')
  for (const [query, dark, light] of [
    ['dark=%23ff0000', '#ff0000', LIGHT],
    ['dark=00F', '#0000ff', LIGHT],
    ['light=%23FfEeDd', DARK, '#ffeedd'],
    ['dark=%23123&light=fed', '#112233', '#ffeedd'],
    ['dark=777777&light=ffffff', '#777777', '#ffffff'],
  ] as const) {
    for (const format of ['png', 'svg']) {
      const answer = await app.call('GET', `/api/qr/SPRING26?size=99&format=${format}&${query}`)
      const { text, bitmap } = await decoded(answer)
      expect([query, text]).toEqual([query, 'http://hop.test/SPRING26'])
      expect([query, ...colorsOf(bitmap)]).toEqual([query, ...[dark, light].sort()])
      expect([query, pixelAt(bitmap, 0, 0)]).toEqual([query, light])
    }
  }
})

/** One of each: src/draw/options.test.ts has all. */
const refusals = [
  { query: 'size=2049', error: invalid('size') },
  { query: 'format=svg%00', error: invalid('format') },
  { query: 'dark=123456%22/%3E%3Cscript%3E', error: invalid('dark') },
  { query: 'format=svg&light=%23', error: invalid('light') },
  { query: 'dark=fafafa', error: invalid('dark') },
  { query: 'dark=fff&light=000', error: invalid('dark') },
]

// spec: Limits | QR size
// design: 4.10 refusals
// design: 4.4 400 before 404
test('GET /api/qr/{code} refuses bad parameters with 400, even for a code that does not exist', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26')
  for (const { query, error } of refusals) {
    for (const code of ['SPRING26', 'NOBODY1', 'no-code']) {
      const { status, body, headers } = await app.call('GET', `/api/qr/${code}?${query}`)
      expect([query, code, status, body]).toEqual([query, code, 400, { error }])
      expect(headers.get('content-type')).toStartWith('application/json')
      expect(headers.get('cache-control') ?? '').not.toContain('max-age')
      expect(headers.get('x-ratelimit-limit')).toBe('300')
    }
  }
})

// spec: Errors | 404 code does not exist or has no destination
// design: 4.9 malformed codes
test('every QR endpoint is 404 for a code that does not exist, is malformed or is deleted', async () => {
  await using app = await testApp()
  const json = await app.reserve('SPRING26')
  expect((await app.call('POST', '/api/delete', { key: 'free', json })).status).toBe(200)
  for (const [path, code] of [
    ['NOBODY1', 'NOBODY1'],
    ['nobody1', 'NOBODY1'],
    ['spring26', 'SPRING26'],
    ['ABCDE', 'ABCDE'],
    ['my-code', 'MY-CODE'],
    ['A'.repeat(21), 'A'.repeat(21)],
    ['..%2F..%2Fsecret', '../../SECRET'],
  ] as const) {
    for (const start of ['/api/qr/', '/qr/', '/api/qr-image/']) {
      const { status, body, headers } = await app.call('GET', start + path)
      const seen = [start, status, body]
      expect(seen).toEqual([start, 404, { error: `Code not found: ${code}` }])
      expect(headers.get('location')).toBeNull()
      expect(headers.get('cache-control') ?? '').not.toContain('max-age')
      expect(headers.get('x-ratelimit-limit')).toBe('300')
    }
  }
})

// spec: Endpoints | GET /qr/{code}
// spec: GET /qr/{code} | Response 302
// spec: Code (short link) | qr_url
// spec: Code (short link) | qr_storage_url
// spec: GET /api/qr-image/{code} | Response 200
test.each([
  { env: {}, cdn: 'http://hop.test/cdn' },
  { env: { CDN_URL: 'https://images.example/base/' }, cdn: 'https://images.example/base' },
])('GET /qr/{code} leads to the stored image at $cdn, of a reserved code too', async (row) => {
  await using app = await testApp({ env: row.env })
  await app.reserve('SPRING26')
  await app.claim('ABCDEF')
  for (const [path, code] of [
    ['SPRING26', 'SPRING26'],
    ['abcdef', 'ABCDEF'],
    ['ABCDEF?size=64', 'ABCDEF'],
  ] as const) {
    const { status, headers, bytes } = await app.call('GET', `/qr/${path}`)
    expect([status, headers.get('location')]).toEqual([302, `${row.cdn}/qr/${code}.png`])
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(headers.get('x-ratelimit-limit')).toBe('300')
    expect(headers.get('x-service-code')).toBeNull()
    expect(bytes.length).toBe(0)
    const image = await app.call('GET', `/api/qr-image/${code}`)
    expect(image.body).toEqual({
      code,
      url: code === 'SPRING26' ? null : 'https://example.com/landing',
      short_url: `http://hop.test/${code}`,
      qr_url: `http://hop.test/qr/${code}`,
      qr_storage_url: `${row.cdn}/qr/${code}.png`,
    })
  }
  expect((await app.call('GET', '/api/lookup/ABCDEF')).body.hit_count).toBe(0)
})
