import type { Outline } from './outline.ts'

/** A picture in shades: 0 is untouched, 255 is covered, row by row. */
export interface Shades {
  width: number
  height: number
  data: Uint8Array
}

/** Straight parts of a curve: one for every few pixels of its length. */
const partsOf = (length: number): number => Math.min(12, Math.max(2, Math.ceil(length / 4)))

/**
 * The share of each pixel that the outline covers. The unit is the pixel, and the outline is inside
 * of the picture. Each edge adds the area between itself and the right end of its row, with the
 * sign of its direction; the running sum of a row is then the coverage (the method of font-rs).
 */
export function fillOutline({ commands, points }: Outline, width: number, height: number): Shades {
  const areas = new Float32Array(width * (height + 1) + 2)
  let [at, startX, startY, x, y] = [0, 0, 0, 0, 0]
  const lineTo = (toX: number, toY: number) => {
    if (y < toY) addEdge(areas, width, x, y, toX, toY, 1)
    else if (y > toY) addEdge(areas, width, toX, toY, x, y, -1)
    x = toX
    y = toY
  }
  for (const command of commands) {
    const [a = 0, b = 0] = [points[at], points[at + 1]]
    if (command === 'M') {
      startX = x = a
      startY = y = b
    } else if (command === 'L') {
      lineTo(a, b)
    } else if (command === 'Z') {
      lineTo(startX, startY)
      continue
    } else {
      const [fromX, fromY] = [x, y]
      const [toX = 0, toY = 0] = [points[at + 2], points[at + 3]]
      const parts = partsOf(Math.abs(toX - fromX) + Math.abs(toY - fromY))
      for (let part = 1; part <= parts; part++) {
        const t = part / parts
        const [before, middle, after] = [(1 - t) * (1 - t), 2 * t * (1 - t), t * t]
        lineTo(before * fromX + middle * a + after * toX, before * fromY + middle * b + after * toY)
      }
      at += 2
    }
    at += 2
  }
  return { width, height, data: coverage(areas, width, height) }
}

function coverage(areas: Float32Array, width: number, height: number): Uint8Array {
  const data = new Uint8Array(width * height)
  for (let row = 0; row < height; row++) {
    let sum = 0
    for (let at = row * width; at < (row + 1) * width; at++) {
      sum += areas[at] ?? 0
      data[at] = Math.min(255, Math.round(255 * Math.abs(sum)))
    }
  }
  return data
}

/** An edge downwards. `sign`: 1 if the outline has that direction, else -1. */
function addEdge(
  areas: Float32Array,
  width: number,
  fromX: number,
  fromY: number,
  toX: number,
  toY: number,
  sign: number,
): void {
  const slope = (toX - fromX) / (toY - fromY)
  let x = fromX
  for (let row = Math.floor(fromY); row < toY; row++) {
    const part = Math.min(row + 1, toY) - Math.max(row, fromY)
    const next = x + slope * part
    addSlice(areas, row * width, Math.min(x, next), Math.max(x, next), sign * part)
    x = next
  }
}

/** Spreads the area of an edge over the pixels of one row. `area`: its height with its sign. */
function addSlice(
  areas: Float32Array,
  start: number,
  left: number,
  right: number,
  area: number,
): void {
  let pixel = Math.floor(left)
  let before = 0
  // What is to the right of the edge: of pixels that it crosses, a growing part.
  for (; pixel < right; pixel++) {
    const covered = area * coveredShare(left, right, pixel)
    areas[start + pixel] = (areas[start + pixel] ?? 0) + covered - before
    before = covered
  }
  areas[start + pixel] = (areas[start + pixel] ?? 0) + area - before
}

/** Share of a pixel to the right of an edge that crosses its row from `left` to `right`. */
function coveredShare(left: number, right: number, pixel: number): number {
  if (right <= pixel + 1 && left >= pixel) return pixel + 1 - (left + right) / 2
  return progress(left, right, pixel + 1) - progress(left, right, pixel)
}

/** Area up to `x` to the right of the edge. */
function progress(left: number, right: number, x: number): number {
  if (x <= left) return 0
  if (x >= right) return x - (left + right) / 2
  return (x - left) ** 2 / (2 * (right - left))
}
