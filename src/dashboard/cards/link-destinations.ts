import { TIME_ZONES } from '../../hits/range.ts'
import { isoTime } from '../../lib/clock.ts'
import { type Html, html } from '../../lib/html.ts'
import {
  type Conditions,
  DESTINATIONS_MAX,
  DEVICES,
  type RuledDestination,
  readQuery,
  SYSTEMS,
  type Visitor,
  WeekClock,
} from '../../links/destination-rules.ts'
import type { Link } from '../../links/link.ts'
import { changeProperties } from '../../links/properties.ts'
import { PropertiesBody } from '../../links/schema.ts'
import { withScheme } from '../../links/url.ts'
import { preferredLanguages, visitorOf } from '../../redirect/choose-destination.ts'
import type { PageContext, Query } from '../auth/guard.ts'
import { atField, refuse, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import {
  checkboxes,
  choicesOf,
  conditionList,
  failingPart,
  parseQueryText,
  queryText,
} from '../ui/conditions.ts'
import { errorOf, typed } from '../ui/form.ts'
import { zoneName } from '../ui/hit-chart.ts'
import { badge, destination, linkPath } from '../ui/link-parts.ts'
import { localText, parseLocal } from '../ui/local-time.ts'

/** The destinations by rule of a link: their table, a try-out, and the form of one. */

const pathOf = ({ code }: Link): string => `${linkPath(code)}/destinations`

/** Whether the page of the link shows them: there are some, or one can be added. */
export const hasDestinationsPage = (
  context: PageContext,
  link: Link,
  destinations: readonly RuledDestination[],
): boolean => destinations.length > 0 || mayAdd(context, link)

const mayAdd = ({ deps, user }: PageContext, link: Link): boolean =>
  deps.destinationPolicy.mayAdd(user.account.id) && user.may('POST', pathOf(link))

/** Changes with every list. */
const versionOf = (list: readonly RuledDestination[]): string =>
  Bun.hash(JSON.stringify(list)).toString(36)

/**
 * Moves (`action`: `up`, `down`) or removes the destination `at`, replaces it by what the form has
 * (`save`), or adds that (`save` without `at`).
 */
export async function saveDestinations(context: PageContext, link: Link): Promise<void> {
  const { deps, user, form } = context
  const { destinations } = deps.data.properties.propertiesOf(link.id)
  if (form.text('version') !== versionOf(destinations)) {
    throw refuse('The destinations were changed meanwhile. Look at the list and try again.')
  }
  const list: unknown[] = [...destinations]
  const isNew = form.text('at') === ''
  const at = isNew ? list.length : Number(form.text('at'))
  if (!isNew && !(at in list)) throw refuse('There is no such destination.')
  const action = form.text('action')
  const to = at + (action === 'up' ? -1 : 1)
  if (action === 'save') {
    list[at] = typedDestination(context)
  } else if (action === 'remove') {
    list.splice(at, 1)
  } else if ((action === 'up' || action === 'down') && to in list) {
    list.splice(to, 0, ...list.splice(at, 1))
  } else {
    throw refuse('Choose what to do with the destination.')
  }
  const { data, error } = PropertiesBody.safeParse({ destinations: list })
  if (error) throw problemAt(error.issues[0]?.path.at(-1), error.issues[0]?.message ?? '')
  const changed = { destinations: data.destinations }
  const change = () => changeProperties(deps, user.account, [link.code], changed)
  await (action === 'save' ? atField('url', change) : change())
}

const CONDITIONS = [
  'os',
  'device',
  'language',
  'country',
  'query',
  'from',
  'until',
  'days',
] as const
const FIELDS = [...CONDITIONS, 'hours', 'zone', 'url'] as const

/** A message of the API at the field of its last name, without the names before. */
function problemAt(name: PropertyKey | undefined, message: string) {
  const [, reason = message] = /^Invalid [^:]+: (.*)/.exec(message) ?? []
  const text = reason.charAt(0).toUpperCase() + reason.slice(1)
  const field = FIELDS.find((one) => one === name)
  if (field) return refuseAt(field, text)
  return refuse(name === 'when' ? 'Choose at least one condition.' : text)
}

const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean)

/** As the API has it. Throws `FormRefusal` for a time that does not exist. */
function typedDestination({ form, user }: PageContext): object {
  const timeIn = (name: 'from' | 'until') => {
    if (form.text(name) === '') return undefined
    const time = parseLocal(form.text(name), user.zone)
    if (time !== undefined) return isoTime(time)
    throw refuseAt(name, `Enter a date and a time that exists in ${zoneName(user.zone)}.`)
  }
  const some = (list: readonly string[]) => (list.length > 0 ? list : undefined)
  const days = some(form.all('days'))
  const hours =
    form.text('hours').replaceAll(/[–\s]+/g, (gap) => (gap.trim() ? '-' : '')) || undefined
  const when = {
    os: some(form.all('os')),
    device: some(form.all('device')),
    language: some(wordsOf(form.text('language'))),
    country: some(wordsOf(form.text('country'))),
    query: typedQuery(form.text('query')),
    from: timeIn('from'),
    until: timeIn('until'),
    days,
    hours,
    zone: days || hours ? form.text('zone') : undefined,
  }
  return { when, url: withScheme(form.text('url')) }
}

/** Throws `FormRefusal` for a parameter that is named twice. */
function typedQuery(text: string): Record<string, string | true> | undefined {
  const query = parseQueryText(text)
  if (!query) throw refuseAt('query', 'Name each parameter once.')
  return Object.keys(query).length > 0 ? query : undefined
}

/** The table, the try-out, and the form that adds one or changes the one in `?edit=`. */
export function destinationCards(
  context: PageContext,
  link: Link,
  destinations: readonly RuledDestination[],
): Html {
  const { query, form, refusal } = context
  const isRefused = refusal !== undefined && form.text('action') === 'save'
  const chosen = isRefused ? form.text('at') : (query.edit ?? '')
  const at = /^\d{1,2}$/.test(chosen) && Number(chosen) in destinations ? Number(chosen) : undefined
  const isShown = at !== undefined || destinations.length < DESTINATIONS_MAX
  return html`
    ${tableCard(context, link, destinations)}
    ${destinations.length > 0 && tryCard(context, link)}
    ${isShown && mayAdd(context, link) && formCard(context, link, { destinations, at })}`
}

interface Row {
  at: number
  url: string | null
  /** Undefined for everybody else. */
  when: Conditions | undefined
}

function tableCard(context: PageContext, link: Link, list: readonly RuledDestination[]): Html {
  const { deps, user, query } = context
  const version = versionOf(list)
  const tried = query.try === '1' ? triedVisitor(context) : undefined
  const reasons = list.map(({ when, url }) => {
    if (deps.blocklist.isBlocked(new URL(url))) return 'host is on the abuse blocklist'
    return tried && failingPart(when, tried)
  })
  const hit = reasons.indexOf(undefined)
  const winner = hit < 0 ? list.length : hit
  const rows: Row[] = [
    ...list.map(({ when, url }, at) => ({ at, when, url })),
    { at: list.length, when: undefined, url: link.url },
  ]
  const act = (action: string, label: string, { at }: Row) =>
    parts.buttonForm(user, pathOf(link), label, {
      look: action === 'remove' ? 'danger' : 'plain',
      values: { action, at, version },
      title: `${label}: destination ${at + 1}`,
    })
  const result = ({ at }: Row) => {
    if (at === winner) return badge({ label: 'This visitor', kind: 'good' })
    return at < winner ? `no: ${reasons[at]}` : ''
  }
  const isEditor = user.may('POST', pathOf(link))
  return html`<section class="card" id="destinations">
    <h2>Destinations by rule</h2>
    <p class="hint">The first one whose conditions all hold is used. The short URL and its QR code
      stay the same.</p>
    ${parts.table('Destinations in the order in which they are tried', rows, {
      '#': ({ at, when }) => (when ? at + 1 : ''),
      For: ({ when }) => (when ? conditionList(when, user.zone) : 'everybody else'),
      Destination: ({ url }) => (url === null ? 'none yet' : destination(url)),
      ...(tried && { 'Try-out': result }),
      ...(isEditor && {
        Change: {
          cell: (row: Row) =>
            row.when
              ? html`<div class="row">
                  ${row.at > 0 && act('up', 'Up', row)}
                  ${row.at < list.length - 1 && act('down', 'Down', row)}
                  ${
                    mayAdd(context, link) &&
                    html`<a class="button plain" href="${`${pathOf(link)}?edit=${row.at}#edit`}"
                      aria-label="Edit destination ${row.at + 1}">Edit</a>`
                  }
                  ${act('remove', 'Remove', row)}
                </div>`
              : parts.linkButton('Change', `${linkPath(link.code)}/settings#destination`),
          isHidden: true,
        },
      }),
    })}
  </section>`
}

/** Characters of a field of the try-out. */
const TRIED_MAX = 500

const sentWith = ({ request }: PageContext, now: number): Visitor =>
  visitorOf({ get: (name) => request.headers.get(name), query: '' }, now)

/** The visitor that the fields describe. */
function triedVisitor(context: PageContext): Visitor {
  const { deps, user, query } = context
  const text = (name: string) => (query[name] ?? '').trim().slice(0, TRIED_MAX)
  const week = new WeekClock()
  const now = parseLocal(text('time'), user.zone) ?? deps.clock()
  return {
    os: SYSTEMS.find((one) => one === text('os')),
    device: DEVICES.find((one) => one === text('device')),
    languages: preferredLanguages(text('language')),
    country: text('country').toUpperCase() || undefined,
    query: readQuery(text('query')),
    now,
    minuteOfWeek: (zone) => week.minuteOfWeek(zone, now),
  }
}

/** The fields begin as what this browser says. */
function tryCard(context: PageContext, link: Link): Html {
  const { deps, user, query } = context
  const own = sentWith(context, deps.clock())
  const start: Query = {
    os: own.os,
    device: own.device,
    language: context.request.headers.get('accept-language') ?? '',
    time: localText(deps.clock(), user.zone),
  }
  const from = query.try === '1' ? query : start
  const value = (name: string) => (from[name] ?? '').slice(0, TRIED_MAX)
  const field = (
    name: string,
    label: string,
    extra: Parameters<typeof parts.field>[0]['extra'] = {},
  ) =>
    parts.field({
      name,
      label,
      value: value(name),
      autocomplete: 'off',
      extra: { maxlength: TRIED_MAX, spellcheck: 'false', ...extra },
    })
  const select = (name: 'os' | 'device', label: string) =>
    parts.select({
      name,
      label,
      value: value(name),
      choices: [...choicesOf[name], { value: '', label: 'Another, or unknown' }],
    })
  return html`<section class="card" id="try">
    <h2>Try it</h2>
    <form method="get" action="${`${pathOf(link)}#destinations`}" class="form">
      ${parts.hiddenFields({ try: '1' })}
      <div class="columns small">
        ${select('os', 'System')}
        ${select('device', 'Device')}
        ${field('language', 'Languages, as browsers send them', { placeholder: 'de-CH,de;q=0.9' })}
        ${deps.destinationPolicy.hasCountries && field('country', 'Country', { placeholder: 'DE' })}
        ${field('query', 'Query', { placeholder: 'v=2' })}
        ${parts.field({
          name: 'time',
          label: `Time (${zoneName(user.zone)})`,
          type: 'datetime-local',
          value: value('time'),
        })}
      </div>
      ${parts.button('Show the destination', 'plain')}
    </form>
    <p class="hint">The fields begin as what this browser says. An iPad whose Safari requests
      websites for desktops, which is usual, says that it is a Mac: it gets what Macs get.</p>
  </section>`
}

interface FormProps {
  destinations: readonly RuledDestination[]
  /** The one that is changed; undefined for a new one. */
  at: number | undefined
}

function formCard(context: PageContext, link: Link, { destinations, at }: FormProps): Html {
  const { deps, user, form, refusal } = context
  const stored = at === undefined ? undefined : destinations[at]
  const { when = {}, url = '' } = stored ?? {}
  const isSent = refusal !== undefined && form.text('action') === 'save'
  const chosen = (name: 'os' | 'device' | 'days') => (isSent ? form.all(name) : (when[name] ?? []))
  const timeText = (time: string | undefined) => time && localText(Date.parse(time), user.zone)
  const group = (name: 'os' | 'device' | 'days', legend: string) =>
    checkboxes({
      name,
      legend,
      choices: choicesOf[name],
      chosen: chosen(name),
      error: errorOf(refusal, name),
    })
  const field = (name: string, label: string, text: string | undefined, example: string) =>
    parts.field({
      ...typed(context, name, text),
      label,
      autocomplete: 'off',
      extra: { placeholder: example, spellcheck: 'false' },
    })
  const time = (name: 'from' | 'until', label: string) =>
    parts.field({ ...typed(context, name, timeText(when[name])), label, type: 'datetime-local' })
  const zone = isSent ? form.text('zone') : (when.zone ?? user.zone)
  return html`<section class="card" id="edit">
    <h2>${at === undefined ? 'Add a destination' : `Destination ${at + 1}`}</h2>
    ${parts.form(user, pathOf(link), [
      parts.hiddenFields({
        action: 'save',
        at: at ?? '',
        version: isSent ? form.text('version') : versionOf(destinations),
      }),
      parts.urlField({ ...typed(context, 'url', url), label: 'Long URL', required: true }),
      html`<p class="hint">All conditions must hold. Of several values of one, any may.</p>`,
      group('os', 'System'),
      group('device', 'Device'),
      html`<div class="columns small">
        ${field('language', 'Languages', when.language?.join(', '), 'de, pt-BR')}
        ${
          deps.destinationPolicy.hasCountries &&
          field('country', 'Countries', when.country?.join(', '), 'DE, AT')
        }
        ${field('query', 'Query', when.query && queryText(when.query), 'v=2, preview')}
        ${time('from', 'From')}
        ${time('until', 'Until')}
      </div>`,
      group('days', 'Days'),
      html`<div class="columns small">
        ${field('hours', 'Hours', when.hours, '18:00-02:00')}
        ${parts.select({
          name: 'zone',
          label: 'Time zone of days and hours',
          value: zone,
          choices: TIME_ZONES.map((value) => ({ value, label: zoneName(value) })),
        })}
      </div>`,
      html`<div class="row">
        ${parts.button(at === undefined ? 'Add' : 'Save')}
        ${at !== undefined && parts.linkButton('Cancel', pathOf(link))}
      </div>`,
    ])}
  </section>`
}
