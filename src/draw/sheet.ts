/** Labels with QR codes on sheets of paper. All lengths are millimetres. */

import type { Logo } from './logo.ts'
import { matrixOf } from './matrix.ts'
import type { QrOptions } from './options.ts'
import { pathOf } from './outline.ts'
import { drawQr, type Page, type Picture, type PlacedPicture, type Shape } from './picture.ts'
import { findMissing, isRightToLeft, type Line, partsOf, place, setLine } from './typeface.ts'

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

interface PlacedGrid extends Grid {
  /** By how much `left` and `top` differ from those of the sheet. */
  moved?: { x: number; y: number }
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

/** The grid at another place of the paper. `x`, `y`: to the right and downwards. */
export const moved = (grid: Grid, { x, y }: { x: number; y: number }): PlacedGrid => ({
  ...grid,
  left: grid.left + x,
  top: grid.top + y,
  moved: { x, y },
})

export interface Label {
  /** The text in the code. */
  text: string
  /** Empty texts are left out. */
  title: string
  caption: string
  address: string
  /** What visitors can do with the address. */
  hint?: string
}

export interface Sheet {
  grid: PlacedGrid
  hasCropMarks: boolean
  options: QrOptions
  /** From the first label of this page; undefined for a place that is left out. */
  labels: readonly (Label | undefined)[]
}

export const LABEL_SIDE_MIN_MM = 15
const PADDING_MM = 1
/** Many printers cannot print up to the edges of the paper: only marks for cutting are there. */
const EDGE_MM = 4
const TYPE_MM = { title: 3.6, caption: 3.2, address: 2.7, hint: 2.2 }
const TEXT_COLOR = '#18181b'

export type TextName = keyof typeof TYPE_MM
const TEXT_NAMES = ['title', 'caption', 'address', 'hint'] as const

/** One page of labels. */
export function layOutSheet(sheet: Sheet, logo?: Logo): Page {
  const { grid, labels, hasCropMarks, options } = sheet
  const pictures = labels.flatMap((label, at) =>
    label ? layOutLabel(label, innerBox(grid, at), { options, logo }) : [],
  )
  const { width, height } = PAPERS[grid.paper]
  const marks = { picture: cropMarks(grid), x: 0, y: 0, scale: 1 }
  return { width, height, pictures: hasCropMarks ? [...pictures, marks] : pictures }
}

/** What labels lack. */
export interface LeftOut {
  /** Names of texts without room, for each label that leaves one out. */
  withoutRoom: TextName[]
  /** Titles and addresses that only browsers print, and what of them no font can draw. */
  undrawn: TextName[]
  missing: string[]
}

/** What the labels of a page lack. */
export function findLeftOut({ grid, labels, options }: Sheet): LeftOut {
  const left: LeftOut = { withoutRoom: [], undrawn: [], missing: [] }
  for (const [at, label] of labels.entries()) {
    const lines = label ? roomOf(label, innerBox(grid, at), options).lines : []
    for (const name of TEXT_NAMES) {
      const first = lines.find((line) => line.name === name)
      if (label?.[name] && !first) left.withoutRoom.push(name)
      // The form says it of the text that all labels have.
      if (!label || !first || first.line || name === 'caption') continue
      left.undrawn.push(name)
      left.missing.push(...findMissing(label[name] ?? ''))
    }
  }
  return { ...left, missing: [...new Set(left.missing)].slice(0, MISSING_MAX) }
}

/** Characters that a message names. */
export const MISSING_MAX = 5

interface Box {
  x: number
  y: number
  width: number
  height: number
}

interface TextLine {
  name: TextName
  text: string
  size: number
  /** Undefined for a text that no font can draw: its width is estimated. */
  line: Line | undefined
  isRightToLeft: boolean
}

/** The edges of the last column and the last row. */
const endOf = ({ left, top, columns, rows, width, height, gapX, gapY }: Grid) => ({
  right: left + columns * (width + gapX) - gapX,
  bottom: top + rows * (height + gapY) - gapY,
})

/**
 * The part of a label that is printed: inside of its edges, and of those of the paper. It is the
 * same in all labels of a sheet that is not moved, so that their codes have one size and distance.
 */
function innerBox(grid: PlacedGrid, at: number): Box {
  const paper = PAPERS[grid.paper]
  const { right: end, bottom: foot } = endOf(grid)
  const { x: dx, y: dy } = grid.moved ?? { x: 0, y: 0 }
  const padding = (space: number) => Math.max(PADDING_MM, EDGE_MM - space)
  const left = grid.left + (at % grid.columns) * (grid.width + grid.gapX)
  const top = grid.top + Math.floor(at / grid.columns) * (grid.height + grid.gapY)
  const x = Math.max(left + padding(grid.left - dx), EDGE_MM)
  const y = Math.max(top + padding(grid.top - dy), EDGE_MM)
  const right = left + grid.width - padding(paper.width - end + dx)
  const bottom = top + grid.height - padding(paper.height - foot + dy)
  return {
    x,
    y,
    width: Math.min(right, paper.width - EDGE_MM) - x,
    height: Math.min(bottom, paper.height - EDGE_MM) - y,
  }
}

/** Whether a code has less room than on a label of `LABEL_SIDE_MIN_MM` inside of the paper. */
export function isTooSmall(grid: PlacedGrid): boolean {
  const boxes = [0, grid.columns * grid.rows - 1].map((at) => innerBox(grid, at))
  const side = Math.min(...boxes.flatMap(({ width, height }) => [width, height]))
  return side < LABEL_SIDE_MIN_MM - 2 * PADDING_MM - 0.001
}

/** The measure by which labels are beyond the paper, by more than half a millimetre. */
export function outsideOf(grid: Grid): 'width' | 'height' | undefined {
  const paper = PAPERS[grid.paper]
  const { right, bottom } = endOf(grid)
  if (right > paper.width + 0.5) return 'width'
  return bottom > paper.height + 0.5 ? 'height' : undefined
}

/** Narrower codes are hard to read: texts leave it this width, and 0.45 mm a module. */
const CODE_SIDE_MIN_MM = 15
const MODULE_MIN_MM = 0.45

/** `isWide`: the texts are beside the code, and below it otherwise. */
function roomOf(label: Label, inner: Box, { level, margin }: QrOptions) {
  const isWide = inner.width > 1.35 * inner.height
  const modules = modulesAtMost(label.text, level) + 2 * margin
  const sideMin = Math.max(CODE_SIDE_MIN_MM, modules * MODULE_MIN_MM)
  const sideBeside = Math.min(inner.height, Math.max(inner.width / 2, sideMin))
  const textWidth = inner.width - (isWide ? sideBeside : 0) - 1
  const height = inner.height - (isWide ? 0 : Math.min(inner.width, sideMin))
  return { isWide, sideBeside, textWidth, lines: fittingLines(label, { width: textWidth, height }) }
}

/** By level and text: modules of a code, without its margin. One entry for each length. */
const modulesByText = new Map<string, number>()

/** Modules on one side for a text of this length, which takes no time for the labels of a sheet. */
function modulesAtMost(text: string, level: QrOptions['level']): number {
  const sample = text.replace(/./gs, text === text.toUpperCase() ? 'A' : 'a')
  return modulesByText.getOrInsertComputed(level + sample, () => matrixOf(sample, level).size)
}

function layOutLabel(
  label: Label,
  inner: Box,
  { options, logo }: { options: QrOptions; logo: Logo | undefined },
): PlacedPicture[] {
  const picture = drawQr(matrixOf(label.text, options.level), { ...options, caption: '', logo })
  const { isWide, sideBeside, textWidth, lines } = roomOf(label, inner, options)
  const textHeight = heightOf(lines)
  const side = isWide ? sideBeside : Math.min(inner.width, inner.height - textHeight)
  const codeX = isWide ? inner.x : inner.x + (inner.width - side) / 2
  const used = side + (isWide ? 0 : textHeight)
  const codeY = inner.y + (inner.height - used) / 2
  const textX = isWide ? inner.x + side + 1 : inner.x + 0.5
  const textY = isWide ? inner.y + (inner.height - textHeight) / 2 : codeY + side
  const align = isWide ? 0 : 0.5
  return [
    { picture, x: codeX, y: codeY, scale: side / picture.width },
    { picture: drawTexts(lines, { width: textWidth, align }), x: textX, y: textY, scale: 1 },
  ]
}

/** Room of a line above its baseline and below it, in em: more than usual for high letters. */
const aboveOf = ({ line }: TextLine): number => Math.max(0.95, (line?.top ?? 0) + 0.05)
const belowOf = ({ line }: TextLine): number => Math.max(0.35, (line?.bottom ?? 0) + 0.05)

const heightOf = (lines: readonly TextLine[]): number =>
  lines.reduce((sum, line) => sum + line.size * (aboveOf(line) + belowOf(line)), 0)

/** The lines of the texts that fit, in their order: each is whole or left out. */
function fittingLines(label: Label, room: { width: number; height: number }): TextLine[] {
  const lines: TextLine[] = []
  for (const name of TEXT_NAMES) {
    const found = linesOf(label[name] ?? '', name, room.width)
    if (heightOf([...lines, ...found]) <= room.height) lines.push(...found)
  }
  return lines
}

/** Small type, as in the smallest print of a newspaper. */
const SHRINK_MAX = 0.72
const LINES_MAX = 4
/** Width of a column of letters that a browser draws: such letters take one column or two. */
const COLUMN_EM = 0.5

/** One line, smaller if needed, or several of the smallest type; none if that is not enough. */
function linesOf(text: string, name: TextName, width: number): TextLine[] {
  if (text === '') return []
  const isDrawn = findMissing(text).length === 0
  const rightToLeft = isRightToLeft(text)
  const layOut = (part: string) =>
    isDrawn ? setLine(part, rightToLeft ? 'rtl' : 'ltr') : undefined
  const widthOf = (part: string) => layOut(part)?.width ?? Bun.stringWidth(part) * COLUMN_EM
  const most = TYPE_MM[name]
  const small = most * SHRINK_MAX
  const smallWidth = widthOf(text) * small
  if (smallWidth > LINES_MAX * width) return []
  const lines = smallWidth <= width ? [text] : wrapped(partsOf(text), width / small, widthOf)
  return lines.length > LINES_MAX
    ? []
    : lines.map((line) => {
        const size = Math.min(lines.length > 1 ? small : most, width / widthOf(line))
        return { name, text: line, size, line: layOut(line), isRightToLeft: rightToLeft }
      })
}

/** Lines of at most `most` em. More than `LINES_MAX` if a part is longer than a line. */
function wrapped(parts: readonly string[], most: number, widthOf: (text: string) => number) {
  const lines: string[] = []
  for (const part of parts) {
    const longer = `${lines.at(-1) ?? ''}${part}`
    if (lines.length > 0 && widthOf(longer.trim()) <= most) lines[lines.length - 1] = longer
    else if (widthOf(part.trim()) <= most) lines.push(part)
    else return Array<string>(LINES_MAX + 1).fill('')
  }
  return lines.map((line) => line.trim())
}

/** `align`: 0 for the left, 0.5 for the middle. */
function drawTexts(
  lines: readonly TextLine[],
  { width, align }: { width: number; align: number },
): Picture {
  const widthOf = ({ line, text, size }: TextLine) =>
    (line?.width ?? Bun.stringWidth(text) * COLUMN_EM) * size
  let y = 0
  const shapes = lines.map((one): Shape => {
    const { text, size, line } = one
    const baseline = y + aboveOf(one) * size
    y = baseline + belowOf(one) * size
    const lineWidth = widthOf(one)
    const widest = Math.max(...lines.filter(({ name }) => name === one.name).map(widthOf))
    // Lines from right to left end at the left in several places.
    const indent = one.isRightToLeft && align === 0 ? widest - lineWidth : 0
    const at = { x: (width - lineWidth) * align + indent, y: baseline, size }
    if (!line) return { fill: TEXT_COLOR, path: '', text: { text, width: lineWidth, ...at } }
    return { fill: TEXT_COLOR, path: pathOf(place(line, at)), isText: true }
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
