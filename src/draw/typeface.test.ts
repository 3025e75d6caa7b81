import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { captionFont } from '../../scripts/caption-font.ts'
import { layOutCaption } from './caption.ts'
import { pathOf } from './outline.ts'
import { fillOutline } from './raster.ts'
import { findMissing, setLine } from './typeface.ts'

test('the outlines are those of the installed font: npm run font:outlines', async () => {
  for (const [path, content] of Object.entries(await captionFont())) {
    expect((await Bun.file(join(import.meta.dir, '../..', path)).text()) === content).toBe(true)
  }
}, 60_000)

const TEXTS = [
  'Scan für Menü, Straße 7 — 20 % “heute”',
  'Σαρώστε για το μενού ΆΈΉΊΌΎΏ',
  'Отсканируйте меню, ґанок їжа',
  'Quét mã để xem thực đơn ẾỘỮỲ',
  'Zażółć gęślą jaźń, Příliš žluťoučký kůň',
  'Ẹ̀kọ́ àti g̃uarani',
]

test.each(TEXTS)('every letter of %s has an outline and a width', (text) => {
  const normal = text.normalize('NFC')
  expect(findMissing(normal)).toBeUndefined()
  const { width, letters } = setLine(normal)
  expect(letters.length).toBe([...normal].length)
  expect(width).toBeGreaterThan(0.3 * letters.length)
  for (const [at, character] of [...normal].entries()) {
    expect([character, (letters[at]?.glyph.outline.commands ?? '') === '']).toEqual([
      character,
      character === ' ',
    ])
  }
})

test('pairs are kerned, also those of letters with marks', () => {
  const widthOf = (text: string) => setLine(text).width
  expect(widthOf('To')).toBeLessThan(widthOf('T') + widthOf('o'))
  expect(widthOf('Tộ')).toBeLessThan(widthOf('T') + widthOf('ộ'))
  expect(widthOf('HH')).toBeCloseTo(2 * widthOf('H'))
})

const captions = [
  'Menü',
  'go.example/SPRING26',
  'W'.repeat(40),
  'Ế'.repeat(20),
  'a b c d e f',
  'É ',
]

test.each(captions)('the caption %s has one line or two, and stays inside of its width', (text) => {
  const { outlineAt, height } = layOutCaption(text.trim(), 100)
  const { points } = outlineAt(10, 20)
  const xs = points.filter((_, at) => at % 2 === 0)
  const ys = points.filter((_, at) => at % 2 === 1)
  expect(Math.min(...xs)).toBeGreaterThanOrEqual(9)
  expect(Math.max(...xs)).toBeLessThanOrEqual(111)
  expect(Math.min(...ys)).toBeGreaterThanOrEqual(19.999)
  expect(Math.max(...ys)).toBeLessThanOrEqual(20 + height)
  expect(height).toBeLessThan(40)
})

test('filled outlines cover the area that they enclose', () => {
  const square = { commands: 'MLLLZ', points: [1.25, 1.5, 4, 1.5, 4, 3, 1.25, 3] }
  const { data } = fillOutline(square, 6, 4)
  const expected = [
    [0, 0, 0, 0, 0, 0],
    [0, 96, 128, 128, 0, 0],
    [0, 191, 255, 255, 0, 0],
    [0, 0, 0, 0, 0, 0],
  ]
  expect([...data]).toEqual(expected.flat())
  const triangle = fillOutline({ commands: 'MLLZ', points: [0, 0, 20, 10, 0, 10] }, 21, 11)
  const covered = triangle.data.reduce((sum, shade) => sum + shade / 255, 0)
  expect(covered).toBeCloseTo(100, 0)
  const curve = fillOutline({ commands: 'MQZ', points: [0, 10, 10, -10, 20, 10] }, 21, 11)
  // Two thirds of the triangle of the control points. A few straight parts enclose a little less.
  const enclosed = curve.data.reduce((sum, shade) => sum + shade / 255, 0)
  expect(enclosed).toBeGreaterThan(125)
  expect(enclosed).toBeLessThan(134)
})

test('path data has three decimals at most', () => {
  expect(pathOf({ commands: 'MLZ', points: [1 / 3, 2, 0.1 + 0.2, 4] })).toBe('M0.333 2L0.3 4Z')
})
