import {
  type Bucket,
  dayOf,
  HOURS_OF_DAY,
  hourOf,
  type SeriesQuery,
  type Step,
} from '../../hits/series.ts'
import { HOUR, isoTime } from '../../lib/clock.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { type Bar, barChart } from './chart.ts'
import * as parts from './components.ts'

/** Hits over time as a part of a page: ranges to choose from, the sum, a chart and a table. */

interface Range {
  label: string
  /** Behind "1,234 hits": which time the chart shows. */
  says: string
  step: Step
  /** How many buckets it shows, and how many of them one bar stands for. */
  buckets: number
  perBar: number
  /** What one bar stands for. */
  bar: 'hour' | 'day' | 'week'
}

const RANGES = {
  '24h': {
    ...{ label: '24 hours', says: 'in the last 24 hours', bar: 'hour' },
    ...{ step: 'hour', buckets: 24, perBar: 1 },
  },
  '72h': {
    ...{ label: '72 hours', says: 'in the last 72 hours', bar: 'hour' },
    ...{ step: 'hour', buckets: 72, perBar: 1 },
  },
  '30d': {
    ...{ label: '30 days', says: 'in the last 30 days', bar: 'day' },
    ...{ step: 'day', buckets: 30, perBar: 1 },
  },
  '90d': {
    ...{ label: '90 days', says: 'in the last 90 days', bar: 'day' },
    ...{ step: 'day', buckets: 90, perBar: 1 },
  },
  year: {
    ...{ label: 'Year', says: 'in the last 52 weeks', bar: 'week' },
    ...{ step: 'day', buckets: 364, perBar: 7 },
  },
} as const satisfies Record<string, Range>

export type RangeName = keyof typeof RANGES
const USUAL: RangeName = '30d'
/** The range of a query, or the usual one for what is none. */
export const rangeNamed = (text = ''): RangeName =>
  Object.hasOwn(RANGES, text) ? (text as RangeName) : USUAL

export interface HitChart {
  range: Range
  /** Of the account, or the link, since it was made. */
  total: number
  sum: number
  bars: readonly (Bar & { start: number })[]
  /** What to do where nobody has followed anything yet. */
  empty: Html
}

/** What a range shows at `now`, its current hour or day included. */
export function queryOf(name: RangeName, now: number): SeriesQuery {
  const { step, buckets } = RANGES[name]
  const hours = step === 'hour' ? 1 : HOURS_OF_DAY
  const current = step === 'hour' ? hourOf(now) : dayOf(hourOf(now)) * HOURS_OF_DAY
  return { from: (current - (buckets - 1) * hours) * HOUR, to: now + 1, step }
}

interface Counted {
  buckets: readonly Bucket[]
  total: number
  empty: Html
}

export function hitChart(name: RangeName, { buckets, total, empty }: Counted): HitChart {
  const range: Range = RANGES[name]
  const groups = Array.from({ length: Math.ceil(buckets.length / range.perBar) }, (_, i) =>
    buckets.slice(i * range.perBar, (i + 1) * range.perBar),
  )
  const bars = groups.map((group, i) => {
    const start = group[0]?.start ?? 0
    const value = group.reduce((sum, { count }) => sum + count, 0)
    const form = range.buckets > 24 ? 'moment' : 'hour'
    return {
      ...{ start, value, label: labelOf(range, start), isOpen: i === groups.length - 1 },
      ...(range.step === 'hour' && { at: { time: start, form } as const }),
    }
  })
  const sum = bars.reduce((all, { value }) => all + value, 0)
  return { range, total: Math.max(total, sum), sum, bars, empty }
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** In UTC: days are days of UTC, and the script puts hours in the visitor's zone. */
function labelOf({ step, buckets }: Range, start: number): string {
  const time = new Date(start)
  const day = `${time.getUTCDate()} ${MONTHS[time.getUTCMonth()]}`
  if (step === 'day') return day
  const hour = isoTime(start).slice(11, 16)
  return buckets > 24 ? `${day}, ${hour}` : hour
}

interface Place {
  /** Of the page: its address takes the part's own `?range=`. */
  path: string
  /** What a refresh asks for. */
  live: string
}

/** The part with its ranges and its table; only what is inside `#hits` refreshes itself. */
export function hitSection({ path, live }: Place, chosen: RangeName, shown: HitChart): Html {
  const tabs = (Object.keys(RANGES) as RangeName[]).map((name) => {
    const current = name === chosen ? 'true' : undefined
    const all = attributes({ href: `${path}?range=${name}#numbers`, 'aria-current': current })
    return html`<li><a ${all}>${RANGES[name].label}</a></li>`
  })
  const refresh = attributes({
    ...{ id: 'hits', 'hx-get': `${live}?range=${chosen}`, 'hx-trigger': 'every 10s, live' },
    ...{ 'hx-target': 'this', 'hx-swap': 'innerHTML', 'data-live': true },
  })
  return html`
    <section class="card" id="numbers">
      <h2>Hits</h2>
      <nav class="tabs" aria-label="Time that the chart shows"><ul>${tabs}</ul></nav>
      <div ${refresh}>${summary(shown)}</div>
      <details class="data">
        <summary>The same as a table</summary>
        <div id="hits-table">${dataTable(shown)}</div>
      </details>
    </section>`
}

/** What a refresh brings: the chart in its place, and the table in another. */
export const refreshedHits = (shown: HitChart): Html =>
  html`${summary(shown)}${outOfBand('hits-table', dataTable(shown))}`

/** Goes into the place with this id instead of where the rest goes. */
export const outOfBand = (id: string, part: Html): Html =>
  html`<div ${attributes({ 'hx-swap-oob': `innerHTML:#${id}` })}>${part}</div>`

function summary({ range, total, sum, bars, empty }: HitChart): Html {
  if (total === 0) return parts.emptyState('No hits yet', empty)
  const hits = (count: number) => parts.plural(count, 'hit')
  const isWhole = sum === total
  const zone =
    range.step === 'hour' ? html`<span data-without-script>, of UTC</span>` : html`, of UTC`
  return html`
    <p class="sum"><strong>${sum.toLocaleString('en')}</strong>
      ${sum === 1 ? 'hit' : 'hits'} ${range.says}</p>
    <p class="hint">${
      isWhole
        ? 'These are all hits so far.'
        : `${hits(total)} in all: ${hits(total - sum)} came before the time that is shown.`
    }</p>
    ${barChart({
      ...{ id: 'chart', bars, unit: 'hit', title: `${hits(sum)} ${range.says}` },
      description: describe(range, bars),
    })}
    <p class="hint">Each bar is one ${range.bar}${zone}. The outlined one is not over yet.</p>`
}

function describe({ bar }: Range, bars: HitChart['bars']): string {
  const best = bars.reduce<HitChart['bars'][number] | undefined>(
    (top, one) => (one.value > (top?.value ?? 0) ? one : top),
    undefined,
  )
  const what = `A bar for each ${bar}.`
  if (!best) return `${what} Nobody followed a link in this time.`
  return `${what} The highest, of ${best.label} (UTC), is ${parts.plural(best.value, 'hit')}.`
}

function dataTable({ range, bars }: HitChart): Html {
  const first = { hour: 'Hour', day: 'Day (UTC)', week: 'Week from (UTC)' }[range.bar]
  const rows = bars
    .toReversed()
    .map(({ start, value, isOpen }) => [
      range.step === 'hour' ? parts.time(start) : isoTime(start).slice(0, 10),
      html`${value.toLocaleString('en')}${isOpen ? ' so far' : ''}`,
    ])
  const columns = [{ label: first }, { label: 'Hits', isNumber: true }]
  return parts.table({ caption: `Hits ${range.says}`, columns, rows })
}
