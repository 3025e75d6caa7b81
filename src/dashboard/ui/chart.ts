import { dateOf, type HitRange, hourOfDay } from '../../hits/range.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { plural } from './components.ts'

export interface Bar {
  /** The period of the bar, as it is shown with its value. */
  label: string
  /** An integer, 0 or more. */
  value: number
  /** The value of the same part of the period before. */
  previous?: number | undefined
  /** Its period is not over and the value may grow. It is drawn as an outline. */
  isOpen?: boolean
  /** Label and value in another language than English. */
  text?: string
}

/** A label below the axis. */
interface Tick {
  /** From 0, the left end of the axis, to 1. */
  at: number
  text: string
  /** Each width of screen has its own labels. */
  screen: Screen
}

interface ChartProps {
  title: string
  /** A sentence for screen readers. */
  description: string
  /** At least one, in the order of time. */
  bars: readonly Bar[]
  ticks: readonly Tick[]
}

/** Pixels between the axes at least, on wide and on narrow screens. */
export const WIDTHS = { wide: 560, narrow: 250 }
type Screen = keyof typeof WIDTHS
/** Pixels around the axes, as in the style sheet. */
export const MARGIN = { left: 44, right: 22 }
/** Width of a character in pixels, at the font size of the style sheet. */
export const CHARACTER_WIDTH = 7.5
const STEPS_MAX = 4

/**
 * A bar chart as SVG, readable without color: numbers on the axes, the highest value, and an
 * outline for the current period. A line above the bars shows the period before. The value of
 * every bar is in its tooltip, which `charts.js` also opens by keyboard. All positions are
 * percentages, so it fits any width without scaling its text.
 */
export function barChart({ title, description, bars, ticks }: ChartProps): Html {
  const values = bars.flatMap(({ value, previous = 0 }) => [value, previous])
  const top = Math.max(1, ...values)
  const steps = axisSteps(top)
  return html`<div class="chart">
    <svg role="img" aria-labelledby="chart-title chart-desc" data-chart>
      <title id="chart-title">${title}</title>
      <desc id="chart-desc">${description}</desc>
      <g aria-hidden="true">
        ${steps.map((step) => gridLine(step, top))}
        ${bars.map((bar, i) => column(bar, { i, count: bars.length, top }))}
        ${previousLine(bars, top)}
        ${highestValue(bars, top)}
        ${ticks.map(tickLabel)}
      </g>
    </svg></div>`
}

/** Round steps of an axis from 0 up to `highest`, about four. */
export function axisSteps(highest: number): number[] {
  const rough = Math.max(1, highest / STEPS_MAX)
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power
  return Array.from({ length: Math.floor(highest / step) + 1 }, (_, i) => i * step)
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const compact = (value: number): string => COMPACT.format(value)

const percent = (share: number): string => `${Math.round(share * 10_000) / 100}%`
/** Where the middle of a bar is, from 0 to 1. */
const middleOf = (i: number, count: number): number => (i + 0.5) / count

function gridLine(step: number, top: number): Html {
  const y = percent(1 - step / top)
  return html`
    <line class="${step === 0 ? 'axis' : 'grid'}" x2="100%" y1="${y}" y2="${y}" />
    <text y="${y}" dx="-8" dy="4" text-anchor="end">${compact(step)}</text>`
}

/** Keeps one hit visible beside thousands. */
const SHARE_MIN = 0.01

/** A bar, and its whole column, which has the tooltip even if the bar is empty. */
function column(bar: Bar, { i, count, top }: { i: number; count: number; top: number }): Html {
  const slot = 1 / count
  const gap = slot * 0.2
  const share = Math.max(bar.value / top, SHARE_MIN)
  const shape = {
    class: bar.isOpen ? 'bar open' : 'bar',
    x: percent(i * slot + gap / 2),
    y: percent(1 - share),
    width: percent(slot - gap),
    height: percent(share),
  }
  const value = `${plural(bar.value, 'hit')}${bar.isOpen ? ' so far' : ''}`
  const before = bar.previous === undefined ? '' : `, ${plural(bar.previous, 'hit')} before`
  return html`
    <g>
      <title>${bar.text ?? `${bar.label}: ${value}${before}`}</title>
      <rect class="place" x="${percent(i * slot)}" width="${percent(slot)}" height="100%" />
      ${bar.value > 0 && html`<rect ${attributes(shape)} />`}
    </g>`
}

/** A line through the middles of the bars, in a drawing that is stretched to the axes. */
function previousLine(bars: readonly Bar[], top: number): Html | false {
  if (!bars.some(({ previous = 0 }) => previous > 0)) return false
  const points = bars.map(
    ({ previous = 0 }, i) => `${i + 0.5},${round(100 - (previous / top) * 100)}`,
  )
  return html`<svg width="100%" height="100%" preserveAspectRatio="none"
      viewBox="0 0 ${bars.length} 100">
    <polyline class="before" points="${points.join(' ')}" /></svg>`
}

const round = (n: number): number => Math.round(n * 100) / 100

function highestValue(bars: readonly Bar[], top: number): Html | false {
  const highest = Math.max(...bars.map(({ value }) => value))
  const i = bars.findLastIndex(({ value }) => value === highest)
  if (highest === 0) return false
  const x = percent(middleOf(i, bars.length))
  const y = percent(1 - highest / top)
  return html`<text class="value" x="${x}" y="${y}" dy="-6"
    text-anchor="middle">${compact(highest)}</text>`
}

function tickLabel({ at, text, screen }: Tick): Html {
  const all = { class: screen, x: percent(at), y: '100%', dy: 19, 'text-anchor': 'middle' }
  return html`<text ${attributes(all)}>${text}</text>`
}

/** Labels below the axis of time: at round hours, at days, on Mondays, or at months. */

/** One of the sets of labels that suit a range, the densest first. */
type Ticks = readonly Omit<Tick, 'screen'>[]

export function timeTicks(range: HitRange): Tick[] {
  const sets = tickSets(range)
  return (['wide', 'narrow'] as const).flatMap((screen) =>
    densest(sets, screen).map(({ at, text }) => ({ at, text, screen })),
  )
}

const GAP = 2 * CHARACTER_WIDTH

/** The first set whose labels are inside the drawing with a gap between each two. */
function densest(sets: readonly Ticks[], screen: Screen): Ticks {
  const width = WIDTHS[screen]
  const reach = ({ text }: { text: string }) => (text.length * CHARACTER_WIDTH) / 2
  const inside = (ticks: Ticks) =>
    ticks.filter(
      (tick) =>
        tick.at * width - reach(tick) >= -MARGIN.left &&
        tick.at * width + reach(tick) <= width + MARGIN.right,
    )
  const fits = (ticks: Ticks) =>
    ticks.every((tick, i) => {
      const next = ticks[i + 1]
      return !next || (next.at - tick.at) * width >= reach(tick) + reach(next) + GAP
    })
  return sets.map(inside).find(fits) ?? []
}

function tickSets(range: HitRange): Ticks[] {
  const { unit, zone } = range
  const starts = range.bounds.slice(0, -1)
  if (unit === 'hour') {
    const hours = starts.map((hour, i) => {
      const time = hourOfDay(hour, zone)
      const text =
        time === 0 ? shortDate(dateOf(hour, zone)) : `${String(time).padStart(2, '0')}:00`
      return { time, at: middleOf(i, starts.length), text }
    })
    return [1, 2, 3, 6, 12, 24].map((step) => hours.filter(({ time }) => time % step === 0))
  }
  const days = starts.map((hour, i) => {
    const date = dateOf(hour, zone)
    return { date, at: middleOf(i, starts.length), text: shortDate(date) }
  })
  const months = monthStarts(range).map((month) => {
    const bar = days.findLastIndex(({ date }) => Temporal.PlainDate.compare(date, month) <= 0)
    const part = unit === 'day' ? 0.5 : (days[bar]?.date.until(month).days ?? 0) / 7
    const text = month.month === 1 ? `Jan ${month.year}` : shortMonth(month)
    return { month, at: (bar + part) / starts.length, text }
  })
  const everyMonth = [1, 2, 3, 6].map((step) =>
    months.filter(({ month }) => (month.month - 1) % step === 0),
  )
  if (unit === 'week') return everyMonth
  const mondays = days.filter(({ date }) => date.dayOfWeek === 1)
  return [days, mondays, mondays.filter((_, i) => i % 2 === 0), ...everyMonth]
}

function monthStarts({ first, last }: HitRange): Temporal.PlainDate[] {
  const starts: Temporal.PlainDate[] = []
  let month = first.with({ day: 1 }).add({ months: first.day === 1 ? 0 : 1 })
  for (; Temporal.PlainDate.compare(month, last) <= 0; month = month.add({ months: 1 })) {
    starts.push(month)
  }
  return starts
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const shortMonth = ({ month }: Temporal.PlainDate): string => MONTHS[month - 1] ?? ''

export const shortDate = (date: Temporal.PlainDate): string => `${date.day} ${shortMonth(date)}`
export const longDate = (date: Temporal.PlainDate): string => `${shortDate(date)} ${date.year}`

/** Height of the picture in units of its view box. */
const HEIGHT = 16
const STEP = 2

const SPARKS = { day: ['hit', 'day'], minute: ['hit', 'minute'], scan: ['scan', 'day'] } as const

/** A line of one point per day or minute, oldest first, up to the one with the most hits. */
export function sparkline(counts: readonly number[], kind: keyof typeof SPARKS = 'day'): Html {
  const most = Math.max(...counts, 1)
  const sum = counts.reduce((total, count) => total + count, 0)
  const heights = counts.map((count) => HEIGHT - Math.round((count / most) * HEIGHT))
  const steps = heights.slice(1).map((y, i) => y - (heights[i] ?? 0))
  const shown = steps.map((step) => (step < 0 ? `${STEP}${step}` : `${STEP} ${step}`))
  const path = `M0 ${heights[0] ?? HEIGHT}l${shown.join(' ')}`
  const [what, unit] = SPARKS[kind]
  const label = `${plural(sum, what)} in ${plural(counts.length, unit)}`
  const width = STEP * (counts.length - 1)
  return html`<svg class="spark" role="img" aria-label="${label}" viewBox="0 -1 ${width} 18"
    preserveAspectRatio="none"><path d="${path}"/></svg>`
}
