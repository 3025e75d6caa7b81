import { expect } from 'bun:test'
import { NOTO_FONTS, testWith } from '../../test/support/tools.ts'
import { assert } from '../lib/assert.ts'
import { parsePrintOptions } from './options.ts'
import { parsePath } from './outline.ts'
import type { PlacedPicture, Shape } from './picture.ts'
import {
  evenGrid,
  FORMATS,
  findLeftOut,
  type Grid,
  isTooSmall,
  type Label,
  layOutSheet,
  moved,
  outsideOf,
  PAPERS,
} from './sheet.ts'
import { findMissing, loadTypeface, setLine } from './typeface.ts'

/** Labels whose texts are too long for them, and labels at the edges of the paper. */

const test = testWith()
const testNoto = testWith('Noto fonts')

const TITLES = [
  'Lunch',
  'x'.repeat(60),
  'Lorem ipsum dolor sit amet '.repeat(8).slice(0, 200),
  'W'.repeat(200),
  'ラーメンと餃子の'.repeat(20),
  'قائمة الطعام اليومية '.repeat(9),
  '🍕👩‍👩‍👧‍👦'.repeat(12),
]

const even = (columns: number, rows: number, gap = 2, margin = 10) =>
  evenGrid({ paper: 'a4', columns, rows, margin, gap })
const GRIDS = [
  ...Object.values(FORMATS).map(({ grid }) => grid),
  even(10, 15),
  even(8, 10),
  even(1, 16),
  even(10, 4),
  even(6, 14),
  even(2, 2),
]

test.each(GRIDS)('long texts leave the code on $width × $height mm its width', async (grid) => {
  await loadTypeface([])
  const options = parsePrintOptions({ margin: '4' })
  const [longCaption, longAddress] = ['Ш'.repeat(40), `go.example/${'z'.repeat(60)}`]
  for (const title of TITLES) {
    const text = 'https://go.example/SPRING26'
    const label = { text, title, caption: longCaption, address: longAddress }
    const { pictures } = layOutSheet({ grid, hasCropMarks: false, options, labels: [label] })
    const [code, texts] = pictures
    assert(code && texts, 'a label has a code and texts')
    const side = code.picture.width * code.scale
    const room = Math.min(grid.width, grid.height) - 2
    expect(side).toBeGreaterThanOrEqual(Math.min(room, 15) - 0.001)
    for (const { picture, x, y, scale } of pictures) {
      expect(x).toBeGreaterThanOrEqual(grid.left)
      expect(y).toBeGreaterThanOrEqual(grid.top)
      expect(x + picture.width * scale).toBeLessThanOrEqual(grid.left + grid.width)
      expect(y + picture.height * scale).toBeLessThanOrEqual(grid.top + grid.height)
    }
    const isBeside = texts.x >= code.x + side
    expect(isBeside || texts.y >= code.y + side - 0.001).toBe(true)
  }
})

const LABEL = { text: 'https://go.example/SPRING26', title: '', caption: '', address: '' }

/** A sheet with labels in three corners. */
const sheetOf = (grid: Grid, label: Partial<Label>, options = parsePrintOptions({})) => {
  const count = grid.columns * grid.rows
  const corners = [0, grid.columns - 1, count - 1]
  const labels = Array.from({ length: count }, (_, at) =>
    corners.includes(at) ? { ...LABEL, ...label } : undefined,
  )
  return { grid, hasCropMarks: false, options, labels }
}

/** Shapes of texts on each label. */
const textShapes = ({ pictures }: { pictures: readonly PlacedPicture[] }) =>
  pictures.filter((_, at) => at % 2 === 1).map(({ picture }) => picture.shapes)

const countOf = (path: string) => path.match(/Z/g)?.length ?? 0
/** Closed outlines of a text. */
const outlinesIn = (text: string): number =>
  setLine(text).glyphs.reduce((sum, { shape }) => sum + countOf(shape.outline.commands), 0)
const drawnIn = (shapes: readonly Shape[]) =>
  shapes.reduce((sum, one) => sum + countOf(one.path), 0)
const withoutSpaces = (text: string) => text.replaceAll(/\s/g, '')

const MIXED = [
  'Spring Sale 🌸 up to 40 % 9',
  '🌸 Lunch',
  'Lunch menu of the week and of the whole month 🌸',
  'メニュー 2026 for the summer',
]
const ADDRESSES = [
  'go.example/メニュー-51',
  'go.example/spring-team',
  `go.example/${'long-part/'.repeat(8)}end`,
]
const WHOLE = [...TITLES, ...MIXED].flatMap((text) => [{ title: text }, { caption: text }])
const TEXTS: Partial<Label>[] = [...WHOLE, ...ADDRESSES.map((address) => ({ address }))]

const whole = 'on $width × $height mm a text is printed whole or left out'

test.each(GRIDS)(`${whole}, by Inter and browsers`, async (grid) => {
  await loadTypeface([])
  expectWhole(grid)
})

testNoto.each(GRIDS)(`${whole}, by fonts of all scripts`, async (grid) => {
  await loadTypeface(NOTO_FONTS)
  expectWhole(grid)
})

function expectWhole(grid: Grid): void {
  for (const label of TEXTS) {
    const [text = ''] = Object.values(label)
    const sheet = sheetOf(grid, label)
    const { withoutRoom, undrawn } = findLeftOut(sheet)
    const leftOut = withoutRoom.length
    const isForeign = findMissing(text).length > 0
    if (!isForeign) expect(undrawn).toEqual([])
    let without = 0
    for (const shapes of textShapes(layOutSheet(sheet))) {
      const inBrowser = shapes.map((shape) => shape.text?.text ?? '').join('')
      if (shapes.length === 0) without++
      const whole = isForeign ? withoutSpaces(text) : ''
      expect(withoutSpaces(inBrowser)).toBe(shapes.length === 0 ? '' : whole)
      // What a PDF draws.
      expect(drawnIn(shapes)).toBe(shapes.length === 0 || isForeign ? 0 : outlinesIn(text))
    }
    expect({ text, without }).toEqual({ text, without: leftOut })
  }
}

test('a title that has room on several lines is printed', async () => {
  await loadTypeface([])
  const title = 'Speisekarte für Gäste im Garten und auf der großen Terrasse am See'
  for (const name of ['l7160', '3475', '5160']) {
    const { grid } = FORMATS[name] ?? {}
    assert(grid, 'a known format')
    expect([name, findLeftOut(sheetOf(grid, { title })).withoutRoom]).toEqual([name, []])
  }
})

/** The edges of everything that is drawn, in millimetres. */
function boundsOf(pictures: readonly PlacedPicture[]) {
  const xs: number[] = []
  const ys: number[] = []
  for (const { picture, x, y, scale } of pictures) {
    for (const { path, text } of picture.shapes) {
      const { points } = text
        ? { points: [text.x, text.y - text.size, text.x + text.width, text.y] }
        : parsePath(path)
      for (const [at, point] of points.entries()) {
        if (at % 2 === 0) xs.push(x + point * scale)
        else ys.push(y + point * scale)
      }
    }
  }
  const least = (values: number[]) => values.reduce((a, b) => Math.min(a, b))
  const most = (values: number[]) => values.reduce((a, b) => Math.max(a, b))
  return { left: least(xs), right: most(xs), top: least(ys), bottom: most(ys) }
}

const TO_EDGE = [
  ...Object.values(FORMATS).map(({ grid }) => grid),
  ...[0, 1, 2.5].flatMap((margin) => [
    even(3, 6, 0, margin),
    even(1, 1, 0, margin),
    even(1, 12, 0, margin),
    even(8, 3, 0, margin),
    even(5, 10, 4, margin),
    evenGrid({ paper: 'letter', columns: 4, rows: 8, margin, gap: 1 }),
  ]),
]

test.each(TO_EDGE)('4 mm at the edges of the paper stay empty: $columns × $rows', async (grid) => {
  await loadTypeface([])
  expect(isTooSmall(grid)).toBe(false)
  const { width, height } = PAPERS[grid.paper]
  for (const margin of ['0', '4']) {
    for (const title of ['Lunch', 'Lorem ipsum dolor sit amet '.repeat(3), 'ラーメンと餃子の']) {
      const label = { title, caption: 'Scan for details', address: 'go.example/SPRING26' }
      const sheet = sheetOf(grid, label, parsePrintOptions({ margin }))
      const { left, right, top, bottom } = boundsOf(layOutSheet(sheet).pictures)
      expect(Math.min(left, top, width - right, height - bottom)).toBeGreaterThanOrEqual(3.999)
    }
  }
})

test.each(TO_EDGE)('all labels of a sheet have one layout: $columns × $rows', async (grid) => {
  await loadTypeface([])
  const label = { ...LABEL, title: 'Lunch', caption: 'Scan for details' }
  const labels = Array<Label>(grid.columns * grid.rows).fill(label)
  const { pictures } = layOutSheet({ ...sheetOf(grid, {}), labels })
  const placed = labels.map((_, at) => {
    const { x = 0, y = 0, scale } = pictures[2 * at] ?? {}
    const [column, row] = [at % grid.columns, Math.floor(at / grid.columns)]
    const left = x - column * (grid.width + grid.gapX)
    const top = y - row * (grid.height + grid.gapY)
    return [left, top, scale].map((one) => one?.toFixed(6)).join(' ')
  })
  expect(new Set(placed).size).toBe(1)
})

test('the labels of Avery 3475 are 70 × 36 mm, without a gap, 4.5 mm from above', () => {
  const { grid } = FORMATS[3475] ?? {}
  assert(grid, 'a known format')
  const { left, top, width, height, gapX, gapY, columns, rows } = grid
  expect([left, top, width, height, gapX, gapY]).toEqual([0, 4.5, 70, 36, 0, 0])
  expect([columns * width, rows * height + 2 * top]).toEqual([210, 297])
})

test('labels that leave an edge no room for a code are too small', () => {
  expect(isTooSmall(even(10, 18, 0, 0))).toBe(true)
  expect(isTooSmall(even(10, 15))).toBe(false)
})

test('no line breaks inside of a word', async () => {
  await loadTypeface([])
  const { grid } = FORMATS[3475] ?? {}
  assert(grid, 'a known format')
  const room = (title: string) => findLeftOut(sheetOf(grid, { title })).withoutRoom
  expect(room('Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnung')[0]).toBe(
    'title',
  )
  expect(room('Donaudampfschiff fahrt nach Passau und zurück nach Linz am selben Tag')).toEqual([])
})

test('a grid moves on the paper, and stays away from its edges', async () => {
  await loadTypeface([])
  const { grid } = FORMATS[3475] ?? {}
  assert(grid, 'a known format')
  const there = moved(grid, { x: 1.5, y: -0.4 })
  const label = { title: 'Lunch', caption: 'Scan for details' }
  const middle = (one: Grid) => {
    const { pictures } = layOutSheet({ ...sheetOf(one, label), labels: [...Array(4), LABEL] })
    return [pictures[0]?.x ?? 0, pictures[0]?.y ?? 0]
  }
  const [[x = 0, y = 0], [movedX, movedY]] = [middle(grid), middle(there)]
  expect([movedX, movedY]).toEqual([expect.closeTo(x + 1.5), expect.closeTo(y - 0.4)])
  const { left, right } = boundsOf(layOutSheet(sheetOf(there, label)).pictures)
  expect(Math.min(left, 210 - right)).toBeGreaterThanOrEqual(3.999)
})

test('labels beyond the paper are known by their measure', () => {
  expect(outsideOf(even(3, 6))).toBeUndefined()
  expect(outsideOf({ ...even(3, 6), width: 70 })).toBe('width')
  expect(outsideOf({ ...even(3, 6), height: 60 })).toBe('height')
})
