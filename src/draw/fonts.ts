/**
 * The fonts of texts, as HarfBuzz reads them: the built-in Inter, and behind it those of
 * `CAPTION_FONTS`. HarfBuzz and Inter are loaded with the first text, other fonts with the first
 * character that Inter lacks.
 */

import { readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import inter from '@expo-google-fonts/inter/500Medium/Inter_500Medium.ttf' with { type: 'file' }
import type * as HarfBuzz from 'harfbuzzjs'
import { LRUCache } from 'lru-cache'
import { openFile } from '../lib/open-file.ts'
import type { Outline } from './outline.ts'

const FILES_MAX = 4000
const FILE_BYTES_MAX = 64 << 20
const CHARACTERS_BYTES_MAX = 4 << 20
/** Of the fonts that are loaded for shaping. */
const LOADED_BYTES_MAX = 64 << 20
const GLYPHS_MAX = 8192
const GRAPHEMES_MAX = 8192
/** Thinner strokes break up on coarse printers. */
const WEIGHT = 500
/** Without a glyph: joiners, variation selectors, marks of direction, and spaces of any width. */
const IGNORED = /[\p{Default_Ignorable_Code_Point}\p{Zs}]/u

export interface Font {
  path: string
  /** Of the file. */
  bytes: number
  /** Code points that it has a glyph for. */
  codes: ReadonlySet<number>
}

/** A part of a text in one font, script and direction. */
export interface Run {
  font: Font
  start: number
  end: number
  isRightToLeft: boolean
  /** ISO 15924; empty: that of the first letter. */
  script: string
  /** BCP 47. */
  language: string
}

/** A glyph of a shaped text. The unit is the em, with y upwards. */
export interface Glyph {
  id: number
  font: Font
  shape: GlyphShape
  x: number
  y: number
}

interface GlyphShape {
  outline: Outline
  /** Of its points, above and below the baseline; at least 0. */
  top: number
  bottom: number
}

export class Fonts {
  readonly #harfbuzz: typeof HarfBuzz
  readonly #paths: readonly string[]
  readonly #buffer: HarfBuzz.Buffer
  readonly inter: Font
  readonly #loaded = new LRUCache<Font, HarfBuzz.Font>({
    maxSize: LOADED_BYTES_MAX,
    sizeCalculation: (_, { bytes }) => bytes,
  })
  readonly #shapes = new LRUCache<string, GlyphShape>({ max: GLYPHS_MAX })
  readonly #found = new LRUCache<string, { font: Font | undefined }>({ max: GRAPHEMES_MAX })
  #others: readonly Font[] | undefined

  constructor(harfbuzz: typeof HarfBuzz, paths: readonly string[]) {
    this.#harfbuzz = harfbuzz
    this.#paths = paths
    this.#buffer = new harfbuzz.Buffer()
    const file = readFileSync(inter)
    const loaded = this.#open(file)
    this.inter = { path: inter, bytes: file.length, codes: codesOf(loaded) }
    this.#loaded.set(this.inter, loaded)
  }

  /** The first font that has all characters of the grapheme. */
  find(grapheme: string): Font | undefined {
    if (hasAll(this.inter, grapheme)) return this.inter
    this.#others ??= this.#readOthers()
    const known = this.#found.get(grapheme)
    if (known) return known.font
    const font = this.#others.find((other) => hasAll(other, grapheme))
    this.#found.set(grapheme, { font })
    return font
  }

  /** The glyphs of a run from left to right, and its width. `text`: the whole one. */
  shape(text: string, run: Run): { glyphs: Glyph[]; width: number } {
    const { Direction, Feature, shape } = this.#harfbuzz
    const buffer = this.#buffer
    buffer.reset()
    // With the whole text: neighbours in another font decide the form of Arabic letters too.
    buffer.addText(text, run.start, run.end - run.start)
    buffer.setDirection(run.isRightToLeft ? Direction.RTL : Direction.LTR)
    buffer.setLanguage(run.language)
    if (run.script) buffer.setScript(run.script)
    buffer.guessSegmentProperties()
    const { font } = run
    const loaded = this.#load(font)
    // Inter would print `->` as an arrow, which nobody has typed.
    shape(loaded, buffer, font === this.inter ? [new Feature('calt', 0)] : [])
    const { upem } = loaded.face
    let width = 0
    const positions = buffer.getGlyphPositions()
    const glyphs = buffer.getGlyphInfos().map(({ codepoint: id }, at): Glyph => {
      const { xOffset = 0, yOffset = 0, xAdvance = 0 } = positions[at] ?? {}
      const [x, y] = [width + xOffset / upem, yOffset / upem]
      width += xAdvance / upem
      return { id, font, shape: this.#shapeOf(font, loaded, id), x, y }
    })
    return { glyphs, width }
  }

  #shapeOf(font: Font, loaded: HarfBuzz.Font, id: number): GlyphShape {
    const key = `${id} ${font.path}`
    const known = this.#shapes.get(key)
    if (known) return known
    const { upem } = loaded.face
    const steps = loaded.glyphToJson(id)
    const commands = steps.map(({ type }) => type).join('')
    const points = steps.flatMap(({ values }) => values.map((value) => value / upem))
    const shape = { outline: { commands, points }, top: 0, bottom: 0 }
    for (let at = 1; at < points.length; at += 2) {
      const y = points[at] ?? 0
      shape.top = Math.max(shape.top, y)
      shape.bottom = Math.max(shape.bottom, -y)
    }
    this.#shapes.set(key, shape)
    return shape
  }

  #load(font: Font): HarfBuzz.Font {
    const known = this.#loaded.get(font)
    if (known) return known
    try {
      const loaded = this.#open(readFileSync(font.path))
      this.#loaded.set(font, loaded)
      return loaded
    } catch (error) {
      // It was removed, or replaced by another version: the next text is set in what is there then.
      this.#others = undefined
      this.#found.clear()
      throw error
    }
  }

  /** The first font of a file of several. */
  #open(file: Uint8Array): HarfBuzz.Font {
    const { Blob, Face, Font, Variation } = this.#harfbuzz
    const font = new Font(new Face(new Blob(file)))
    font.setVariations([new Variation('wght', WEIGHT)])
    return font
  }

  /** Fonts by preference, each of which has a character that no earlier one has. */
  #readOthers(): Font[] {
    const known = new Set(this.inter.codes)
    return this.#paths
      .flatMap((path) => this.#readFolder(path))
      .filter(({ codes }) => {
        const before = known.size
        for (const code of codes) known.add(code)
        return known.size > before
      })
  }

  #readFolder(path: string): Font[] {
    const fonts = filesIn(path).flatMap((file) => {
      const tables = readCharacters(file)
      if (!tables) return []
      const font = { path: file, bytes: statSync(file).size, codes: codesOf(this.#open(tables)) }
      return [{ font, rank: rankOf(font) }]
    })
    return fonts.sort((a, b) => a.rank - b.rank).map(({ font }) => font)
  }
}

/** A copy: HarfBuzz gives a view on its memory. */
const codesOf = (font: HarfBuzz.Font): Set<number> => new Set(font.face.collectUnicodes())

/** Whether the font has all characters of the text. */
export function hasAll({ codes }: Font, text: string): boolean {
  for (const character of text) {
    if (codes.has(character.codePointAt(0) ?? 0) || IGNORED.test(character)) continue
    return false
  }
  return true
}

const MANY_CODES = 1500

/**
 * First upright fonts without serifs, of a normal weight and width, and of these the ones of few
 * scripts, which are made with more care. The plain form of a family has the shortest name.
 */
function rankOf({ path, codes }: Font): number {
  const name = basename(path)
  const isOdd = /bold|black|heavy|light|thin|italic|oblique|condensed|narrow|mono/i.test(name)
  const isPlain = /sans|emoji|symbol/i.test(name)
  const style = (isOdd ? 2 : 0) + (isPlain ? 0 : 1)
  return 10_000 * style + (codes.size > MANY_CODES ? 1000 : 0) + name.length
}

const FONT_FILE = /\.(ttf|otf|ttc|otc)$/i

/** Files of fonts: the path itself, or those in a folder. None where that cannot be read. */
function filesIn(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path]
    const names = readdirSync(path, { recursive: true, encoding: 'utf8' })
    const files = names.filter((name) => FONT_FILE.test(name)).sort()
    return files.slice(0, FILES_MAX).map((name) => join(path, name))
  } catch {
    return []
  }
}

/** Tables of colored glyphs, which have no outlines. */
const COLORED = ['CBDT', 'sbix', 'COLR', 'SVG ']
const OUTLINES = ['glyf', 'CFF ', 'CFF2']
/** What HarfBuzz reads to list the characters. */
const CHARACTERS = ['cmap', 'maxp']

/** A font of the same characters, read without its glyphs. Undefined without outlines. */
function readCharacters(path: string): Uint8Array | undefined {
  try {
    const stat = statSync(path)
    if (!stat.isFile() || stat.size > FILE_BYTES_MAX) return undefined
    using file = openFile(path, 'r')
    const read = (at: number, length: number) => {
      const bytes = Buffer.alloc(Math.min(length, CHARACTERS_BYTES_MAX))
      return bytes.subarray(0, readSync(file.descriptor, bytes, 0, bytes.length, at))
    }
    const first = read(0, 16)
    const start = first.toString('latin1', 0, 4) === 'ttcf' ? first.readUInt32BE(12) : 0
    const count = read(start, 12).readUInt16BE(4)
    const directory = read(start + 12, 16 * count)
    const tables = new Map<string, { at: number; length: number }>()
    for (let row = 0; row < directory.length; row += 16) {
      const [at, length] = [directory.readUInt32BE(row + 8), directory.readUInt32BE(row + 12)]
      tables.set(directory.toString('latin1', row, row + 4), { at, length })
    }
    if (COLORED.some((tag) => tables.has(tag))) return undefined
    if (!OUTLINES.some((tag) => tables.has(tag))) return undefined
    return withTables(
      CHARACTERS.map((tag) => {
        const { at = 0, length = 0 } = tables.get(tag) ?? {}
        return [tag, read(at, length)]
      }),
    )
  } catch {
    return undefined
  }
}

/** A font file of these tables. HarfBuzz checks no checksums. */
function withTables(tables: readonly [tag: string, content: Buffer][]): Uint8Array {
  const directory = Buffer.alloc(12 + 16 * tables.length)
  directory.writeUInt32BE(0x10000, 0)
  directory.writeUInt16BE(tables.length, 4)
  let at = directory.length
  for (const [row, [tag, content]] of tables.entries()) {
    const start = 12 + 16 * row
    directory.write(tag, start, 'latin1')
    directory.writeUInt32BE(at, start + 8)
    directory.writeUInt32BE(content.length, start + 12)
    at += content.length
  }
  return Buffer.concat([directory, ...tables.map(([, content]) => content)])
}
