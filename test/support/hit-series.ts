import { expect } from 'bun:test'
import { join } from 'node:path'
import { migrate } from '../../src/db/migrate.ts'
import { inTransaction, openWritable } from '../../src/db/open.ts'
import { HitCounts, journalFile, openJournal } from '../../src/hits/hits.ts'
import { DAYS_KEPT, HitSeries, type Step } from '../../src/hits/series.ts'
import { hits } from '../../src/hits/subject.ts'
import { JournalFile } from '../../src/hot/journal-file.ts'
import { HOUR } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { dataOn, operationsOn, plainWrites } from './subjects.ts'

const silent = createLog({ level: 'silent' })
/** 2026-03-01T12:00Z, in hours. */
export const NOON = Date.UTC(2026, 2, 1, 12) / HOUR
export const LINKS = [1, 2, 3]
const ACCOUNT_OF = new Map([
  [1, 1],
  [2, 1],
  [3, 2],
])

/** Links 1 and 2 of account 1 and link 3 of account 2, a journal and a clock in whole hours. */
export function hitService(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  for (const account of new Set(ACCOUNT_OF.values())) {
    db.run('INSERT INTO accounts (name, plan, created_at) VALUES (?, ?, 0)', [account, 'pro'])
  }
  for (const [id, account] of ACCOUNT_OF) {
    db.query(
      `INSERT INTO links (id, code, account_id, passcode_hash, created_at)
       VALUES (?, ?, ?, x'00', 0)`,
    ).run(id, `CODE0${id}`, account)
  }
  const time = { hour: NOON }
  const clock = () => time.hour * HOUR
  const start = () => {
    const journal = openJournal(db, path, silent, 4096, clock)
    const file = JournalFile.open(journalFile(path))
    const host = { id: '', journal: file }
    const writes = operationsOn(db, hits, host)
    const counts = new HitCounts(writes, journal)
    const series = new HitSeries({ data: dataOn(db, { hits }, host), counts, clock })
    return { journal, file, writes, counts, series }
  }
  let running = start()
  return {
    db,
    time,
    clock,
    get counts() {
      return running.counts
    },
    get series() {
      return running.series
    },
    hit(linkId: number, count = 1) {
      for (let n = 0; n < count; n++) running.journal.append(linkId)
    },
    flush() {
      const { journal, writes } = running
      const end = journal.head
      inTransaction(db, () => writes.count({ end, now: clock() }))
      journal.release(end)
    },
    /** The disk takes the whole transaction back. */
    failToFlush() {
      const { journal, writes } = running
      expect(() =>
        inTransaction(db, () => {
          writes.count({ end: journal.head, now: clock() })
          throw new Error('disk full')
        }),
      ).toThrow('disk full')
    },
    kill() {
      running.file.close()
      running = start()
      this.flush()
    },
    prune(max = 2) {
      let after: ReturnType<typeof running.writes.prune>
      do {
        after = inTransaction(db, () => running.writes.prune({ now: clock(), max, after }))
      } while (after)
    },
    deleteLink: (id: number) =>
      inTransaction(db, () => plainWrites(db).remove(ACCOUNT_OF.get(id) ?? 0, id)),
    rows: (table: string) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`),
  }
}

export type HitService = ReturnType<typeof hitService>

const oldestKept = (step: Step, now: number) => (Math.floor(now / 24) - DAYS_KEPT[step] + 1) * 24

/** Hits by owner and hour, without a database: what a series must be. */
export class SeriesModel {
  readonly #hits = new Map<string, Map<number, number>>()
  #pending: number[] = []
  readonly deleted = new Set<number>()
  /** What pruning has taken, even where the clock went back since. */
  readonly oldest = { hour: 0, day: 0 }

  hit(linkId: number, count: number) {
    for (let n = 0; n < count; n++) this.#pending.push(linkId)
  }

  flush(now: number) {
    for (const linkId of this.#pending) {
      if (this.deleted.has(linkId)) continue
      this.#add(`link ${linkId}`, now)
      this.#add(`account ${ACCOUNT_OF.get(linkId)}`, now)
    }
    this.#pending = []
  }

  drop(linkId: number) {
    this.deleted.add(linkId)
    this.#hits.delete(`link ${linkId}`)
  }

  prune(now: number) {
    for (const step of ['hour', 'day'] as const) {
      this.oldest[step] = Math.max(this.oldest[step], oldestKept(step, now))
    }
  }

  /** By the hour in which each bucket begins; those without hits are left out. */
  series(kind: 'link' | 'account', id: number, step: Step, now: number): Record<number, number> {
    const kept = oldestKept(step, now)
    const buckets: Record<number, number> = {}
    const current = step === 'hour' ? now : Math.floor(now / 24) * 24
    const add = (hour: number, count: number) => {
      const start = step === 'hour' ? hour : Math.floor(hour / 24) * 24
      if (start >= kept && start <= current) buckets[start] = (buckets[start] ?? 0) + count
    }
    for (const [hour, count] of this.#hits.get(`${kind} ${id}`) ?? []) add(hour, count)
    if (kind === 'link') for (const linkId of this.#pending) if (linkId === id) add(now, 1)
    return buckets
  }

  #add(owner: string, hour: number) {
    const hours = this.#hits.get(owner) ?? new Map<number, number>()
    hours.set(hour, (hours.get(hour) ?? 0) + 1)
    this.#hits.set(owner, hours)
  }
}
