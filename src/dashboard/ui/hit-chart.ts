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

/** Hits over time as a section of a page: ranges, the total, a chart and a table. */

interface Range {
  label: string
  /** After "1,234 hits". */
  period: string
  step: Step
  /** Buckets in the range, and how many of them one bar shows. */
  buckets: number
  perBar: number
  bar: 'hour' | 'day' | 'week'
}

const RANGES = {
  '24h': rangeOf('24 hours', 'in the last 24 hours', 'hour', 24),
  '72h': rangeOf('72 hours', 'in the last 72 hours', 'hour', 72),
  '30d': rangeOf('30 days', 'in the last 30 days', 'day', 30),
  '90d': rangeOf('90 days', 'in the last 90 days', 'day', 90),
  year: rangeOf('Year', 'in the last 52 weeks', 'week', 52),
}

function rangeOf(label: string, period: string, bar: Range['bar'], bars: number): Range {
  const perBar = bar === 'week' ? 7 : 1
  const step = bar === 'hour' ? 'hour' : 'day'
  return { label, period, bar, step, perBar, buckets: bars * perBar }
}

export type RangeName = keyof typeof RANGES
const USUAL: RangeName = '30d'
/** The range of a query parameter, or the default for an unknown one. */
export const parseRange = (text = ''): RangeName =>
  Object.hasOwn(RANGES, text) ? (text as RangeName) : USUAL

export interface HitChart {
  range: Range
  /** Of the account or the link, for all time. */
  total: number
  /** In the range. */
  sum: number
  bars: readonly (Bar & { start: number })[]
  /** What to do if there are no hits yet. */
  empty: Html
}

/** The buckets of a range at `now`, including the current hour or day. */
export function queryOf(name: RangeName, now: number): SeriesQuery {
  const { step, buckets } = RANGES[name]
  const hours = step === 'hour' ? 1 : HOURS_OF_DAY
  const current = step === 'hour' ? hourOf(now) : dayOf(hourOf(now)) * HOURS_OF_DAY
  return { from: (current - (buckets - 1) * hours) * HOUR, to: now + 1, step }
}

interface HitChartInput {
  buckets: readonly Bucket[]
  total: number
  empty: Html
}

export function hitChart(name: RangeName, { buckets, total, empty }: HitChartInput): HitChart {
  const range = RANGES[name]
  const groups = Array.from({ length: Math.ceil(buckets.length / range.perBar) }, (_, i) =>
    buckets.slice(i * range.perBar, (i + 1) * range.perBar),
  )
  const bars = groups.map((group, i) => {
    const start = group[0]?.start ?? 0
    const value = group.reduce((sum, { count }) => sum + count, 0)
    const form = range.buckets > 24 ? 'moment' : 'hour'
    return {
      start,
      value,
      label: labelOf(range, start),
      isOpen: i === groups.length - 1,
      ...(range.step === 'hour' && { at: { time: start, form } as const }),
    }
  })
  const sum = bars.reduce((all, { value }) => all + value, 0)
  return { range, total: Math.max(total, sum), sum, bars, empty }
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** In UTC. The script shows hours in the browser's time zone; days are always UTC. */
function labelOf({ step, buckets }: Range, start: number): string {
  const time = new Date(start)
  const day = `${time.getUTCDate()} ${MONTHS[time.getUTCMonth()]}`
  if (step === 'day') return day
  const hour = isoTime(start).slice(11, 16)
  return buckets > 24 ? `${day}, ${hour}` : hour
}

interface SectionPaths {
  /** The page, which accepts `?range=`. */
  path: string
  /** The source of refreshes. */
  live: string
}

/** The section with its ranges and its table. Only the content of `#hits` refreshes itself. */
export function hitSection({ path, live }: SectionPaths, name: RangeName, chart: HitChart): Html {
  const tabs = (Object.keys(RANGES) as RangeName[]).map((other) => {
    const current = other === name ? 'true' : undefined
    const all = attributes({ href: `${path}?range=${other}#hits-section`, 'aria-current': current })
    return html`<li><a ${all}>${RANGES[other].label}</a></li>`
  })
  return html`
    <section class="card" id="hits-section">
      <h2>Hits</h2>
      <nav class="tabs" aria-label="Time range of the chart"><ul>${tabs}</ul></nav>
      <div ${liveRegion('hits', `${live}?range=${name}`)}>${summary(chart)}</div>
      <details class="data">
        <summary>Show as table</summary>
        <div id="hits-table">${dataTable(chart)}</div>
      </details>
    </section>`
}

/** Attributes of an element that reloads its content from `path` while the page is in use. */
export const liveRegion = (id: string, path: string): Html =>
  attributes({
    id,
    'hx-get': path,
    'hx-trigger': 'every 10s, live',
    'hx-target': 'this',
    'hx-swap': 'innerHTML',
    'data-live': true,
  })

/** The response to a refresh: the chart, and the table out of band. */
export const refreshedHits = (chart: HitChart): Html =>
  html`${summary(chart)}${outOfBand('hits-table', dataTable(chart))}`

/** Replaces the content of the element with this id, independent of the refreshed region. */
export const outOfBand = (id: string, part: Html): Html =>
  html`<div ${attributes({ 'hx-swap-oob': `innerHTML:#${id}` })}>${part}</div>`

const hits = (n: number) => parts.plural(n, 'hit')

function summary({ range, total, sum, bars, empty }: HitChart): Html {
  if (total === 0) return parts.emptyState('No hits yet', empty)
  const { bar, period, step } = range
  const units = { hour: 'Hours', day: 'Days', week: 'Weeks' }[bar]
  const current = { hour: 'this hour', day: 'today', week: 'this week' }[bar]
  const zone = step === 'hour' ? html`<span data-without-script> in UTC</span>` : html` in UTC`
  return html`
    <p class="sum"><strong>${parts.count(sum)}</strong> ${sum === 1 ? 'hit' : 'hits'} ${period}</p>
    <p class="hint">${parts.count(total)} all time</p>
    ${barChart({
      id: 'chart',
      bars,
      unit: 'hit',
      title: `${hits(sum)} ${period}`,
      description: describe(range, bars),
    })}
    <p class="hint">${units}${zone}. Outlined: ${current} so far.</p>`
}

function describe({ bar }: Range, bars: HitChart['bars']): string {
  const [highest] = bars.toSorted((a, b) => b.value - a.value)
  if (!highest?.value) return `A bar for each ${bar}. There were no hits in this time.`
  return `A bar for each ${bar}. The highest, of ${highest.label} (UTC), is ${hits(highest.value)}.`
}

function dataTable({ range, bars }: HitChart): Html {
  const first = { hour: 'Hour', day: 'Day (UTC)', week: 'Week from (UTC)' }[range.bar]
  const rows = bars
    .toReversed()
    .map(({ start, value, isOpen }) => [
      range.step === 'hour' ? parts.time(start) : isoTime(start).slice(0, 10),
      html`${parts.count(value)}${isOpen ? ' so far' : ''}`,
    ])
  const columns = [{ label: first }, { label: 'Hits', isNumber: true }]
  return parts.table({ caption: `Hits ${range.period}`, columns, rows })
}
