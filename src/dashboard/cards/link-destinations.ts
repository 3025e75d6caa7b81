import { TIME_ZONES } from '../../hits/range.ts'
import { isoTime } from '../../lib/clock.ts'
import { attributes, type Html, html, type Value } from '../../lib/html.ts'
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
  choicesOf,
  conditionLine,
  conditionText,
  failingPart,
  type Line,
  lineMenu,
  lineMenuButton,
  linesOf,
  parseQueryText,
  queryText,
  toggles,
  typedCodes,
  typedHours,
  usedLines,
} from '../ui/conditions.ts'
import { errorOf, typed } from '../ui/form.ts'
import { zoneName } from '../ui/hit-chart.ts'
import { icon } from '../ui/icons.ts'
import { badge, destination, linkPath, replacesMain } from '../ui/link-parts.ts'
import { localText, parseLocal } from '../ui/local-time.ts'

/** The destinations by rule of a link: their list, a try-out, and the form of one. */

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
 * Moves the destination `at` to another place (`to`), removes it (`action`: `remove`), replaces it
 * by what the form has (`save`), or adds that (`save` without `at`).
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
  if (action === 'save') {
    list[at] = typedDestination(context)
  } else if (action === 'remove') {
    list.splice(at, 1)
  } else if (/^\d+$/.test(form.text('to')) && Number(form.text('to')) in list) {
    list.splice(Number(form.text('to')), 0, ...list.splice(at, 1))
  } else {
    throw refuse('Choose what to do with the destination.')
  }
  const { data, error } = PropertiesBody.safeParse({ destinations: list })
  if (error) throw problemAt(error.issues[0]?.path.at(-1), error.issues[0]?.message ?? '')
  const changed = { destinations: data.destinations }
  const change = () => changeProperties(deps, user.account, [link.code], changed)
  await (action === 'save' ? atField('url', change) : change())
}

/** The fields that show why they are refused, in the order of the form. */
const FIELDS = [
  'os',
  'device',
  'language',
  'country',
  'query',
  'from',
  'until',
  'days',
  'hours',
  'url',
] as const

/** A message of the API at the field of its last name, without the names before. */
function problemAt(name: PropertyKey | undefined, message: string) {
  const [, reason = message] = /^Invalid [^:]+: (.*)/.exec(message) ?? []
  const text = reason.charAt(0).toUpperCase() + reason.slice(1)
  const field = FIELDS.find((one) => one === name)
  if (field) return refuseAt(field, text)
  return refuse(name === 'when' ? 'Choose at least one condition.' : text)
}

/** As the API has it. Throws `FormRefusal` for a time that does not exist. */
function typedDestination({ form, user }: PageContext): object {
  const timeIn = (name: 'from' | 'until') => {
    if (form.text(name) === '') return undefined
    const time = parseLocal(form.text(name), user.zone)
    if (time !== undefined) return isoTime(time)
    throw refuseAt(name, `Enter a date and a time that exists in ${zoneName(user.zone)}.`)
  }
  const some = (list: readonly string[]) => (list.length > 0 ? list : undefined)
  const read: Record<Line, () => Record<string, unknown>> = {
    os: () => ({ os: some(form.all('os')) }),
    device: () => ({ device: some(form.all('device')) }),
    language: () => ({ language: some(typedCodes(form.text('language'), 'language')) }),
    country: () => ({ country: some(typedCodes(form.text('country'), 'region')) }),
    query: () => ({ query: typedQuery(form.text('query')) }),
    dates: () => ({ from: timeIn('from'), until: timeIn('until') }),
    week: () => {
      const days = some(form.all('days'))
      const hours = typedHours(form.text('hours'), form.text('hours_until'))
      return { days, hours, zone: days || hours ? form.text('zone') : undefined }
    },
  }
  const when = Object.assign({}, ...usedLines(form).map((line) => read[line]()))
  return { when, url: withScheme(form.text('url')) }
}

/** Throws `FormRefusal` for a parameter that is named twice. */
function typedQuery(text: string): Record<string, string | true> | undefined {
  const query = parseQueryText(text)
  if (!query) throw refuseAt('query', 'Name each parameter once.')
  return Object.keys(query).length > 0 ? query : undefined
}

/** Which form is open: of the destination with this place, or of a new one. */
type Open = number | 'new' | undefined

/** The list with the try-out above it. A form stands in the place of what it changes. */
export function destinationCards(
  context: PageContext,
  link: Link,
  destinations: readonly RuledDestination[],
): Html {
  const { query, form, refusal } = context
  const isRefused = refusal !== undefined && form.text('action') === 'save'
  const chosen = isRefused ? form.text('at') || 'new' : query.edit
  const isPlace = /^\d{1,2}$/.test(chosen ?? '') && Number(chosen) in destinations
  const isFull = destinations.length >= DESTINATIONS_MAX
  const isNew = !isPlace && !isFull && (chosen === 'new' || destinations.length === 0)
  const open: Open = isPlace ? Number(chosen) : isNew ? 'new' : undefined
  const shown = mayAdd(context, link) ? open : undefined
  return html`<section class="card" id="destinations">
    <div class="row apart">
      <h2>Destinations by rule</h2>
      ${
        mayAdd(context, link) &&
        shown === undefined &&
        !isFull &&
        parts.linkButton('Add a destination', `${pathOf(link)}?edit=new#edit`, 'primary')
      }
    </div>
    <p class="hint">The first one whose conditions all hold is used. The short URL and its QR code
      stay the same.</p>
    ${destinations.length > 0 && shown === undefined && tryLine(context, link)}
    ${ruleList(context, link, { destinations, open: shown })}
  </section>`
}

interface ListProps {
  destinations: readonly RuledDestination[]
  open: Open
}

function ruleList(context: PageContext, link: Link, props: ListProps): Html {
  const { deps, user } = context
  const { destinations: list, open } = props
  const tried = triedVisitor(context)
  const reasons = list.map(({ when, url }) => {
    if (deps.blocklist.isBlocked(new URL(url))) return 'host is on the abuse blocklist'
    return failingPart(when, tried)
  })
  const hit = reasons.indexOf(undefined)
  const winner = hit < 0 ? list.length : hit
  /** Said while no form is open. */
  const result = (at: number) => {
    if (open !== undefined || list.length === 0 || at > winner) return ''
    if (at < winner) return html`<span class="tried hint">no: ${reasons[at]}</span>`
    return html`<span class="tried">${badge({ label: 'This visitor', kind: 'good' })}</span>`
  }
  const rows = list.map(({ when, url }, at) => {
    if (open === at) return html`<li>${ruleForm(context, link, props)}</li>`
    const isHit = at === winner && open === undefined
    return html`<li ${attributes({ 'data-at': at, class: isHit && 'hit' })}>
      <p>${conditionText(when, user.zone)} → ${destination(url)}</p>
      ${result(at)}
      ${ruleMenu(context, link, { list, at })}
    </li>`
  })
  const settings = `${linkPath(link.code)}/settings#field-url`
  const isOther = winner === list.length && list.length > 0 && open === undefined
  return html`<ol id="rules" class="plain-list rules">
    ${rows}
    ${open === 'new' && html`<li>${ruleForm(context, link, props)}</li>`}
    <li ${attributes({ class: isOther && 'hit' })}>
      <p>${list.length > 0 ? 'Everybody else' : 'Everybody'} →
        ${link.url === null ? 'none yet' : destination(link.url)}</p>
      ${result(list.length)}
      ${parts.offer(
        user,
        settings,
        html`<a class="act" href="${settings}"
          aria-label="Edit the destination of everybody else">${icon('pencil')}</a>`,
      )}
    </li>
  </ol>
  ${parts.form(
    user,
    pathOf(link),
    parts.hiddenFields({ at: '', to: '', version: versionOf(list) }),
    { id: 'move-rule', hidden: true, ...inPlace(link) },
  )}`
}

/** The response replaces the page, which stays where it was scrolled to. */
const inPlace = (link: Link) => ({ ...replacesMain(pathOf(link)), 'hx-swap': 'outerHTML' })

interface MenuProps {
  list: readonly RuledDestination[]
  at: number
}

/** Edit, move and remove. The browser opens and closes it, also without scripts. */
function ruleMenu(context: PageContext, link: Link, { list, at }: MenuProps): Html | false {
  const { user } = context
  const path = pathOf(link)
  if (!user.may('POST', path)) return false
  const hidden = parts.hiddenFields({ at, version: versionOf(list) })
  const move = (label: string, to: number) =>
    to in list && html`<button class="menu-item" name="to" value="${to}">${label}</button>`
  const act = (children: Value) =>
    parts.form(user, path, [hidden, children], { class: 'inline', ...inPlace(link) })
  const id = `rule-${at}`
  return html`
    <span class="grip" hidden data-needs-script draggable="true"
      title="Drag to another place">${icon('grip-vertical')}</span>
    <button type="button" class="act" popovertarget="${id}"
      aria-label="Actions for destination ${at + 1}">${icon('ellipsis')}</button>
    <div id="${id}" class="menu" popover>
      ${
        mayAdd(context, link) &&
        html`<a class="menu-item" href="${`${path}?edit=${at}#edit`}">${icon('pencil')} Edit</a>`
      }
      ${list.length > 1 && act([move('Move up', at - 1), move('Move down', at + 1)])}
      ${act(
        html`<button class="menu-item" name="action" value="remove">${icon('trash-2')}
          Remove</button>`,
      )}
    </div>`
}

/** Characters of a field of the try-out. */
const TRIED_MAX = 500

const sentWith = ({ request }: PageContext, now: number): Visitor =>
  visitorOf({ get: (name) => request.headers.get(name), query: '' }, now)

/** The fields of the try-out. They begin as what this browser says. */
function triedFields(context: PageContext): Query {
  const { deps, user, query } = context
  if (query.try === '1') return query
  const own = sentWith(context, deps.clock())
  return {
    os: own.os,
    device: own.device,
    language: context.request.headers.get('accept-language') ?? '',
    time: localText(deps.clock(), user.zone),
  }
}

/** The visitor that the fields describe. */
function triedVisitor(context: PageContext): Visitor {
  const { deps, user } = context
  const fields = triedFields(context)
  const text = (name: string) => (fields[name] ?? '').trim().slice(0, TRIED_MAX)
  const week = new WeekClock()
  const now = parseLocal(text('time'), user.zone) ?? deps.clock()
  return {
    os: SYSTEMS.find((one) => one === text('os')),
    device: DEVICES.find((one) => one === text('device')),
    languages: preferredLanguages(typedCodes(text('language'), 'language').join(',')),
    country: typedCodes(text('country'), 'region')[0]?.toUpperCase(),
    query: readQuery(text('query')),
    now,
    minuteOfWeek: (zone) => week.minuteOfWeek(zone, now),
  }
}

/** Where scripts run, a changed field marks the row at once. */
function tryLine(context: PageContext, link: Link): Html {
  const { deps, user } = context
  const fields = triedFields(context)
  const value = (name: string) => (fields[name] ?? '').slice(0, TRIED_MAX)
  const field = (name: string, label: string, placeholder: string) =>
    parts.field({
      name,
      label,
      value: value(name),
      extra: { maxlength: TRIED_MAX, spellcheck: 'false', placeholder },
    })
  const select = (name: 'os' | 'device', label: string) =>
    parts.select({
      name,
      label,
      value: value(name),
      choices: [...choicesOf[name], { value: '', label: 'Other' }],
    })
  const live = {
    action: `${pathOf(link)}#destinations`,
    'hx-get': pathOf(link),
    'hx-trigger': 'input delay:300ms',
    'hx-target': '#rules',
    'hx-select': '#rules',
    'hx-swap': 'outerHTML',
  }
  return html`<form method="get" class="try" aria-label="Try a visitor" ${attributes(live)}>
    ${parts.hiddenFields({ try: '1' })}
    <b>Visitor</b>
    ${select('os', 'System')}
    ${select('device', 'Device')}
    ${field('language', 'Languages', 'de-CH,de;q=0.9')}
    ${deps.destinationPolicy.hasCountries && field('country', 'Country', 'DE')}
    ${field('query', 'Query', 'v=2')}
    ${parts.field({
      name: 'time',
      label: `Time (${zoneName(user.zone)})`,
      type: 'datetime-local',
      value: value('time'),
    })}
    ${parts.button('Try', 'plain', { 'data-without-script': true })}
  </form>
  <p class="hint">The visitor begins as this browser. Most iPads say that they are a Mac,
    and get what Macs get.</p>`
}

function ruleForm(context: PageContext, link: Link, { destinations, open }: ListProps): Html {
  const { deps, user, form, refusal } = context
  const at = typeof open === 'number' ? open : undefined
  const { when = {}, url = '' } = at === undefined ? {} : (destinations[at] ?? {})
  const isSent = refusal !== undefined && form.text('action') === 'save'
  const known = linesOf(when)
  const used = isSent ? usedLines(form) : known
  const hasCountries = deps.destinationPolicy.hasCountries || known.includes('country')
  const controls = lineControls(context, when)
  const lines = (Object.keys(controls) as Line[]).filter((one) => one !== 'country' || hasCountries)
  return html`<div class="rule-form" id="edit">
    ${parts.form(
      user,
      pathOf(link),
      [
        parts.hiddenFields({
          action: 'save',
          at: at ?? '',
          version: isSent ? form.text('version') : versionOf(destinations),
        }),
        html`<h3>${at === undefined ? 'New destination' : `Destination ${at + 1}`}</h3>
          <p class="hint">All conditions must hold. Of several values of one, any may.</p>`,
        lineMenu(lines, used),
        lines.map((line) => conditionLine(line, controls[line])),
        lineMenuButton(),
        parts.urlField({
          ...typed(context, 'url', url),
          label: 'Go to',
          required: true,
          extra: { autofocus: refusedFirst(context) === 'url' },
        }),
        html`<div class="row">
          ${parts.button(at === undefined ? 'Add' : 'Save', 'primary', { id: 'save-rule' })}
          ${destinations.length > 0 && parts.linkButton('Cancel', `${pathOf(link)}#destinations`)}
        </div>`,
      ],
      { ...inPlace(link), 'data-asks': isSent ? 'unsaved' : true },
    )}
  </div>`
}

/** The first refused field in the order of the form. */
const refusedFirst = ({ refusal }: PageContext) => FIELDS.find((name) => errorOf(refusal, name))

/** The controls of each line, with what is stored or was sent. */
function lineControls(context: PageContext, when: Conditions): Record<Line, Value> {
  const { user, form, refusal } = context
  const isSent = refusal !== undefined && form.text('action') === 'save'
  const focused = (name: string) => ({ autofocus: name === refusedFirst(context) })
  const choice = (name: 'os' | 'device' | 'days') =>
    toggles({
      name,
      chosen: isSent ? form.all(name) : (when[name] ?? []),
      error: errorOf(refusal, name),
    })
  const field = (name: string, label: string, text: string | undefined, example: string) =>
    parts.field({
      ...typed(context, name, text),
      label,
      extra: { placeholder: example, spellcheck: 'false', ...focused(name) },
    })
  const time = (name: 'from' | 'until', label: string) => {
    const text = when[name] && localText(Date.parse(when[name]), user.zone)
    const extra = focused(name)
    return parts.field({ ...typed(context, name, text), label, type: 'datetime-local', extra })
  }
  const [start, end] = when.hours?.split('-') ?? []
  const hour = (name: string, label: string, text: string | undefined) =>
    parts.field({ ...typed(context, name, text), label, type: 'time', extra: focused(name) })
  return {
    os: choice('os'),
    device: choice('device'),
    language: field('language', 'Languages', when.language?.join(', '), 'German, pt-BR'),
    country: field('country', 'Countries', when.country?.join(', '), 'Germany, AT'),
    query: field('query', 'Query', when.query && queryText(when.query), 'v=2, preview'),
    dates: [time('from', 'From'), time('until', 'Until')],
    week: [
      choice('days'),
      hour('hours', 'From', start),
      hour('hours_until', 'Until', end === '24:00' ? '' : end),
      parts.select({
        name: 'zone',
        label: 'Time zone',
        value: isSent ? form.text('zone') : (when.zone ?? user.zone),
        choices: TIME_ZONES.map((value) => ({ value, label: zoneName(value) })),
      }),
    ],
  }
}
