import { eventOf, type HistoryEvent, HistoryQuery } from '../../history/schema.ts'
import type { EventPage, EventRow } from '../../history/subject.ts'
import { parseWith } from '../../http/body.ts'
import { type Html, html, type Value } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { SETTABLE_PROPERTIES } from '../../links/property-table.ts'
import { ShortenBody } from '../../links/schema.ts'
import { updateOwnedLink } from '../../links/update.ts'
import type { PageContext } from '../auth/guard.ts'
import * as parts from '../ui/components.ts'
import { PAGE_SIZE } from '../ui/layout.ts'
import { destination, linkPath } from '../ui/link-parts.ts'
import { longTime } from '../ui/local-time.ts'

/** Events of links in sentences. */

interface TableProps {
  path: string
  find: (page: Omit<EventPage, 'id'>) => { events: readonly EventRow[]; next: string | null }
  what: (row: EventRow) => Value
  /** A form beside an event. */
  form?: (event: HistoryEvent) => Value
}

/** A page of events, newest first. Throws `invalid_value` for a page that is none. */
export function eventTable(
  { user, query: { before } }: PageContext,
  { path, find, what, form }: TableProps,
): Html {
  parseWith(HistoryQuery.pick({ before: true }), { before })
  const { events, next } = find({ before, limit: PAGE_SIZE })
  if (events.length === 0) return html`<p>There are no changes.</p>`
  const table = parts.table('Changes, the newest first', events, {
    What: (row) => html`${sentence(eventOf(row), what(row), user.zone)}`,
    When: (row) => parts.time(row.at),
    ...(form && { Action: { isHidden: true, cell: (row) => form(eventOf(row)) } }),
  })
  const older = next !== null && parts.linkButton('Older →', `${path}?before=${next}`)
  return html`${table}${older}`
}

export function historyCard(context: PageContext, { id, code, url }: Link): Html {
  const { deps, user } = context
  const path = `${linkPath(code)}/history`
  const isFormer = ({ kind, before }: HistoryEvent) =>
    kind === 'destination' && before !== null && before !== url
  const table = eventTable(context, {
    path,
    find: (page) => deps.data.history.pageOfLink({ ...page, id }),
    what: ({ links }) => (links > 1 ? `this and ${parts.plural(links - 1, 'other link')}` : 'it'),
    form: (event) =>
      isFormer(event) &&
      parts.buttonForm(user, path, 'Put back', {
        values: { url: String(event.before) },
        title: `Put back ${event.before}`,
      }),
  })
  return parts.card('History', table)
}

/** Gives a link a former destination again. */
export async function putBack({ deps, user, form }: PageContext, { code }: Link): Promise<void> {
  const { url } = parseWith(ShortenBody, { url: form.text('url') })
  await updateOwnedLink(deps, user.account, { code, url })
}

const sentence = (event: HistoryEvent, what: Value, zone: string): Html =>
  html`${actorOf(event)} ${CLAUSES[event.kind](event, what, zone)}.`

const ACTORS = {
  command_line: 'The operator, by a command,',
  schedule: 'The service',
  owner: 'The operator of this service',
}

function actorOf({ actor: { kind, name } }: HistoryEvent): Html {
  if (kind !== 'person' && kind !== 'key') return html`${ACTORS[kind]}`
  return html`${kind === 'key' && 'The API key '}<strong>${name ?? 'unknown'}</strong>`
}

const urlOf = (value: unknown): Value => (value === null ? 'none' : destination(String(value)))
const countOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0)
const joined = (value: unknown): string => (countOf(value) > 0 ? [value].flat().join(', ') : 'none')

/** What follows the actor. */
const CLAUSES: Readonly<
  Record<HistoryEvent['kind'], (event: HistoryEvent, what: Value, zone: string) => Html>
> = {
  created: ({ after }, what) =>
    typeof after === 'string'
      ? html`created ${what} with the destination ${urlOf(after)}`
      : html`${after === null ? 'created' : 'imported'} ${what}`,
  destination: ({ before, after }, what) =>
    html`changed the destination of ${what} from ${urlOf(before)} to ${urlOf(after)}`,
  destinations: ({ after }, what) =>
    html`changed the destinations by rule of ${what}: now ${countOf(after)}`,
  aliases: ({ before, after }, what) =>
    html`changed the aliases of ${what}: removed ${joined(before)}, added ${joined(after)}`,
  domain: ({ after }, what) =>
    html`moved ${what} to the domain ${String(after ?? 'of this service')}`,
  password: (_, what) => html`changed the password of ${what}`,
  state: ({ after }, what, zone) => stateClause(after as Record<string, unknown>, what, zone),
  moved: ({ before, after }, what) =>
    html`moved ${what} from ${String(before)} to ${String(after)}`,
  disabled: ({ after }, what) => html`disabled ${what}: ${String(after)}`,
  enabled: (_, what) => html`enabled ${what} again`,
  deleted: (_, what) => html`deleted ${what}`,
  restored: (_, what) => html`restored ${what}`,
  dead: (_, what) => html`found that the destination of ${what} does not answer`,
  alive: (_, what) => html`found that the destination of ${what} answers again`,
}

function stateClause(values: Record<string, unknown>, what: Value, zone: string): Html {
  const shown = SETTABLE_PROPERTIES.filter(({ name }) => name in values).map(
    ({ name, kind, label }) => {
      const value = values[name]
      if (kind === 'flag') return value ? 'paused' : 'not paused'
      const text = kind === 'time' ? value && longTime(Date.parse(String(value)), zone) : value
      return `${label.toLowerCase()} ${text ?? 'none'}`
    },
  )
  return html`changed ${what}: ${shown.join(', ')}`
}
