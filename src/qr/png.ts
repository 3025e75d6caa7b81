/** A PNG of exactly two colors, for QR codes: one bit a pixel, a palette, no filters (RFC 2083). */

import { crc32, deflateSync } from 'node:zlib'
import { checkColor, type QrOptions } from './options.ts'

/** The light margin that ISO/IEC 18004 asks for on each side of a symbol, in modules. */
export const QUIET_ZONE_MODULES = 4

/** A square of modules, row by row from the top left: 1 is dark, 0 is light. */
export interface QrMatrix {
  /** Modules on one side. */
  readonly size: number
  readonly data: Uint8Array
}

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
const BIT_DEPTH = 1
const COLOR_TYPE_PALETTE = 3

/**
 * The matrix as an image of `size` by `size` pixels. A module has the largest whole number of
 * pixels that leaves room for the quiet zone; the four margins share the rest evenly. The bytes
 * have their own ArrayBuffer, so they can be transferred to another thread. Throws RangeError if
 * `size` leaves less than one pixel per module, or if a color is malformed.
 */
export function encodePng(
  matrix: QrMatrix,
  { size, dark, light }: Pick<QrOptions, 'size' | 'dark' | 'light'>,
): Uint8Array<ArrayBuffer> {
  const scale = Math.floor(size / (matrix.size + 2 * QUIET_ZONE_MODULES))
  if (!Number.isInteger(size) || scale < 1) {
    throw new RangeError(`${size} pixels cannot hold ${matrix.size} modules and their quiet zone`)
  }
  // The best trade-off at 2048 pixels: level 1 writes 4 times the bytes, 7 takes 2.3 times as long.
  const pixels = deflateSync(scanlines(matrix, size, scale), { level: 6 })
  return join([
    SIGNATURE,
    ...chunk('IHDR', header(size)),
    ...chunk('PLTE', Uint8Array.of(...rgb(light), ...rgb(dark))),
    ...chunk('IDAT', pixels),
    ...chunk('IEND', new Uint8Array(0)),
  ])
}

function header(size: number): Uint8Array {
  const bytes = new Uint8Array(13)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, size)
  view.setUint32(4, size)
  bytes[8] = BIT_DEPTH
  bytes[9] = COLOR_TYPE_PALETTE
  return bytes
}

/**
 * Every pixel row, preceded by its filter byte. The filter is always None: rows repeat `scale`
 * times, and deflate copies a whole row faster and in fewer bytes than it encodes the zeros of
 * filter Up.
 */
function scanlines({ size: modules, data }: QrMatrix, size: number, scale: number): Uint8Array {
  const stride = 1 + Math.ceil(size / 8)
  const margin = Math.floor((size - modules * scale) / 2)
  const bytes = new Uint8Array(stride * size)
  for (let row = 0; row < modules; row++) {
    const start = (margin + row * scale) * stride
    const pixels = bytes.subarray(start + 1, start + stride)
    for (let column = 0; column < modules; column++) {
      if (data[row * modules + column]) darken(pixels, margin + column * scale, scale)
    }
    for (let copy = 1; copy < scale; copy++) {
      bytes.copyWithin(start + copy * stride, start, start + stride)
    }
  }
  return bytes
}

/** Sets `count` bits from bit `from`, where bit 0 is the highest of the first byte. */
function darken(pixels: Uint8Array, from: number, count: number): void {
  for (let x = from; x < from + count; x++) {
    pixels[x >> 3] = (pixels[x >> 3] ?? 0) | (0x80 >> (x & 7))
  }
}

function rgb(color: string): [number, number, number] {
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
