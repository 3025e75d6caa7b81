/** The logo in the middle of a QR code. */

import { PNG } from 'pngjs'
import type { QrMatrix } from './matrix.ts'

export interface Bitmap {
  width: number
  height: number
  /** Red, green, blue, alpha of each pixel, row by row. */
  data: Uint8Array
}

/** A logo as it is stored: `png` was written by this service. */
export interface Logo {
  png: Uint8Array
  bitmap: Bitmap
}

/** Pixels of the longer side of a stored logo. It covers a quarter of the largest image. */
export const LOGO_SIDE_PX = 512

/** Throws if the bytes are not a complete PNG. */
export function readPng(bytes: Uint8Array): Bitmap {
  const { width, height, data } = PNG.sync.read(Buffer.from(bytes))
  return { width, height, data }
}

export function writePng({ width, height, data }: Bitmap): Uint8Array {
  const image = new PNG({ width, height })
  image.data = Buffer.from(data)
  return PNG.sync.write(image)
}

/**
 * Modules on each side of the light square behind the logo: odd like the code's own side, so that
 * it is centered. It covers 8 % of the code, and level H restores 30 %.
 */
export function logoSpan(modules: number): number {
  const span = Math.floor(modules * 0.29)
  return span % 2 === 0 ? span - 1 : span
}

/** Makes the square in the middle light. */
export function clearMiddle({ size, data }: QrMatrix, span: number): void {
  const start = (size - span) / 2
  for (let row = start; row < start + span; row++) {
    data.fill(0, row * size + start, row * size + start + span)
  }
}

/** The largest size with the shape of the bitmap in a square. */
export function placeIn({ width, height }: Pick<Bitmap, 'width' | 'height'>, side: number) {
  const scale = side / Math.max(width, height)
  return { width: width * scale, height: height * scale }
}

/**
 * The bitmap at its largest size in a square of `side` pixels. Each pixel is the average of those
 * that it replaces, weighted by their alpha.
 */
export function fitInto(from: Bitmap, side: number): Bitmap {
  const exact = placeIn(from, side)
  const width = Math.max(1, Math.round(exact.width))
  const height = Math.max(1, Math.round(exact.height))
  const data = new Uint8Array(4 * width * height)
  const columns = rangesOf(from.width, width)
  const rows = rangesOf(from.height, height)
  let at = 0
  for (const [top, bottom] of rows) {
    for (const [left, right] of columns) {
      let [red, green, blue, alpha] = [0, 0, 0, 0]
      for (let y = top; y < bottom; y++) {
        const end = 4 * (y * from.width + right)
        for (let i = 4 * (y * from.width + left); i < end; i += 4) {
          const weight = from.data[i + 3] ?? 0
          red += (from.data[i] ?? 0) * weight
          green += (from.data[i + 1] ?? 0) * weight
          blue += (from.data[i + 2] ?? 0) * weight
          alpha += weight
        }
      }
      const total = alpha || 1
      data[at++] = red / total
      data[at++] = green / total
      data[at++] = blue / total
      data[at++] = alpha / ((bottom - top) * (right - left))
    }
  }
  return { width, height, data }
}

/** For each of `to` pixels, the range of the `from` pixels that it replaces: at least one. */
function rangesOf(from: number, to: number): [start: number, end: number][] {
  return Array.from({ length: to }, (_, i) => {
    const start = Math.min(from - 1, Math.floor((i * from) / to))
    return [start, Math.max(start + 1, Math.floor(((i + 1) * from) / to))]
  })
}

/** Makes the bitmap opaque, on a background of one color. */
export function blend({ data }: Bitmap, ground: readonly [number, number, number]): void {
  for (let i = 0; i < data.length; i += 4) {
    const alpha = (data[i + 3] ?? 0) / 255
    for (let channel = 0; channel < 3; channel++) {
      const color = data[i + channel] ?? 0
      data[i + channel] = Math.round(color * alpha + (ground[channel] ?? 0) * (1 - alpha))
    }
    data[i + 3] = 255
  }
}
