/**
 * PNG images of QR codes (RFC 2083): one bit per pixel and a palette of two colors; with a logo, 24
 * bits per pixel.
 */

import { crc32, deflateSync } from 'node:zlib'
import { type Caption, layOutCaption } from './caption.ts'
import type { Dots, QrMatrix } from './dots.ts'
import { type Bitmap, blend, fitInto, logoSpan } from './logo.ts'
import { checkColor, type QrOptions } from './options.ts'

/** The light margin that ISO/IEC 18004 asks for on each side of a symbol, in modules. */
export const QUIET_ZONE_MODULES = 4

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
const PALETTE = { bitDepth: 1, colorType: 3 }
const RGB = { bitDepth: 8, colorType: 2 }
/**
 * The best compression level at 2048 pixels: 1 writes 4 times the bytes, 7 takes 2.3 times as long.
 */
const PALETTE_LEVEL = 6
const RGB_LEVEL = 3

/** The image is too small. `sizeMin`: pixels that it needs, one for each module. */
export class SizeError extends RangeError {
  readonly sizeMin: number

  constructor(size: number, sizeMin: number) {
    super(`${size} pixels cannot hold ${sizeMin} modules`)
    this.sizeMin = sizeMin
  }
}

interface PngOptions extends Pick<QrOptions, 'size' | 'dark' | 'light'> {
  /** Light modules on each side. Default: the quiet zone of the standard. */
  margin?: number
  /** Text below the code. */
  caption?: string
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
  const { size, dark, light, margin = QUIET_ZONE_MODULES, caption: text = '', logo } = options
  const modules = matrix.size + 2 * margin
  const scale = Math.floor(size / modules)
  if (!Number.isInteger(size) || scale < 1) {
    throw new SizeError(size, modules)
  }
  const caption = text === '' ? undefined : layOutCaption(text, captionSpace(size, scale))
  const height = size + (caption ? caption.dots.height * caption.scale : 0)
  const colors = { dark: rgb(dark), light: rgb(light) }
  const canvas = logo ? new RgbCanvas(size, height, colors) : new BitCanvas(size, height)
  const offset = offsetOf(size, { codeSize: matrix.size * scale, scale, margin })
  const code = { width: matrix.size, height: matrix.size, data: matrix.data }
  draw(canvas, code, { left: offset, top: offset, scale })
  if (caption) drawCaption(canvas, caption, size)
  if (logo && canvas instanceof RgbCanvas) {
    // Half a module of light around the logo.
    const side = (logoSpan(matrix.size) - 1) * scale
    const middle = offset + (matrix.size * scale) / 2
    canvas.drawLogo(logo, { middle, side })
  }
  const format = logo ? RGB : PALETTE
  return join([
    SIGNATURE,
    ...chunk('IHDR', header(size, height, format)),
    ...(logo ? [] : chunk('PLTE', Uint8Array.of(...colors.light, ...colors.dark))),
    ...chunk('IDAT', deflateSync(canvas.bytes, { level: logo ? RGB_LEVEL : PALETTE_LEVEL })),
    ...chunk('IEND', new Uint8Array(0)),
  ])
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

function header(width: number, height: number, format: typeof PALETTE): Uint8Array {
  const bytes = new Uint8Array(13)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, width)
  view.setUint32(4, height)
  bytes[8] = format.bitDepth
  bytes[9] = format.colorType
  return bytes
}

/**
 * Every pixel row, preceded by its filter byte, all light at first. The filter is always None: rows
 * repeat `scale` times, and deflate copies a whole row faster and in fewer bytes than it encodes
 * the zeros of filter Up.
 */
interface Canvas {
  readonly bytes: Uint8Array
  /** Bytes of a row with its filter byte. */
  readonly stride: number
  /** Makes `count` pixels of row `y` dark, from pixel `x`. */
  darken(y: number, x: number, count: number): void
}

/** One bit per pixel: 1 is dark. */
class BitCanvas implements Canvas {
  readonly bytes: Uint8Array
  readonly stride: number

  constructor(width: number, height: number) {
    this.stride = 1 + Math.ceil(width / 8)
    this.bytes = new Uint8Array(this.stride * height)
  }

  darken(y: number, x: number, count: number): void {
    const row = this.bytes.subarray(y * this.stride + 1, (y + 1) * this.stride)
    // Bit 0 is the highest of the first byte.
    for (let at = x; at < x + count; at++) {
      row[at >> 3] = (row[at >> 3] ?? 0) | (0x80 >> (at & 7))
    }
  }
}

type Rgb = readonly [red: number, green: number, blue: number]

class RgbCanvas implements Canvas {
  readonly bytes: Uint8Array
  readonly stride: number
  readonly #colors: { dark: Rgb; light: Rgb }

  constructor(width: number, height: number, colors: { dark: Rgb; light: Rgb }) {
    this.stride = 1 + 3 * width
    this.bytes = new Uint8Array(this.stride * height)
    this.#colors = colors
    this.#fill(1, width, colors.light)
    repeatRow(this, 0, height)
  }

  darken(y: number, x: number, count: number): void {
    this.#fill(y * this.stride + 1 + 3 * x, count, this.#colors.dark)
  }

  /** A square of `side` pixels around `middle`, where all pixels are light. */
  drawLogo(logo: Bitmap, { middle, side }: { middle: number; side: number }): void {
    const fitted = fitInto(logo, side)
    const left = Math.round(middle - fitted.width / 2)
    const top = Math.round(middle - fitted.height / 2)
    blend(fitted, this.#colors.light)
    for (let y = 0; y < fitted.height; y++) {
      let at = (top + y) * this.stride + 1 + 3 * left
      const start = 4 * y * fitted.width
      for (let from = start; from < start + 4 * fitted.width; from += 4) {
        this.bytes.set(fitted.data.subarray(from, from + 3), at)
        at += 3
      }
    }
  }

  #fill(start: number, count: number, color: Rgb): void {
    for (let at = start; at < start + 3 * count; at += 3) this.bytes.set(color, at)
  }
}

interface Place {
  left: number
  top: number
  /** Pixels on each side of a dot. */
  scale: number
}

function draw(canvas: Canvas, { width, height, data }: Dots, { left, top, scale }: Place): void {
  for (let row = 0; row < height; row++) {
    const y = top + row * scale
    for (let column = 0; column < width; column++) {
      if (data[row * width + column]) canvas.darken(y, left + column * scale, scale)
    }
    repeatRow(canvas, y, scale)
  }
}

function drawCaption(canvas: Canvas, { dots, scale }: Caption, size: number): void {
  draw(canvas, dots, { left: Math.floor((size - dots.width * scale) / 2), top: size, scale })
}

/** Copies row `y` down, so that `times` rows are alike. */
function repeatRow({ bytes, stride }: Canvas, y: number, times: number): void {
  for (let copy = 1; copy < times; copy++) {
    bytes.copyWithin((y + copy) * stride, y * stride, (y + 1) * stride)
  }
}

function rgb(color: string): Rgb {
  checkColor(color)
  const value = Number.parseInt(color.slice(1), 16)
  return [value >> 16, (value >> 8) & 0xff, value & 0xff]
}

/** A chunk's length, type, data and checksum. The checksum covers the type and the data. */
function chunk(type: string, data: Uint8Array): Uint8Array[] {
  const typeBytes = new TextEncoder().encode(type)
  return [uint32(data.length), typeBytes, data, uint32(crc32(data, crc32(typeBytes)))]
}

function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let offset = 0
  for (const part of parts) {
    joined.set(part, offset)
    offset += part.length
  }
  return joined
}
