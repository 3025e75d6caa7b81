// How much space do details of visits take, and how long do the pages read them?
// npm run bench -- visit-storage --rounds 1
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../src/db/migrate.ts'
import { openWritable } from '../../src/db/open.ts'
import {
  addSums,
  decodeSums,
  emptySums,
  encodeSums,
  type VisitSums,
} from '../../src/visits/parts.ts'
import { sumReader, type VisitBatch, visits } from '../../src/visits/store.ts'
import { NUMBERED, type VisitKey, type VisitKind, visitKey } from '../../src/visits/values.ts'
import { operationsOn } from '../../test/support/subjects.ts'
import { atMost, measureVariants, type Plan, value } from '../lib/figures.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { seededRandom } from '../lib/realistic-urls.ts'
import type { Figures, Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'

const HITS = 1_000_000
const DAYS = 30
const FIRST_DAY = 20_000
const REFERRERS = 2000
const BOT_SHARE = 0.2
const HITS_PER_FLUSH = 33_000
const ACCOUNT = 1
/** Days of a link whose rows are full. */
const LONG_DAYS = 400
const FULL_LINK = 2

const VARIANTS = [
  { name: '1,000 links', links: 1000 },
  { name: '10,000 links', links: 10_000 },
  { name: '300,000 links', links: 300_000 },
]

export const visitStorage: Scenario = {
  name: 'visit-storage',
  question: 'How much space do details of visits take, and how long do the pages read them?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using temporary = new TemporaryFolder()
  let round = 0
  const plan: Plan<(typeof VARIANTS)[number]> = {
    variants: VARIANTS,
    async measure({ links }) {
      const folder = join(temporary.path, String(round++))
      mkdirSync(folder)
      return { figures: simulate(join(folder, 'visits.db'), links) }
    },
    metrics: [
      { key: 'bytes', label: 'bytes of the database per hit', digits: 1, ratio: false },
      { key: 'micros', label: 'CPU µs of the writer thread per hit', digits: 1, ratio: false },
      { key: 'monthMs', label: '30 days of the busiest link, ms', digits: 1, ratio: false },
      { key: 'accountMs', label: '30 days of the account, ms', digits: 1, ratio: false },
      { key: 'yearMs', label: '400 days of a link with full rows, ms', digits: 1, ratio: false },
    ],
    figures: {
      'bytes per hit, 1,000 links': value('1,000 links', 'bytes', '', 1, atMost(12)),
      'bytes per hit, 10,000 links': value('10,000 links', 'bytes', '', 1, atMost(18)),
      'bytes per hit, 300,000 links': value('300,000 links', 'bytes', '', 1, atMost(25)),
      '30 days of the busiest link': value('300,000 links', 'monthMs', ' ms', 1, atMost(10, 5)),
      '400 days of a full link': value('300,000 links', 'yearMs', ' ms', 1, atMost(60, 30)),
    },
    settings: { hits: HITS, days: DAYS, referrers: REFERRERS, bots: BOT_SHARE },
    notes: ['Links by Zipf; half of the people without a referrer. Flushes of 33,000 hits.'],
  }
  return await measureVariants(plan, options, say)
}

function simulate(file: string, links: number): Figures {
  const db = openWritable(file)
  migrate(db)
  db.run('PRAGMA synchronous = OFF')
  db.run(`WITH RECURSIVE ids(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${links})
    INSERT INTO links (id, code, account_id, passcode_hash, created_at)
    SELECT id, 'L' || id, ${ACCOUNT}, zeroblob(32), 0 FROM ids`)
  const before = sizeOf()
  const random = seededRandom(1)
  const operations = operationsOn(db, visits)
  const add = (day: number, sums: VisitBatch['links']) =>
    db.transaction(() =>
      operations.add({ host: '', batch: crypto.randomUUID(), day, links: sums }),
    )()
  const startedAt = process.cpuUsage()
  for (let at = 0; at < HITS; at += HITS_PER_FLUSH) {
    const day = FIRST_DAY + Math.floor((at * DAYS) / HITS)
    add(day, flushOf(random, links, Math.min(HITS_PER_FLUSH, HITS - at)))
  }
  const { user, system } = process.cpuUsage(startedAt)
  const bytes = sizeOf() - before
  for (let day = 1; day <= LONG_DAYS; day++) add(FIRST_DAY - day, [[FULL_LINK, fullRow()]])
  const readSums = sumReader(db)
  const timed = (owner: { linkId: number } | { accountId: number }, from: number, to: number) => {
    const times = Array.from({ length: 5 }, () => {
      const start = performance.now()
      decodeSums(readSums({ owner, from, to }, () => false).parts)
      return performance.now() - start
    })
    return Math.min(...times)
  }
  const figures = {
    bytes: bytes / HITS,
    micros: (user + system) / HITS,
    monthMs: timed({ linkId: 1 }, FIRST_DAY, FIRST_DAY + DAYS),
    accountMs: timed({ accountId: ACCOUNT }, FIRST_DAY, FIRST_DAY + DAYS),
    yearMs: timed({ linkId: FULL_LINK }, FIRST_DAY - LONG_DAYS, FIRST_DAY),
  }
  db.close()
  return figures

  function sizeOf(): number {
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    return statSync(file).size
  }
}

/** Sums of some hits by link, in the order of the ids. */
function flushOf(random: () => number, links: number, hits: number): VisitBatch['links'] {
  const sums = new Map<number, VisitSums>()
  for (let i = 0; i < hits; i++) {
    // Zipf with exponent 1, by the inverse of its distribution function.
    const id = Math.min(links, Math.max(1, Math.floor((links + 1) ** random())))
    const link = sums.get(id) ?? emptySums()
    const counts = new Map(keysOf(random).map((key): [VisitKey, number] => [key, 1]))
    addSums(link, { known: 1, observed: 1, counts })
    sums.set(id, link)
  }
  return [...sums].sort(([a], [b]) => a - b).map(([id, link]) => [id, encodeSums(link)])
}

function keysOf(random: () => number): VisitKey[] {
  const pick = (kind: VisitKind, most: number) =>
    visitKey(kind, NUMBERED[kind][Math.floor(random() ** 2 * most)] as string)
  if (random() < BOT_SHARE) return [visitKey('bot', random() < 0.5 ? 'google' : 'slack')]
  const country = NUMBERED.country[2 + Math.floor(60 ** random())] as string
  return [
    visitKey('referrer', random() < 0.5 ? 'direct' : hostOf(Math.floor(REFERRERS ** random()))),
    visitKey('country', country),
    pick('device', 3),
    pick('browser', 7),
    pick('os', 5),
  ]
}

/** Hosts of 7 to 20 characters, 13 on average, as those of the most visited sites. */
const hostOf = (n: number): string => `${'news-magazine'.slice(0, 2 + (n % 11))}${n}.com`

/** As many referrers as a row can have, and more. */
function fullRow(): Uint8Array {
  const names = Array.from({ length: 150 }, (_, n) => `referrer-${n}.example.org`)
  const counts = new Map(names.map((name): [VisitKey, number] => [visitKey('referrer', name), 7]))
  return encodeSums({ known: 1050, observed: 1050, counts })
}
