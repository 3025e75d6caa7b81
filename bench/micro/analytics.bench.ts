// How much CPU do the series and the top links of an account of a million links take?
// bun bench/micro/analytics.bench.ts

import type { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rangeTopReads, TopLinks } from '../../src/analytics/top.ts'
import { migrate } from '../../src/db/migrate.ts'
import { inTransaction, openReadonly, openWritable } from '../../src/db/open.ts'
import { hitRange, type Preset } from '../../src/hits/range.ts'
import { dayOf, HitSeries, hourOf, seriesReads } from '../../src/hits/series.ts'
import { Thread } from '../../src/lib/thread.ts'
import { LinkPages, linkLists } from '../../src/links/lists.ts'
import { printMachine } from '../lib/micro.ts'

const LINKS = 1_000_000
const DAYS = 100
/** Links with a hit in each hour. */
const HITS_AN_HOUR = 1000
const NOW = Date.UTC(2026, 2, 1, 12)
const REQUESTS = 100
const PRESETS: readonly Preset[] = ['24h', '30d', '90d', '12m']

/** Maps a random number from 0 to 1 to the link of a hit. */
const DISTRIBUTIONS: Record<string, (random: number) => number> = {
  'few links have most hits': (random) => Math.ceil(LINKS ** random),
  'all links have as many': (random) => 1 + Math.floor(random * LINKS),
}

await run()

async function run(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'hopcode-bench-'))
  try {
    printMachine()
    console.log('| hits | read | p50, CPU ms | p99, CPU ms | the first, CPU ms | exact |')
    console.log('| :--- | :--- | ---: | ---: | ---: | :--- |')
    for (const [name, pick] of Object.entries(DISTRIBUTIONS)) {
      const file = join(folder, `${name}.db`)
      fill(file, pick)
      using db = openReadonly(file, { cacheKiB: 16_384 })
      for (const preset of PRESETS) await measure(db, { name, preset })
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** CPU time of this process: other processes of a busy machine do not affect it. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function fill(file: string, pick: (random: number) => number): void {
  using db = openWritable(file)
  migrate(db)
  db.run('PRAGMA synchronous = OFF')
  let state = 7
  const random = () => {
    state = (state * 16_807) % 2_147_483_647
    return state / 2_147_483_647
  }
  inTransaction(db, () => {
    const link = db.prepare<null, [string]>(
      `INSERT INTO links (code, account_id, url, passcode_hash, created_at)
       VALUES (?, 1, 'https://example.com/', x'00', 0)`,
    )
    for (let id = 1; id <= LINKS; id++) link.run(`LINK${id}`)
    const hour = db.prepare<null, [number, number, number]>(
      `INSERT INTO hits_by_hour VALUES (?, ?, ?, '', 1)
       ON CONFLICT DO UPDATE SET count = count + 1`,
    )
    const current = hourOf(NOW)
    for (let at = current - DAYS * 24 + 1; at <= current; at++) {
      for (let n = 0; n < HITS_AN_HOUR; n++) {
        hour.run(at, 0, pick(random()))
      }
      hour.run(at, 1, 1)
    }
    db.run(`INSERT INTO hits_by_day
            SELECT hour / 24 AS day, scope, id, '', sum(count) FROM hits_by_hour GROUP BY 1, 2, 3`)
    db.run(`INSERT INTO hits (link_id, account_id, count)
            SELECT id, 1, sum(count) FROM hits_by_day WHERE scope = 0 GROUP BY id`)
    db.run('INSERT INTO account_hits SELECT 1, sum(count) FROM hits')
  })
}

async function measure(
  db: Database,
  { name, preset }: { name: string; preset: Preset },
): Promise<void> {
  const clock = () => NOW
  const counts = { ofLink: () => 0 }
  const series = new HitSeries({ reader: Thread.inProcess(seriesReads(db)), counts, clock })
  const reader = Thread.inProcess({ ...linkLists(db), ...rangeTopReads(db) })
  const top = new TopLinks({ reader, pages: new LinkPages(reader) })
  const owner = { accountId: 1 }
  const firstHit = (dayOf(hourOf(NOW)) - DAYS) * 24
  let isExact = false
  const look = async () => {
    const start = cpuMs()
    const range = hitRange({ preset }, { zone: 'Europe/Berlin', now: NOW, firstHit })
    if (range.previous) await series.bars(owner, range.previous)
    const bars = await series.bars(owner, range.bounds)
    const chartMs = cpuMs() - start
    const [from = 0] = range.bounds
    const to = range.bounds.at(-1) ?? 0
    const found = await top.find({ ...owner, from, to, limit: 10 })
    if (bars.total === 0 || found.links.length === 0) throw new Error('there are no hits')
    isExact = found.isExact
    return { chartMs, topMs: cpuMs() - start - chartMs }
  }
  const first = await look()
  const all = await Array.fromAsync({ length: REQUESTS }, look)
  for (const [read, key] of [
    ['series', 'chartMs'],
    ['top links', 'topMs'],
  ] as const) {
    const sorted = all.map((one) => one[key]).sort((a, b) => a - b)
    const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)
    const exact = read === 'series' ? '' : isExact ? 'yes' : 'no'
    const cells = [name, `${read}, ${preset}`, at(0.5), at(0.99), first[key].toFixed(1), exact]
    console.log(`| ${cells.join(' | ')} |`)
  }
}
