/** Inter Medium as outlines, so that no image depends on an installed font. */

import { readFileSync } from 'node:fs'
import { DRAWABLE } from './inter.gen.ts'
import file from './inter.outlines' with { type: 'file' }
import { type Outline, parsePath } from './outline.ts'

/** Units of the font per em, the size of the type. */
const UNITS_PER_EM = 2048
/** Height of capitals, and of small letters without ascenders, in em. */
export const CAPITAL_EM = 1490 / UNITS_PER_EM
const SMALL_UNITS = 1118

interface Typeface {
  /** By character: the advance, and the outlines with y upwards. */
  glyphs: Record<string, [advance: number, path: string]>
  /** By left character: right characters by the change of the advance. */
  kerning: Record<string, Record<string, string>>
}

let typeface: Typeface | undefined

/** At the first use: 3 MB that a service without captions does not need. */
function load(): Typeface {
  typeface ??= JSON.parse(readFileSync(file, 'utf8')) as Typeface
  return typeface
}

/** The first character that the font does not have; undefined for a text that it can draw. */
export function findMissing(text: string): string | undefined {
  return DRAWABLE.test(text) ? undefined : [...text].find((character) => !DRAWABLE.test(character))
}

/** A letter or a mark, in units of the font with y upwards. */
interface Glyph {
  outline: Outline
  advance: number
  left: number
  right: number
  top: number
  /** The letter without its marks, which decides the kerning. */
  base: string
  /** Combines with the letter before. */
  isMark: boolean
}

/** By character. Each is parsed once. */
const glyphs = new Map<string, Glyph>()

function glyphOf(character: string): Glyph {
  const known = glyphs.get(character)
  if (known) return known
  const [advance, path] = load().glyphs[character] ?? [0, '']
  const outline = parsePath(path)
  const { points } = outline
  const xs = points.filter((_, at) => at % 2 === 0)
  const ys = points.filter((_, at) => at % 2 === 1)
  const glyph = {
    outline,
    advance,
    left: Math.min(...xs),
    right: Math.max(...xs),
    top: Math.max(0, ...ys),
    base: character.normalize('NFKD')[0] ?? character,
    isMark: /\p{Mn}/u.test(character),
  }
  glyphs.set(character, glyph)
  return glyph
}

/** One line of text. The unit is the em; the baseline begins at 0, 0. */
export interface Line {
  width: number
  /** Top of the highest letter above the baseline, at least that of capitals. */
  top: number
  letters: readonly Letter[]
}

interface Letter {
  glyph: Glyph
  /** Offset in units of the font. */
  x: number
  y: number
}

/** `text`: normalized (NFC) and without missing characters. */
export function setLine(text: string): Line {
  const letters: Letter[] = []
  let [x, top, before] = [0, CAPITAL_EM * UNITS_PER_EM, '']
  for (const character of text) {
    const glyph = glyphOf(character)
    const last = letters.at(-1)
    if (glyph.isMark && last) {
      letters.push(markOver(last, glyph))
    } else {
      x += kerningAfter(before).get(glyph.base) ?? 0
      letters.push({ glyph, x, y: 0 })
      x += glyph.advance
      before = glyph.base
    }
    top = Math.max(top, glyph.top + (letters.at(-1)?.y ?? 0))
  }
  return { width: x / UNITS_PER_EM, top: top / UNITS_PER_EM, letters }
}

/** By left letter: the change of the advance by right letter. */
const kerning = new Map<string, Map<string, number>>()

function kerningAfter(left: string): Map<string, number> {
  const known = kerning.get(left)
  if (known) return known
  const rows = Object.entries(load().kerning[left] ?? {})
  const pairs = rows.flatMap(([change, rights]) =>
    [...rights].map((right): [string, number] => [right, Number(change)]),
  )
  const changes = new Map(pairs)
  kerning.set(left, changes)
  return changes
}

/** A combining mark that has no letter of its own is centered, and raised above high letters. */
function markOver({ glyph, x, y }: Letter, mark: Glyph): Letter {
  const middle = (glyph.left + glyph.right - mark.left - mark.right) / 2
  const isAbove = mark.top > SMALL_UNITS
  return { glyph: mark, x: x + middle, y: isAbove ? Math.max(0, y + glyph.top - SMALL_UNITS) : 0 }
}

/** The line with its baseline at `x`, `y`, and y downwards. `size`: of the type. */
export function place(line: Line, { x, y, size }: { x: number; y: number; size: number }): Outline {
  const scale = size / UNITS_PER_EM
  const points: number[] = []
  let commands = ''
  for (const { glyph, x: left, y: up } of line.letters) {
    commands += glyph.outline.commands
    const from = glyph.outline.points
    for (let at = 0; at < from.length; at += 2) {
      points.push(x + ((from[at] ?? 0) + left) * scale, y - ((from[at + 1] ?? 0) + up) * scale)
    }
  }
  return { commands, points }
}
