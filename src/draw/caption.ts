/** The text below a QR code. */

import { joined, type Outline } from './outline.ts'
import { isRightToLeft, type Line, partsOf, place, setLine } from './typeface.ts'

/** Largest type, in parts of the width. Shorter texts do not become larger than that. */
const SIZE_MAX = 1 / 8
/** Type that is smaller on one line continues on a second one. */
const ONE_LINE_SIZE_MIN = 1 / 13
/** Between baselines, in em. */
const LINE_HEIGHT_EM = 1.3
/** Below the last baseline, for descenders, in em. */
const DESCENT_EM = 0.25

/** Between a code and its caption: the quiet zone that the standard asks for. */
export const CAPTION_GAP_MODULES = 4

export interface Caption {
  /** From the top of the highest letter to the descenders of the last line. */
  height: number
  /** The letters with the top left of the text at `x`, `y`. */
  outlineAt: (x: number, y: number) => Outline
}

/** Centered on one line or two, as large as it fits into `width`, whose unit the result has. */
export function layOutCaption(text: string, width: number): Caption {
  const whole = [setLine(text)]
  const isLong = width / widestOf(whole) < ONE_LINE_SIZE_MIN * width
  const lines = isLong ? balanced(text) : whole
  const size = Math.min(SIZE_MAX * width, width / widestOf(lines))
  const baselines: number[] = []
  let below = 0
  for (const { top, bottom } of lines) {
    const before = baselines.at(-1)
    const least = before === undefined ? 0 : before + LINE_HEIGHT_EM
    baselines.push(Math.max(least, below + top))
    below = (baselines.at(-1) ?? 0) + Math.max(DESCENT_EM, bottom)
  }
  const outlineAt = (x: number, y: number) =>
    joined(
      lines.map((line, at) => {
        const left = x + (width - line.width * size) / 2
        return place(line, { x: left, y: y + (baselines[at] ?? 0) * size, size })
      }),
    )
  return { height: below * size, outlineAt }
}

const widestOf = (lines: readonly Line[]): number => Math.max(...lines.map(({ width }) => width))

/** The two lines that are nearest to each other in width: broken at a space, else after a sign. */
function balanced(text: string): Line[] {
  const direction = isRightToLeft(text) ? 'rtl' : 'ltr'
  const breaks = [
    [...text.matchAll(/ /g)].map(({ index }) => index),
    [...text.matchAll(/(?<=[-/._~?=&])/g)].map(({ index }) => index),
    endsOf(partsOf(text)),
  ]
    .map((indexes) => indexes.filter((index) => index > 0 && index < text.length))
    .find((indexes) => indexes.length > 0)
  const pairs = (breaks ?? []).map((at) => [
    setLine(text.slice(0, at).trim(), direction),
    setLine(text.slice(at).trim(), direction),
  ])
  const [first = [setLine(text)], ...others] = pairs
  return others.reduce((best, pair) => (widestOf(pair) < widestOf(best) ? pair : best), first)
}

const endsOf = (parts: readonly string[]): number[] =>
  parts.map((_, at) => parts.slice(0, at + 1).join('').length)
