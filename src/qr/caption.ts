/** The text below a QR code, as dots: both formats draw it like modules, without a font. */

import { GLYPH_ROWS, glyphOf } from './caption-font.ts'
import type { Dots } from './dots.ts'

const LETTER_GAP_DOTS = 1
const LINE_GAP_DOTS = 2
/** Space above and below the text. */
const PADDING_DOTS = 3

interface CaptionSpace {
  /** Width in the unit of the drawing: pixels, or parts of a module. */
  width: number
  /** Size of a dot in that unit: the largest from `dotMin` to `dotMax` at which the text fits. */
  dotMin: number
  dotMax: number
}

export interface Caption {
  /** Lines of text with the space around them, at most `width` wide. */
  dots: Dots
  /** Size of a dot. */
  scale: number
}

/** `text`: printable ASCII. Text too long for one line of the smallest dots is wrapped. */
export function layOutCaption(text: string, { width, dotMin, dotMax }: CaptionSpace): Caption {
  const fitting = Math.floor(width / widthOf(text))
  const scale = Math.max(dotMin, Math.min(dotMax, fitting))
  const columns = Math.floor(width / scale)
  return { dots: drawLines(wrap(text, columns), columns), scale }
}

/** Dots of a text on one line. */
function widthOf(text: string): number {
  let width = -LETTER_GAP_DOTS
  for (const character of text) width += glyphOf(character).length + LETTER_GAP_DOTS
  return width
}

/** Lines of at most `columns` dots, broken at a space if there is one. */
function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  let rest = text
  while (widthOf(rest) > columns) {
    let end = 1
    while (widthOf(rest.slice(0, end + 1)) <= columns) end++
    const space = rest.lastIndexOf(' ', end)
    if (space > 0) end = space
    lines.push(rest.slice(0, end).trim())
    rest = rest.slice(end).trim()
  }
  return [...lines, rest]
}

function drawLines(lines: readonly string[], width: number): Dots {
  const lineHeight = GLYPH_ROWS + LINE_GAP_DOTS
  const height = lines.length * lineHeight - LINE_GAP_DOTS + 2 * PADDING_DOTS
  const data = new Uint8Array(width * height)
  for (const [index, line] of lines.entries()) {
    const top = PADDING_DOTS + index * lineHeight
    let x = Math.floor((width - widthOf(line)) / 2)
    for (const character of line) {
      for (const column of glyphOf(character)) {
        for (let row = 0; row < GLYPH_ROWS; row++) {
          data[(top + row) * width + x] = (column >> row) & 1
        }
        x++
      }
      x += LETTER_GAP_DOTS
    }
  }
  return { width, height, data }
}
