import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Bitmap, decodeQr, inspectPng, pixelAt } from '../../test/support/decode-qr.ts'
import { parseQrOptions, type QrOptions, SIZE_MAX_PX, SIZE_MIN_PX } from './options.ts'
import { renderQr } from './render.ts'

const RUNS = Number(process.env.QR_RUNS ?? 20)

const PNG = parseQrOptions({})
const SVG: QrOptions = { ...PNG, format: 'svg' }
const BOTH_READERS = ['jsQR', 'zxing'] as const

const SHORT = 'http://h.io/ABC123'
const COMMON = 'http://localhost:3000/ABCDEFGH'
/** The longest that the configuration takes. */
const LONGEST_BASE = 'https://links.example/'.padEnd(100, 'long-path-')
const LONGEST = `${LONGEST_BASE}/ABCDEFGHIJ0123456789`

const SIZES = [64, 65, 100, 255, 256, 511, 512, 513, 1000, 2047, 2048]
const images = [SHORT, COMMON, LONGEST].flatMap((text) => SIZES.map((size) => ({ text, size })))

test.each(images)(
  '$text at $size pixels is a square of that size that reads as sent',
  async ({ text, size }) => {
    const png = renderQr(text, { ...PNG, size })
    const decoded = await decodeQr(png, 'image/png')
    expect(decoded).toMatchObject({ text, width: size, height: size, readers: [...BOTH_READERS] })
    expect(inspectPng(png)).toMatchObject({ bitDepth: 1, palette: ['#ffffff', '#1a2e4f'] })
    expectQuietZone(decoded.bitmap, PNG)
  },
  60_000,
)

const BASES = [
  'http://h.io',
  'https://hop.example',
  'http://localhost:3000',
  'http://[2001:db8::7]:8080/s',
  'https://xn--bcher-kva.example/%C3%A9',
  'https://LINKS.example/A/B/123456789012345678901234567890',
  LONGEST_BASE,
]
const colors = [
  { dark: '#000000', light: '#ffffff' },
  { dark: '#aa0000', light: '#ffffee' },
  { dark: '#1a2e4f', light: '#99ffcc' },
  { dark: '#004400', light: '#aabbcc' },
  { dark: '#777777', light: '#ffffff' },
]

test.each(colors)(
  '$dark on $light are the colors of both formats, and the code can be read',
  async (pair) => {
    for (const format of ['png', 'svg'] as const) {
      const { text, bitmap } = await decodeQr(renderQr(COMMON, { ...PNG, ...pair, format }))
      expect(text).toBe(COMMON)
      expect(colorsOf(bitmap)).toEqual([pair.dark, pair.light].sort())
      expectQuietZone(bitmap, pair)
    }
  },
)

const bases = fc.constantFrom(...BASES)
const codes = fc.stringMatching(/^[A-Z0-9]{6,20}$/)

// spec: GET /api/qr/{code} | Returns a QR image
test('any code of any base reads as sent at any size and as an SVG', async () => {
  const sizes = fc.integer({ min: SIZE_MIN_PX, max: 700 })
  await fc.assert(
    fc.asyncProperty(bases, codes, sizes, async (base, code, size) => {
      const text = `${base}/${code}`
      const png = await decodeQr(renderQr(text, { ...PNG, size }))
      expect(png).toMatchObject({ text, width: size, height: size })
      expectQuietZone(png.bitmap, PNG)
      expect((await decodeQr(renderQr(text, SVG))).text).toBe(text)
    }),
    { numRuns: RUNS },
  )
}, 60_000)

test('the SVG fills exactly the modules that are dark in a PNG of one pixel a module', () => {
  return fc.assert(
    fc.asyncProperty(bases, codes, async (base, code) => {
      const svg = await decodeQr(renderQr(`${base}/${code}`, SVG), 'image/svg+xml')
      const png = await decodeQr(renderQr(`${base}/${code}`, { ...PNG, size: svg.width }))
      expect(svg.bitmap.data).toEqual(png.bitmap.data)
    }),
    { numRuns: RUNS },
  )
})

test('the SVG is the same for every size', () => {
  expect(renderQr(COMMON, { ...SVG, size: 64 })).toEqual(renderQr(COMMON, { ...SVG, size: 2048 }))
})

test('any text of up to 128 bytes fits the smallest image and can be read there', async () => {
  const unicode = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 128 })
  const ascii = fc.string({ unit: 'grapheme-ascii', minLength: 100, maxLength: 128 })
  await fc.assert(
    fc.asyncProperty(fc.oneof(ascii, unicode), async (text) => {
      fc.pre(Buffer.byteLength(text) <= 128)
      const png = renderQr(text, { ...PNG, size: SIZE_MIN_PX })
      expect(inspectPng(png)).toMatchObject({ width: SIZE_MIN_PX, height: SIZE_MIN_PX })
    }),
  )
  for (const text of ['~'.repeat(128), 'a1A-'.repeat(32), '9z'.repeat(64)]) {
    expect((await decodeQr(renderQr(text, { ...PNG, size: SIZE_MIN_PX }))).text).toBe(text)
  }
})

test('a text of 180 bytes still fits the smallest image, and one of 181 is the mistake of the caller', async () => {
  const smallest = { ...PNG, size: SIZE_MIN_PX }
  expect((await decodeQr(renderQr('~'.repeat(180), smallest))).text).toBe('~'.repeat(180))
  expect(() => renderQr('~'.repeat(181), smallest)).toThrow(RangeError)
  expect(renderQr('~'.repeat(181), { ...PNG, size: SIZE_MAX_PX }).length).toBeGreaterThan(0)
})

test('a color that could break out of the markup never reaches the SVG', () => {
  for (const name of ['dark', 'light']) {
    const options = { ...SVG, [name]: '#000000"/><script>' }
    expect(() => renderQr(COMMON, options)).toThrow(RangeError)
  }
})

/** Checks that the four modules along all four sides, corners included, are light. */
function expectQuietZone(bitmap: Bitmap, { dark, light }: Pick<QrOptions, 'dark' | 'light'>): void {
  const { width, data } = bitmap
  // The symbol begins with the seven dark modules of a finder pattern, on the diagonal.
  let start = 0
  while (pixelAt(bitmap, start, start) === light) start++
  let length = 0
  while (pixelAt(bitmap, start, start + length) === dark) length++
  const scale = length / 7
  expect(Number.isInteger(scale)).toBe(true)
  expect(pixelAt(bitmap, 0, 0)).toBe(light)
  const pixels = new Uint32Array(data.buffer, data.byteOffset, width * width)
  const [lightPixel] = pixels
  for (let along = 0; along < width; along++) {
    for (let across = 0; across < 4 * scale; across++) {
      const isLight =
        pixels[across * width + along] === lightPixel &&
        pixels[(width - 1 - across) * width + along] === lightPixel &&
        pixels[along * width + across] === lightPixel &&
        pixels[along * width + width - 1 - across] === lightPixel
      if (!isLight) throw new Error(`dark in the quiet zone at ${along}, ${across}`)
    }
  }
}

function colorsOf(bitmap: Bitmap): string[] {
  const found = new Set<string>()
  for (let y = 0; y < bitmap.height; y++) {
    for (let x = 0; x < bitmap.width; x++) found.add(pixelAt(bitmap, x, y))
  }
  return [...found].sort()
}
