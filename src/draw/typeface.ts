/** Lines of text as outlines, in every script that the fonts have. */

import bidiFactory from 'bidi-js'
import { LRUCache } from 'lru-cache'
import { assert } from '../lib/assert.ts'
import { Fonts, type Glyph, hasAll, type Run } from './fonts.ts'
import type { Outline } from './outline.ts'

/** Height of capitals, in em. */
export const CAPITAL_EM = 1490 / 2048

/** Lines that are laid out several times: measured, counted and drawn. */
const LINES_MAX = 256

interface Typeface {
  fonts: Fonts
  /** What the fonts were read from. */
  paths: string
  bidi: ReturnType<typeof bidiFactory>
  lines: LRUCache<string, Line>
}

let typeface: Typeface | undefined

/** Before the first text of a thread. `paths`: files and folders of fonts behind Inter. */
export async function loadTypeface(paths: readonly string[]): Promise<void> {
  if (typeface?.paths === paths.join()) return
  const harfbuzz = await import('harfbuzzjs')
  typeface = {
    fonts: new Fonts(harfbuzz, paths),
    paths: paths.join(),
    bidi: bidiFactory(),
    lines: new LRUCache({ max: LINES_MAX }),
  }
}

function loaded(): Typeface {
  assert(typeface, 'the typeface is loaded before a text')
  return typeface
}

const segmenter = new Intl.Segmenter()

export const graphemesOf = (text: string): string[] =>
  Array.from(segmenter.segment(text), ({ segment }) => segment)

/** What no font can draw, each once; empty for a text that can be drawn. */
export function findMissing(text: string): string[] {
  const { fonts } = loaded()
  if (hasAll(fonts.inter, text)) return []
  return [...new Set(graphemesOf(text).filter((grapheme) => !fonts.find(grapheme)))]
}

/** Whether the first letter with a direction is written from right to left. */
export function isRightToLeft(text: string): boolean {
  const { fonts, bidi } = loaded()
  // Inter has no such letters.
  return !hasAll(fonts.inter, text) && bidi.getEmbeddingLevels(text).paragraphs[0]?.level === 1
}

/** Scripts without spaces between words, and emoji. */
const UNSPACED = ['Hani', 'Hira', 'Kana', 'Thai', 'Laoo', 'Khmr', 'Mymr']
const IS_UNSPACED = new RegExp(
  `\\p{Extended_Pictographic}|${UNSPACED.map((code) => `\\p{Script=${code}}`).join('|')}`,
  'u',
)
const wordSegmenter = new Intl.Segmenter('ja', { granularity: 'word' })

/** The parts of a text between which a line may break, with the spaces behind them. */
export function partsOf(text: string): string[] {
  const spaced = text.match(/[^\s/-]+[\s/-]*|[\s/-]+/g) ?? []
  return spaced.flatMap((part) => (IS_UNSPACED.test(part) ? wordsOf(part) : [part]))
}

/** Words with the signs around them: no line begins with a comma or ends with a bracket. */
function wordsOf(text: string): string[] {
  const words: string[] = []
  for (const { segment } of wordSegmenter.segment(text)) {
    const before = words.at(-1) ?? ''
    const isTied = /^[\p{P}\p{Lm}\s]/u.test(segment) && !/^[\p{Ps}\p{Pi}]/u.test(segment)
    if (before !== '' && (isTied || /[\p{Ps}\p{Pi}]$/u.test(before)))
      words[words.length - 1] += segment
    else words.push(segment)
  }
  return words
}

/** One line of text. The unit is the em; the baseline begins at 0, 0. */
export interface Line {
  width: number
  /** Top of the highest glyph above the baseline, at least that of capitals. */
  top: number
  /** Bottom of the lowest glyph below the baseline. */
  bottom: number
  glyphs: readonly Glyph[]
}

/**
 * `text`: normalized (NFC) and without missing characters. `direction`: of the text that a line is
 * a part of; by default, that of its first letter.
 */
export function setLine(text: string, direction: 'ltr' | 'rtl' | 'auto' = 'auto'): Line {
  const { fonts, lines } = loaded()
  const key = `${direction} ${text}`
  const known = lines.get(key)
  if (known) return known
  const line: Line & { glyphs: Glyph[] } = { width: 0, top: CAPITAL_EM, bottom: 0, glyphs: [] }
  for (const run of inVisualOrder(runsOf(text, direction))) {
    const { glyphs, width } = fonts.shape(text, run)
    for (const glyph of glyphs) {
      glyph.x += line.width
      line.glyphs.push(glyph)
      line.top = Math.max(line.top, glyph.shape.top + glyph.y)
      line.bottom = Math.max(line.bottom, glyph.shape.bottom - glyph.y)
    }
    line.width += width
  }
  lines.set(key, line)
  return line
}

/** Scripts that HarfBuzz shapes by rules of their own: their letters are in runs of their own. */
const SCRIPTS = (
  'Adlm Arab Bali Beng Cham Deva Gujr Guru Hang Hebr Java Khmr Knda Lana Laoo Lepc Limb Mlym ' +
  'Mong Mymr Nkoo Orya Sinh Sund Syrc Taml Telu Thaa Thai Tibt'
)
  .split(' ')
  .map((code) => ({ code, has: new RegExp(`\\p{Script=${code}}`, 'u') }))

/** Digits, signs, spaces and emoji: they take the script of the letters before them. */
const IS_COMMON = /^[\p{Script=Common}\p{Script=Inherited}]+$/u

type LeveledRun = Run & { level: number }

/** The parts of a text in their logical order. */
function runsOf(text: string, direction: 'ltr' | 'rtl' | 'auto'): LeveledRun[] {
  const { fonts, bidi } = loaded()
  const { inter: font } = fonts
  if (direction !== 'rtl' && hasAll(font, text)) {
    const end = text.length
    return [{ font, script: '', language: 'und', level: 0, isRightToLeft: false, start: 0, end }]
  }
  const { levels } = bidi.getEmbeddingLevels(text, direction)
  const language = languageOf(text)
  const graphemes = [...segmenter.segment(text)]
  // Signs before the first letter are like it.
  const first = graphemes.find(({ segment }) => !IS_COMMON.test(segment))
  let script = first ? scriptOf(first.segment) : ''
  let near = first && fonts.find(first.segment)
  const runs: LeveledRun[] = []
  for (const { segment, index } of graphemes) {
    const isLetter = !IS_COMMON.test(segment)
    const isSame = !isLetter || scriptOf(segment) === script
    if (isLetter) script = scriptOf(segment)
    // Signs of a script are those of the font of its letters, and other signs those of Inter.
    const isNear =
      isSame && near && hasAll(near, segment) && (script !== '' || !hasAll(font, segment))
    const found = isNear ? near : fonts.find(segment)
    assert(found, 'a text has no missing characters')
    if (isLetter) near = found
    const level = levels[index] ?? 0
    const end = index + segment.length
    const last = runs.at(-1)
    if (last?.font === found && last.script === script && last.level === level) last.end = end
    else {
      const isRightToLeft = level % 2 === 1
      runs.push({ font: found, script, language, level, isRightToLeft, start: index, end })
    }
  }
  return runs
}

const scriptOf = (letters: string): string =>
  SCRIPTS.find(({ has }) => has.test(letters))?.code ?? ''

/** Decides the forms of Chinese characters. */
function languageOf(text: string): string {
  if (/[\p{Script=Hiragana}\p{Script=Katakana}]/u.test(text)) return 'ja'
  if (/\p{Script=Hangul}/u.test(text)) return 'ko'
  return /\p{Script=Han}/u.test(text) ? 'zh-hans' : 'und'
}

/** From left to right (rule L2 of the Unicode Bidirectional Algorithm). */
function inVisualOrder(runs: readonly LeveledRun[]): readonly LeveledRun[] {
  let ordered = [...runs]
  for (let level = Math.max(0, ...runs.map((run) => run.level)); level > 0; level--) {
    const reordered: LeveledRun[] = []
    let inner: LeveledRun[] = []
    for (const run of ordered) {
      if (run.level >= level) {
        inner.unshift(run)
        continue
      }
      reordered.push(...inner, run)
      inner = []
    }
    ordered = [...reordered, ...inner]
  }
  return ordered
}

/** The line with its baseline at `x`, `y`, and y downwards. `size`: of the type. */
export function place(line: Line, { x, y, size }: { x: number; y: number; size: number }): Outline {
  const points: number[] = []
  let commands = ''
  for (const { shape, x: left, y: up } of line.glyphs) {
    commands += shape.outline.commands
    const from = shape.outline.points
    for (let at = 0; at < from.length; at += 2) {
      points.push(x + ((from[at] ?? 0) + left) * size, y - ((from[at + 1] ?? 0) + up) * size)
    }
  }
  return { commands, points }
}
