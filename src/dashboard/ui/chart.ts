import { isoTime } from '../../lib/clock.ts'
import { attributes, type Html, html } from '../../lib/html.ts'

/** How the script writes a moment in the visitor's own zone. */
type TimeForm = 'hour' | 'moment'

export interface Bar {
  /** What stands below it on the axis, and before its value where the pointer rests. */
  label: string
  /** Epoch ms and form of the label, where the script is to say it in the visitor's zone. */
  at?: { time: number; form: TimeForm }
  /** Whole, 0 or more. */
  value: number
  /** Its time is not over: the value may grow. It is drawn as an outline. */
  isOpen?: boolean
}

interface ChartOptions {
  /** Begins the ids inside: one chart of a page has it. */
  id: string
  /** What the chart is of, in a few words. */
  title: string
  /** What it shows, in a sentence, for who cannot see it. */
  description: string
  /** At least one, in the order of time. */
  bars: readonly Bar[]
  /** What is counted, after its number: `hit`. */
  unit: string
}

/** In pixels of a drawing that grows and shrinks with its place. */
interface Size {
  name: 'wide' | 'narrow'
  width: number
  height: number
}

const SIZES: readonly Size[] = [
  { name: 'wide', width: 840, height: 260 },
  { name: 'narrow', width: 360, height: 230 },
]
const MARGIN = { left: 44, right: 22, top: 22, bottom: 28 }
/** About the width of a digit, at the size of text that the style sheet gives. */
const DIGIT_WIDTH = 7
/** What the longest label of a form takes in the languages that write it longest. */
const FORM_DIGITS: Readonly<Record<TimeForm, number>> = { hour: 8, moment: 17 }
const STEPS_MAX = 4

/**
 * A bar chart as SVG, drawn once for wide and once for narrow screens: the style sheet shows one of
 * them. It reads without colour: axes with numbers, values on the bars where they have room, and
 * an outline for a bar whose time is not over. All colours come from the style sheet.
 */
export const barChart = (options: ChartOptions): Html =>
  html`<div class="chart">${SIZES.map((size) => drawing(options, size))}</div>`

/** Round steps of an axis from 0 up to `most` or just above, four at most. */
export function axisSteps(most: number): number[] {
  const rough = Math.max(1, most / STEPS_MAX)
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, i) => i * step)
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const compact = (value: number): string => COMPACT.format(value)

function drawing({ id, title, description, bars, unit }: ChartOptions, size: Size): Html {
  const { name, width, height } = size
  const ids = { title: `${id}-${name}-title`, desc: `${id}-${name}-desc` }
  const all = attributes({
    class: name,
    role: 'img',
    'aria-labelledby': `${ids.title} ${ids.desc}`,
  })
  const most = bars.reduce((highest, { value }) => Math.max(highest, value), 0)
  const steps = axisSteps(most)
  const plot = {
    width: width - MARGIN.left - MARGIN.right,
    height: height - MARGIN.top - MARGIN.bottom,
    top: steps.at(-1) ?? 1,
  }
  return html`
    <svg viewBox="${`0 0 ${width} ${height}`}" ${all}>
      <title id="${ids.title}">${title}</title>
      <desc id="${ids.desc}">${description}</desc>
      ${steps.map((step) => gridLine(plot, step))}
      ${bars.map((bar, i) => column(plot, bar, { i, count: bars.length, unit }))}
      ${values(plot, bars, most)}
      ${labels(plot, bars)}
    </svg>`
}

interface Plot {
  width: number
  height: number
  /** The value at the upper end of the axis. */
  top: number
}

const round = (pixels: number): number => Math.round(pixels * 10) / 10
const yOf = ({ height, top }: Plot, value: number): number =>
  round(MARGIN.top + height - (value / top) * height)
const middleOf = ({ width }: Plot, i: number, count: number): number =>
  round(MARGIN.left + ((i + 0.5) * width) / count)

function gridLine(plot: Plot, step: number): Html {
  const y = yOf(plot, step)
  const label = { x: MARGIN.left - 8, y: y + 4, 'text-anchor': 'end' }
  const line = { class: step === 0 ? 'axis' : 'grid', x1: MARGIN.left, y1: y, y2: y }
  return html`
    <line ${attributes({ ...line, x2: MARGIN.left + plot.width })} />
    <text ${attributes(label)}>${compact(step)}</text>`
}

interface Place {
  i: number
  count: number
  unit: string
}

/** The bar, and around it the whole height of its place, so that a pointer finds an empty one. */
function column(plot: Plot, bar: Bar, { i, count, unit }: Place): Html {
  const slot = plot.width / count
  const gap = slot > 6 ? slot * 0.2 : slot * 0.1
  const x = MARGIN.left + i * slot
  // One hit beside thousands is still to be seen.
  const y = Math.min(yOf(plot, bar.value), yOf(plot, 0) - (bar.value > 0 ? 2 : 0))
  const shape = {
    ...{ class: bar.isOpen ? 'bar open' : 'bar', x: round(x + gap / 2), y },
    ...{ width: round(slot - gap), height: round(yOf(plot, 0) - y), rx: slot > 12 ? 2 : 0 },
  }
  const whole = { class: 'place', x: round(x), y: MARGIN.top, width: round(slot) }
  const tail = `: ${bar.value.toLocaleString('en')} ${bar.value === 1 ? unit : `${unit}s`}${
    bar.isOpen ? ' so far' : ''
  }`
  const moment = bar.at && { 'data-at': isoTime(bar.at.time), 'data-form': 'moment' }
  return html`
    <g>
      <title ${attributes({ ...moment, 'data-tail': moment && tail })}>${bar.label}${tail}</title>
      <rect ${attributes({ ...whole, height: plot.height })} />
      ${bar.value > 0 && html`<rect ${attributes(shape)} />`}
    </g>`
}

/** The value above each bar where all have room side by side, else above the highest alone. */
function values(plot: Plot, bars: readonly Bar[], most: number): Html[] {
  if (most === 0) return []
  const slot = plot.width / bars.length
  const longest = bars.reduce((max, { value }) => Math.max(max, compact(value).length), 0)
  const areAllShown = longest * DIGIT_WIDTH + 4 <= slot
  const highest = bars.findLastIndex(({ value }) => value === most)
  return bars.flatMap(({ value }, i) => {
    if (value === 0 || !(areAllShown || i === highest)) return []
    const place = { x: middleOf(plot, i, bars.length), y: yOf(plot, value) - 6 }
    const all = attributes({ class: 'value', ...place, 'text-anchor': 'middle' })
    return [html`<text ${all}>${compact(value)}</text>`]
  })
}

/** As many labels below the axis as have room side by side, the newest always. */
function labels(plot: Plot, bars: readonly Bar[]): Html[] {
  const longest = bars.reduce(
    (max, { label, at }) => Math.max(max, at ? FORM_DIGITS[at.form] : label.length),
    0,
  )
  const half = (longest * DIGIT_WIDTH) / 2
  const edge = MARGIN.left + plot.width + MARGIN.right - half
  // From the newest back, each clear of the one before.
  let free = Number.POSITIVE_INFINITY
  const shown: Html[] = []
  for (const [i, { label, at }] of [...bars.entries()].reverse()) {
    const middle = Math.min(middleOf(plot, i, bars.length), edge)
    if (middle - half < 0 || middle + half > free) continue
    free = middle - half - 2 * DIGIT_WIDTH
    const all = attributes({
      ...{ x: round(middle), y: MARGIN.top + plot.height + 19, 'text-anchor': 'middle' },
      ...(at && { 'data-at': isoTime(at.time), 'data-form': at.form }),
    })
    shown.push(html`<text ${all}>${label}</text>`)
  }
  return shown
}
