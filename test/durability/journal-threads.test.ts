import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openReadonly } from '../../src/db/open.ts'
import { HitCounts, journalFile } from '../../src/hits/hits.ts'
import { findJournalPosition, hitReads } from '../../src/hits/store.ts'
import { JournalFile } from '../../src/hot/journal-file.ts'
import { temporaryFolderInMemory } from '../support/folder.ts'
import { SEED } from '../support/seed.ts'
import { openHits, progressFile, THREADS } from './lib/journal-process.ts'
import { SeededRandom } from './lib/seeded-random.ts'

/**
 * Threads that append to one journal are killed at random moments, also in the middle of an append.
 * The long form: npm run test:durability -- journal-threads
 */
const ROUNDS = Number(process.env.JOURNAL_KILL_ROUNDS ?? 12)
const RUN_MS_MAX = 60

const title = `kill -9 amid appends of several threads, ${ROUNDS} rounds (seed ${SEED})`
test(
  title,
  async () => {
    using folder = temporaryFolderInMemory()
    const random = new SeededRandom(SEED)
    const threads = Array.from({ length: THREADS }, (_, n) => n)
    const ids = threads.map((n) => n + 1)
    openHits(folder.path).db.close()
    let before = { counts: new Map<number, number>(), total: 0 }
    const seen = { hits: 0, incomplete: 0, gaps: 0 }
    for (let round = 0; round < ROUNDS; round++) {
      for (const n of threads) writeFileSync(progressFile(folder.path, n), new Uint8Array(8))
      await killAfter(folder.path, random.below(RUN_MS_MAX))
      const progress = threads.map((n) => readProgress(progressFile(folder.path, n)))
      seen.gaps += countGaps(folder.path)
      // A start that is killed as well changes nothing.
      openHits(folder.path).db.close()
      const { db, journal, flush } = openHits(folder.path)
      const reads = new HitCounts(hitReads(db), journal)
      const after = { counts: reads.of(ids), total: reads.total() }
      for (const [n, { begun, completed }] of progress.entries()) {
        const added = (after.counts.get(n + 1) ?? 0) - (before.counts.get(n + 1) ?? 0)
        expect([n, added >= completed, added <= begun]).toEqual([n, true, true])
        seen.hits += added
        seen.incomplete += begun - completed
      }
      const sum = (key: 'begun' | 'completed') => progress.reduce((n, one) => n + one[key], 0)
      expect(after.total - before.total).toBeGreaterThanOrEqual(sum('completed'))
      expect(after.total - before.total).toBeLessThanOrEqual(sum('begun'))
      // Every other round, the next process finds what this one left.
      while (round % 2 === 0 && journal.pending > 0) flush()
      expect(reads.of(ids)).toEqual(after.counts)
      expect(reads.total()).toBe(after.total)
      before = after
      db.close()
    }
    console.log('kill -9 amid appends:', JSON.stringify(seen))
    // Else the rounds showed nothing.
    expect(seen.hits).toBeGreaterThan(ROUNDS * 1000)
    expect(seen.incomplete).toBeGreaterThan(0)
  },
  60_000 + ROUNDS * 5000,
)

async function killAfter(folder: string, ms: number): Promise<void> {
  const program = join(import.meta.dir, 'lib', 'journal-process.ts')
  const child = Bun.spawn([process.execPath, program, folder], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  await child.stdout.getReader().read()
  await Bun.sleep(ms)
  child.kill('SIGKILL')
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
}

function readProgress(file: string): { begun: number; completed: number } {
  const bytes = readFileSync(file)
  return { begun: bytes.readInt32LE(0), completed: bytes.readInt32LE(4) }
}

/** Entries that a thread had claimed and not completed, before another one's. */
function countGaps(folder: string): number {
  const db = openReadonly(join(folder, 'hopcode.db'), { cacheKiB: 1024 })
  const position = findJournalPosition(db)?.position ?? 0
  db.close()
  using journal = JournalFile.open(journalFile(folder))
  return journal.recover(position).filter((linkId) => linkId === 0).length
}
