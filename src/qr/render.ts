// Only the encoder: the package's own image writers would add 9 MB of memory.
import { create } from 'qrcode/lib/core/qrcode.js'
import { checkColor, type QrOptions } from './options.ts'
import { encodePng, type QrMatrix, QUIET_ZONE_MODULES } from './png.ts'

/**
 * A QR image of `text` at error correction level M, which survives 15 % of damage. Synchronous and
 * pure. A text of up to 180 bytes fits the smallest PNG at one pixel a module or more (version 9
 * has 53 modules, 61 with the quiet zone); throws RangeError for a text too long for the PNG.
 */
export function renderQr(
  text: string,
  { format, size, dark, light }: QrOptions,
): Uint8Array<ArrayBuffer> {
  const { modules } = create(text, { errorCorrectionLevel: 'M' })
  if (format === 'png') return encodePng(modules, { size, dark, light })
  return new TextEncoder().encode(toSvg(modules, dark, light))
}

/**
 * The matrix as an SVG document without a size, one unit a module. The dark areas are outlines and
 * not rows of strokes, so that no renderer shows hairlines between the rows at an odd scale.
 */
function toSvg(matrix: QrMatrix, dark: string, light: string): string {
  checkColor(dark)
  checkColor(light)
  const side = matrix.size + 2 * QUIET_ZONE_MODULES
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${side} ${side}" `,
    'shape-rendering="crispEdges">',
    `<path fill="${light}" d="M0 0h${side}v${side}H0z"/>`,
    `<path fill="${dark}" d="${outlines(matrix)}"/></svg>\n`,
  ].join('')
}

/** Path data of every outline in the matrix: around dark areas and around the holes in them. */
function outlines({ size, data }: QrMatrix): string {
  const isDark: IsDark = (x, y) =>
    x >= 0 && x < size && y >= 0 && y < size && data[y * size + x] === 1
  const walkedTops = new Uint8Array(size * size)
  const markTop = (x: number, y: number) => {
    walkedTops[y * size + x] = 1
  }
  let path = ''
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      // Every outline runs rightwards along the top edge of some module.
      const isTop = isDark(x, y) && !isDark(x, y - 1)
      if (isTop && walkedTops[y * size + x] === 0) path += outline(x, y, isDark, markTop)
    }
  }
  return path
}

type IsDark = (x: number, y: number) => boolean

/** One outline, starting at the top left corner of a module, with the dark area on the right. */
function outline(
  startX: number,
  startY: number,
  isDark: IsDark,
  markTop: (x: number, y: number) => void,
): string {
  const steps: string[] = []
  let [x, y, heading] = [startX, startY, RIGHT]
  do {
    let next = heading
    let length = 0
    while (next === heading) {
      if (heading === RIGHT) markTop(x, y)
      x += heading.dx
      y += heading.dy
      length++
      next = headingAt(x, y, heading, isDark)
    }
    steps.push(`${heading.command}${length * (heading.dx + heading.dy)}`)
    heading = next
  } while (x !== startX || y !== startY || heading !== RIGHT)
  // The closing z draws the last step.
  steps.pop()
  return `M${startX + QUIET_ZONE_MODULES} ${startY + QUIET_ZONE_MODULES}${steps.join('')}z`
}

/** Right at a corner of the dark area, left if dark lies ahead, straight on otherwise. */
function headingAt(x: number, y: number, heading: Heading, isDark: IsDark): Heading {
  const [rightX, rightY] = heading.aheadRight
  const [leftX, leftY] = heading.aheadLeft
  if (!isDark(x + rightX, y + rightY)) return turned(heading, 1)
  return isDark(x + leftX, y + leftY) ? turned(heading, 3) : heading
}

function turned(heading: Heading, quarters: number): Heading {
  return CLOCKWISE[(CLOCKWISE.indexOf(heading) + quarters) % 4] ?? heading
}

interface Heading {
  readonly command: 'h' | 'v'
  readonly dx: number
  readonly dy: number
  /** Where the two modules ahead of a corner lie, as offsets from that corner. */
  readonly aheadLeft: readonly [x: number, y: number]
  readonly aheadRight: readonly [x: number, y: number]
}

const RIGHT: Heading = { command: 'h', dx: 1, dy: 0, aheadLeft: [0, -1], aheadRight: [0, 0] }
const DOWN: Heading = { command: 'v', dx: 0, dy: 1, aheadLeft: [0, 0], aheadRight: [-1, 0] }
const LEFT: Heading = { command: 'h', dx: -1, dy: 0, aheadLeft: [-1, 0], aheadRight: [-1, -1] }
const UP: Heading = { command: 'v', dx: 0, dy: -1, aheadLeft: [-1, -1], aheadRight: [0, -1] }
const CLOCKWISE = [RIGHT, DOWN, LEFT, UP]
