import type { Visits } from '../../analytics/visits.ts'
import {
  CALENDAR,
  dateOf,
  type HitRange,
  hourOfDay,
  PRESETS,
  type Preset,
  parseDate,
  type RangeChoice,
  ROLLING,
  zonedHour,
} from '../../hits/range.ts'
import { hourOf } from '../../hits/series.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { type Bar, barChart, longDate, shortDate, sparkline, timeTicks } from './chart.ts'
import * as parts from './components.ts'
import { icon } from './icons.ts'

/** Hits over time as a section of a page: ranges, the total, a chart and a table. */

const LABELS: Record<Preset, string> = {
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
  '12m': '12 months',
  all: 'All',
  week: 'This week',
  'last-week': 'Last week',
  month: 'This month',
  'last-month': 'Last month',
}
const USUAL: Preset = '30d'

/** What a page's query chooses. */
export interface ChosenRange {
  choice: RangeChoice
  /** The choice as a query string, without `?`. */
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
  /** Hits in `range.previous`. */
  previous: readonly number[] | undefined
  /** Hits of the account or the link of all time. */
  total: number
  /** The part of them that came from elsewhere, and has no dates. */
  imported: number
  now: number
  /** Hits per minute of the last half hour; undefined while they cannot be read. */
  recent: readonly number[] | undefined
  /** Details of the hits of the range, and of the period before. */
  visits: Visits
  visitsBefore?: Visits | undefined
  /** Advice while there are no hits. */
  empty: Html
}

/** Where a section is shown. */
interface SectionPaths {
  /** The page. */
  path: string
  /** Which links a report is about, as a query string that ends with `&`, or empty. */
  scope?: string
  /** The source of refreshes, and the series as a file. */
  live: string
  csv: string
}

/** The section with its ranges and its table. Only the content of `#hits` refreshes itself. */
export function hitSection(paths: SectionPaths, chart: HitChart): Html {
  const { scope = '', live, csv } = paths
  const { chosen } = chart
  return html`
    <section class="card" id="hits-section">
      <h2 class="visually-hidden">Hits</h2>
      ${rangeBar(paths, chart)}
      <div ${liveRegion('hits', `${live}?${scope}${chosen.query}`)}>${summary(chart)}</div>
      <div class="row apart">
        <details>
          <summary>Show as table</summary>
          <div id="hits-table">${dataTable(chart)}</div>
        </details>
        <p><a href="${csv}?${scope}${chosen.query}" download>Download as CSV</a></p>
      </div>
    </section>`
}

type RangePaths = Pick<SectionPaths, 'path' | 'scope'>
type RangeChart = Pick<HitChart, 'chosen' | 'range' | 'now'>

/** The choice of a range. */
export const rangeBar = (paths: RangePaths, chart: RangeChart): Html => html`
  <div class="row apart">
    <nav class="tabs" aria-label="Time range"><ul>${ROLLING.map((preset) =>
      rangeTab(paths, chart.chosen, preset),
    )}</ul></nav>
    ${otherRanges(paths, chart)}
  </div>`

const isChosen = ({ choice }: ChosenRange, preset: Preset): boolean =>
  'preset' in choice && choice.preset === preset

function rangeTab(paths: RangePaths, chosen: ChosenRange, preset: Preset): Html {
  return html`<li><a ${rangeLink(paths, chosen, preset)}>${LABELS[preset]}</a></li>`
}

const rangeLink = ({ path, scope = '' }: RangePaths, chosen: ChosenRange, preset: Preset) =>
  attributes({
    href: `${path}?${scope}range=${preset}#hits-section`,
    'aria-current': isChosen(chosen, preset) ? 'true' : undefined,
  })

/** Weeks, months and two dates, in a menu whose button shows which of them is chosen. */
function otherRanges(paths: RangePaths, chart: RangeChart): Html {
  const { chosen, range } = chart
  const { choice, typed } = chosen
  const preset = CALENDAR.find((one) => isChosen(chosen, one))
  const dates = `${shortDate(range.first)} to ${longDate(range.last)}`
  const label = preset ? LABELS[preset] : 'preset' in choice ? 'Weeks, months, dates' : dates
  const isCurrent = preset !== undefined || !('preset' in choice)
  const items = CALENDAR.map((one) => {
    const link = rangeLink(paths, chosen, one)
    return html`<a class="menu-item" ${link}>${LABELS[one]}</a>`
  })
  return html`
    <button type="button" class="button plain" popovertarget="range-menu"
      ${attributes({ 'aria-current': isCurrent ? 'true' : undefined })}>${label}
      ${icon('chevron-down')}</button>
    <div id="range-menu" class="menu range-menu" popover>
      ${items}
      ${!typed && dateForm(paths, chart)}
    </div>
    ${typed && dateForm(paths, chart)}`
}

/** The form is shown below its button if the typed dates are refused. */
function dateForm({ path, scope = '' }: RangePaths, { chosen, range, now }: RangeChart): Html {
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
  const scopeFields = Object.fromEntries(new URLSearchParams(scope))
  return html`<form class="row dates" method="get" action="${path}#hits-section">
    ${parts.hiddenFields(scopeFields)}
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
  const hasBars = sum > 0 || hadHits
  const title = `${hits(sum)} ${period}`
  const description = describe(range, bars)
  const drawn = barChart({ bars, ticks: timeTicks(range), title, description })
  const key = html`${unit} in ${zoneName(range.zone)}.
    ${bars.at(-1)?.isOpen && html` Outlined: ${current} so far.`}
    ${hadHits && html` <span class="before-key">Line</span>: ${periodBefore(chart)}.`}`
  return html`
    ${tiles(chart)}
    ${hasBars ? drawn : html`<div class="empty">No hits ${period}.</div>`}
    <p class="hint">${hasBars && key}
      ${parts.count(Math.max(total, sum))} all time${
        imported > 0 && html`, of which ${parts.count(imported)} are from elsewhere, without dates`
      }.</p>`
}

/** The numbers of the range, all compared with the same period before. */
function tiles(chart: HitChart): Html {
  const { counts, previous, visits, visitsBefore, recent } = chart
  const sum = sumOf(counts)
  const before = previous && sumOf(previous)
  const [now, earlier] = [partsOfHits(sum, visits), partsOfHits(before, visitsBefore)]
  const scans = visits.scans.byDay
  return html`<dl class="tiles" aria-label="Numbers ${periodOf(chart)}">
    ${tile('Hits', sum, before)}
    ${now && tile('Without bots', now.people, earlier?.people)}
    ${now && tile('Bots', now.bots, earlier?.bots, { isNeutral: true })}
    ${
      sumOf(scans) > 0 &&
      tile('Scans', sumOf(scans), visitsBefore && sumOf(visitsBefore.scans.byDay), {
        line: scans.length > 1 && sparkline(scans, 'scan'),
      })
    }
    ${recent && liveTile(recent)}
  </dl>
  <p class="hint">Hits ${periodOf(chart)}${
    before !== undefined && `, compared with ${periodBefore(chart)}`
  }.</p>`
}

/** `isNeutral`: more is neither good nor bad. */
function tile(
  label: string,
  count: number,
  before: number | undefined,
  { isNeutral = false, line }: { isNeutral?: boolean; line?: Html | false } = {},
): Html {
  return html`<div>
    <dt>${label}</dt>
    <dd><strong>${parts.count(count)}</strong> ${changeBadge(count, before, isNeutral)} ${line}</dd>
    ${before !== undefined && html`<dd class="hint">${parts.count(before)} before</dd>`}
  </div>`
}

/** How busy the links are now. */
const liveTile = (recent: readonly number[]): Html => html`<div>
  <dt>Live</dt>
  <dd><strong>${parts.count(sumOf(recent))}</strong> ${sparkline(recent, 'minute')}</dd>
  <dd class="hint">last ${recent.length} minutes</dd>
</div>`

/**
 * Hits without bots and by bots: the shares among the hits whose details are known, of all hits.
 * Undefined if no details are known.
 */
function partsOfHits(all: number | undefined, visits: Visits | undefined) {
  if (all === undefined || !visits || visits.known === 0) return undefined
  const bots = Math.round((all * visits.bots) / (visits.people + visits.bots))
  return { people: all - bots, bots }
}

export const zoneName = (zone: string): string => zone.replaceAll('_', ' ')

/** After "1,234 hits". */
export function periodOf({ chosen, range }: Pick<HitChart, 'chosen' | 'range'>): string {
  const { choice } = chosen
  if ('preset' in choice && CALENDAR.some((one) => one === choice.preset)) {
    return LABELS[choice.preset].toLowerCase()
  }
  if ('preset' in choice && choice.preset !== 'all') {
    return `in the last ${LABELS[choice.preset]}`
  }
  const { first, last } = range
  if ('preset' in choice) return `since ${longDate(first)}`
  if (first.equals(last)) return `on ${longDate(first)}`
  return `from ${longDate(first)} to ${longDate(last)}`
}

/** After "compared with". */
function periodBefore({ chosen: { choice }, range }: HitChart): string {
  if ('preset' in choice) {
    const { preset } = choice
    if (preset === 'week') return 'the same days of last week'
    if (preset === 'month') return 'the same days of last month'
    if (preset === 'last-week') return 'the week before'
    if (preset === 'last-month') return 'the month before'
  }
  const days = range.first.until(range.last).days + 1
  const isDay = range.unit === 'hour' && range.bounds.length - 1 === 24
  return `the ${isDay ? '24 hours' : days === 1 ? 'day' : `${days} days`} before`
}

/** The change in percent; nothing for less than one per cent or without a period before. */
function changeBadge(count: number, before: number | undefined, isNeutral = false): Html | false {
  if (before === undefined || (before === 0 && count === 0)) return false
  const look = isNeutral ? 'badge' : count > before ? 'badge good' : 'badge bad'
  if (before === 0) return html`<span class="${look}">new</span>`
  const change = Math.round((count / before - 1) * 100)
  if (change === 0) return false
  const [mark, word] = change > 0 ? ['▲', 'more'] : ['▼', 'fewer']
  const size = `${parts.count(Math.abs(change))} %`
  return html`<span class="${look}">${mark} ${size}<span
    class="visually-hidden"> ${word}</span></span>`
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
