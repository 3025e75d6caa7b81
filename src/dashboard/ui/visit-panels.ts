import type { DayRange, Visits, VisitValue } from '../../analytics/visits.ts'
import { DASHBOARD_REF } from '../../draw/options.ts'
import { dateOf } from '../../hits/range.ts'
import { HOURS_OF_DAY } from '../../hits/series.ts'
import { type Html, html } from '../../lib/html.ts'
import { isWordOf, type StoredKind, VISIT_KINDS, type VisitKind } from '../../visits/values.ts'
import { longDate } from './chart.ts'
import * as parts from './components.ts'

/** Where visitors come from and what they use, as a section of a page. */

/** The title of each panel, and the head of its column. */
export const PANELS: Record<StoredKind, { title: string; value: string }> = {
  referrer: { title: 'Sources', value: 'Source' },
  country: { title: 'Countries', value: 'Country' },
  device: { title: 'Devices', value: 'Device' },
  browser: { title: 'Browsers', value: 'Browser' },
  os: { title: 'Systems', value: 'System' },
  bot: { title: 'Bots', value: 'Bot' },
  scan: { title: 'Scans', value: 'Code' },
}

const ROWS = 10

export interface VisitSection {
  visits: Visits
  /** The period before. Absent if its details are not known. */
  before?: Visits | undefined
  days: DayRange
  /** Whether details are recorded, and countries known. */
  isOn: boolean
  hasCountries: boolean
  /** The page and the file of all values of a panel. */
  paths: (kind: StoredKind) => { all: string; csv: string }
  /** Words that codes of the account were made with: visits with them are scans. */
  refs: readonly string[]
}

export function visitSection(section: VisitSection): Html {
  const { visits, isOn, days } = section
  if (visits.hits === 0) return html``
  if (!isOn && visits.known === 0) {
    return parts.card(
      'Visitors',
      html`<p>The operator of this service does not record where visitors come from.</p>`,
    )
  }
  return html`
    <section class="card" id="visits">
      <div class="row sums">
        <h2>Visitors</h2>
        <p class="hint">${knownPart(visits)} By UTC day: ${periodOf(days)}.</p>
      </div>
      <div class="columns small panels">
        ${scanPanel(section)}${VISIT_KINDS.map((kind) => panel(section, kind))}
      </div>
      <p class="hint">Each panel counts by itself. Combinations, such as the browsers of one
        country, are not stored.</p>
    </section>`
}

/** How complete the panels are. */
export function knownPart({ hits, known, isEstimated }: Visits): string {
  const estimate = isEstimated ? 'Estimated from a random part. ' : ''
  const all = parts.plural(hits, 'hit')
  return `${estimate}Details of ${known === hits ? 'all' : `${parts.count(known)} of`} ${all}.`
}

function periodOf({ from, to }: DayRange): string {
  const textOf = (day: number) => longDate(dateOf(day * HOURS_OF_DAY, 'UTC'))
  const [first, last] = [textOf(from), textOf(to - 1)]
  return first === last ? first : `${first} to ${last}`
}

/** The visits from printed codes. Absent for an account without such codes. */
function scanPanel({ visits, before, paths, refs }: VisitSection): Html | false {
  const scans = scansOf(visits, refs)
  const hits = scans.reduce((sum, scan) => sum + scan.hits, 0)
  const hasOwn = refs.some((ref) => ref !== DASHBOARD_REF)
  if (hits === 0 && !hasOwn) return false
  return html`
    <section aria-labelledby="panel-scans">
      <h3 id="panel-scans">Scans</h3>
      ${
        hits === 0
          ? html`<p class="hint">No scans of ${refs.slice(0, ROWS).join(', ')} yet.</p>`
          : valueTable('scan', scans.slice(0, ROWS), { visits, before })
      }
      <p class="hint">${parts.plural(hits, 'scan')}: visits whose address has the word of a
        code (<code>ref=</code>).</p>
      ${hits > 0 && valueLinks('scan', scans.length, paths)}
    </section>`
}

/** Visits with a word of a code of the account. */
export const scansOf = ({ values }: Visits, refs: readonly string[]): VisitValue[] =>
  values.scan.filter(({ value }) => isWordOf(refs, value))

/** The page and the file of all values. */
function valueLinks(kind: StoredKind, count: number, paths: VisitSection['paths']): Html {
  const { all, csv } = paths(kind)
  return html`<p class="row">
    ${count > ROWS && html`<a href="${all}">All ${parts.count(count)}</a>`}
    <a href="${csv}" download aria-label="Download ${PANELS[kind].title} as CSV">CSV</a>
  </p>`
}

function panel({ visits, before, hasCountries, paths }: VisitSection, kind: VisitKind): Html {
  const { title } = PANELS[kind]
  const values = visits.values[kind]
  const isMissing = kind === 'country' && !hasCountries && values.length === 0
  return html`
    <section aria-labelledby="panel-${kind}">
      <h3 id="panel-${kind}">${title}</h3>
      ${isMissing && noCountries}
      ${!isMissing && values.length === 0 && html`<p class="hint">None yet.</p>`}
      ${values.length > 0 && valueTable(kind, values.slice(0, ROWS), { visits, before })}
      ${values.length > 0 && valueLinks(kind, values.length, paths)}
    </section>`
}

const noCountries = html`<p class="hint">Countries need a file: set COUNTRY_FILE to an .mmdb, or to
  /usr/share/tor/geoip after installing tor-geoipdb, and start again.</p>`

/** The hits that the shares of a panel relate to. */
const totalOf = ({ people, bots }: Visits, kind: StoredKind): number =>
  kind === 'bot' ? bots : people

interface Compared {
  visits: Visits
  /** Absent without a period before whose details are known. */
  before: Visits | undefined
}

export function valueTable(
  kind: StoredKind,
  values: readonly VisitValue[],
  { visits, before }: Compared,
): Html {
  const total = totalOf(visits, kind)
  const most = Math.max(...values.map(({ hits }) => hits))
  const earlier = new Map(before?.values[kind].map(({ value, hits }) => [value, hits]))
  const change = ({ value, hits }: VisitValue) =>
    before &&
    changeText(rateOf(hits, visits), rateOf(earlier.get(value) ?? 0, before), kind === 'bot')
  const columns = {
    [PANELS[kind].value]: ({ name, hits }: VisitValue) => html`${parts.shareBar(hits / most)}
      <span class="cut">${name}</span>`,
    Hits: { cell: ({ hits }: VisitValue) => parts.count(hits), isNumber: true },
    Share: { cell: ({ hits }: VisitValue) => shareText(hits, total), isNumber: true },
    ...(before && { Change: { cell: change, isNumber: true } }),
  }
  const table = parts.table(PANELS[kind].title, values, columns, { isNarrow: true })
  return html`<div class="shares">${table}</div>`
}

/** Hits of a value among all hits, if those without details are like the others. */
const rateOf = (hits: number, { hits: all, known }: Visits): number =>
  known === 0 ? 0 : (hits / known) * all

/** `+12 %`, `−5 %`, `×14`, `new`. `isNeutral`: more is neither good nor bad. */
export function changeText(now: number, before: number, isNeutral = false): Html {
  const percent = before === 0 ? 0 : Math.round((now / before - 1) * 100)
  const isSame = percent === 0 && (before > 0 || now === 0)
  const look = isNeutral || isSame ? 'hint' : now > before ? 'up' : 'down'
  const size =
    percent >= 1000 ? `×${parts.count(Math.round(now / before))}` : `${signed(percent)} %`
  return html`<span class="${look}">${before === 0 && now > 0 ? 'new' : size}</span>`
}

const signed = (n: number): string => `${n > 0 ? '+' : n < 0 ? '−' : ''}${Math.abs(n)}`

/** Never "100 %" or "0 %" of a part that is neither. */
export function shareText(hits: number, total: number): string {
  const percent = total === 0 ? 0 : (hits / total) * 100
  if (percent > 0 && percent < 1) return '< 1 %'
  if (percent > 99 && percent < 100) return '> 99 %'
  return `${Math.round(percent)} %`
}
