/** Labels with QR codes on sheets of paper. All lengths are millimetres. */

import type { Logo } from './logo.ts'
import { matrixOf } from './modules.ts'
import type { QrOptions } from './options.ts'
import { pathOf } from './outline.ts'
import { drawQr, type Page, type Picture, type PlacedPicture, type Shape } from './picture.ts'
import { findMissing, place, setLine } from './typeface.ts'

export const PAPERS = {
  a4: { name: 'A4', width: 210, height: 297 },
  letter: { name: 'Letter', width: 215.9, height: 279.4 },
} as const

export type Paper = keyof typeof PAPERS

/** Labels in columns and rows, from the top left of the sheet. */
export interface Grid {
  paper: Paper
  columns: number
  rows: number
  /** From the edges of the paper to the first label. */
  left: number
  top: number
  width: number
  height: number
  /** Between labels. */
  gapX: number
  gapY: number
}

/** Common sheets of labels, by the number on their package. */
export const FORMATS: Readonly<Record<string, { name: string; grid: Grid }>> = {
  l7160: {
    name: 'Avery L7160, A4: 21 of 63.5 × 38.1 mm',
    grid: gridOf('a4', [3, 7], { left: 7.25, top: 15.15, width: 63.5, height: 38.1, gapX: 2.5 }),
  },
  l7163: {
    name: 'Avery L7163, A4: 14 of 99.1 × 38.1 mm',
    grid: gridOf('a4', [2, 7], { left: 4.65, top: 15.15, width: 99.1, height: 38.1, gapX: 2.5 }),
  },
  3475: {
    name: 'Avery Zweckform 3475, A4: 24 of 70 × 36 mm',
    grid: gridOf('a4', [3, 8], { left: 0, top: 4.5, width: 70, height: 36 }),
  },
  5160: {
    name: 'Avery 5160, Letter: 30 of 2⅝ × 1 in',
    grid: gridOf('letter', [3, 10], {
      left: 4.76,
      top: 12.7,
      width: 66.68,
      height: 25.4,
      gapX: 3.17,
    }),
  },
  5163: {
    name: 'Avery 5163, Letter: 10 of 4 × 2 in',
    grid: gridOf('letter', [2, 5], {
      left: 3.97,
      top: 12.7,
      width: 101.6,
      height: 50.8,
      gapX: 4.76,
    }),
  },
}

type Lengths = Pick<Grid, 'left' | 'top' | 'width' | 'height'> & { gapX?: number }

function gridOf(paper: Paper, [columns, rows]: [number, number], lengths: Lengths): Grid {
  return { paper, columns, rows, gapX: 0, gapY: 0, ...lengths }
}

/** A grid that fills the paper between equal margins. */
export function evenGrid({
  paper,
  columns,
  rows,
  margin,
  gap,
}: Pick<Grid, 'paper' | 'columns' | 'rows'> & { margin: number; gap: number }): Grid {
  const side = (length: number, count: number) => (length - 2 * margin - (count - 1) * gap) / count
  const width = side(PAPERS[paper].width, columns)
  const height = side(PAPERS[paper].height, rows)
  return { paper, columns, rows, left: margin, top: margin, width, height, gapX: gap, gapY: gap }
}

export interface Label {
  /** The text in the code. */
  text: string
  /** Empty texts are left out. */
  title: string
  caption: string
  address: string
}

export interface Sheet {
  grid: Grid
  hasCropMarks: boolean
  options: QrOptions
  /** From the first label of this page; undefined for a place that is left out. */
  labels: readonly (Label | undefined)[]
}

/** The smallest label has room for a code of this width. */
export const LABEL_SIDE_MIN_MM = 15
const PADDING_MM = 1
const TYPE_MM = { title: 3.6, caption: 3.2, address: 2.7 }
const LINE_HEIGHT = 1.3
const TEXT_COLOR = '#18181b'

/** One page of labels. */
export function layOutSheet(sheet: Sheet, logo?: Logo): Page {
  const { grid, labels, hasCropMarks, options } = sheet
  const pictures = labels.flatMap((label, at) => {
    if (!label) return []
    const x = grid.left + (at % grid.columns) * (grid.width + grid.gapX)
    const y = grid.top + Math.floor(at / grid.columns) * (grid.height + grid.gapY)
    return layOutLabel(label, { x, y, width: grid.width, height: grid.height }, { options, logo })
  })
  const { width, height } = PAPERS[grid.paper]
  const marks = { picture: cropMarks(grid), x: 0, y: 0, scale: 1 }
  return { width, height, pictures: hasCropMarks ? [...pictures, marks] : pictures }
}

interface Box {
  x: number
  y: number
  width: number
  height: number
}

type TextLine = { text: string; size: number }

/** Narrower codes are hard to read: texts leave it this width, and 0.45 mm a module. */
const CODE_SIDE_MIN_MM = 15
const MODULE_MIN_MM = 0.45

/** The texts are beside the code on a wide label, and below it on others. */
function layOutLabel(
  label: Label,
  box: Box,
  { options, logo }: { options: QrOptions; logo: Logo | undefined },
): PlacedPicture[] {
  const inner = {
    x: box.x + PADDING_MM,
    y: box.y + PADDING_MM,
    width: box.width - 2 * PADDING_MM,
    height: box.height - 2 * PADDING_MM,
  }
  const { level } = options
  const picture = drawQr(matrixOf(label.text, level), { ...options, caption: '', logo })
  const isWide = inner.width > 1.35 * inner.height
  const sideMin = Math.max(CODE_SIDE_MIN_MM, picture.width * MODULE_MIN_MM)
  const sideBeside = Math.min(inner.height, Math.max(inner.width / 2, sideMin))
  const textWidth = inner.width - (isWide ? sideBeside : 0)
  const room = inner.height - (isWide ? 0 : Math.min(inner.width, sideMin))
  const lines = fittingLines(label, { width: textWidth - 1, height: room })
  const textHeight = heightOf(lines)
  const side = isWide ? sideBeside : Math.min(inner.width, inner.height - textHeight)
  const codeX = isWide ? inner.x : inner.x + (inner.width - side) / 2
  const used = side + (isWide ? 0 : textHeight)
  const codeY = inner.y + (inner.height - used) / 2
  const textX = isWide ? inner.x + side + 1 : inner.x
  const textY = isWide ? inner.y + (inner.height - textHeight) / 2 : codeY + side
  const align = isWide ? 0 : 0.5
  return [
    { picture, x: codeX, y: codeY, scale: side / picture.width },
    { picture: drawText(lines, textWidth - 1, align), x: textX, y: textY, scale: 1 },
  ]
}

const heightOf = (lines: readonly TextLine[]): number =>
  lines.reduce((sum, { size }) => sum + size * LINE_HEIGHT, 0)

/** The lines that fit: each text has one line if all have no room, then the last texts go. */
function fittingLines(label: Label, room: { width: number; height: number }): TextLine[] {
  const texts = (['title', 'caption', 'address'] as const).filter((name) => label[name] !== '')
  for (let count = texts.length; count > 0; count--) {
    for (const rows of [2, 1]) {
      const lines = texts
        .slice(0, count)
        .flatMap((name) => linesOf(label[name], { size: TYPE_MM[name], width: room.width, rows }))
      if (heightOf(lines) <= room.height) return lines
    }
  }
  return []
}

/** Small type, as in the smallest print of a newspaper. */
const SHRINK_MAX = 0.72
/** Width of a column of letters that a browser draws: such letters take one column or two. */
const COLUMN_EM = 0.55

/** The width in em; an estimate if the typeface lacks a letter. */
const widthOf = (text: string): number =>
  findMissing(text) === undefined ? setLine(text).width : Bun.stringWidth(text) * COLUMN_EM

const segmenter = new Intl.Segmenter()
const charactersOf = (text: string) => [...segmenter.segment(text)].map(({ segment }) => segment)

/** One line, smaller if needed, or `rows` of which the last may be cut with an ellipsis. */
function linesOf(
  text: string,
  { size, width, rows }: { size: number; width: number; rows: number },
): TextLine[] {
  const natural = widthOf(text) * size
  if (natural <= width) return [{ text, size }]
  if (natural * SHRINK_MAX <= width) return [{ text, size: (size * width) / natural }]
  const small = size * SHRINK_MAX
  const fits = (part: string) => widthOf(part) * small <= width
  if (rows === 1) return [{ text: cut(text, fits), size: small }]
  const characters = charactersOf(text)
  const count = longest(characters.length, (n) => fits(characters.slice(0, n).join('')))
  const space = characters.lastIndexOf(' ', count)
  const end = space > count / 3 ? space : count
  const rest = characters.slice(end).join('').trim()
  const second = fits(rest) ? rest : cut(rest, fits)
  return [characters.slice(0, end).join('').trim(), second].map((line) => ({
    text: line,
    size: small,
  }))
}

function cut(text: string, fits: (text: string) => boolean): string {
  const characters = charactersOf(text)
  const shortened = (n: number) => `${characters.slice(0, n).join('').trim()}…`
  return shortened(longest(characters.length, (n) => fits(shortened(n))))
}

/** The largest number of characters, at least one, that fits. */
function longest(max: number, fits: (count: number) => boolean): number {
  let [low, high] = [1, max]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** `align`: 0 for the left, 0.5 for the middle. */
function drawText(lines: readonly TextLine[], width: number, align: number): Picture {
  let y = 0
  const shapes = lines.map(({ text, size }): Shape => {
    y += size * LINE_HEIGHT
    const baseline = y - 0.35 * size
    if (findMissing(text) !== undefined) {
      return { fill: TEXT_COLOR, path: '', text: { text, size, width, y: baseline, align } }
    }
    const line = setLine(text)
    const x = (width - line.width * size) * align
    return { fill: TEXT_COLOR, path: pathOf(place(line, { x, y: baseline, size })), isText: true }
  })
  return { width, height: y, shapes }
}

const MARK_MM = 4
const MARK_WIDTH_MM = 0.1

/** Short lines at the edges of the paper, where a ruler is laid to cut. */
function cropMarks({ paper, columns, rows, left, top, width, height, gapX, gapY }: Grid): Picture {
  const sheet = PAPERS[paper]
  const edges = (start: number, size: number, gap: number, count: number) =>
    Array.from({ length: count }, (_, at) => start + at * (size + gap)).flatMap((at) => [
      at,
      at + size,
    ])
  const xs = edges(left, width, gapX, columns)
  const ys = edges(top, height, gapY, rows)
  const half = MARK_WIDTH_MM / 2
  /** Where a mark begins, before the first label and after the last one. */
  const starts = (first: number, last: number, length: number) => [first - length - 0.5, last + 0.5]
  const high = Math.max(0, Math.min(MARK_MM, top - 1))
  const wide = Math.max(0, Math.min(MARK_MM, left - 1))
  const paths = [
    ...starts(top, ys.at(-1) ?? 0, high).flatMap((y) =>
      xs.map((x) => `M${x - half} ${y}h${MARK_WIDTH_MM}v${high}h-${MARK_WIDTH_MM}z`),
    ),
    ...starts(left, xs.at(-1) ?? 0, wide).flatMap((x) =>
      ys.map((y) => `M${x} ${y - half}h${wide}v${MARK_WIDTH_MM}h-${wide}z`),
    ),
  ]
  return { ...sheet, shapes: [{ fill: TEXT_COLOR, path: paths.join('') }] }
}
