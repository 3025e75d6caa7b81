/** Reads QR images back with decoders that share no code with the encoder. */

import jsQR from 'jsqr'
import { PNG } from 'pngjs'
import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader'

export interface Bitmap {
  width: number
  height: number
  /** Red, green, blue, alpha of each pixel, row by row. */
  data: Uint8ClampedArray
}

interface DecodedQr {
  text: string
  /** Pixels of a PNG, view box units of an SVG: so for ours, modules. */
  width: number
  height: number
  /** The image as it came: a pixel for each pixel of a PNG or view box unit of an SVG. */
  bitmap: Bitmap
  /** Who could read it: at least one, and nobody read another text. */
  readers: ('jsQR' | 'zxing')[]
}

const wasm = Bun.file(Bun.fileURLToPath(import.meta.resolve('zxing-wasm/reader/zxing_reader.wasm')))
// Without this, zxing-wasm fetches its binary from a CDN.
prepareZXingModule({ overrides: { wasmBinary: await wasm.arrayBuffer() } })

/** Throws if the image is malformed, if no decoder can read it, or if two read different texts. */
export async function decodeQr(bytes: Uint8Array, contentType?: string): Promise<DecodedQr> {
  const isSvg = contentType ? contentType.startsWith('image/svg+xml') : bytes[0] === 0x3c
  const bitmap = isSvg ? rasterizeSvg(new TextDecoder().decode(bytes)) : readPng(bytes)
  const image = isSvg ? enlarge(bitmap, 4) : bitmap
  const read = [
    { reader: 'jsQR' as const, text: jsQR(image.data, image.width, image.height)?.data },
    { reader: 'zxing' as const, text: await readWithZxing(image) },
  ].filter(({ text }) => text !== undefined)
  const texts = new Set(read.map(({ text }) => text))
  const [text] = texts
  if (text === undefined || texts.size !== 1) {
    throw new Error(`${texts.size} different texts read from a QR image of ${bitmap.width} px`)
  }
  const { width, height } = bitmap
  return { text, width, height, bitmap, readers: read.map(({ reader }) => reader) }
}

/** The color of a pixel as `#rrggbb`. Throws if it is not opaque. */
export function pixelAt({ width, data }: Bitmap, x: number, y: number): string {
  const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray((y * width + x) * 4)
  if (alpha !== 255) throw new Error(`pixel ${x}, ${y} is not opaque`)
  return `#${[red, green, blue].map((value) => value.toString(16).padStart(2, '0')).join('')}`
}

interface PngFacts {
  width: number
  height: number
  bitDepth: number
  colorType: number
  /** `#rrggbb` each. */
  palette: string[]
  /** Types in their order. */
  chunks: string[]
}

/** Reads a PNG's chunks. Throws if the signature, a length or a checksum is wrong. */
export function inspectPng(bytes: Uint8Array): PngFacts {
  if (bytes.subarray(0, 8).toHex() !== '89504e470d0a1a0a') throw new Error('not a PNG')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const chunks = new Map<string, Uint8Array>()
  let offset = 8
  while (offset < bytes.length) {
    const end = offset + 8 + view.getUint32(offset)
    const type = String.fromCharCode(...bytes.subarray(offset + 4, offset + 8))
    const isSound = Bun.hash.crc32(bytes.subarray(offset + 4, end)) === view.getUint32(end)
    if (!isSound) throw new Error(`bad checksum in chunk ${type}`)
    chunks.set(type, bytes.subarray(offset + 8, end))
    offset = end + 4
  }
  const header = chunks.get('IHDR') ?? new Uint8Array(13)
  const palette = (chunks.get('PLTE') ?? new Uint8Array(0)).toHex().match(/.{6}/g) ?? []
  return {
    width: view.getUint32(16),
    height: view.getUint32(20),
    bitDepth: header[8] ?? 0,
    colorType: header[9] ?? 0,
    palette: palette.map((digits) => `#${digits}`),
    chunks: [...chunks.keys()],
  }
}

function readPng(bytes: Uint8Array): Bitmap {
  const { width, height, data } = PNG.sync.read(Buffer.from(bytes))
  return { width, height, data: new Uint8ClampedArray(data) }
}

async function readWithZxing(bitmap: Bitmap): Promise<string | undefined> {
  const [result] = await readBarcodes(bitmap, { formats: ['QRCode'], maxNumberOfSymbols: 1 })
  return result?.text
}

const SVG_START = /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 (\d+) (\d+)" [^<>]*>/
const SVG_PATHS = /^(?:<path fill="#[0-9a-f]{6}" d="[MhHvVz\d -]+"\/>)+<\/svg>\n$/

/**
 * Draws the filled, rectilinear paths that a QR code is made of, one pixel a unit. Throws at
 * anything else, so that no script, style or link gets by unseen.
 */
function rasterizeSvg(svg: string): Bitmap {
  const start = SVG_START.exec(svg)
  if (!start || !SVG_PATHS.test(svg.slice(start[0].length))) {
    throw new Error('not an SVG of plain filled paths')
  }
  const [width, height] = [Number(start[1]), Number(start[2])]
  const data = new Uint8ClampedArray(width * height * 4)
  for (const [, color = '', path = ''] of svg.matchAll(/fill="#(\w+)" d="([^"]+)"/g)) {
    fillPath(path, [...Uint8Array.fromHex(color), 255], { width, height, data })
  }
  return { width, height, data }
}

/**
 * Fills by SVG's own nonzero rule: a pixel is inside if the edges on its left do not cancel out.
 */
function fillPath(path: string, color: readonly number[], { width, height, data }: Bitmap): void {
  const turns = turnsOf(path, width, height)
  for (let row = 0; row < height; row++) {
    let winding = 0
    for (let column = 0; column < width; column++) {
      winding += turns[row * (width + 1) + column] ?? 0
      if (winding !== 0) data.set(color, (row * width + column) * 4)
    }
  }
}

/**
 * For each pixel, the vertical edges along its left side: down counts 1, up −1. Each row has one
 * place more than pixels, for the edges on the right border.
 */
function turnsOf(path: string, width: number, height: number): Int8Array {
  const turns = new Int8Array((width + 1) * height)
  let x = 0
  let y = 0
  let start = { x, y }
  for (const [, command = '', numbers = ''] of path.matchAll(/([A-Za-z])([^A-Za-z]*)/g)) {
    const [first = Number.NaN, second = Number.NaN] = numbers.split(' ').map(Number)
    const fromY = y
    if (command === 'M') start = { x: first, y: second }
    if (command === 'M' || command === 'z') ({ x, y } = start)
    else if (command === 'h') x += first
    else if (command === 'H') x = first
    else if (command === 'v') y += first
    else if (command === 'V') y = first
    if (!Number.isInteger(x) || !Number.isInteger(y)) throw new Error(`bad path: ${path}`)
    if (command === 'M') continue
    for (let row = Math.min(fromY, y); row < Math.max(fromY, y); row++) {
      const at = row * (width + 1) + x
      turns[at] = (turns[at] ?? 0) + Math.sign(y - fromY)
    }
  }
  return turns
}

function enlarge({ width, height, data }: Bitmap, times: number): Bitmap {
  const enlarged = new Uint8ClampedArray(width * height * times * times * 4)
  for (let y = 0; y < height * times; y++) {
    for (let x = 0; x < width * times; x++) {
      const from = (Math.floor(y / times) * width + Math.floor(x / times)) * 4
      enlarged.set(data.subarray(from, from + 4), (y * width * times + x) * 4)
    }
  }
  return { width: width * times, height: height * times, data: enlarged }
}
