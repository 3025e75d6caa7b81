import type { DayRange, VisitChange, Visits, VisitValue } from '../../analytics/visits.ts'
import { dateOf } from '../../hits/range.ts'
import { HOURS_OF_DAY } from '../../hits/series.ts'
import { type Html, html } from '../../lib/html.ts'
import type { VisitKind } from '../../visits/values.ts'
import { longDate } from './chart.ts'
import * as parts from './components.ts'
import { moreOrFewer } from './hit-chart.ts'

/** Where visitors come from and what they use, as a section of a page. */

export const PANEL_TITLES: Record<VisitKind, string> = {
  referrer: 'Sources',
  country: 'Countries',
  device: 'Devices',
  browser: 'Browsers',
  os: 'Systems',
  bot: 'Bots',
}

const ROWS = 10

export interface VisitSection {
  visits: Visits
  /** Absent on a public page, and if the days before are not known. */
  change?: VisitChange | undefined
  days: DayRange
  /** Whether details are recorded, and countries known. */
  isOn: boolean
  hasCountries: boolean
  /** The page and the file of all values of a panel. Absent on a public page. */
  paths?: (kind: VisitKind) => { all: string; csv: string }
}

export function visitSection(section: VisitSection): Html {
  const { visits, change, isOn, days } = section
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
        <p>${peopleAndBots(visits, change)}</p>
        <p class="hint">${knownPart(visits)} By UTC day: ${periodOf(days)}.${
          change &&
          html` Changes: ${parts.plural(change.days, 'complete day')}, against as many before.`
        }</p>
      </div>
      <div class="columns small panels">${Object.entries(PANEL_TITLES).map(([kind, title]) =>
        panel(section, kind as VisitKind, title),
      )}</div>
      <p class="hint">Each panel counts by itself. Combinations, such as the browsers of one
        country, are not stored.</p>
    </section>`
}

const peopleAndBots = ({ people, bots }: Visits, change: VisitChange | undefined): Html => html`
  <strong>${parts.count(people)}</strong> by people${changeBy(change, 'people')} ·
  <strong>${parts.count(bots)}</strong> by bots${changeBy(change, 'bots')}`

function changeBy(change: VisitChange | undefined, of: 'people' | 'bots'): Html | false {
  if (!change || !Number.isFinite(change[of])) return false
  const about = change.isEstimate && 'about '
  return html`, ${about}${moreOrFewer(change[of]) ?? 'as many as before'}`
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

function panel(
  { visits, hasCountries, paths }: VisitSection,
  kind: VisitKind,
  title: string,
): Html {
  const values = visits.values[kind]
  const isMissing = kind === 'country' && !hasCountries && values.length === 0
  if (isMissing && !paths) return html``
  const links = paths?.(kind)
  return html`
    <section aria-labelledby="panel-${kind}">
      <h3 id="panel-${kind}">${title}</h3>
      ${isMissing && noCountries}
      ${!isMissing && values.length === 0 && html`<p class="hint">None yet.</p>`}
      ${values.length > 0 && valueTable(title, values.slice(0, ROWS), totalOf(visits, kind))}
      ${
        values.length > 0 &&
        links &&
        html`<p class="row">
          ${
            values.length > ROWS &&
            html`<a href="${links.all}">All ${parts.count(values.length)}</a>`
          }
          <a href="${links.csv}" download aria-label="Download ${title} as CSV">CSV</a></p>`
      }
    </section>`
}

const noCountries = html`<p class="hint">Countries need a file: set COUNTRY_FILE to an .mmdb, or to
  /usr/share/tor/geoip after installing tor-geoipdb, and start again.</p>`

/** The hits that the shares of a panel relate to. */
export const totalOf = ({ people, bots }: Visits, kind: VisitKind): number =>
  kind === 'bot' ? bots : people

export function valueTable(caption: string, values: readonly VisitValue[], total: number): Html {
  const most = Math.max(...values.map(({ hits }) => hits))
  const columns = {
    Value: ({ name, hits }: VisitValue) => html`${parts.shareBar(hits / most)}
      <span class="cut">${name}</span>`,
    Hits: { cell: ({ hits }: VisitValue) => parts.count(hits), isNumber: true },
    Share: { cell: ({ hits }: VisitValue) => shareText(hits, total), isNumber: true },
  }
  const table = parts.table(caption, values, columns, { isNarrow: true })
  return html`<div class="shares">${table}</div>`
}

/** Never "100 %" or "0 %" of a part that is neither. */
export function shareText(hits: number, total: number): string {
  const percent = total === 0 ? 0 : (hits / total) * 100
  if (percent > 0 && percent < 1) return '< 1 %'
  if (percent > 99 && percent < 100) return '> 99 %'
  return `${Math.round(percent)} %`
}
