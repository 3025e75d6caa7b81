// Only the encoder: the package's own image writers would add 9 MB of memory.
import { create } from 'qrcode/lib/core/qrcode.js'
import type { QrOptions } from './options.ts'

/** The modules of a QR code in rows from the top left: 1 is dark, 0 is light. */
export interface QrMatrix {
  /** Modules on one side. */
  readonly size: number
  readonly data: Uint8Array
}

export const matrixOf = (text: string, level: QrOptions['level']): QrMatrix =>
  create(text, { errorCorrectionLevel: level }).modules

/** Modules on one side of the image, with the margin: the smallest PNG in pixels. */
export const modulesOf = (text: string, { level, margin }: QrOptions): number =>
  matrixOf(text, level).size + 2 * margin

/**
 * SVG path data of every outline of the modules, one unit per module: around dark areas and around
 * the holes in them. `offset`: where the first module is, on both axes.
 */
export function outlines({ size, data }: QrMatrix, offset: number): string {
  const isDark = (x: number, y: number) =>
    x >= 0 && x < size && y >= 0 && y < size && data[y * size + x] === 1
  /** The modules whose top edge is part of the path. */
  const walked = new Uint8Array(size * size)

  /** One outline from the top left of a module, with the dark area on the right. */
  const outline = (startX: number, startY: number): string => {
    const steps: string[] = []
    let [x, y, dx, dy] = [startX, startY, 1, 0]
    do {
      let [length, isRightDark, isLeftDark] = [0, true, false]
      while (isRightDark && !isLeftDark) {
        if (dx === 1) walked[y * size + x] = 1
        x += dx
        y += dy
        length++
        // The two modules ahead of this corner; the heading is (dx, dy), its right (-dy, dx).
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
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      // Every outline runs rightwards along the top edge of some module.
      const isTop = isDark(x, y) && !isDark(x, y - 1)
      if (isTop && walked[y * size + x] === 0) {
        path += `M${x + offset} ${y + offset}${outline(x, y)}z`
      }
    }
  }
  return path
}
