import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { subjects } from './data.ts'
import { migrate } from './db/migrate.ts'
import type { Subject, WriteContext } from './db/subject.ts'

/** Tables with rows for each link, alias, event, visit, path or delivery. */
const LARGE = (
  'links aliases hits hit_days link_tags link_checks shared_pages link_events link_event_links ' +
  'visit_batches unknown_paths webhook_events webhook_deliveries webhook_attempts'
).split(' ')

/** A count at the start of the service, and a removal that reads the 500 oldest events. */
const ALLOWED = ['SELECT count(*) AS n FROM aliases', 'DELETE FROM link_events']

interface Step {
  id: number
  parent: number
  detail: string
}

type AnySubject = Subject<
  unknown,
  Record<string, (db: Database) => unknown>,
  Record<string, { prepare(db: Database, host: WriteContext): unknown }>
>

/** The statements that the subjects prepare when they are opened. */
function statementsOf(db: Database): Set<string> {
  const found = new Set<string>()
  const recording = new Proxy(db, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      if (name !== 'prepare' && name !== 'query') {
        return typeof value === 'function' ? value.bind(target) : value
      }
      return (sql: string) => {
        found.add(sql)
        return value.call(target, sql)
      }
    },
  })
  const host = { id: '', forgetAccount: () => {} }
  for (const { reads, scans, writes, onEvents, forget } of Object.values<AnySubject>(subjects)) {
    reads(recording)
    for (const prepare of Object.values(scans)) prepare(recording)
    for (const { prepare } of Object.values(writes)) prepare(recording, host)
    onEvents?.(recording)
    for (const sql of forget) found.add(sql)
  }
  return found
}

/** Steps that read a whole large table, or all links of an account for each row of a result. */
function readsTooMuch(db: Database, sql: string): boolean {
  const steps = db.prepare<Step, []>(`EXPLAIN QUERY PLAN ${sql}`).all()
  const isRepeated = ({ parent }: Step): boolean => {
    const above = steps.find(({ id }) => id === parent)
    return above !== undefined && (/^CORRELATED/.test(above.detail) || isRepeated(above))
  }
  return steps.some((step) => {
    const [, kind, name = ''] = /^(SCAN|SEARCH) (\w+)/.exec(step.detail) ?? []
    const table = LARGE.find((one) => one === name || isAlias(sql, one, name))
    const isOfAccount = table === 'links' && step.detail.endsWith('(account_id=?)')
    return table !== undefined && (kind === 'SCAN' || (isOfAccount && isRepeated(step)))
  })
}

const isAlias = (sql: string, table: string, name: string): boolean =>
  new RegExp(`\\b${table} (AS )?${name}\\b`).test(sql)

test('no statement reads a whole large table, or all links of an account for each row', () => {
  const db = new Database(':memory:')
  migrate(db)
  for (const table of LARGE) db.prepare(`SELECT 1 FROM ${table}`).finalize()
  const statements = [...statementsOf(db)]
  expect(statements.length).toBeGreaterThan(250)
  const found = statements.filter((sql) => readsTooMuch(db, sql))
  expect(found.filter((sql) => !ALLOWED.some((start) => sql.startsWith(start)))).toEqual([])
})

test.each(Object.entries(subjects))('operations of %s have different names', (_, one) => {
  const db = new Database(':memory:')
  migrate(db)
  const reads = one.reads(db) as object
  const writes = Object.keys(one.writes)
  expect(Object.keys(one.scans).filter((name) => name in reads || name in one.writes)).toEqual([])
  expect(writes.filter((name) => name in reads)).toEqual([])
})
