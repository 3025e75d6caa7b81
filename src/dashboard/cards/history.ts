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

interface ListProps {
  path: string
  find: (page: Omit<EventPage, 'id'>) => { events: readonly EventRow[]; next: string | null }
  what: (row: EventRow) => Value
  /** A form beside an event. */
  form?: (event: HistoryEvent) => Value
}

/** A page of events, newest first. Throws `invalid_value` for a page that is none. */
export function eventList(
  { user, query: { before } }: PageContext,
  { path, find, what, form }: ListProps,
): Html {
  parseWith(HistoryQuery.pick({ before: true }), { before })
  const { events, next } = find({ before, limit: PAGE_SIZE })
  if (events.length === 0) return html`<p>There are no changes.</p>`
  const items = events.map((row) => {
    const event = eventOf(row)
    const clause = CLAUSES[event.kind](event, what(row), user.zone)
    return html`<li><div>${actorOf(event)} ${clause}
      <div class="hint">${parts.time(row.at)}</div></div>${form?.(event)}</li>`
  })
  const older = next !== null && parts.linkButton('Older →', `${path}?before=${next}`)
  return html`<ul class="plain-list events">${items}</ul>${older}`
}

export function historyCard(context: PageContext, { id, code, url }: Link): Html {
  const { deps, user } = context
  const path = `${linkPath(code)}/history`
  const isFormer = ({ kind, before }: HistoryEvent) =>
    kind === 'destination' && before !== null && before !== url
  const list = eventList(context, {
    path,
    find: (page) => deps.data.history.pageOfLink({ ...page, id }),
    what: ({ links }) =>
      links > 1 ? `this and ${parts.plural(links - 1, 'other link')}` : 'the link',
    form: (event) =>
      isFormer(event) &&
      parts.buttonForm(user, path, 'Put back', {
        values: { url: String(event.before) },
        title: `Put back ${event.before}`,
      }),
  })
  return parts.card('History', list)
}

/** Gives a link a former destination again. */
export async function putBack({ deps, user, form }: PageContext, { code }: Link): Promise<void> {
  const { url } = parseWith(ShortenBody, { url: form.text('url') })
  await updateOwnedLink(deps, user.account, { code, url })
}

const ACTORS = {
  command_line: 'The operator, by a command,',
  schedule: 'The service',
  owner: 'The operator of this service',
}

function actorOf({ actor: { kind, name } }: HistoryEvent): Html {
  if (kind !== 'person' && kind !== 'key') return html`${ACTORS[kind]}`
  return html`${kind === 'key' && 'The API key '}<strong>${name ?? 'unknown'}</strong>`
}

const urlOf = (value: unknown): Value => destination(String(value))
const countOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0)
const joined = (verb: string, value: unknown): string =>
  countOf(value) > 0 ? `, ${verb} ${[value].flat().join(', ')}` : ''

/** What follows the actor. */
const CLAUSES: Readonly<
  Record<HistoryEvent['kind'], (event: HistoryEvent, what: Value, zone: string) => Html>
> = {
  created: ({ after }, what) =>
    typeof after === 'string'
      ? html`created ${what} with the destination ${urlOf(after)}`
      : html`${after === null ? 'created' : 'imported'} ${what}`,
  destination: ({ before, after }, what) =>
    before === null
      ? html`set the destination of ${what} to ${urlOf(after)}`
      : html`changed the destination of ${what} from ${urlOf(before)} to ${urlOf(after)}`,
  destinations: ({ after }, what) =>
    html`changed the destinations by rule of ${what}: now ${countOf(after)}`,
  aliases: ({ before, after }, what) => {
    const changes = joined('removed', before) + joined('added', after)
    return html`changed the aliases of ${what}${changes}`
  },
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
  dead: ({ after }, what) =>
    html`found that the destination of ${what} does not answer: ${String(after)}`,
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
