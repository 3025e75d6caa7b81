import { expect } from 'bun:test'
import { copyFileSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { run, scratch } from '../../test/support/decode-qr.ts'
import { NOTO_FONTS, testWith } from '../../test/support/tools.ts'
import { layOutCaption } from './caption.ts'
import { type Outline, parsePath, pathOf } from './outline.ts'
import { fillOutline } from './raster.ts'
import { findMissing, loadTypeface, partsOf, place, setLine } from './typeface.ts'

/** Texts as outlines: in Inter, and in scripts that need other fonts. */

const test = testWith()
const testNoto = testWith('Noto fonts', 'hb-shape')

const TEXTS = [
  'Scan für Menü, Straße 7 — 20 % “heute”',
  'Σαρώστε για το μενού ΆΈΉΊΌΎΏ',
  'Отсканируйте меню, ґанок їжа',
  'Quét mã để xem thực đơn ẾỘỮỲ',
  'Zażółć gęślą jaźń, Příliš žluťoučký kůň',
  'Ẹ̀kọ́ àti g̃uarani',
]

test.each(TEXTS)('every letter of %s has an outline and a width', async (text) => {
  await loadTypeface([])
  const normal = text.normalize('NFC')
  expect(findMissing(normal)).toEqual([])
  const { width, glyphs } = setLine(normal)
  const drawn = glyphs.filter(({ shape }) => shape.outline.commands !== '')
  expect(drawn.length).toBeGreaterThanOrEqual([...normal.replaceAll(' ', '')].length)
  expect(width).toBeGreaterThan(0.3 * glyphs.length)
})

test('pairs are kerned, also those of letters with marks, and no signs become others', async () => {
  await loadTypeface([])
  const widthOf = (text: string) => setLine(text).width
  expect(widthOf('To')).toBeLessThan(widthOf('T') + widthOf('o'))
  expect(widthOf('Tộ')).toBeLessThan(widthOf('T') + widthOf('ộ'))
  expect(widthOf('HH')).toBeCloseTo(2 * widthOf('H'))
  const glyphsOf = (text: string) => setLine(text).glyphs.map(({ id }) => id)
  expect(glyphsOf('->')).toEqual([...glyphsOf('-'), ...glyphsOf('>')])
})

/** Fonts in the order of the text from left to right, with the arguments of `hb-shape`. */
const shaped = [
  { text: 'ラーメンと餃子', font: 'NotoSansCJK-Regular.ttc', language: 'ja' },
  { text: '菜单', font: 'NotoSansCJK-Regular.ttc', language: 'zh-hans' },
  { text: '메뉴', font: 'NotoSansCJK-Regular.ttc', language: 'ko' },
  { text: 'قائمة الطعام اليومية', font: 'NotoSansArabic-Regular.ttf', language: 'und' },
  { text: 'تفريط', font: 'NotoSansArabic-Regular.ttf', language: 'und' },
  { text: 'हिन्दी क्षत्रिय', font: 'NotoSansDevanagari-Regular.ttf', language: 'und' },
  { text: 'বাংলা মেনু', font: 'NotoSansBengali-Regular.ttf', language: 'und' },
  { text: 'தமிழ் உணவு', font: 'NotoSansTamil-Regular.ttf', language: 'und' },
  { text: 'ภาษาไทย น้ำ', font: 'NotoSansThai-Regular.ttf', language: 'und' },
  { text: 'ខ្មែរ', font: 'NotoSansKhmer-Regular.ttf', language: 'und' },
  { text: 'မြန်မာ', font: 'NotoSansMyanmar-Regular.ttf', language: 'und' },
  { text: 'עִבְרִית', font: 'NotoSansHebrew-Regular.ttf', language: 'und' },
  { text: '🍽', font: 'NotoSansSymbols2-Regular.ttf', language: 'und' },
]

/** Glyphs and their advances, from left to right, as HarfBuzz's own program gives them. */
function hbShape(text: string, path: string, language: string): [number, number][] {
  const flags = ['--no-glyph-names', '--no-clusters', `--language=${language}`]
  const glyphs = run('hb-shape', ...flags, path, text)
    .trim()
    .slice(1, -1)
    .split('|')
  return glyphs.map((glyph) => {
    const [, id = '', advance = ''] = /^(\d+)(?:@[-\d,]+)?\+(-?\d+)/.exec(glyph) ?? []
    return [Number(id), Number(advance)]
  })
}

testNoto.each(shaped)('$text has the glyphs of hb-shape', async ({ text, font, language }) => {
  await loadTypeface(NOTO_FONTS)
  expect(findMissing(text)).toEqual([])
  const { glyphs, width } = setLine(text)
  const [path = '', ...others] = new Set(glyphs.map((glyph) => glyph.font.path))
  expect([path.split('/').at(-1), others]).toEqual([font, []])
  const expected = hbShape(text, path, language)
  expect(glyphs.map(({ id }) => id)).toEqual(expected.map(([id]) => id))
  const units = expected.reduce((sum, [, advance]) => sum + advance, 0)
  expect(width).toBeCloseTo(units / 1000, 3)
  expect(glyphs.some(({ shape }) => shape.outline.commands !== '')).toBe(true)
})

testNoto('parts of other directions are in their visual order', async () => {
  await loadTypeface(NOTO_FONTS)
  const idsOf = (text: string) => setLine(text).glyphs.map(({ id }) => id)
  // The number is to the left of the Arabic word before it, and reads from left to right.
  expect(idsOf('قائمة 42').slice(0, 2)).toEqual(idsOf('قائمة 24').slice(0, 2).reverse())
  expect(idsOf('قائمة 42')[0]).toBe(idsOf('قائمة 44')[0] as number)
  expect(idsOf('Menu قائمة 24').slice(0, 4)).toEqual(idsOf('Menu'))
  expect(idsOf('قائمة Menu').slice(0, 4)).toEqual(idsOf('Menu'))
  // The bracket at the end of the text is the leftmost sign, and opens to the right.
  expect(idsOf('قائمة (اليومية)')[0]).toBe(idsOf('(')[0] as number)
})

testNoto('a missing sign is named once', async () => {
  await loadTypeface(NOTO_FONTS)
  expect(findMissing('Sale 🌸🌸 \u{10FFFD} 🍽')).toEqual(['🌸', '\u{10FFFD}'])
})

testNoto('fonts of colored glyphs do not count, and one without outlines neither', async () => {
  using files = scratch()
  const symbols = readFileSync(`${NOTO_FONTS[0]}/NotoSansSymbols2-Regular.ttf`)
  const directory = symbols.subarray(0, 12 + 16 * symbols.readUInt16BE(4))
  const path = files.path('symbols.ttf')
  const missingWith = async (table: string, name: string) => {
    const bytes = Buffer.from(symbols)
    bytes.write(name, directory.indexOf(table), 'latin1')
    writeFileSync(path, bytes)
    await loadTypeface([])
    await loadTypeface([path])
    return findMissing('Menu 🍽')
  }
  expect(await missingWith('glyf', 'glyf')).toEqual([])
  expect(await missingWith('glyf', 'CBDT')).toEqual(['🍽'])
  expect(await missingWith('glyf', 'xxxx')).toEqual(['🍽'])
  expect(await missingWith('name', 'COLR')).toEqual(['🍽'])
})

test('damaged and hostile font files are left out', async () => {
  using files = scratch()
  const folder = files.dir
  const table = Buffer.alloc(64, 0xff)
  table.writeUInt32BE(0x10000, 0)
  table.writeUInt16BE(3, 4)
  for (const [at, tag] of ['cmap', 'maxp', 'glyf'].entries()) table.write(tag, 12 + 16 * at)
  writeFileSync(files.path('empty.ttf'), '')
  writeFileSync(files.path('text.otf'), 'no font')
  writeFileSync(files.path('tables.ttf'), table)
  writeFileSync(files.path('collection.ttc'), `ttcf${'\xff'.repeat(40)}`)
  symlinkSync(folder, files.path('circle.ttf'))
  // Opening it would wait for a writer.
  run('mkfifo', files.path('pipe.ttf'))
  await loadTypeface([folder, files.path('empty.ttf'), '/no/such/folder'])
  expect(findMissing('Menü 日')).toEqual(['日'])
})

testNoto('a font that is removed fails one text, and is not used any more', async () => {
  using files = scratch()
  const font = files.path('thai.ttf')
  copyFileSync('/usr/share/fonts/truetype/noto/NotoSansThai-Regular.ttf', font)
  await loadTypeface([files.dir])
  expect(findMissing('ไทย')).toEqual([])
  rmSync(font)
  expect(() => setLine('ไทย')).toThrow('ENOENT')
  expect(findMissing('ไทย')).toEqual(['ไ', 'ท', 'ย'])
})

test('a line breaks between words, and inside of scripts without spaces', async () => {
  await loadTypeface([])
  expect(partsOf('Speisekarte für Gäste')).toEqual(['Speisekarte ', 'für ', 'Gäste'])
  expect(partsOf('Donaudampfschifffahrt')).toEqual(['Donaudampfschifffahrt'])
  const parts = partsOf('ラーメンと餃子、「東京」。')
  expect(parts.length).toBeGreaterThan(2)
  for (const part of parts) expect(part).not.toMatch(/^[、」。ー]|「$/)
  expect(partsOf('ภาษาไทยสวัสดี').length).toBeGreaterThan(1)
})

const captions = [
  'Menü',
  'go.example/SPRING26',
  'W'.repeat(40),
  'Ế'.repeat(20),
  'a b c d e f',
  'É ',
]

test.each(captions)('the caption %s is whole, and stays inside of its width', async (text) => {
  await loadTypeface([])
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

const TALL = [
  'བོད་ཡིག སྐད',
  'قائمة الطعام اليومية للضيوف في الحديقة',
  'ทั้งหมดที่นี่ น้ำ ภู่',
  'ラーメンと餃子とお品書きのご案内です',
]

testNoto.each(TALL)('lines of the caption %s do not touch, and are inside of it', async (text) => {
  await loadTypeface(NOTO_FONTS)
  const { outlineAt, height } = layOutCaption(text, 40)
  const ys = outlineAt(0, 0).points.filter((_, at) => at % 2 === 1)
  expect(Math.min(...ys)).toBeGreaterThanOrEqual(-0.001)
  expect(Math.max(...ys)).toBeLessThanOrEqual(height + 0.001)
})

/** The area that an outline covers, in pixels. */
const areaOf = (outline: Outline, width: number, height: number): number =>
  fillOutline(outline, width, height).data.reduce((sum, shade) => sum + shade / 255, 0)

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
  expect(areaOf({ commands: 'MLLZ', points: [0, 0, 20, 10, 0, 10] }, 21, 11)).toBeCloseTo(100, 0)
  // Two thirds of the triangle of the control points. A few straight parts enclose a little less.
  const quadratic = areaOf({ commands: 'MQZ', points: [0, 10, 10, -10, 20, 10] }, 21, 11)
  expect(quadratic).toBeGreaterThan(125)
  expect(quadratic).toBeLessThan(134)
  const same = [0, 10, 20 / 3, -10 / 3, 40 / 3, -10 / 3, 20, 10]
  expect(areaOf({ commands: 'MCZ', points: same }, 21, 11)).toBeCloseTo(quadratic, 1)
})

test('what is outside of a picture changes nothing else of it', () => {
  const outside = { commands: 'MLLLZ', points: [-5, -5, 12, -5, 12, 9, -5, 9] }
  const { data } = fillOutline(outside, 6, 4)
  expect(data.every((shade) => shade > 250)).toBe(true)
  const letter = place({ ...setLine('A') }, { x: -0.3, y: 10, size: 10 })
  expect(fillOutline(letter, 8, 12).data.length).toBe(96)
})

test('path data has three decimals at most, and is read back', () => {
  expect(pathOf({ commands: 'MLZ', points: [1 / 3, 2, 0.1 + 0.2, 4] })).toBe('M0.333 2L0.3 4Z')
  const curves = { commands: 'MQCZ', points: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] }
  expect(parsePath(pathOf(curves))).toEqual(curves)
})
