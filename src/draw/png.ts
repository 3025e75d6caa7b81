/**
 * PNG images of QR codes (RFC 2083): one bit per pixel and a palette of two colors; with a caption,
 * four bits and sixteen shades, or two and four; with a logo, 24 bits, or 32 without a background.
 */

import { crc32, deflateSync } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { CAPTION_GAP_MODULES, layOutCaption } from './caption.ts'
import { type Bitmap, blend, fitInto, logoSpan } from './logo.ts'
import type { QrMatrix } from './matrix.ts'
import { checkColor, type QrOptions } from './options.ts'
import { fillOutline, type Shades } from './raster.ts'

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
/**
 * The best compression level at 2048 pixels: 1 writes 4 times the bytes, 7 takes 2.3 times as long.
 */
const PALETTE = { bitDepth: 1, colorType: 3, level: 6 }
/** Bits of smooth letters: four shades are enough where their pixels are small. */
const shadeBits = (size: number) => (size > 1024 ? 2 : 4)
const RGB = { bitDepth: 8, colorType: 2, level: 3 }
const RGBA = { bitDepth: 8, colorType: 6, level: 3 }

/** The image is too small. `sizeMin`: pixels that it needs, one for each module. */
export class SizeError extends RangeError {
  readonly sizeMin: number

  constructor(size: number, sizeMin: number) {
    super(`${size} pixels cannot hold ${sizeMin} modules`)
    this.sizeMin = sizeMin
  }
}

interface PngOptions
  extends Pick<QrOptions, 'size' | 'dark' | 'light' | 'margin' | 'caption' | 'transparent' | 'mm'> {
  /** Drawn in the middle, whose modules are light. */
  logo?: Bitmap | undefined
}

/**
 * The matrix as an image of `size` by `size` pixels, higher with a caption. A module has the
 * largest whole number of pixels that leaves room for the margin; the four margins share the rest
 * evenly, nearly so if a module is one pixel. The bytes have their own ArrayBuffer, so they can be
 * transferred to another thread. Throws SizeError if `size` leaves less than one pixel per module,
 * RangeError if a color is malformed.
 */
export function encodePng(matrix: QrMatrix, options: PngOptions): Uint8Array<ArrayBuffer> {
  const { size, margin, caption: text, logo, transparent } = options
  const modules = matrix.size + 2 * margin
  const scale = Math.floor(size / modules)
  if (!Number.isInteger(size) || scale < 1) {
    throw new SizeError(size, modules)
  }
  const codeSize = matrix.size * scale
  const offset = offsetOf(size, { codeSize, scale, margin })
  const caption = text === '' ? undefined : drawCaption(text, codeSize)
  const gap = CAPTION_GAP_MODULES * scale
  const colors = { dark: rgb(options.dark), light: rgb(options.light), transparent }
  const rows = lightRows(size, size + (caption ? gap + caption.height : 0))
  draw(rows, matrix, { left: offset, top: offset, scale })
  const place = { left: offset, top: offset + codeSize + gap }
  const physical = physicalSize(options)
  if (!logo && !caption) return png(rows, PALETTE, ...physical, ...palette(colors, 2))
  if (!logo) {
    const bitDepth = shadeBits(size)
    const shaded = inShades(rows, bitDepth)
    if (caption) addShades(shaded, caption, { ...place, bits: bitDepth })
    const chunks = [...physical, ...palette(colors, 1 << bitDepth)]
    return png(shaded, { bitDepth, colorType: 3, level: 6 }, ...chunks)
  }
  const colored = inColor(rows, colors)
  if (caption) blendShades(colored, caption, { ...place, colors })
  // Half a module of light around the logo.
  const side = (logoSpan(matrix.size) - 1) * scale
  const fitted = fitInto(logo, side)
  if (!transparent) blend(fitted, colors.light)
  drawBitmap(colored, fitted, offset + codeSize / 2)
  return png(colored, transparent ? RGBA : RGB, ...physical)
}

/** Drawn captions: many codes have the same one. An entry larger than this is not kept. */
const captions = new LRUCache<string, Shades>({
  maxSize: 4 * 1024 * 1024,
  sizeCalculation: ({ data }) => data.length + 1,
})

function drawCaption(text: string, width: number): Shades {
  const key = `${width} ${text}`
  const known = captions.get(key)
  if (known) return known
  const { outlineAt, height } = layOutCaption(text, width)
  const drawn = fillOutline(outlineAt(0, 0), width, Math.ceil(height))
  captions.set(key, drawn)
  return drawn
}

/** The size on paper, in pixels per metre, for `mm`. */
function physicalSize({ size, mm }: Pick<PngOptions, 'size' | 'mm'>): Buffer[] {
  if (mm === undefined) return []
  const data = Buffer.alloc(9)
  const perMetre = Math.round((size * 1000) / mm)
  data.writeUInt32BE(perMetre, 0)
  data.writeUInt32BE(perMetre, 4)
  data[8] = 1
  return [chunk('pHYs', data)]
}

/**
 * Pixels to the left of the code and above it. ZBar reads many codes of one pixel per module from
 * an odd offset only.
 */
function offsetOf(
  size: number,
  { codeSize, scale, margin }: { codeSize: number; scale: number; margin: number },
): number {
  const offset = Math.floor((size - codeSize) / 2)
  return scale === 1 && offset % 2 === 0 && offset > margin ? offset - 1 : offset
}

/**
 * Every pixel row, preceded by its filter byte. The filter is always None: rows repeat `scale`
 * times, and deflate copies a whole row faster and in fewer bytes than it encodes the zeros of
 * filter Up.
 */
interface Rows {
  readonly width: number
  readonly height: number
  readonly bytes: Uint8Array
  /** Bytes of a row with its filter byte. */
  readonly stride: number
}

interface Colors {
  dark: Rgb
  light: Rgb
  /** The light color is then not drawn. */
  transparent?: boolean | undefined
}

/** One bit per pixel: 1 is dark. */
function lightRows(width: number, height: number): Rows {
  const stride = 1 + Math.ceil(width / 8)
  return { width, height, stride, bytes: new Uint8Array(stride * height) }
}

interface Place {
  left: number
  top: number
  /** Pixels on each side of a dot. */
  scale: number
}

function draw({ bytes, stride }: Rows, { size, data }: QrMatrix, place: Place): void {
  const { left, top, scale } = place
  for (let row = 0; row < size; row++) {
    const start = (top + row * scale) * stride
    for (let column = 0; column < size; column++) {
      if (!data[row * size + column]) continue
      const from = left + column * scale
      for (let x = from; x < from + scale; x++) {
        const at = start + 1 + (x >> 3)
        bytes[at] = (bytes[at] ?? 0) | (0x80 >> (x & 7))
      }
    }
    for (let copy = 1; copy < scale; copy++) {
      bytes.copyWithin(start + copy * stride, start, start + stride)
    }
  }
}

type Rgb = readonly [red: number, green: number, blue: number]

/** The chunks of a palette from light to dark in equal steps. */
function palette({ dark, light, transparent }: Colors, count: number): Buffer[] {
  const shares = Array.from({ length: count }, (_, shade) => shade / (count - 1))
  if (transparent) {
    const colors = shares.flatMap(() => [...dark])
    const alphas = shares.map((share) => Math.round(255 * share))
    return [chunk('PLTE', Buffer.from(colors)), chunk('tRNS', Buffer.from(alphas))]
  }
  return [chunk('PLTE', Buffer.from(shares.flatMap((share) => mix(light, dark, share))))]
}

const mix = (from: Rgb, to: Rgb, share: number): number[] =>
  from.map((value, channel) => Math.round(value + ((to[channel] ?? 0) - value) * share))

/** For each byte of eight pixels, the `bits` bytes that say the same in shades. */
function shadeTable(bits: number): Uint8Array {
  const pixelsPerByte = 8 / bits
  const dark = (1 << bits) - 1
  return Uint8Array.from({ length: 256 * bits }, (_, at) => {
    const first = (at % bits) * pixelsPerByte
    let byte = 0
    for (let pixel = first; pixel < first + pixelsPerByte; pixel++) {
      byte = (byte << bits) | ((Math.floor(at / bits) >> (7 - pixel)) & 1 ? dark : 0)
    }
    return byte
  })
}

const SHADE_TABLES: Readonly<Record<number, Uint8Array>> = { 2: shadeTable(2), 4: shadeTable(4) }

/** The same rows with 2 or 4 bits per pixel. */
function inShades({ width, height, bytes: from, stride: fromStride }: Rows, bits: number): Rows {
  const table = SHADE_TABLES[bits] ?? shadeTable(bits)
  const stride = 1 + Math.ceil((width * bits) / 8)
  const bytes = new Uint8Array(stride * height)
  let before: Uint8Array | undefined
  for (let y = 0; y < height; y++) {
    const row = from.subarray(y * fromStride, (y + 1) * fromStride)
    const start = y * stride
    if (before && Buffer.compare(row, before) === 0) {
      bytes.copyWithin(start, start - stride, start)
      continue
    }
    before = row
    for (let x = 0; x < stride - 1; x++) {
      const eight = row[1 + Math.floor(x / bits)] ?? 0
      bytes[start + 1 + x] = table[bits * eight + (x % bits)] ?? 0
    }
  }
  return { width, height, stride, bytes }
}

/** Draws on light pixels of `inShades`. */
function addShades(
  { bytes, stride }: Rows,
  shades: Shades,
  { left, top, bits }: Omit<Place, 'scale'> & { bits: number },
): void {
  for (let y = 0; y < shades.height; y++) {
    const start = (top + y) * stride + 1
    for (let x = 0; x < shades.width; x++) {
      const shade = (shades.data[y * shades.width + x] ?? 0) >> (8 - bits)
      if (shade === 0) continue
      const bit = (left + x) * bits
      const at = start + (bit >> 3)
      bytes[at] = (bytes[at] ?? 0) | (shade << (8 - bits - (bit & 7)))
    }
  }
}

/** The same rows with three bytes per pixel, or with red, green, blue and alpha. */
function inColor(from: Rows, { dark, light, transparent }: Colors): Rows {
  const { width, height } = from
  const darkPixel = transparent ? [...dark, 255] : dark
  const lightPixel = transparent ? [...dark, 0] : light
  const stride = 1 + darkPixel.length * width
  const bytes = new Uint8Array(stride * height)
  let before: Uint8Array | undefined
  for (let y = 0; y < height; y++) {
    const row = from.bytes.subarray(y * from.stride, (y + 1) * from.stride)
    let at = y * stride
    if (before && Buffer.compare(row, before) === 0) {
      bytes.copyWithin(at, at - stride, at)
      continue
    }
    before = row
    at++
    for (let x = 0; x < width; x++) {
      const isDark = ((row[1 + (x >> 3)] ?? 0) & (0x80 >> (x & 7))) !== 0
      for (const value of isDark ? darkPixel : lightPixel) bytes[at++] = value
    }
  }
  return { width, height, stride, bytes }
}

/** Draws on light pixels of `inColor`. */
function blendShades(
  { bytes, stride }: Rows,
  shades: Shades,
  { left, top, colors }: Omit<Place, 'scale'> & { colors: Colors },
): void {
  const { dark, light, transparent } = colors
  const channels = transparent ? 4 : 3
  for (let y = 0; y < shades.height; y++) {
    for (let x = 0; x < shades.width; x++) {
      const shade = shades.data[y * shades.width + x] ?? 0
      const at = (top + y) * stride + 1 + channels * (left + x)
      if (shade === 0) continue
      if (transparent) bytes[at + 3] = shade
      else bytes.set(mix(light, dark, shade / 255), at)
    }
  }
}

/** `middle`: the pixel on both axes around which it is drawn. */
function drawBitmap({ bytes, stride, width }: Rows, bitmap: Bitmap, middle: number): void {
  const channels = (stride - 1) / width
  const left = Math.round(middle - bitmap.width / 2)
  const top = Math.round(middle - bitmap.height / 2)
  for (let y = 0; y < bitmap.height; y++) {
    let at = (top + y) * stride + 1 + channels * left
    const start = 4 * y * bitmap.width
    for (let from = start; from < start + 4 * bitmap.width; from += 4) {
      bytes.set(bitmap.data.subarray(from, from + channels), at)
      at += channels
    }
  }
}

function rgb(color: string): Rgb {
  checkColor(color)
  const value = Number.parseInt(color.slice(1), 16)
  return [value >> 16, (value >> 8) & 0xff, value & 0xff]
}

function png(
  { width, height, bytes }: Rows,
  { bitDepth, colorType, level }: typeof PALETTE,
  ...chunks: Buffer[]
): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([bitDepth, colorType], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    ...chunks,
    chunk('IDAT', deflateSync(bytes, { level })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** A chunk's length, type, data and checksum. The checksum covers the type and the data. */
function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(data.length + 12)
  bytes.writeUInt32BE(data.length, 0)
  bytes.write(type, 4, 'latin1')
  bytes.set(data, 8)
  bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), data.length + 8)
  return bytes
}
