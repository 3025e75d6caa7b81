import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { PNG } from 'pngjs'
import { inspectPng } from '../../test/support/decode-qr.ts'
import type { QrMatrix } from './matrix.ts'
import { encodePng } from './png.ts'

const QUIET_ZONE_MODULES = 4
const OPTIONS = { dark: '#1a2e4f', light: '#fffefd', margin: QUIET_ZONE_MODULES, caption: '' }

/** Square matrices of 1 to 57 modules with an image size that has room for them. */
const drawings = fc.integer({ min: 1, max: 57 }).chain((size) =>
  fc.record({
    matrix: fc
      .array(fc.integer({ min: 0, max: 1 }), { minLength: size * size, maxLength: size * size })
      .map((modules): QrMatrix => ({ size, data: Uint8Array.from(modules) })),
    size: fc.integer({ min: size + 8, max: 300 }),
  }),
)

test('every pixel shows its module, and everything round the modules is light', () => {
  fc.assert(
    fc.property(drawings, ({ matrix, size }) => {
      const { width, height, data } = readPixels(encodePng(matrix, { size, ...OPTIONS }))
      expect([width, height]).toEqual([size, size])
      const scale = Math.floor(size / (matrix.size + 8))
      const half = Math.floor((size - matrix.size * scale) / 2)
      const margin = scale === 1 && half % 2 === 0 && half > QUIET_ZONE_MODULES ? half - 1 : half
      const moduleOf = (pixel: number) => Math.floor((pixel - margin) / scale)
      for (let y = 0; y < size; y++) {
        for (let x = 0; x < size; x++) {
          const [row, column] = [moduleOf(y), moduleOf(x)]
          const isInside = Math.min(row, column) >= 0 && Math.max(row, column) < matrix.size
          const isDark = isInside && matrix.data[row * matrix.size + column] === 1
          const color = isDark ? 0x1a2e4fff : 0xfffefdff
          if (data.getUint32((y * size + x) * 4) !== color) throw new Error(`pixel ${x}, ${y}`)
        }
      }
    }),
    { numRuns: 60 },
  )
})

test('the modules are as big as they fit beside four light ones, and the rest is spread evenly', () => {
  fc.assert(
    fc.property(fc.integer({ min: 21, max: 57 }), fc.integer({ min: 65, max: 600 }), (n, size) => {
      const { data } = readPixels(encodePng(solid(n), { size, ...OPTIONS }))
      const row = Array.from({ length: size }, (_, x) => {
        const middle = Math.floor(size / 2) * size
        return data.getUint32((middle + x) * 4) === 0x1a2e4fff
      })
      const [left, right] = [row.indexOf(true), size - 1 - row.lastIndexOf(true)]
      const scale = (size - left - right) / n
      expect(Number.isInteger(scale)).toBe(true)
      expect(left).toBeGreaterThanOrEqual(QUIET_ZONE_MODULES * scale)
      expect(right).toBeGreaterThanOrEqual(QUIET_ZONE_MODULES * scale)
      expect(Math.abs(left - right)).toBeLessThanOrEqual(scale === 1 ? 3 : 1)
      expect((scale + 1) * (n + 2 * QUIET_ZONE_MODULES)).toBeGreaterThan(size)
    }),
  )
})

test.each([66, 69, 70, 73])(
  'a code of one pixel a module, at %d pixels, is where ZBar reads it',
  (size) => {
    const { data } = readPixels(encodePng(solid(29), { size, ...OPTIONS }))
    const pixels = Array.from({ length: size * size }, (_, n) => data.getUint32(n * 4))
    const first = pixels.indexOf(0x1a2e4fff)
    expect([(first % size) % 2, Math.floor(first / size) % 2]).toEqual([1, 1])
  },
)

test('an image has one bit a pixel, two colors, sound checksums and no chunk that it does not need', () => {
  for (const size of [64, 65, 100, 512, 2047, 2048]) {
    expect(inspectPng(encodePng(solid(21), { size, ...OPTIONS }))).toEqual({
      width: size,
      height: size,
      bitDepth: 1,
      colorType: 3,
      palette: ['#fffefd', '#1a2e4f'],
      chunks: ['IHDR', 'PLTE', 'IDAT', 'IEND'],
    })
  }
})

test('the bytes own their buffer, so that moving them to another thread takes nothing else along', () => {
  const bytes = encodePng(solid(21), { size: 64, ...OPTIONS })
  expect(bytes.buffer.byteLength).toBe(bytes.byteLength)
})

test('the same matrix and options give the same bytes', () => {
  const [first, second] = [1, 2].map(() => encodePng(solid(25), { size: 333, ...OPTIONS }))
  expect(first).toEqual(second)
})

const mistakes = [
  { name: 'a size one pixel short of the quiet zone', modules: 57, size: 64 },
  { name: 'a size of 0', modules: 21, size: 0 },
  { name: 'a negative size', modules: 21, size: -512 },
  { name: 'a broken size', modules: 21, size: 512.5 },
  { name: 'a size that is not a number', modules: 21, size: Number.NaN },
  { name: 'an endless size', modules: 21, size: Number.POSITIVE_INFINITY },
  { name: 'a dark color by name', modules: 21, size: 512, dark: 'red' },
  { name: 'a light color of three digits', modules: 21, size: 512, light: '#fff' },
]

test.each(mistakes)('$name is the mistake of the caller', ({ modules, size, ...colors }) => {
  expect(() => encodePng(solid(modules), { size, ...OPTIONS, ...colors })).toThrow(RangeError)
})

test('the least size is one pixel a module with the quiet zone', () => {
  expect(inspectPng(encodePng(solid(56), { size: 64, ...OPTIONS })).width).toBe(64)
})

function solid(size: number): QrMatrix {
  return { size, data: new Uint8Array(size * size).fill(1) }
}

/** Red, green, blue and alpha of a pixel are one big-endian 32-bit number. */
function readPixels(png: Uint8Array): { width: number; height: number; data: DataView } {
  const { width, height, data } = PNG.sync.read(Buffer.from(png))
  return { width, height, data: new DataView(data.buffer, data.byteOffset, data.byteLength) }
}
