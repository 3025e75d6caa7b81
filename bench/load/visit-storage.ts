// How much space do details of visits take, and how long do the pages read them?
// npm run bench -- visit-storage
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../src/db/migrate.ts'
import { openWritable } from '../../src/db/open.ts'
import { addSums, decodeSums, emptySums, encodeLinks } from '../../src/visits/parts.ts'
import { visitReads, visitWrites } from '../../src/visits/store.ts'
import { NUMBERED, type VisitKey, visitKey } from '../../src/visits/values.ts'
import { seededRandom } from '../lib/realistic-urls.ts'
import type { Figures, Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario, SummaryFigure } from '../lib/scenario.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

export const visitStorage: Scenario = {
  name: 'visit-storage',
  question: 'How much space do details of visits take, and how long do the pages read them?',
  run,
}

const HITS = 1_000_000
const DAYS = 30
const FIRST_DAY = 20_000
const REFERRERS = 2000
const BOT_SHARE = 0.2
const HITS_PER_BATCH = 33_000
const LINKS_PER_BATCH = 250
const ACCOUNT = 1
/** Days with details of one link whose rows are full. */
const LONG_DAYS = 400

const VARIANTS = [
  { name: '1,000 links', links: 1000, bytesMax: 12 },
  { name: '10,000 links', links: 10_000, bytesMax: 18 },
  { name: '300,000 links', links: 300_000, bytesMax: 25 },
]

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await emptyWorkspace(options)
  const variants: { name: string; rounds: Figures[] }[] = []
  for (const { name, links } of VARIANTS) {
    say(`a million hits of ${name}`)
    const folder = join(workspace.temporaryPath, String(links))
    mkdirSync(folder)
    variants.push({ name, rounds: [simulate(join(folder, 'visits.db'), links)] })
  }
  const figure = (at: number, key: string): number => variants[at]?.rounds[0]?.[key] ?? Number.NaN
  return {
    metrics: [
      { key: 'bytesPerHit', label: 'bytes of the database per hit', digits: 1, ratio: false },
      {
        key: 'microsPerHit',
        label: 'CPU µs of the writer thread per hit',
        digits: 1,
        ratio: false,
      },
      { key: 'rows', label: 'rows', digits: 0, ratio: false },
      { key: 'monthMs', label: '30 days of the busiest link, ms', digits: 1, ratio: false },
      { key: 'accountMs', label: '30 days of the account, ms', digits: 1, ratio: false },
      { key: 'yearMs', label: '400 days of a link with full rows, ms', digits: 1, ratio: false },
    ],
    variants,
    summary: [
      ...VARIANTS.map(
        ({ name, bytesMax }, at): SummaryFigure => ({
          label: `bytes per hit, ${name}`,
          value: figure(at, 'bytesPerHit'),
          unit: '',
          digits: 1,
          target: { sense: '≤', value: bytesMax, stretch: bytesMax },
        }),
      ),
      {
        label: '30 days of the busiest of 300,000 links',
        value: figure(2, 'monthMs'),
        unit: ' ms',
        digits: 1,
        target: { sense: '≤', value: 10, stretch: 5 },
      },
      {
        label: '400 days of a link with full rows',
        value: figure(2, 'yearMs'),
        unit: ' ms',
        digits: 1,
        target: { sense: '≤', value: 60, stretch: 30 },
      },
    ],
    settings: { hits: HITS, days: DAYS, referrers: REFERRERS, bots: BOT_SHARE },
    notes: ['Links by Zipf; half of the people without a referrer. Flushes of 33,000 hits.'],
  }
}

function simulate(file: string, links: number): Figures {
  const db = openWritable(file)
  migrate(db)
  db.run('PRAGMA synchronous = OFF')
  const passcode = new Uint8Array(32)
  const addLink = db.prepare<null, [number, string, number, Uint8Array]>(
    'INSERT INTO links (id, code, account_id, passcode_hash, created_at) VALUES (?, ?, ?, ?, 0)',
  )
  db.transaction(() => {
    for (let id = 1; id <= links; id++) addLink.run(id, `L${id}`, ACCOUNT, passcode)
  })()
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  const before = statSync(file).size
  const random = seededRandom(1)
  const { addVisits } = visitWrites(db)
  const started = process.cpuUsage()
  const perDay = Math.floor(HITS / DAYS)
  for (let at = 0; at < HITS; at += HITS_PER_BATCH) {
    const day = FIRST_DAY + Math.min(DAYS - 1, Math.floor(at / perDay))
    const sums = collected(random, links, Math.min(HITS_PER_BATCH, HITS - at))
    db.transaction(() => {
      for (let from = 0; from < sums.length; from += LINKS_PER_BATCH) {
        const some = encodeLinks(sums.slice(from, from + LINKS_PER_BATCH))
        addVisits({ host: '', batch: `${at} ${from}`, day, links: some })
      }
    })()
  }
  const { user, system } = process.cpuUsage(started)
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  const bytes = statSync(file).size - before
  const counted = db.query<{ n: number }, []>('SELECT count(*) AS n FROM visits_by_day').get()
  fillRows(addVisits)
  const { visitSums } = visitReads(db)
  const timed = (owner: { linkId: number } | { accountId: number }, from: number, days: number) => {
    const times = Array.from({ length: 5 }, () => {
      const start = performance.now()
      decodeSums(visitSums({ owner, from, to: from + days }))
      return performance.now() - start
    })
    return Math.min(...times)
  }
  const figures = {
    bytesPerHit: bytes / HITS,
    microsPerHit: (user + system) / HITS,
    rows: counted?.n ?? Number.NaN,
    monthMs: timed({ linkId: 1 }, FIRST_DAY, DAYS),
    accountMs: timed({ accountId: ACCOUNT }, FIRST_DAY, DAYS),
    yearMs: timed({ linkId: 2 }, FIRST_DAY - LONG_DAYS, LONG_DAYS),
  }
  db.close()
  return figures
}

/** Sums of some hits by link, in the order of the ids. */
function collected(random: () => number, links: number, hits: number) {
  const sums = new Map<number, ReturnType<typeof emptySums>>()
  for (let i = 0; i < hits; i++) {
    // Zipf with exponent 1, by the inverse of its distribution function.
    const id = Math.min(links, Math.max(1, Math.floor((links + 1) ** random())))
    const link = sums.get(id) ?? emptySums()
    const counts = new Map(keysOf(random).map((key): [VisitKey, number] => [key, 1]))
    addSums(link, { known: 1, observed: 1, counts })
    sums.set(id, link)
  }
  return [...sums].sort(([a], [b]) => a - b)
}

function keysOf(random: () => number): VisitKey[] {
  const pick = (kind: 'device' | 'browser' | 'os', most: number) =>
    visitKey(kind, NUMBERED[kind][Math.floor(random() ** 2 * most)] ?? 'other')
  if (random() < BOT_SHARE) return [visitKey('bot', random() < 0.5 ? 'google' : 'slack')]
  const host = hostOf(Math.floor(REFERRERS ** random()))
  const country = NUMBERED.country[2 + Math.floor(60 ** random())] ?? 'DE'
  return [
    visitKey('referrer', random() < 0.5 ? 'direct' : host),
    visitKey('country', country),
    pick('device', 3),
    pick('browser', 7),
    pick('os', 5),
  ]
}

/** Hosts of 7 to 20 characters, 13 on average, as those of the most visited sites. */
const hostOf = (n: number): string => `${'news-magazine'.slice(0, 2 + (n % 11))}${n}.com`

/** A link whose rows have as many referrers as a row can have, on each of 400 days. */
function fillRows(addVisits: ReturnType<typeof visitWrites>['addVisits']): void {
  for (let day = FIRST_DAY - LONG_DAYS; day < FIRST_DAY; day++) {
    const counts = new Map<VisitKey, number>()
    for (let n = 0; n < 150; n++) counts.set(visitKey('referrer', `referrer-${n}.example.org`), 7)
    const links = encodeLinks([[2, { known: 1050, observed: 1050, counts }]])
    addVisits({ host: '', batch: `full ${day}`, day, links })
  }
}
