import { Elysia } from 'elysia'
import {
  type DayRange,
  type Visits,
  type VisitValue,
  withFewHidden,
} from '../../analytics/visits.ts'
import { HOURS_OF_DAY } from '../../hits/series.ts'
import { clientOf } from '../../http/context.ts'
import { rateLimited } from '../../http/guard.ts'
import { DAY, HOUR } from '../../lib/clock.ts'
import type { Code } from '../../lib/code.ts'
import { type Html, html } from '../../lib/html.ts'
import { findPublicPage } from '../../links/public-pages.ts'
import { type StatisticsTexts, statisticsTexts } from '../../redirect/visitor-page.ts'
import { NAMES, VISIT_KINDS, type VisitKind } from '../../visits/values.ts'
import type { PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { barChart } from '../ui/chart.ts'
import * as parts from '../ui/components.ts'
import { publicPage } from '../ui/layout.ts'
import { addressText, destination, previewLink } from '../ui/link-parts.ts'
import { shareText } from '../ui/visit-panels.ts'

/**
 * The public page of a link, in the visitor's language: the hits of its last complete week and
 * where they came from, for everyone with the secret address.
 */

/** Public. Charged like other reads without a key. */
export const publicPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.shared', prefix: '/app/shared' })
    .onBeforeHandle(({ request }) => {
      const budget = deps.limiter.take('read', undefined, clientOf(deps.address, request))
      if (!budget.allowed) throw rateLimited(budget)
    })
    .get('/:token', ({ request, params }) => showPublicPage({ deps, request }, params.token))

/** After this time, details of a day have been written. */
const WRITTEN_MS = HOUR

/**
 * The last complete week from Monday in UTC, for hits and details alike. Of two ranges that
 * overlap, and of the same one before and after a visit, the difference would show values of few
 * hits. Weeks do not overlap, and a complete one does not change.
 */
function lastWeek(now: number): DayRange {
  const today = Math.floor((now - WRITTEN_MS) / DAY)
  // 1970 began on a Thursday.
  const monday = today - ((today + 3) % 7)
  return { from: monday - 7, to: monday }
}

/** Whether visitors get “Link disabled”: by the code, or by the host. */
const isTakenDown = (
  { data, blocklist }: DashboardDeps,
  { code, url }: { code: Code; url: string | null },
): boolean =>
  data.moderation.findByCode(code) !== undefined ||
  (url !== null && blocklist.isBlocked(new URL(url)))

async function showPublicPage(
  { deps, request }: Pick<PageContext, 'deps' | 'request'>,
  token: string,
): Promise<Response> {
  const stored = findPublicPage(deps, token)
  const texts = statisticsTexts(request.headers)
  if (!stored || isTakenDown(deps, stored)) {
    const { title, text } = texts.missing
    const { language, skip } = texts
    const main = html`<p>${text}</p>`
    return publicPage({ deps, request }, { status: 404, title, language, skip, main })
  }
  const counted = { linkId: stored.linkId }
  const days = lastWeek(deps.clock())
  const bounds = Array.from({ length: 8 }, (_, i) => (days.from + i) * HOURS_OF_DAY)
  const { counts, total } = await deps.series.bars(counted, bounds)
  const visits = withFewHidden(await deps.visitDetails.of(counted, days, `link ${stored.linkId}`))
  const shownUrl = stored.showsUrl === 1 && stored.isProtected === 0 ? stored.url : null
  const address = deps.addresses.display(stored)
  const week = { ...texts, days, counts, total }
  return publicPage(
    { deps, request },
    {
      title: addressText(address),
      language: texts.language,
      skip: texts.skip,
      main: html`
        ${
          shownUrl !== null &&
          html`<p>${destination(shownUrl)}</p><p>${previewLink(address, texts.preview)}</p>`
        }
        ${hitCard(week)}
        ${visits.known > 0 && visitCard(week, visits)}`,
    },
  )
}

interface Week extends StatisticsTexts {
  days: DayRange
  /** Hits of each day. */
  counts: readonly number[]
  /** Hits of all time. */
  total: number
}

const dateText = (language: string, options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat(language, { ...options, timeZone: 'UTC' })

const LONG = { day: 'numeric', month: 'long', year: 'numeric' } as const

function hitCard(texts: Week): Html {
  const { language, days, counts, total } = texts
  const number = (n: number) => n.toLocaleString(language)
  const sum = counts.reduce((all, count) => all + count, 0)
  const long = dateText(language, LONG)
  const period = long.formatRange(days.from * DAY, (days.to - 1) * DAY)
  const later = texts.later.replace('{date}', long.format((days.to + 7) * DAY))
  const tile = (label: string, count: number, hint: string) => html`<div>
    <dt>${label}</dt><dd><strong>${number(count)}</strong></dd><dd class="hint">${hint}</dd></div>`
  return html`<section class="card" id="hits-section">
    <h2 class="visually-hidden">${texts.hits}</h2>
    <dl class="tiles">
      ${sum > 0 && tile(texts.hits, sum, `${period} (UTC)`)}
      ${tile(texts.all_time, total, texts.hits)}
    </dl>
    ${sum > 0 && weekChart(texts, `${texts.hits}: ${number(sum)}, ${period}`)}
    ${sum === 0 && html`<p>${total === 0 ? texts.none : later}</p>`}
  </section>`
}

/** A bar for each day. */
function weekChart({ language, days, counts }: Week, title: string): Html {
  const short = dateText(language, { weekday: 'short' })
  const long = dateText(language, { weekday: 'long', ...LONG })
  const bars = counts.map((value, i) => {
    const label = long.format((days.from + i) * DAY)
    return { label, value, text: `${label}: ${value.toLocaleString(language)}` }
  })
  const ticks = (['wide', 'narrow'] as const).flatMap((screen) =>
    counts
      .map((_, i) => ({
        at: (i + 0.5) / counts.length,
        text: short.format((days.from + i) * DAY),
        screen,
      }))
      .filter((_, i) => screen === 'wide' || i % 2 === 0),
  )
  return barChart({ title, description: bars.map(({ text }) => text).join('; '), bars, ticks })
}

/** Values of a panel. */
const ROWS = 10

function visitCard(texts: Week, visits: Visits): Html {
  const { hits, known } = visits
  const number = (n: number) => n.toLocaleString(texts.language)
  const part = texts.part.replace('{known}', number(known)).replace('{hits}', number(hits))
  return html`<section class="card" id="visits">
    <div class="columns small panels">
      ${VISIT_KINDS.map((kind) => visitPanel(texts, visits, kind))}
    </div>
    <p class="hint">${known < hits && `${part} `}${texts.about}</p>
  </section>`
}

/** Absent without values, such as countries where there is no source of them. */
function visitPanel(texts: Week, visits: Visits, kind: VisitKind): Html | false {
  const values = visits.values[kind].slice(0, ROWS)
  if (values.length === 0) return false
  const title = texts.panels[kind]
  const all = kind === 'bot' ? visits.bots : visits.people
  const most = Math.max(...values.map(({ hits }) => hits))
  const columns = {
    [title]: {
      cell: (value: VisitValue) => html`${parts.shareBar(value.hits / most)}
        <span class="cut">${nameIn(texts, kind, value)}</span>`,
      isHidden: true,
    },
    [texts.hits]: {
      cell: ({ hits }: VisitValue) => hits.toLocaleString(texts.language),
      isNumber: true,
    },
    [texts.share]: { cell: ({ hits }: VisitValue) => shareText(hits, all), isNumber: true },
  }
  return html`<section class="shares" aria-labelledby="panel-${kind}">
    <h2 id="panel-${kind}">${title}</h2>
    ${parts.table(title, values, columns, { isNarrow: true })}
  </section>`
}

/** Names of programs and sites are the same in each language. */
function nameIn({ language, values }: Week, kind: VisitKind, { value, name }: VisitValue): string {
  // Visitors choose values such as the names of others.
  if (Object.hasOwn(NAMES[kind], value) && Object.hasOwn(values, value)) {
    return values[value as keyof typeof values]
  }
  if (kind !== 'country' || !/^[A-Z]{2}$/.test(value)) return name
  return new Intl.DisplayNames(language, { type: 'region', fallback: 'code' }).of(value) ?? value
}
