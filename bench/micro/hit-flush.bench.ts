// What does a hit with its hourly and daily counts cost, compared with one upsert per link?
// bun bench/micro/hit-flush.bench.ts

import type { Database } from 'bun:sqlite'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../src/db/migrate.ts'
import { closeWritable, inTransaction, openWritable } from '../../src/db/open.ts'
import { hitAdder } from '../../src/hits/store.ts'
import { HOUR } from '../../src/lib/clock.ts'
import { printMachine, timeInTurn } from '../lib/micro.ts'
import { median } from '../lib/rounds.ts'

const LINKS = 1_000_000
const RANGE_ENTRIES = 8192
const FLUSHES = 12
const WARM_UP_FLUSHES = 2
const ROUNDS = 3
const NOON = Date.UTC(2026, 2, 1, 12)

interface Case {
  name: string
  /** Number of links. Each hit is of a random one. */
  links: number
  /** When all of them were last followed: the first hit of an hour inserts a row. */
  followed: 'never' | 'today' | 'this hour'
}

const CASES: readonly Case[] = [
  { name: 'a million links, first hits of a day', links: LINKS, followed: 'never' },
  { name: 'a million links, first hits of an hour', links: LINKS, followed: 'today' },
  { name: 'a million links, later hits', links: LINKS, followed: 'this hour' },
  { name: '100 links', links: 100, followed: 'this hour' },
]

type Flush = (linkIds: Uint32Array, now: number) => void

const VARIANTS = {
  series: (db: Database): Flush => {
    const add = hitAdder(db)
    let end = 0
    return (linkIds, now) => {
      end += linkIds.length
      add({ linkIds, end }, now)
    }
  },
  counts: (db: Database): Flush => {
    const add = db.prepare<null, [number, number]>(
      `INSERT INTO hits (link_id, account_id, count)
       SELECT ?1, 1, ?2 WHERE EXISTS (SELECT 1 FROM links WHERE id = ?1)
       ON CONFLICT (link_id) DO UPDATE SET count = count + ?2`,
    )
    const advance = db.prepare<null, [number]>(
      'UPDATE hit_totals SET position = position + ?1, redirects = redirects + ?1 WHERE id = 1',
    )
    return (linkIds) => {
      const sums = new Map<number, number>()
      for (const linkId of linkIds) sums.set(linkId, (sums.get(linkId) ?? 0) + 1)
      for (const [linkId, count] of sums) add.run(linkId, count)
      advance.run(linkIds.length)
    }
  },
}
type Variant = keyof typeof VARIANTS
const NAMES: readonly Variant[] = ['series', 'counts']

const [variant, index, file] = process.argv.slice(2)
if ((variant === 'series' || variant === 'counts') && file) {
  console.log(timeFlush(variant, CASES[Number(index)] as Case, file))
} else {
  await compare()
}

/** Runs each variant in a separate process, in turn, once per round. */
async function compare(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'hopcode-bench-'))
  try {
    const base = join(folder, 'base.db')
    createDatabase(base)
    printMachine()
    console.log('| case | CPU µs a hit | without series | ratio |')
    console.log('| :--- | ---: | ---: | ---: |')
    for (const [index, { name }] of CASES.entries()) {
      const timings = await timeInTurn<Variant, number>(import.meta.path, NAMES, ROUNDS, () => {
        const file = join(folder, 'copy.db')
        for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
        copyFileSync(base, file)
        return [index, file]
      })
      const [series, counts] = NAMES.map((variant) => median(timings[variant])) as [number, number]
      const cells = [series, counts, series / counts].map((figure) => figure.toFixed(2))
      console.log(`| ${name} | ${cells.join(' | ')} |`)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A million links with destinations of about 70 characters, each followed once long ago. */
function createDatabase(file: string): void {
  const db = openWritable(file)
  migrate(db)
  inTransaction(db, () => {
    const link = db.prepare<null, [string, string]>(
      `INSERT INTO links (code, account_id, url, url_key, passcode_hash, created_at)
       VALUES (?, 1, ?, randomblob(16), randomblob(32), 0)`,
    )
    for (let id = 1; id <= LINKS; id++) {
      link.run(`LINK${id}`, `https://example.com/${'path/'.repeat(8)}${id}`)
    }
    db.run(`INSERT INTO hit_totals (id, journal_id, position, redirects) VALUES (1, 'bench', 0, 0)`)
    db.run('INSERT INTO hits (link_id, account_id, count) SELECT id, 1, 1 FROM links')
  })
  closeWritable(db)
}

/** Microseconds of CPU per hit. Throws if a hit is not counted. */
function timeFlush(variant: Variant, { links, followed }: Case, file: string): number {
  const db = openWritable(file)
  // Only CPU time is measured; waiting for the disk would be the same for both.
  db.run('PRAGMA synchronous = OFF')
  const flush = VARIANTS[variant](db)
  const commit = (linkIds: Uint32Array, now = NOON) => inTransaction(db, () => flush(linkIds, now))
  let random = 0x9e3779b9
  const range = () =>
    Uint32Array.from({ length: RANGE_ENTRIES }, () => {
      random ^= random << 13
      random ^= random >>> 17
      random ^= random << 5
      return 1 + ((random >>> 0) % links)
    })
  if (followed !== 'never') {
    const all = Uint32Array.from({ length: links }, (_, i) => i + 1)
    commit(all, followed === 'today' ? NOON - HOUR : NOON)
  }
  for (let n = 0; n < WARM_UP_FLUSHES; n++) commit(range())
  const ranges = Array.from({ length: FLUSHES }, range)
  const before = process.cpuUsage()
  for (const linkIds of ranges) commit(linkIds)
  const { user, system } = process.cpuUsage(before)
  const counted = db.query<{ n: number }, []>('SELECT sum(count) AS n FROM hits').get()?.n
  const expected =
    LINKS + (followed === 'never' ? 0 : links) + (WARM_UP_FLUSHES + FLUSHES) * RANGE_ENTRIES
  if (counted !== expected) throw new Error(`${counted} hits are counted, not ${expected}`)
  db.close()
  return (user + system) / (FLUSHES * RANGE_ENTRIES)
}
