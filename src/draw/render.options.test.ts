/** Margin, level, caption and logo, read by both decoders. */
import { expect, test } from 'bun:test'
import { create } from 'qrcode/lib/core/qrcode.js'
import { decodeQr, drawSvg, inspectPng } from '../../test/support/decode-qr.ts'
import { type Bitmap, type Logo, readPng, writePng } from './logo.ts'
import { LEVELS, parseQrOptions } from './options.ts'
import { renderQr } from './render.ts'
import { loadTypeface } from './typeface.ts'

await loadTypeface([])

const TEXT = 'http://hop.test/SPRING26'
/** The longest that the configuration takes. */
const LONGEST = `${'https://links.example/'.padEnd(100, 'long-path-')}/ABCDEFGHIJ0123456789`
const BOTH_READERS = ['jsQR', 'zxing'] as const

/** An SVG with a caption or a logo, as a PNG. */
const drawn = (svg: Uint8Array): Uint8Array<ArrayBuffer> =>
  new Uint8Array(drawSvg(new TextDecoder().decode(svg), { mode: 'width', value: 700 }).asPng())

/** A logo of one color, with a transparent frame. */
function logoOf(color: string, { width = 100, height = 100 } = {}): Logo {
  const bitmap: Bitmap = { width, height, data: new Uint8Array(4 * width * height) }
  const pixel = Uint8Array.fromHex(`${color}ff`)
  for (let y = 4; y < height - 4; y++) {
    for (let x = 4; x < width - 4; x++) bitmap.data.set(pixel, 4 * (y * width + x))
  }
  const png = writePng(bitmap)
  return { png, bitmap: readPng(png) }
}

const optionsOf = (query: string) => parseQrOptions(Object.fromEntries(new URLSearchParams(query)))

const SIZES = [128, 2048]
const QUERIES = [
  'margin=1',
  'margin=16',
  ...LEVELS.map((level) => `level=${level}`),
  'caption=hop.test/SPRING26',
  'caption=Scan+for+the+menu+of+the+week,+please!&level=Q',
  'logo=1',
  'logo=1&caption=hop.test/SPRING26&margin=2&dark=%23004400&light=%23ffffee',
  'logo=1&caption=Menu&margin=10&level=L',
]
const codes = QUERIES.flatMap((query) => [TEXT, LONGEST].map((text) => ({ query, text })))

test.each(codes)('$query: both decoders read $text at any size', async ({ query, text }) => {
  const logo = optionsOf(query).logo ? logoOf('cc2233') : undefined
  for (const size of SIZES) {
    const options = optionsOf(`${query}&size=${size}`)
    const png = renderQr(text, options, logo)
    const decoded = await decodeQr(png)
    expect(decoded).toMatchObject({ text, width: size, readers: [...BOTH_READERS] })
    if (options.caption === '') expect(decoded.height).toBe(size)
    else expect(decoded.height).toBeGreaterThan(size)
    // Letters have smooth edges, and a logo has colors of its own.
    const captionDepth = size > 1024 ? 2 : 4
    const bitDepth = options.caption === '' ? 1 : captionDepth
    expect(inspectPng(png)).toMatchObject(options.logo ? { colorType: 2 } : { bitDepth })
  }
  // An SVG has no size.
  const svg = renderQr(text, optionsOf(`${query}&format=svg`), logo)
  expect(await decodeQr(drawn(svg), 'image/png')).toMatchObject({ text })
})

// A code without a margin is for paper that is light around it.
test.each([128, 512])('without a margin the code fills the image of %d px', async (size) => {
  const bare = readPng(renderQr(TEXT, optionsOf(`margin=0&size=${size}`)))
  const scale = Math.floor(size / create(TEXT, { errorCorrectionLevel: 'M' }).modules.size)
  const firstDark = bare.data.findIndex((value, at) => at % 4 === 0 && value !== 255) / 4
  expect(firstDark % size).toBeLessThan(scale)
  const framed: Bitmap = { width: 2 * size, height: 2 * size, data: new Uint8Array(16 * size ** 2) }
  framed.data.fill(255)
  for (let y = 0; y < size; y++) {
    const row = bare.data.subarray(4 * y * size, 4 * (y + 1) * size)
    framed.data.set(row, 4 * ((y + size / 2) * 2 * size + size / 2))
  }
  const decoded = await decodeQr(new Uint8Array(writePng(framed)))
  expect(decoded).toMatchObject({ text: TEXT, readers: [...BOTH_READERS] })
})

test('the level is the one asked for, M by default, and H with a logo', () => {
  const sizes = (query: string) => {
    const svg = new TextDecoder().decode(
      renderQr(
        LONGEST,
        optionsOf(`format=svg&margin=0&${query}`),
        query ? logoOf('000000') : undefined,
      ),
    )
    return Number(/viewBox="0 0 (\d+)/.exec(svg)?.[1])
  }
  const expected = (errorCorrectionLevel: 'M' | 'H') =>
    create(LONGEST, { errorCorrectionLevel }).modules.size
  expect(sizes('')).toBe(expected('M'))
  expect(sizes('logo=1&level=L')).toBe(expected('H'))
})

test.each([
  { width: 512, height: 40 },
  { width: 40, height: 512 },
])('a logo of $width x $height px keeps its shape and stays in the middle', async (size) => {
  const options = optionsOf('logo=1&dark=000&light=fff')
  const png = renderQr(TEXT, options, logoOf('ff0000', size))
  expect(await decodeQr(png)).toMatchObject({ text: TEXT, readers: [...BOTH_READERS] })
  const { width, data } = readPng(png)
  const red: number[] = []
  for (let at = 0; at < data.length / 4; at++) {
    if (data[4 * at] === 255 && data[4 * at + 1] === 0) red.push(at)
  }
  const [xs, ys] = [red.map((at) => at % width), red.map((at) => Math.floor(at / width))]
  for (const positions of [xs, ys]) {
    expect(positions).not.toEqual([])
    const middle = (Math.min(...positions) + Math.max(...positions)) / 2
    expect(Math.abs(middle - width / 2)).toBeLessThanOrEqual(2)
    expect(Math.max(...positions) - Math.min(...positions)).toBeLessThan(width / 3)
  }
})

test('an SVG contains its logo and refers to nothing outside', () => {
  const svg = new TextDecoder().decode(
    renderQr(TEXT, optionsOf('format=svg&logo=1'), logoOf('0000ff')),
  )
  const links = [...svg.matchAll(/\bhref="([^"]{0,22})/g)].map(([, start]) => start)
  expect(links).toEqual(['data:image/png;base64,'])
  expect(svg).not.toMatch(/<script|<style|<foreignObject|\son\w+=|url\(/)
})

test('the defaults give the same bytes as ever', () => {
  const hashes = ['', 'size=2048', 'format=svg', 'size=100&dark=f00'].map((query) =>
    Bun.SHA256.hash(renderQr(TEXT, optionsOf(query)), 'hex').slice(0, 16),
  )
  expect(hashes).toEqual([
    '845a608122185988',
    '14a5b7a6f51fa8d4',
    '985980347c1f07cc',
    '7a1ef6d0a894106e',
  ])
})
