import { isoTime } from '../../lib/clock.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { plural } from './components.ts'

/** How the script formats a time in the browser's time zone. */
type TimeForm = 'hour' | 'moment'

export interface Bar {
  /** Below the bar on the axis, and in its tooltip. */
  label: string
  /** Epoch ms and form of the label, if the script shows it in the browser's time zone. */
  at?: { time: number; form: TimeForm }
  /** An integer, 0 or more. */
  value: number
  /** Its period is not over and the value may grow. It is drawn as an outline. */
  isOpen?: boolean
}

interface ChartProps {
  /** Prefix of the ids inside, unique on the page. */
  id: string
  title: string
  /** A sentence for screen readers. */
  description: string
  /** At least one, in the order of time. */
  bars: readonly Bar[]
  /** What is counted, in the singular: `hit`. */
  unit: string
}

/** Pixels between the axes at least, on wide and on narrow screens. */
export const WIDTHS = { wide: 560, narrow: 250 }
/** Pixels around the axes, as in the style sheet. */
export const MARGIN = { left: 44, right: 22 }
/** Pixels of a digit, at the font size of the style sheet. */
export const DIGIT_WIDTH = 7
/** Characters of the longest label of a form, in the languages that need most. */
const FORM_DIGITS: Readonly<Record<TimeForm, number>> = { hour: 8, moment: 17 }
const STEPS_MAX = 4

/**
 * A bar chart as SVG, readable without color: numbers on the axes, values above bars that have
 * room, and an outline for the current period. All positions are percentages, so it fits any width
 * without scaling its text. The style sheet sets height, margins and colors, and hides what has the
 * class `wide` on narrow screens.
 */
export function barChart({ id, title, description, bars, unit }: ChartProps): Html {
  const highest = bars.reduce((max, { value }) => Math.max(max, value), 0)
  const steps = axisSteps(highest)
  const top = steps.at(-1) ?? 1
  return html`<div class="chart">
    <svg role="img" aria-labelledby="${id}-title ${id}-desc">
      <title id="${id}-title">${title}</title>
      <desc id="${id}-desc">${description}</desc>
      ${steps.map((step) => gridLine(step, top))}
      ${bars.map((bar, i) => column(bar, { i, count: bars.length, top, unit }))}
      ${values(bars, highest, top)}
      ${labels(bars)}
    </svg></div>`
}

/** Round steps of an axis from 0 to `highest` or just above, about four. */
export function axisSteps(highest: number): number[] {
  const rough = Math.max(1, highest / STEPS_MAX)
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power
  return Array.from({ length: Math.max(1, Math.ceil(highest / step)) + 1 }, (_, i) => i * step)
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const compact = (value: number): string => COMPACT.format(value)

const percent = (share: number): string => `${Math.round(share * 10_000) / 100}%`
/** Where the middle of a bar is, from 0 to 1. */
const middleOf = (i: number, count: number): number => (i + 0.5) / count

function gridLine(step: number, top: number): Html {
  const y = percent(1 - step / top)
  const line = attributes({ class: step === 0 ? 'axis' : 'grid', x2: '100%', y1: y, y2: y })
  return html`
    <line ${line} />
    <text ${attributes({ y, dx: -8, dy: 4, 'text-anchor': 'end' })}>${compact(step)}</text>`
}

/** Keeps one hit visible beside thousands. */
const SHARE_MIN = 0.01

interface ColumnProps {
  i: number
  count: number
  top: number
  unit: string
}

/** A bar, and its whole column, which has the tooltip even if the bar is empty. */
function column(bar: Bar, { i, count, top, unit }: ColumnProps): Html {
  const slot = 1 / count
  const gap = count < 100 ? slot * 0.2 : slot * 0.1
  const share = Math.max(bar.value / top, SHARE_MIN)
  const shape = {
    class: bar.isOpen ? 'bar open' : 'bar',
    x: percent(i * slot + gap / 2),
    y: percent(1 - share),
    width: percent(slot - gap),
    height: percent(share),
  }
  const place = { class: 'place', x: percent(i * slot), width: percent(slot), height: '100%' }
  const tail = `: ${plural(bar.value, unit)}${bar.isOpen ? ' so far' : ''}`
  const time = bar.at && { 'data-at': isoTime(bar.at.time), 'data-form': 'moment' }
  return html`
    <g>
      <title ${attributes({ ...time, 'data-tail': time && tail })}>${bar.label}${tail}</title>
      <rect ${attributes(place)} />
      ${bar.value > 0 && html`<rect ${attributes(shape)} />`}
    </g>`
}

/** The value above each bar if all have room side by side, else above the highest alone. */
function values(bars: readonly Bar[], highest: number, top: number): Html[] {
  if (highest === 0) return []
  const longest = bars.reduce((max, { value }) => Math.max(max, compact(value).length), 0)
  const fits = (width: number) => longest * DIGIT_WIDTH + 4 <= width / bars.length
  const highestIndex = bars.findLastIndex(({ value }) => value === highest)
  return bars.flatMap(({ value }, i) => {
    const isHighest = i === highestIndex
    if (value === 0 || !(isHighest || fits(WIDTHS.wide))) return []
    const all = attributes({
      class: isHighest || fits(WIDTHS.narrow) ? 'value' : 'value wide',
      x: percent(middleOf(i, bars.length)),
      y: percent(1 - value / top),
      dy: -6,
      'text-anchor': 'middle',
    })
    return [html`<text ${all}>${compact(value)}</text>`]
  })
}

/** As many labels below the axis as have room side by side, always including the newest. */
function labels(bars: readonly Bar[]): Html[] {
  const half =
    (DIGIT_WIDTH / 2) *
    Math.max(...bars.map(({ label, at }) => (at ? FORM_DIGITS[at.form] : label.length)))
  /** How far the newest label would reach over the right edge. */
  const overhang = Math.max(0, half - MARGIN.right - WIDTHS.narrow / bars.length / 2)
  const stepAt = (width: number) =>
    Math.ceil((2 * half + 2 * DIGIT_WIDTH + overhang) / (width / bars.length))
  const isInside = (i: number, width: number) =>
    middleOf(i, bars.length) * width - half >= -MARGIN.left
  const wideStep = stepAt(WIDTHS.wide)
  const narrowStep = Math.ceil(stepAt(WIDTHS.narrow) / wideStep) * wideStep
  return bars.flatMap(({ label, at }, i) => {
    const age = bars.length - 1 - i
    if (age % wideStep !== 0 || (age > 0 && !isInside(i, WIDTHS.wide))) return []
    const isNarrow = age === 0 || (age % narrowStep === 0 && isInside(i, WIDTHS.narrow))
    const place =
      age === 0 && overhang > 0
        ? { x: '100%', dx: MARGIN.right, 'text-anchor': 'end' }
        : { x: percent(middleOf(i, bars.length)), 'text-anchor': 'middle' }
    const all = attributes({
      class: isNarrow ? undefined : 'wide',
      ...place,
      y: '100%',
      dy: 19,
      ...(at && { 'data-at': isoTime(at.time), 'data-form': at.form }),
    })
    return [html`<text ${all}>${label}</text>`]
  })
}
