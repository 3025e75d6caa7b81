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
 * The share of each pixel that the outline covers. The unit is the pixel. What is outside of the
 * picture, such as the end of a slanted letter, is moved to its edge. Each edge of the outline adds
 * the area between itself and the right end of its row, with the sign of its direction; the running
 * sum of a row is then the coverage (the method of font-rs).
 */
export function fillOutline({ commands, points }: Outline, width: number, height: number): Shades {
  // What is to the right of the last pixel has a place of its own.
  const stride = width + 2
  const areas = new Float32Array(stride * (height + 1))
  let [at, startX, startY, x, y] = [0, 0, 0, 0, 0]
  const inX = (value: number) => Math.min(width, Math.max(0, value))
  const inY = (value: number) => Math.min(height, Math.max(0, value))
  const lineTo = (givenX: number, givenY: number) => {
    const [toX, toY] = [inX(givenX), inY(givenY)]
    if (y < toY) addEdge(areas, stride, x, y, toX, toY, 1)
    else if (y > toY) addEdge(areas, stride, toX, toY, x, y, -1)
    x = toX
    y = toY
  }
  for (const command of commands) {
    const [a = 0, b = 0] = [points[at], points[at + 1]]
    if (command === 'M') {
      startX = x = inX(a)
      startY = y = inY(b)
    } else if (command === 'L') {
      lineTo(a, b)
    } else if (command === 'Z') {
      lineTo(startX, startY)
      continue
    } else {
      const end = command === 'Q' ? at + 2 : at + 4
      const curve = [x, y, ...points.slice(at, end + 2)]
      const bend = command === 'Q' ? quadraticAt : cubicAt
      const [toX = 0, toY = 0] = [points[end], points[end + 1]]
      const parts = partsOf(Math.abs(toX - x) + Math.abs(toY - y))
      for (let part = 1; part <= parts; part++) {
        lineTo(bend(curve, part / parts, 0), bend(curve, part / parts, 1))
      }
      at = end
    }
    at += 2
  }
  return { width, height, data: coverage(areas, width, height) }
}

/** One axis of a curve. `points`: its start, its control points and its end; `t`: 0 to 1. */
function quadraticAt(points: readonly number[], t: number, axis: number): number {
  const [a = 0, b = 0, c = 0] = [points[axis], points[axis + 2], points[axis + 4]]
  return (1 - t) * (1 - t) * a + 2 * t * (1 - t) * b + t * t * c
}

const cubicAt = (points: readonly number[], t: number, axis: number): number =>
  (1 - t) * quadraticAt(points, t, axis) + t * quadraticAt(points, t, axis + 2)

function coverage(areas: Float32Array, width: number, height: number): Uint8Array {
  const data = new Uint8Array(width * height)
  for (let row = 0; row < height; row++) {
    let sum = 0
    for (let x = 0; x < width; x++) {
      sum += areas[row * (width + 2) + x] ?? 0
      data[row * width + x] = Math.min(255, Math.round(255 * Math.abs(sum)))
    }
  }
  return data
}

/** An edge downwards. `sign`: 1 if the outline has that direction, else -1. */
function addEdge(
  areas: Float32Array,
  stride: number,
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
    addSlice(areas, row * stride, Math.min(x, next), Math.max(x, next), sign * part)
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
