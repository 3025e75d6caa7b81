import type { Dots } from './dots.ts'

/**
 * SVG path data of every outline of the dots, one unit per dot: around dark areas and around the
 * holes in them. `offset`: where the first dot is, on both axes.
 */
export function outlines({ width, height, data }: Dots, offset: number): string {
  const isDark: IsDark = (x, y) =>
    x >= 0 && x < width && y >= 0 && y < height && data[y * width + x] === 1
  const walkedTops = new Uint8Array(width * height)
  const markTop = (x: number, y: number) => {
    walkedTops[y * width + x] = 1
  }
  let path = ''
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      // Every outline runs rightwards along the top edge of some dot.
      const isTop = isDark(x, y) && !isDark(x, y - 1)
      if (isTop && walkedTops[y * width + x] === 0) {
        path += `M${x + offset} ${y + offset}${outline(x, y, isDark, markTop)}z`
      }
    }
  }
  return path
}

type IsDark = (x: number, y: number) => boolean

/** The steps of one outline from the top left corner of a dot, with the dark area on the right. */
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
  return steps.join('')
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
  /** Where the two dots ahead of a corner lie, as offsets from that corner. */
  readonly aheadLeft: readonly [x: number, y: number]
  readonly aheadRight: readonly [x: number, y: number]
}

const RIGHT: Heading = { command: 'h', dx: 1, dy: 0, aheadLeft: [0, -1], aheadRight: [0, 0] }
const DOWN: Heading = { command: 'v', dx: 0, dy: 1, aheadLeft: [0, 0], aheadRight: [-1, 0] }
const LEFT: Heading = { command: 'h', dx: -1, dy: 0, aheadLeft: [-1, 0], aheadRight: [-1, -1] }
const UP: Heading = { command: 'v', dx: 0, dy: -1, aheadLeft: [-1, -1], aheadRight: [0, -1] }
const CLOCKWISE = [RIGHT, DOWN, LEFT, UP]
