import { expect, test } from 'bun:test'
import { SECOND } from '../../src/lib/clock.ts'
import { html } from '../../src/lib/html.ts'
import type { TestApp } from './app.ts'
import type { Seen, Visitor } from './dashboard.ts'

type Fields = Readonly<Record<string, string | readonly string[]>>
type Request = `${'GET' | 'POST'} /${string}`

/**
 * A request that changes nothing, and its answer. Lists are dimensions: a row with two users, three
 * requests and four forms is 24 tests. `{name}` in a request or a field is a name of the world.
 */
export interface Scenario<Who extends string> {
  who: Who | readonly Who[]
  request: Request | readonly Request[]
  /** Forms, sent with the token of the page `from`: by default the request's own. */
  fields?: Fields | readonly Fields[]
  from?: string
  /** In place of `fields`: forms by the field at which they are refused; `''`: as a whole. */
  refused?: Readonly<Record<string, readonly Fields[]>>
  /** Default: 422. */
  status?: number
  /** What the answer contains, and what it does not. A redirect is its address. */
  body?: string | RegExp
  not?: string | RegExp
  /** Fields whose text a refused form keeps, so that nobody types it again. */
  keeps?: readonly string[]
}

export interface World<Who extends string> {
  app: TestApp
  who: Readonly<Record<Who, Visitor>>
  names?: Readonly<Record<string, string | number>>
}

/** Forms that differ in one field. */
export const each = (name: string, values: readonly string[], more: Fields = {}): Fields[] =>
  values.map((value) => ({ ...more, [name]: value }))

/** Rows of what people own and may do. Other tables are about use. */
const QUERIES = `accounts memberships people identities one_time_links links aliases link_tags
  shared_pages qr_presets qr_logos domains blocked_hosts disabled_codes settings app_files`
  .split(/\s+/)
  .map((table) => `SELECT * FROM ${table} ORDER BY 1, 2`)
  .concat('SELECT id, account_id FROM sessions', 'SELECT id, hash, name, ends_at FROM api_keys')

const stored = (app: TestApp): unknown[] =>
  app.administer(({ db }) => QUERIES.map((query) => db.query(query).all()))

const listOf = <One>(value: One | readonly One[]): readonly One[] => [value].flat() as One[]

interface Sent<Who> {
  who: Who
  request: Request
  fields: Fields
  at: string | undefined
}

function sentBy<Who extends string>(row: Scenario<Who>): Sent<Who>[] {
  const forms = row.refused
    ? Object.entries(row.refused).flatMap(([at, all]) => all.map((fields) => ({ at, fields })))
    : listOf<Fields>(row.fields ?? {}).map((fields) => ({ at: undefined, fields }))
  return listOf(row.who).flatMap((who) =>
    listOf<Request>(row.request).flatMap((request) =>
      forms.map((form) => ({ who, request, ...form })),
    ),
  )
}

function expectAnswer<Who extends string>(row: Scenario<Who>, sent: Sent<Who>, seen: Seen): void {
  const { status = 422, body = '', not, keeps = [] } = row
  const invalid = sent.at === undefined ? seen.invalid : [sent.at].filter(Boolean)
  expect([seen.status, seen.invalid]).toEqual([status, invalid])
  const answer = `${seen.location ?? ''}${seen.text}`
  expect(answer).toMatch(body)
  if (not !== undefined) expect(answer).not.toMatch(not)
  const kept = keeps.flatMap((name) => listOf(sent.fields[name] ?? []))
  for (const text of kept) expect(answer).toContain(`value="${html`${text}`}"`)
}

/** A test for each combination of each row. The service stores the same before and after it. */
export function scenarios<Who extends string>(
  open: () => Promise<World<Who>>,
  rows: readonly Scenario<Who>[],
): void {
  const all = rows.flatMap((row) =>
    sentBy(row).map((sent) => {
      const form = JSON.stringify(sent.fields).slice(0, 60)
      return [sent.who, sent.request, form, row.status ?? 422, { row, sent }] as const
    }),
  )
  test.each(all)('%s: %s with %s is %d', async (_who, _request, _form, _status, { row, sent }) => {
    const { app, who, names = {} } = await open()
    const fill = <Value>(value: Value): Value =>
      JSON.parse(JSON.stringify(value).replace(/\{(\w+)\}/g, (_, name) => `${names[name]}`))
    const [method, path = ''] = fill(sent.request).split(' ')
    // No budget of a minute ends a table.
    app.advance(SECOND)
    const before = stored(app)
    const seen = await (method === 'GET'
      ? who[sent.who].get(path)
      : who[sent.who].post(path, fill({ ...sent.fields }), { from: fill(row.from ?? path) }))
    expectAnswer(row, sent, seen)
    expect(stored(app)).toEqual(before)
  })
}
