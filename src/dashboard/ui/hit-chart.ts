import {
  dateOf,
  type HitRange,
  hourOfDay,
  PRESETS,
  type Preset,
  parseDate,
  type RangeChoice,
  zonedHour,
} from '../../hits/range.ts'
import { hourOf } from '../../hits/series.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { type Bar, barChart, longDate, shortDate, sparkline, timeTicks } from './chart.ts'
import * as parts from './components.ts'

/** Hits over time as a section of a page: ranges, the total, a chart and a table. */

const LABELS: Record<Preset, string> = {
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
  '12m': '12 months',
  all: 'All',
}
const USUAL: Preset = '30d'

/** What a page's query chooses. */
export interface ChosenRange {
  choice: RangeChoice
  /** The same as a query string, without `?`. */
  query: string
  /** The dates as typed, and why they are refused. */
  typed?: { from: string; to: string; problem: string }
}

/** The default range for an unknown one. `from` and `to` take precedence over `range`. */
export function parseRange(query: Readonly<Record<string, string | undefined>>): ChosenRange {
  const { range = '', from = '', to = '' } = query
  const preset = PRESETS.find((name) => name === range) ?? USUAL
  const chosen = { choice: { preset }, query: `range=${preset}` }
  if (from === '' && to === '') return chosen
  const [first, last] = [parseDate(from), parseDate(to)]
  const problem = 'Enter two dates, the earlier one first.'
  if (!first || !last || Temporal.PlainDate.compare(first, last) > 0) {
    return { ...chosen, typed: { from, to, problem } }
  }
  return { choice: { from: first, to: last }, query: `from=${from}&to=${to}` }
}

export interface HitChart {
  chosen: ChosenRange
  range: HitRange
  counts: readonly number[]
  /** Of `range.previous`. */
  previous: readonly number[] | undefined
  /** Hits of the account or the link of all time. */
  total: number
  /** The part of them that was imported, and has no dates. */
  imported: number
  now: number
  /** Hits per minute of the last half hour; undefined while they cannot be read. */
  recent: readonly number[] | undefined
  /** Advice while there are no hits. */
  empty: Html
}

/**
 * The section with its ranges and its table. Only the content of `#hits` refreshes itself, from
 * `live`. `path`: the page. `live` and `csv`, the series as a file, are absent on a public page.
 */
export function hitSection(
  { path, live, csv }: { path: string; live?: string; csv?: string },
  chart: HitChart,
): Html {
  const { chosen } = chart
  const tabs = PRESETS.map((preset) => {
    const isCurrent = 'preset' in chosen.choice && chosen.choice.preset === preset
    const href = `${path}?range=${preset}#hits-section`
    const all = attributes({ href, 'aria-current': isCurrent ? 'true' : undefined })
    return html`<li><a ${all}>${LABELS[preset]}</a></li>`
  })
  const id = 'hits'
  const region = live ? liveRegion(id, `${live}?${chosen.query}`) : attributes({ id })
  return html`
    <section class="card" id="hits-section">
      <h2>Hits</h2>
      <div class="row apart">
        <nav class="tabs" aria-label="Time range of the chart"><ul>${tabs}</ul></nav>
        ${dateForm(path, chart)}
      </div>
      <div ${region}>${summary(chart)}</div>
      <div class="row apart">
        <details>
          <summary>Show as table</summary>
          <div id="hits-table">${dataTable(chart)}</div>
        </details>
        ${csv && html`<p><a href="${csv}?${chosen.query}" download>Download as CSV</a></p>`}
      </div>
    </section>`
}

function dateForm(path: string, { chosen, range, now }: HitChart): Html {
  const { from, to, problem } = chosen.typed ?? {
    from: String(range.first),
    to: String(range.last),
    problem: undefined,
  }
  const max = String(dateOf(hourOf(now), range.zone))
  const date = (name: string, label: string, value: string) => {
    const about = problem ? { 'aria-invalid': 'true', 'aria-describedby': 'range-error' } : {}
    const all = { type: 'date', id: `range-${name}`, name, value, max, required: true, ...about }
    return html`<label class="hint" for="range-${name}">${label}</label><input ${attributes(all)}>`
  }
  return html`<form class="row dates" method="get" action="${path}#hits-section">
    ${date('from', 'From', from)}
    ${date('to', 'to', to)}
    ${parts.button('Show', 'plain')}
    ${problem && html`<p class="error" id="range-error">${problem}</p>`}
  </form>`
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
  html`<div hx-swap-oob="innerHTML:#${id}">${part}</div>`

const hits = (n: number) => parts.plural(n, 'hit')
const sumOf = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0)

function summary(chart: HitChart): Html {
  const { range, counts, total, imported, empty } = chart
  if (total === 0) return parts.emptyState('No hits yet', empty)
  const bars = barsOf(chart)
  const sum = sumOf(counts)
  const hadHits = sumOf(chart.previous ?? []) > 0
  const period = periodOf(chart)
  const unit = { hour: 'Hours', day: 'Days', week: 'Weeks from Monday' }[range.unit]
  const current = { hour: 'this hour', day: 'today', week: 'this week' }[range.unit]
  return html`
    <div class="row sums">
      <p class="sum">
        <strong>${parts.count(sum)}</strong> ${sum === 1 ? 'hit' : 'hits'} ${period}</p>
      <p class="hint">${comparison(chart)}${parts.count(Math.max(total, sum))} all time${
        imported > 0 && html`, of which ${parts.count(imported)} are imported and have no dates`
      }</p>
      ${chart.recent && lastMinutes(chart.recent)}
    </div>
    ${barChart({
      bars,
      ticks: timeTicks(range),
      title: `${hits(sum)} ${period}`,
      description: describe(range, bars),
    })}
    <p class="hint">${unit} in ${zoneName(range.zone)}.
      ${bars.at(-1)?.isOpen && html` Outlined: ${current} so far.`}
      ${hadHits && html` <span class="before-key">Line</span>: the period before.`}</p>`
}

/** How busy the link or the account is now. */
const lastMinutes = (recent: readonly number[]): Html => html`<p class="hint">
  <strong>${parts.count(sumOf(recent))}</strong> in the last ${recent.length} minutes
  ${sparkline(recent, 'minute')}</p>`

export const zoneName = (zone: string): string => zone.replaceAll('_', ' ')

/** After "1,234 hits". */
export function periodOf({ chosen, range }: Pick<HitChart, 'chosen' | 'range'>): string {
  const { choice } = chosen
  if ('preset' in choice && choice.preset !== 'all') {
    return `in the last ${LABELS[choice.preset]}`
  }
  const { first, last } = range
  if ('preset' in choice) return `since ${longDate(first)}`
  if (first.equals(last)) return `on ${longDate(first)}`
  return `from ${longDate(first)} to ${longDate(last)}`
}

/** How the range compares with the one before: in percent, unless that had no hits. */
function comparison({ range, counts, previous }: HitChart): Html | false {
  if (!previous) return false
  const before = sumOf(previous)
  const days = range.first.until(range.last).days + 1
  const hours = range.bounds.length - 1
  const isDay = range.unit === 'hour' && hours === 24
  const period = isDay ? '24 hours' : days === 1 ? 'day' : `${days} days`
  const tail = html` the ${period} before (${parts.count(before)}) · `
  if (before === 0) return html`No hits in the ${period} before · `
  const change = moreOrFewer(sumOf(counts) / before)
  return change ? html`${change} than in${tail}` : html`As many as in${tail}`
}

/** For a factor by which something has changed; undefined without a change of a per cent. */
export function moreOrFewer(factor: number): Html | undefined {
  const change = Math.round((factor - 1) * 100)
  if (change === 0) return undefined
  const size = `${parts.count(Math.abs(change))} %`
  return change > 0
    ? html`<strong class="badge good">▲ ${size} more</strong>`
    : html`<strong class="badge bad">▼ ${size} fewer</strong>`
}

function barsOf({ range, counts, previous, now }: HitChart): Bar[] {
  const current = hourOf(now)
  const { bounds } = range
  return counts.map((value, i) => ({
    label: labelOf(range, i),
    value,
    previous: previous?.[i],
    isOpen: (bounds[i] ?? 0) <= current && current < (bounds[i + 1] ?? 0),
  }))
}

function labelOf({ unit, bounds, zone }: HitRange, i: number): string {
  const hour = bounds[i] ?? 0
  const date = longDate(dateOf(hour, zone))
  if (unit === 'day') return date
  if (unit === 'hour') return `${date}, ${timeOf(hour, zone)}`
  const last = dateOf((bounds[i + 1] ?? 0) - 1, zone)
  return `${shortDate(dateOf(hour, zone))} to ${longDate(last)}`
}

/** With the offset in the hour that occurs twice when clocks go back. */
function timeOf(hour: number, zone: string): string {
  const time = zonedHour(hour, zone)
  const text = time.toPlainTime().toString({ smallestUnit: 'minute' })
  const isTwice = [hour - 1, hour + 1].some((other) => hourOfDay(other, zone) === time.hour)
  return isTwice ? `${text} (UTC${time.offset})` : text
}

function describe({ unit }: HitRange, bars: readonly Bar[]): string {
  const [highest] = bars.toSorted((a, b) => b.value - a.value)
  if (!highest?.value) return `A bar for each ${unit}. There were no hits in this time.`
  return `A bar for each ${unit}. The highest, of ${highest.label}, is ${hits(highest.value)}.`
}

function dataTable(chart: HitChart): Html {
  const { range, previous } = chart
  const first = { hour: 'Hour', day: 'Day', week: 'Week' }[range.unit]
  const hitCell = ({ value, isOpen }: Bar) => `${parts.count(value)}${isOpen ? ' so far' : ''}`
  const beforeCell = ({ previous = 0 }: Bar) => parts.count(previous)
  const columns = {
    [`${first} (${zoneName(range.zone)})`]: ({ label }: Bar) => label,
    Hits: { cell: hitCell, isNumber: true },
    ...(previous && { 'Period before': { cell: beforeCell, isNumber: true } }),
  }
  const isNarrow = true
  return parts.table(`Hits ${periodOf(chart)}`, barsOf(chart).toReversed(), columns, { isNarrow })
}
