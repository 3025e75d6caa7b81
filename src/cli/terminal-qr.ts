import { matrixOf } from '../draw/matrix.ts'

/** Modules around the code, as ISO/IEC 18004 demands. */
const MARGIN = 4
/** Of the fixed part of 256 colors: themes change the first 16, and a light code is not read. */
const BLACK_ON_WHITE = '\x1b[38;5;16;48;5;231m'
const RESET = '\x1b[0m'
/** Dark modules: neither, the upper one, the lower one, both. */
const BLOCKS = [' ', '▀', '▄', '█'] as const

/** A QR code as text: each character is two modules, one above the other. */
export function terminalQr(text: string): { width: number; picture: string } {
  const { size, data } = matrixOf(text, 'L')
  const dark = (x: number, y: number): number =>
    x >= 0 && x < size && y >= 0 && y < size ? (data[y * size + x] ?? 0) : 0
  const width = size + 2 * MARGIN
  const lines: string[] = []
  for (let y = -MARGIN; y < size + MARGIN; y += 2) {
    let line = ''
    for (let x = -MARGIN; x < size + MARGIN; x++) {
      line += BLOCKS[dark(x, y) + 2 * dark(x, y + 1)]
    }
    lines.push(BLACK_ON_WHITE + line + RESET)
  }
  return { width, picture: lines.join('\n') }
}
