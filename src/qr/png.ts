/**
 * PNG images of QR codes (RFC 2083): one bit per pixel and a palette of two colors; with a logo, 24
 * bits per pixel.
 */

import { crc32, deflateSync } from 'node:zlib'
import { layOutCaption } from './caption.ts'
import type { Dots, QrMatrix } from './dots.ts'
import { type Bitmap, blend, fitInto, logoSpan } from './logo.ts'
import { checkColor, type QrOptions } from './options.ts'

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
/**
 * The best compression level at 2048 pixels: 1 writes 4 times the bytes, 7 takes 2.3 times as long.
 */
const PALETTE = { bitDepth: 1, colorType: 3, level: 6 }
const RGB = { bitDepth: 8, colorType: 2, level: 3 }

/** The image is too small. `sizeMin`: pixels that it needs, one for each module. */
export class SizeError extends RangeError {
  readonly sizeMin: number

  constructor(size: number, sizeMin: number) {
    super(`${size} pixels cannot hold ${sizeMin} modules`)
    this.sizeMin = sizeMin
  }
}

interface PngOptions extends Pick<QrOptions, 'size' | 'dark' | 'light' | 'margin' | 'caption'> {
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
  const { size, margin, caption: text, logo } = options
  const modules = matrix.size + 2 * margin
  const scale = Math.floor(size / modules)
  if (!Number.isInteger(size) || scale < 1) {
    throw new SizeError(size, modules)
  }
  const caption = text === '' ? undefined : layOutCaption(text, captionSpace(size, scale))
  const height = size + (caption ? caption.dots.height * caption.scale : 0)
  const codeSize = matrix.size * scale
  const offset = offsetOf(size, { codeSize, scale, margin })
  const colors = { dark: rgb(options.dark), light: rgb(options.light) }
  const rows = lightRows(size, height)
  const code = { width: matrix.size, height: matrix.size, data: matrix.data }
  draw(rows, code, { left: offset, top: offset, scale })
  if (caption) {
    const left = Math.floor((size - caption.dots.width * caption.scale) / 2)
    draw(rows, caption.dots, { left, top: size, scale: caption.scale })
  }
  if (!logo) return png(rows, PALETTE, chunk('PLTE', Buffer.of(...colors.light, ...colors.dark)))
  const colored = inColor(rows, colors)
  // Half a module of light around the logo.
  const side = (logoSpan(matrix.size) - 1) * scale
  const fitted = fitInto(logo, side)
  blend(fitted, colors.light)
  drawBitmap(colored, fitted, offset + codeSize / 2)
  return png(colored, RGB)
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

/** Dots of a half to a quarter of a module, at least one pixel. */
const captionSpace = (width: number, scale: number) => ({
  width,
  dotMin: Math.max(1, Math.floor(scale / 4)),
  dotMax: Math.max(1, Math.floor(scale / 2)),
})

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

function draw(
  { bytes, stride }: Rows,
  { width, height, data }: Dots,
  { left, top, scale }: Place,
): void {
  for (let row = 0; row < height; row++) {
    const start = (top + row * scale) * stride
    for (let column = 0; column < width; column++) {
      if (!data[row * width + column]) continue
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

/** The same rows with three bytes per pixel. */
function inColor(from: Rows, { dark, light }: { dark: Rgb; light: Rgb }): Rows {
  const { width, height } = from
  const stride = 1 + 3 * width
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
      const color = isDark ? dark : light
      bytes[at++] = color[0]
      bytes[at++] = color[1]
      bytes[at++] = color[2]
    }
  }
  return { width, height, stride, bytes }
}

/** `middle`: the pixel on both axes around which it is drawn. */
function drawBitmap({ bytes, stride }: Rows, bitmap: Bitmap, middle: number): void {
  const left = Math.round(middle - bitmap.width / 2)
  const top = Math.round(middle - bitmap.height / 2)
  for (let y = 0; y < bitmap.height; y++) {
    let at = (top + y) * stride + 1 + 3 * left
    const start = 4 * y * bitmap.width
    for (let from = start; from < start + 4 * bitmap.width; from += 4) {
      bytes.set(bitmap.data.subarray(from, from + 3), at)
      at += 3
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
  ...palette: Buffer[]
): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([bitDepth, colorType], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    ...palette,
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
