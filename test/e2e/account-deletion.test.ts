import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { PASSWORD, setUpOwner, type Visitor } from '../support/dashboard.ts'
import { add, GO } from '../support/domains.ts'
import { addKey, inviteTo, makeMember } from '../support/members.ts'

/** What a deleted account leaves: every table of the schema is searched. */

const CODE = 'SPRING26'
const ANN = 'ann-of-the-deleted@example.com'
const BOB = 'bob@example.com'
/** In each text that Ann stores. */
const MARK = 'of-the-deleted'

/** Rows that stay, as numbers without a name. */
const STAYS = [
  // The last 4,096 changes of all links, by which readers find out-of-date counts.
  'link_changes',
]

interface Ids {
  account: number
  person: number
  link: number
}

interface Column {
  name: string
  type: string
  notnull: number
  pk: number
  dflt_value: string | null
}

const tablesOf = (db: Database): string[] =>
  db
    .query<{ name: string }, []>(
      `SELECT name FROM pragma_table_list
       WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'`,
    )
    .all()
    .map(({ name }) => name)

const columnsOf = (db: Database, table: string): Column[] =>
  db.query<Column, [string]>('SELECT * FROM pragma_table_info(?)').all(table)

const OWNERS: Readonly<Record<string, (ids: Ids) => number>> = {
  account_id: ({ account }) => account,
  person_id: ({ person }) => person,
  link_id: ({ link }) => link,
}

/** Which rows of a table are of the account, its person or its link. */
function findOwned(db: Database, table: string, ids: Ids) {
  const { account, person, link } = ids
  const columns = columnsOf(db, table).map(({ name }) => name)
  const owned: { name: string; values: Record<string, number> }[] = []
  const add = (name: string, values: Record<string, number>) => owned.push({ name, values })
  for (const [column, idOf] of Object.entries(OWNERS)) {
    if (columns.includes(column)) add(table, { [column]: idOf(ids) })
  }
  if (columns.includes('scope') && !columns.includes('account_id')) {
    add(`${table} scope 0`, { scope: 0, id: link })
    add(`${table} scope 1`, { scope: 1, id: account })
  }
  if (table === 'accounts') add(table, { id: account })
  if (table === 'people') add(table, { id: person })
  if (table === 'links') add(table, { id: link })
  return owned
}

const countOf = (db: Database, table: string, values: Record<string, number>): number => {
  const where = Object.keys(values).map((name) => `${name} = ?`)
  const query = `SELECT count(*) AS n FROM ${table} WHERE ${where.join(' AND ')}`
  return db.query<{ n: number }, number[]>(query).get(...Object.values(values))?.n ?? 0
}

/** Adds a row to each table that has none of the account, with some value in the other columns. */
function fill(db: Database, ids: Ids, text = MARK): void {
  for (const table of tablesOf(db)) {
    for (const { values } of findOwned(db, table, ids)) {
      if (countOf(db, table, values) > 0) continue
      const row: Record<string, number | string> = { ...values }
      const columns = columnsOf(db, table)
      const hasId = columns.filter(({ pk }) => pk > 0).length === 1
      for (const { name, type, notnull, pk, dflt_value } of columns) {
        const isNumber = type.toLowerCase() === 'integer'
        if (name in row || notnull === 0 || dflt_value !== null) continue
        if (hasId && pk === 1 && isNumber) continue
        row[name] =
          OWNERS[name]?.(ids) ?? (isNumber ? 1 : `${text} ${table} ${Object.keys(values)}`)
      }
      const names = Object.keys(row)
      const marks = names.map(() => '?').join(', ')
      db.query(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`).run(
        ...Object.values(row),
      )
    }
  }
}

/** The names of tables in which something of the account is left. */
function findLeft(db: Database, ids: Ids): string[] {
  const left = tablesOf(db).flatMap((table) => [
    ...findOwned(db, table, ids).flatMap(({ name, values }) =>
      countOf(db, table, values) > 0 ? [name] : [],
    ),
    ...(JSON.stringify(db.query(`SELECT * FROM ${table}`).all(), withText).includes(MARK)
      ? [`a text in ${table}`]
      : []),
  ])
  const indexed = db.query<{ n: number }, [number]>(
    'SELECT count(*) AS n FROM links_search WHERE rowid >> 32 = ?',
  )
  if (indexed.get(ids.account)?.n !== 0) left.push('links_search')
  return [...new Set(left)].filter((name) => !STAYS.includes(name))
}

const withText = (_: string, value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value

/** Ann's account with a bit of everything, a member, and the domain of the account. */
async function open(app: TestApp): Promise<{ ann: Visitor; ids: Ids; image: string }> {
  await setUpOwner(app)
  const ann = await makeMember(app, ANN)
  const bob = await makeMember(app, BOB)
  await bob.post(await inviteTo(ann, BOB), {})
  await inviteTo(ann, `zoe-${MARK}@example.com`)
  const ids = app.administer(({ accounts }) => {
    const { id: person = 0, accountId: account = 0 } = accounts.findByEmail(ANN) ?? {}
    return { account, person, link: 0 }
  })
  await bob.post('/app/account/open', { account: String(ids.account) }, { from: '/app/account' })
  await add(app, { host: GO, for: ids.account })
  addKey(app, ANN, { name: MARK, scope: 'write' })
  await ann.post('/app/links', { url: `https://example.com/${MARK}`, code: CODE })
  const page = { was_public: 'off', public: '1' }
  await ann.post(`/app/links/${CODE}/settings`, { title: MARK, tags: MARK, add: MARK, ...page })
  await ann.post('/app/qr/presets', { name: MARK }, { from: '/app/qr' })
  await app.call('GET', `/${CODE}`)
  await app.call('GET', `/cdn/qr/${CODE}.png`)
  ids.link = app.administer(
    ({ db }) => db.query<{ id: number }, []>('SELECT id FROM links').get()?.id ?? 0,
  )
  await eventually('the hit is counted', () =>
    app.administer(({ db }) => countOf(db, 'hits', { link_id: ids.link }) > 0),
  )
  return { ann, ids, image: join(app.dataDir, 'cdn/qr', `${CODE}.png`) }
}

test('nothing of a deleted account is left in any table, and no image', async () => {
  await using app = await testApp()
  const { ann, ids, image } = await open(app)
  const others = { account: 1, person: 1, link: 10_000 }
  app.administer(({ db }) => {
    fill(db, ids)
    fill(db, others, 'kept')
  })
  const before = app.administer(({ db }) => findLeft(db, ids))
  for (const name of ['api_keys', 'qr_presets', 'qr_refs', 'hits', 'hit_days scope 1']) {
    expect(before).toContain(name)
  }
  for (const name of ['links_search', 'memberships', 'sessions', 'one_time_links', 'domains']) {
    expect(before).toContain(name)
  }
  expect(existsSync(image)).toBe(true)
  const seen = await ann.post('/app/account/delete', { current: PASSWORD })
  expect(seen.location).toBe('/app/sign-in?done=deleted')
  await eventually('the image is gone', () => !existsSync(image))
  expect(app.administer(({ db }) => findLeft(db, ids))).toEqual([])
  const ofOthers = app.administer(({ db }) =>
    tablesOf(db).flatMap((table) =>
      findOwned(db, table, others).map(({ values }) => countOf(db, table, values) > 0),
    ),
  )
  expect(ofOthers.length).toBeGreaterThan(25)
  expect(ofOthers).not.toContain(false)
})

test('a table with rows of accounts that no subject forgets is found', async () => {
  await using app = await testApp()
  const { ann, ids } = await open(app)
  app.administer(({ db }) => {
    db.run('CREATE TABLE notes (id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL, note TEXT)')
    fill(db, ids)
  })
  await ann.post('/app/account/delete', { current: PASSWORD })
  expect(app.administer(({ db }) => findLeft(db, ids))).toEqual(['notes'])
})

test('the domain of a deleted account goes back to the owners of the service', async () => {
  await using app = await testApp()
  const { ann } = await open(app)
  await ann.post('/app/account/delete', { current: PASSWORD })
  expect(app.administration.data.domains.findByHost(GO)).toMatchObject({
    access: 'owners',
    accountId: null,
  })
})
