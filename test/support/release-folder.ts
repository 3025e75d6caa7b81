import type { Database } from 'bun:sqlite'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { DAY } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from './app.ts'
import { setUpOwner } from './dashboard.ts'
import { add, GO } from './domains.ts'
import { temporaryFolder } from './folder.ts'
import { pngLogo, uploadLogo } from './logos.ts'
import { addKey, inviteTo, makeMember } from './members.ts'
import { enableTwoFactor } from './totp.ts'

/**
 * The data folders of releases, in test/releases/, with what the tests know of each. A release
 * writes its own once, by `bun scripts/release-folder.ts`; it never changes.
 */

const RELEASES = join(import.meta.dir, '../releases')

/** What a folder holds, for the tests of later releases. */
export interface Known {
  /** Where each path leads. */
  destinations: Record<string, string>
  /** Hits of each code. The last ones are in the journal only. */
  hits: Record<string, number>
  /** An API key of the account that has the links. */
  key: string
  /** The secret of the owner's second factor. */
  totp: string
  recoveryCode: string
  /** The password of a link. */
  protected: { code: string; password: string }
  /** The first code of `hits`, as the API shows it: all of its properties are set. */
  link: Record<string, unknown>
  /** The time of the last hits. */
  now: number
  /** Rows of each table. */
  rows: Record<string, number>
}

export const releases = (): string[] => readdirSync(RELEASES).sort()

export const readApi = (release: string) =>
  JSON.parse(unpacked(join(RELEASES, release, 'api.json.zst')))

export const readKnown = (release: string): Known =>
  JSON.parse(readFileSync(join(RELEASES, release, 'known.json'), 'utf8'))

const unpacked = (file: string): string => Bun.zstdDecompressSync(readFileSync(file)).toString()

/** Writes the data folder of a release to `path`. */
export function unpackRelease(release: string, path: string): void {
  const from = join(RELEASES, release, 'folder')
  for (const name of new Bun.Glob('**/*.zst').scanSync({ cwd: from, dot: true })) {
    const file = join(path, name.replace(/\.zst$/, ''))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, Bun.zstdDecompressSync(readFileSync(join(from, name))), { mode: 0o600 })
  }
}

/** Tables of clusters: a row in them would make the folder that of a host. */
const OF_CLUSTERS = ['log_position', 'hit_positions']

export const tablesOf = (db: Database): string[] =>
  db
    .query<{ name: string }, []>(
      `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
         AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'links_search%' ORDER BY name`,
    )
    .all()
    .map(({ name }) => name)

const rowsOf = (db: Database, table: string): number =>
  db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0

interface Column {
  name: string
  type: string
  notnull: number
}

/** A row with some value in each column, for tables that nothing here has filled. */
function fillEmpty(db: Database): void {
  for (const table of tablesOf(db)) {
    if (rowsOf(db, table) > 0 || OF_CLUSTERS.includes(table)) continue
    const columns = db
      .query<Column, [string]>('SELECT * FROM pragma_table_info(?)')
      .all(table)
      .filter(({ notnull }) => notnull === 1)
    const values = columns.map(({ name, type }) =>
      type.toLowerCase() === 'integer'
        ? 1
        : type.toLowerCase() === 'blob'
          ? Buffer.alloc(32, 7)
          : name,
    )
    const marks = columns.map(() => '?').join(', ')
    const names = columns.map(({ name }) => name).join(', ')
    db.query(`INSERT INTO ${table} (${names}) VALUES (${marks})`).run(...values)
    console.log(`${table}: filled with one row, because nothing here uses it`)
  }
}

const ALL = 'SPRING26'
const PROTECTED = 'SECRET26'
const ALIAS = 'Spring-Team'
const PASSWORD = 'open sesame 26'
const URL_OF_ALL = 'https://example.com/spring?a=1'
const ENV = { ALIASES: 'all', HIT_FLUSH_MS: '10' }

/** A bit of everything that people can store. */
async function fill(
  app: TestApp,
): Promise<Pick<Known, 'key' | 'totp' | 'recoveryCode' | 'protected'>> {
  const { owner } = await setUpOwner(app)
  const ann = await makeMember(app, 'enterprise@example.com')
  const bob = await makeMember(app, 'bob@example.com')
  await bob.post(await inviteTo(ann, 'bob@example.com', 'editor'), {})
  await inviteTo(ann, 'zoe@example.com')
  await add(app, { host: GO, for: 'all' })
  const key = app.key('enterprise')
  addKey(app, 'enterprise@example.com', { name: 'Website', scope: 'read' })
  await app.claim(ALL, URL_OF_ALL, 'enterprise')
  await app.claim(PROTECTED, 'https://example.com/secret', 'enterprise')
  await app.reserve('RESERV26', 'enterprise')
  await ann.post(`/app/links/${ALL}/settings`, { was_public: 'off', public: '1' })
  const change = async (code: string, json: object) => {
    const { status, text } = await app.call('PATCH', `/api/links/${code}`, {
      key: 'enterprise',
      json,
    })
    if (status !== 200) throw new Error(`${code} cannot be changed: ${text}`)
  }
  await change(ALL, {
    title: 'Spring – Größe',
    tags: ['print', 'spring'],
    note: 'On 10,000 flyers.',
    starts_at: '2026-01-01T00:00:00Z',
    expires_at: '2036-01-01T00:00:00Z',
    max_hits: 1_000_000,
    expired_url: 'https://example.com/over',
    forward_query: true,
    no_index: true,
    destinations: [{ when: { language: ['de'] }, url: 'https://example.com/de' }],
    aliases: [ALIAS],
    domain_aliases: { [GO]: ['team'] },
  })
  await change(PROTECTED, { password: PASSWORD, domain: GO, paused: false })
  await ann.post('/app/qr/presets', { name: 'Flyer', dark: '#1a2e4f' }, { from: '/app/qr' })
  const { location } = await uploadLogo(app, ann, pngLogo(64))
  if (location !== '/app/qr?done=logo') throw new Error('the logo is refused')
  await app.call('GET', `/qr/${ALL}`)
  const line = { code: 'IMPORT26', url: 'https://example.com/imported', hits: 12 }
  const raw = JSON.stringify(line)
  const headers = { 'content-type': 'application/x-ndjson' }
  await app.call('POST', '/api/import', { key: 'enterprise', raw, headers })
  const { key: totp, recoveryCodes } = await enableTwoFactor(app, owner)
  return {
    key,
    totp,
    recoveryCode: recoveryCodes[0] ?? '',
    protected: { code: PROTECTED, password: PASSWORD },
  }
}

/** Rows of what other people and services do: a provider, an operator, a printed code. */
function fillByHand(db: Database, now: number): void {
  const rows: [string, Record<string, string | number>][] = [
    ['identities', { issuer: 'https://id.example', subject: 'bob', person_id: 3, created_at: now }],
    ['disabled_codes', { code: 'BADCODE1', reason: 'phishing', disabled_at: now }],
    ['blocked_hosts', { host: 'bad.example', reason: 'malware', blocked_at: now }],
    [
      'campaign_templates',
      { account_id: 2, name: 'Spring', query: 'utm_source=flyer', created_at: now },
    ],
    ['label_formats', { account_id: 2, name: 'A4', grid: '3x8', created_at: now }],
    ['qr_refs', { account_id: 2, ref: 'flyer', created_at: now }],
  ]
  for (const [table, row] of rows) {
    if (rowsOf(db, table) > 0) continue
    const marks = Object.keys(row)
      .map(() => '?')
      .join(', ')
    db.query(`INSERT INTO ${table} (${Object.keys(row)}) VALUES (${marks})`).run(
      ...Object.values(row),
    )
  }
}

async function follow(app: TestApp, paths: readonly string[], times: number): Promise<void> {
  const headers = {
    referer: 'https://news.example/',
    'user-agent': 'Mozilla/5.0 (iPhone) Safari/604',
  }
  for (let i = 0; i < times; i++) {
    for (const path of paths) await app.call('GET', `/${path}`, { headers })
  }
}

/** Writes the folder and the API description of this release. */
export async function writeRelease(to = join(RELEASES, manifest.version)): Promise<void> {
  using folder = temporaryFolder()
  const dataDir = join(folder.path, 'data')
  const known = await firstDays(dataDir)
  // The last hits are in the journal only, as a crash leaves them.
  await using app = await testApp({
    dataDir,
    realPasswords: true,
    env: { ...ENV, HIT_FLUSH_MS: '60000' },
  })
  app.advance(3 * DAY)
  await follow(app, [ALL, ALIAS], 2)
  const codes = [ALL, 'IMPORT26']
  const hits: Record<string, number> = {}
  for (const code of codes) {
    const { body } = await app.call('GET', `/api/lookup/${code}`)
    hits[code] = (body as { hit_count: number }).hit_count
  }
  const { body: link } = await app.call('GET', `/api/links/${ALL}`, { key: known.key })
  const { body: api } = await app.call('GET', '/docs/json')
  const rows = app.administer(({ db }) =>
    Object.fromEntries(tablesOf(db).map((table) => [table, rowsOf(db, table)])),
  )
  const write = (name: string, bytes: string | Uint8Array) => {
    mkdirSync(dirname(join(to, name)), { recursive: true })
    writeFileSync(join(to, name), bytes)
  }
  const compress = (bytes: Uint8Array<ArrayBuffer>) => Bun.zstdCompressSync(bytes, { level: 19 })
  const copied = ['hopcode.db', 'hopcode.db-wal', 'secret.key', 'hits.journal', `cdn/qr/${ALL}.png`]
  for (const name of copied) {
    write(`folder/${name}.zst`, compress(new Uint8Array(readFileSync(join(dataDir, name)))))
  }
  write('api.json.zst', compress(Buffer.from(JSON.stringify(api))))
  const destinations = {
    [ALL]: URL_OF_ALL,
    [ALIAS]: URL_OF_ALL,
    IMPORT26: 'https://example.com/imported',
  }
  const all: Known = { destinations, hits, ...known, link, now: app.now(), rows }
  write('known.json', `${JSON.stringify(all, undefined, 2)}\n`)
}

/** Two days of use, and a stop in order. */
async function firstDays(dataDir: string) {
  await using app = await testApp({ dataDir, realPasswords: true, visitFlushMs: 10, env: ENV })
  const known = await fill(app)
  await follow(app, [ALL, ALIAS], 3)
  await app.untilCounted()
  app.advance(2 * DAY)
  await follow(app, [ALL], 1)
  await app.untilCounted()
  await eventually('days are written', () => app.administer(({ db }) => rowsOf(db, 'hit_days') > 0))
  app.administer(({ db }) => {
    fillByHand(db, app.now())
    fillEmpty(db)
  })
  return known
}
