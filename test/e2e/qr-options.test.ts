import { expect, test } from 'bun:test'
import { deflateSync } from 'node:zlib'
import { testApp } from '../support/app.ts'
import { invalidIn } from '../support/dashboard.ts'
import { decodeQr, inspectPng, pixelAt } from '../support/decode-qr.ts'
import { pngLogo, RED_SVG, uploadLogo } from '../support/logos.ts'
import { makeMember } from '../support/members.ts'
import { invalid } from '../support/refusals.ts'
import { shared } from '../support/shared.ts'

/** Options of QR codes beside the spec's: margin, level, caption, logo, presets. */

const BOTH_READERS: ('jsQR' | 'zxing')[] = ['jsQR', 'zxing']

const API = '/api/qr/SPRING26'

async function withLink() {
  const app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  return { app, free, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
}

test('margin, level and caption change the image, and both decoders read it', async () => {
  await using it = await withLink()
  for (const query of ['margin=10&level=Q', 'caption=1', 'caption=Menu&size=200&level=H']) {
    const { status, headers, bytes } = await it.app.call('GET', `${API}?${query}`)
    expect([query, status]).toEqual([query, 200])
    expect(headers.get('cache-control')).toBe('public, max-age=86400, immutable')
    const { text, readers, width, height } = await decodeQr(bytes)
    expect([query, text, readers]).toEqual([query, 'http://hop.test/SPRING26', BOTH_READERS])
    expect(height > width).toBe(query.includes('caption'))
    expect(inspectPng(bytes).bitDepth).toBe(query.includes('caption') ? 4 : 1)
  }
})

/** For the tables of refusals. */
const unchanged = shared(withLink)

test('GET /api/qr/{code}?logo=1 is 400 for an account without a logo', async () => {
  const it = await unchanged()
  const { status, body } = await it.app.call('GET', `${API}?logo=1`)
  expect([status, body]).toEqual([400, { error: invalid('logo') }])
})

test('an image that is too small for its modules is 400 and says how many pixels it needs', async () => {
  await using app = await testApp()
  await app.reserve('QWERTYUIOP0123456789')
  const path = '/api/qr/QWERTYUIOP0123456789?margin=16&level=H'
  const { status, body } = await app.call('GET', `${path}&size=64`)
  expect([status, body]).toEqual([400, { error: expect.stringMatching(/^Invalid size: .* 65 /) }])
  const least = await app.call('GET', `${path}&size=65`)
  expect((await decodeQr(least.bytes)).text).toBe('http://hop.test/QWERTYUIOP0123456789')
})

const logos = [
  { name: 'a PNG', logo: pngLogo(300), color: '#008844' },
  { name: 'a wide PNG of 1024 px', logo: pngLogo(1024, 256), color: '#008844' },
]

test.each(logos)(
  '$name becomes the logo of the codes of its account, and is removed again',
  async ({ logo, color }) => {
    await using it = await withLink()
    const { app, free } = it
    expect(await uploadLogo(app, free, logo)).toMatchObject({ location: '/app/qr?done=logo' })
    const { status, headers, bytes } = await app.call('GET', `${API}?logo=1`)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('public, max-age=3600')
    const { text, readers, bitmap } = await decodeQr(bytes)
    expect([text, readers]).toEqual(['http://hop.test/SPRING26', BOTH_READERS])
    expect(pixelAt(bitmap, 256, 256)).toBe(color)
    // Codes of other accounts, and images without the option, have none.
    await app.claim('SUMMER26', 'https://example.com/', 'pro')
    expect((await app.call('GET', '/api/qr/SUMMER26?logo=1')).status).toBe(400)
    expect(inspectPng((await app.call('GET', API)).bytes).bitDepth).toBe(1)
    expect((await free.get('/app/qr/logo.png')).headers.get('content-type')).toBe('image/png')
    expect((await free.post('/app/qr/logo/remove', {}, { from: '/app/qr' })).location).toBe(
      '/app/qr?done=removed',
    )
    expect((await app.call('GET', `${API}?logo=1`)).status).toBe(400)
    expect((await free.get('/app/qr/logo.png')).status).toBe(404)
  },
)

/** A PNG that declares one size and contains 60 MB of zeros. */
function pngBomb(width: number, height: number): Uint8Array<ArrayBuffer> {
  const png = Buffer.from(pngLogo(1))
  png.writeUInt32BE(width, 16)
  png.writeUInt32BE(height, 20)
  png.writeUInt32BE(Bun.hash.crc32(png.subarray(12, 29)), 29)
  const data = deflateSync(Buffer.alloc(50_000_000), { level: 9 })
  const chunk = Buffer.alloc(12 + data.length)
  chunk.writeUInt32BE(data.length, 0)
  chunk.write('IDAT', 4)
  chunk.set(data, 8)
  chunk.writeUInt32BE(Bun.hash.crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length)
  const end = png.subarray(png.length - 12)
  return new Uint8Array(Buffer.concat([png.subarray(0, 33), chunk, end]))
}

/** The size in the first header is small, and that in the second one is not. */
function pngOfTwoSizes(): Uint8Array<ArrayBuffer> {
  const png = pngLogo(300)
  const headerEnd = 33
  const header = Buffer.from(pngLogo(1).subarray(8, headerEnd))
  header.writeUInt32BE(4000, 8)
  header.writeUInt32BE(4000, 12)
  header.writeUInt32BE(Bun.hash.crc32(header.subarray(4, 21)), 21)
  return new Uint8Array(
    Buffer.concat([png.subarray(0, headerEnd), header, png.subarray(headerEnd)]),
  )
}

const DAMAGED_PNG = 'damaged'
const LARGE_PNG = 'larger than 1024'
const UNKNOWN = 'not a PNG'

const hostile = [
  { name: 'no file', logo: '', problem: 'Choose' },
  {
    name: 'a file of 61 kB',
    logo: 'x'.repeat(61 * 1024),
    problem: 'larger than 60',
  },
  { name: 'a text', logo: 'GIF89a', problem: UNKNOWN },
  { name: 'bytes that are no text', logo: Uint8Array.of(0xff, 0xd8, 0xff), problem: UNKNOWN },
  { name: 'an SVG', logo: RED_SVG, problem: UNKNOWN },
  { name: 'the start of a PNG', logo: pngLogo(300).subarray(0, 20), problem: DAMAGED_PNG },
  { name: 'a truncated PNG', logo: pngLogo(300).subarray(0, 200), problem: DAMAGED_PNG },
  { name: 'a PNG of 2000 px', logo: pngLogo(2000, 10), problem: LARGE_PNG },
  { name: 'a bomb of 30,000 px', logo: pngBomb(30_000, 30_000), problem: LARGE_PNG },
  { name: 'a PNG with two headers', logo: pngOfTwoSizes(), problem: DAMAGED_PNG },
  {
    name: 'a PNG that shows nothing',
    logo: pngLogo(8, 8, '00000000'),
    problem: 'empty',
  },
]

test.each(hostile)('a logo that is $name is refused with a reason', async ({ logo, problem }) => {
  const it = await unchanged()
  const { status, text } = await uploadLogo(it.app, it.free, logo)
  expect(status).toBe(422)
  expect(/id="field-logo-error">([^<]*)/.exec(text)?.[1]).toContain(problem)
  expect((await it.app.call('GET', `${API}?logo=1`)).status).toBe(400)
  expect((await it.app.call('GET', '/SPRING26')).status).toBe(302)
})

test('a small PNG that decompresses to 50 MB is harmless', async () => {
  await using it = await withLink()
  const { status } = await uploadLogo(it.app, it.free, pngBomb(8, 8))
  expect([303, 422]).toContain(status)
})

test('a logo that contains a code is refused: of two codes, decoders differ in which one they read', async () => {
  await using it = await withLink()
  // Another code in the middle is what decoders find.
  const other = await it.app.call('GET', '/api/qr/SPRING26?margin=0&level=L&dark=000')
  const { status, text } = await uploadLogo(it.app, it.free, new Uint8Array(other.bytes))
  expect([status, invalidIn(text)]).toEqual([422, ['logo']])
})

test('a preset keeps options under a name, for its account alone', async () => {
  await using it = await withLink()
  const { app, free } = it
  const fields = { name: 'Menu <1>', dark: '#004400', margin: '2', caption: 'text' }
  const sent = { ...fields, captionText: 'Scan me' }
  const save = (more: Record<string, string> = {}) =>
    free.post('/app/qr/presets', { ...sent, ...more }, { from: '/app/qr' })
  expect((await save()).location).toBe('/app/qr?done=preset')
  expect((await save({ margin: '3' })).location).toBe('/app/qr?done=preset')
  const { text } = await free.get('/app/qr')
  expect(text.match(/Menu &lt;1&gt;<\/div>/g)).toHaveLength(1)
  expect(text).toContain('512 px, #004400 on #ffffff, margin 3, “Scan me”')
  const page = await free.get('/app/links/SPRING26/qr')
  const [, href = ''] = /href="([^"]+)">Menu &lt;1&gt;/.exec(page.text) ?? []
  expect(href).toBe(
    '/app/links/SPRING26/qr?dark=%23004400&amp;margin=3&amp;caption=Scan+me&amp;ref=#qr',
  )
  const chosen = await free.get(href.replaceAll('&amp;', '&'))
  expect(chosen.text).toContain('qr.svg?dark=%23004400&amp;margin=3&amp;caption=Scan+me&amp;ref="')
  const other = await makeMember(app, 'ann@example.com')
  expect((await other.get('/app/qr')).text).not.toContain('Menu')
  const [, preset = ''] = /name="preset" value="(\d+)"/.exec(text) ?? []
  await other.post('/app/qr/presets/delete', { preset }, { from: '/app/qr' })
  expect((await free.get('/app/qr')).text).toContain('Menu')
  await free.post('/app/qr/presets/delete', { preset }, { from: '/app/qr' })
  expect((await free.get('/app/qr')).text).not.toContain('Menu')
})
