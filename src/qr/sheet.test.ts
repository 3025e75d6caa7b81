import { expect, test } from 'bun:test'
import { assert } from '../lib/assert.ts'
import { parsePrintOptions } from './options.ts'
import { evenGrid, FORMATS, layOutSheet } from './sheet.ts'

/** Labels whose texts are too long for them. */

const TITLES = [
  'Lunch',
  'x'.repeat(60),
  'Lorem ipsum dolor sit amet '.repeat(8).slice(0, 200),
  'W'.repeat(200),
  'ラーメンと餃子の'.repeat(20),
  'قائمة الطعام اليومية '.repeat(9),
  '🍕👩‍👩‍👧‍👦'.repeat(12),
]

const even = (columns: number, rows: number, gap = 2) =>
  evenGrid({ paper: 'a4', columns, rows, margin: 10, gap })
const GRIDS = [
  ...Object.values(FORMATS).map(({ grid }) => grid),
  even(10, 15),
  even(8, 10),
  even(1, 16),
  even(10, 4),
  even(6, 14),
  even(2, 2),
]

test.each(GRIDS)('long texts leave the code on $width × $height mm its width', (grid) => {
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
