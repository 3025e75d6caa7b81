import type { Dots } from './dots.ts'

/**
 * SVG path data of every outline of the dots, one unit per dot: around dark areas and around the
 * holes in them. `offset`: where the first dot is, on both axes.
 */
export function outlines({ width, height, data }: Dots, offset: number): string {
  const isDark = (x: number, y: number) =>
    x >= 0 && x < width && y >= 0 && y < height && data[y * width + x] === 1
  /** The dots whose top edge is part of the path. */
  const walked = new Uint8Array(width * height)

  /** The steps of one outline from the top left of a dot, with the dark area on the right. */
  const outline = (startX: number, startY: number): string => {
    const steps: string[] = []
    let [x, y, dx, dy] = [startX, startY, 1, 0]
    do {
      let [length, isRightDark, isLeftDark] = [0, true, false]
      while (isRightDark && !isLeftDark) {
        if (dx === 1) walked[y * width + x] = 1
        x += dx
        y += dy
        length++
        // The two dots ahead of this corner, in the heading (dx, dy) with (-dy, dx) on its right.
        isRightDark = isDark(x + (dx - dy - 1) / 2, y + (dy + dx - 1) / 2)
        isLeftDark = isDark(x + (dx + dy - 1) / 2, y + (dy - dx - 1) / 2)
      }
      steps.push(`${dx === 0 ? 'v' : 'h'}${length * (dx + dy)}`)
      // Right at a corner of the dark area, left if dark lies ahead.
      const turn = isRightDark ? -1 : 1
      const before = dx
      dx = -dy * turn
      dy = before * turn
    } while (x !== startX || y !== startY || dx !== 1)
    // The closing z draws the last step.
    steps.pop()
    return steps.join('')
  }

  let path = ''
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      // Every outline runs rightwards along the top edge of some dot.
      const isTop = isDark(x, y) && !isDark(x, y - 1)
      if (isTop && walked[y * width + x] === 0) {
        path += `M${x + offset} ${y + offset}${outline(x, y)}z`
      }
    }
  }
  return path
}
