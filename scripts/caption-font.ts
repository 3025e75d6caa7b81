/**
 * Writes the outlines of Inter that captions are drawn with: `npm run font:outlines`. Run it after
 * an update of `@fontsource-variable/inter`; a test fails while the files differ from the package.
 */
import { join } from 'node:path'
import { create, type Font } from 'fontkit'
import subsetFont from 'subset-font'

const FONT = join(import.meta.dir, '../node_modules/@fontsource-variable/inter/files')
const SUBSETS = 'latin latin-ext greek greek-ext cyrillic cyrillic-ext vietnamese'.split(' ')
/** Medium: thinner strokes break up on coarse printers. */
const WEIGHT = 500

/** By path from the root of the project. */
type Files = Record<'src/draw/inter.outlines' | 'src/draw/inter.gen.ts', string>

type Glyph = [advance: number, path: string]

export async function captionFont(): Promise<Files> {
  const glyphs = new Map<string, Glyph>()
  const kerning: Record<string, Record<number, string>> = {}
  for (const subset of SUBSETS) {
    const file = Buffer.from(
      await Bun.file(join(FONT, `inter-${subset}-wght-normal.woff2`)).bytes(),
    )
    const variable = create(file) as Font
    const letters = variable.characterSet.map((code) => String.fromCodePoint(code)).filter(isDrawn)
    const variationAxes = { wght: WEIGHT }
    const options = { targetFormat: 'sfnt', variationAxes } as const
    const medium = create(await subsetFont(file, letters.join(''), options)) as Font
    for (const letter of letters) {
      const { advanceWidth, path } = medium.glyphForCodePoint(letter.codePointAt(0) ?? 0)
      if (!glyphs.has(letter)) glyphs.set(letter, [Math.round(advanceWidth), path.toSVG()])
    }
    addKerning(kerning, variable, letters.filter(isKerned))
  }
  const sorted = [...glyphs].sort(([a], [b]) => (a.codePointAt(0) ?? 0) - (b.codePointAt(0) ?? 0))
  const lines = sorted.map(
    ([letter, glyph]) => `${JSON.stringify(letter)}:${JSON.stringify(glyph)}`,
  )
  return {
    'src/draw/inter.outlines': [
      `{"glyphs":{\n${lines.join(',\n')}\n}`,
      `"kerning":${JSON.stringify(kerning)}}\n`,
    ].join(','),
    'src/draw/inter.gen.ts': [
      '/** Written by scripts/caption-font.ts. Do not edit. */',
      '',
      '/** Texts in characters that the font has. */',
      `export const DRAWABLE = /^[${rangesOf(sorted.map(([letter]) => letter))}]*$/u`,
      '',
    ].join('\n'),
  }
}

/** No control characters, and none that is invisible or stands for another one. */
const isDrawn = (letter: string) => !/[\p{C}\u2028\u2029\ufffd]/u.test(letter)

/** Other letters are kerned like the one that they consist of. */
const isKerned = (letter: string) =>
  /^[\p{L}\p{N}\p{P}]$/u.test(letter) &&
  letter.normalize('NFKD') === letter &&
  /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Common}]$/u.test(letter) &&
  (letter.codePointAt(0) ?? 0) < 0x2030 &&
  !/[\u0180-\u036f\u0460-\u1fff]/.test(letter)

/** `kerning`: for a letter, its right neighbours by the change of the distance. */
function addKerning(
  kerning: Record<string, Record<number, string>>,
  font: Font,
  letters: readonly string[],
): void {
  for (const left of letters) {
    for (const right of letters) {
      const { glyphs, positions } = font.layout(left + right)
      const [glyph] = glyphs
      if (glyphs.length !== 2 || !glyph) continue
      const change = Math.round((positions[0]?.xAdvance ?? 0) - glyph.advanceWidth)
      if (change === 0) continue
      kerning[left] ??= {}
      const row = kerning[left]
      if (!row[change]?.includes(right)) row[change] = (row[change] ?? '') + right
    }
  }
}

/** The inside of a character class. */
function rangesOf(letters: readonly string[]): string {
  const codes = letters.map((letter) => letter.codePointAt(0) ?? 0)
  const text = (code: number) => `\\u{${code.toString(16)}}`
  let ranges = ''
  for (let at = 0; at < codes.length; ) {
    const first = codes[at] ?? 0
    let last = first
    while (codes[++at] === last + 1) last++
    ranges += first === last ? text(first) : `${text(first)}-${text(last)}`
  }
  return ranges
}

if (import.meta.main) {
  for (const [path, content] of Object.entries(await captionFont())) {
    await Bun.write(join(import.meta.dir, '..', path), content)
    console.log(`${path}: ${content.length} characters`)
  }
}
