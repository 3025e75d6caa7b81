import { expect, test } from 'bun:test'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolder } from '../../test/support/folder.ts'
import { HitJournal } from './journal.ts'
import { JournalFile } from './journal-file.ts'

const file = (folder: { path: string }) => join(folder.path, 'hits.journal')
const next = (path: string, journal: HitJournal, most: number) => {
  using opened = JournalFile.open(path)
  const end = Math.min(journal.head, journal.tail + most)
  return { linkIds: opened.read(journal.tail, end), end }
}
const recover = (path: string, position: number) => {
  using opened = JournalFile.open(path)
  return opened.recover(position)
}
const ids = ({ linkIds }: { linkIds: Uint32Array }) => [...linkIds]

test('what was appended is found again by another opening of the file, in order', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), 8)
  journal.resume(0)
  for (const id of [3, 1, 4_294_967_295]) journal.append(id)
  // The state after kill -9: nothing was closed or flushed.
  expect([...recover(file(folder), 0)]).toEqual([3, 1, 4_294_967_295])
})

test('a recovery begins at the committed position and counts nothing before it', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), 8)
  journal.resume(0)
  for (const id of [1, 2, 3]) journal.append(id)
  expect(recover(file(folder), 2)).toEqual(Uint32Array.of(3))
  expect(recover(file(folder), 3)).toEqual(new Uint32Array())
})

test('after a recovery old entries are never taken for new ones', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), 4)
  journal.resume(0)
  for (const id of [1, 2, 3]) journal.append(id)
  const later = HitJournal.open(file(folder))
  const left = recover(file(folder), 0)
  later.resume(0, left)
  later.release(left.length)
  expect([...recover(file(folder), left.length)]).toEqual([])
  later.append(9)
  expect([...recover(file(folder), left.length)]).toEqual([9])
})

test('a torn entry, whose second word is missing, is no hit', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), 8)
  journal.resume(0)
  journal.append(7)
  const bytes = readFileSync(file(folder))
  bytes.writeUInt32LE(8, 4096 + 8)
  writeFileSync(file(folder), bytes)
  expect([...recover(file(folder), 0)]).toEqual([7])
})

test('a full ring loses no hit: what finds no room waits in memory and enters after a release', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), 4)
  journal.resume(0)
  for (const id of [1, 2, 3, 4, 5, 5, 6]) journal.append(id)
  expect(journal.pending).toBe(7)
  expect(journal.overflow).toBe(3)
  expect(journal.countFrom(0, [1, 5, 6])).toEqual(
    new Map([
      [1, 1],
      [5, 2],
      [6, 1],
    ]),
  )
  journal.release(next(file(folder), journal, 2).end)
  expect(journal.pending).toBe(5)
  const drained: number[] = []
  while (journal.pending > 0) {
    const range = next(file(folder), journal, 100)
    drained.push(...range.linkIds)
    journal.release(range.end)
  }
  expect(drained.sort()).toEqual([3, 4, 5, 5, 6])
  expect(journal.overflow).toBe(0)
})

test('counts speak of everything from a committed position on', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), 8)
  journal.resume(0)
  for (const id of [1, 2, 1, 1]) journal.append(id)
  expect(journal.countFrom(0, [1])).toEqual(new Map([[1, 3]]))
  expect(journal.countFrom(1, [1])).toEqual(new Map([[1, 2]]))
  expect(journal.totalFrom(1)).toBe(3)
  expect(journal.totalFrom(4)).toBe(0)
  // The database may know of a commit before the journal releases it.
  journal.release(2)
  expect(journal.countFrom(1, [1])).toEqual(new Map([[1, 2]]))
  expect(journal.totalFrom(3)).toBe(1)
})

test('any run of appends, flushes and kills counts each hit exactly once', () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ append: fc.integer({ min: 1, max: 5 }) }) },
    { weight: 2, arbitrary: fc.record({ flush: fc.integer({ min: 1, max: 6 }) }) },
    { weight: 1, arbitrary: fc.constant('kill' as const) },
    { weight: 1, arbitrary: fc.constant('kill between commit and release' as const) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      using folder = temporaryFolder()
      let journal = HitJournal.open(file(folder), 4)
      journal.resume(0)
      const committed = { position: 0, hits: [] as number[] }
      const expected: number[] = []
      const commit = ({ linkIds, end }: { linkIds: Uint32Array; end: number }) => {
        committed.hits.push(...linkIds)
        committed.position = end
        return end
      }
      const restart = () => {
        journal = HitJournal.open(file(folder))
        journal.resume(committed.position, recover(file(folder), committed.position))
      }
      for (const now of steps) {
        if (now === 'kill') {
          // Hits beyond the ring are in memory alone: they are what a kill may lose.
          if (journal.overflow === 0) restart()
        } else if (now === 'kill between commit and release') {
          if (journal.overflow > 0) continue
          commit(next(file(folder), journal, 3))
          restart()
        } else if ('append' in now) {
          journal.append(now.append)
          expected.push(now.append)
        } else {
          journal.release(commit(next(file(folder), journal, now.flush)))
        }
      }
      while (journal.pending > 0) journal.release(commit(next(file(folder), journal, 4)))
      expect(committed.hits.sort()).toEqual(expected.sort())
    }),
    { seed: 20260301, numRuns: 150 },
  )
})

/** Several chunks of the file's reader, and a last one that is no whole chunk. */
const MANY = 100_000

test('a recovery of many entries goes on past the end of the ring and over holes', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), MANY)
  journal.resume(0)
  for (let id = 1; id <= MANY; id++) journal.append(id)
  journal.release(70_000)
  for (let id = MANY + 1; id <= MANY + 60_000; id++) journal.append(id)
  // A page that a loss of power dropped holds what was there before.
  const bytes = readFileSync(file(folder))
  bytes.fill(0, 4096 + 80_000 * 8, 4096 + 80_512 * 8)
  writeFileSync(file(folder), bytes)
  const expected = Array.from({ length: 90_000 }, (_, i) => 70_001 + i)
  // Their positions stay, so that the thread that counts finds each entry at its own.
  expected.fill(0, 10_000, 10_512)
  const left = recover(file(folder), 70_000)
  expect(left).toEqual(Uint32Array.from(expected))
  const later = HitJournal.open(file(folder))
  later.resume(70_000, left)
  expect(later.pending).toBe(expected.length)
  later.append(7)
  expect(ids(next(file(folder), later, MANY))).toEqual([...expected, 7])
  expect([...recover(file(folder), 70_000)]).toEqual([...expected, 7])
})

test('a recovery takes no link id for a lap', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), 8)
  journal.resume(0)
  for (const id of [2, 2, 2]) journal.append(id)
  expect([...recover(file(folder), 8)]).toEqual([])
})

test('hits that a cut file lost are left out, and later ones are counted', () => {
  using folder = temporaryFolder()
  const journal = HitJournal.open(file(folder), 8)
  journal.resume(0)
  journal.append(1)
  using opened = JournalFile.open(file(folder))
  truncateSync(file(folder), 0)
  journal.restoreLength(file(folder))
  journal.append(2)
  expect(opened.read(0, 2)).toEqual(Uint32Array.of(2))
  // The next start knows the file. It counts the lost hit as one of no link.
  expect([...recover(file(folder), 0)]).toEqual([0, 2])
})

/** Resident memory of this process that is pages of the file, in bytes. */
function residentPagesOf(path: string): number {
  const maps = readFileSync('/proc/self/smaps', 'latin1').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
  return maps
    .filter((map) => map.includes(path))
    .reduce((sum, map) => sum + Number(/^Rss:\s+(\d+)/m.exec(map)?.[1]) * 1024, 0)
}

test.if(process.platform === 'linux')(
  'pages of counted hits leave the memory, round and round the ring',
  () => {
    using folder = temporaryFolder()
    const entries = 512 * 1024
    const journal = HitJournal.open(file(folder), entries)
    journal.resume(0)
    for (let id = 1; id <= 3 * entries + 1000; id++) {
      journal.append(id)
      if (id % 1000 === 0) journal.release(journal.head)
    }
    journal.release(journal.head)
    expect(residentPagesOf(file(folder))).toBeLessThan(2 * 1024 * 1024)
    for (let id = 1; id <= 200_000; id++) journal.append(id)
    // What is not counted yet is there still, and so is what left the memory: in the file.
    expect(journal.countFrom(journal.tail, [1, 200_000])).toEqual(
      new Map([
        [1, 1],
        [200_000, 1],
      ]),
    )
    expect(next(file(folder), journal, 3).linkIds).toEqual(Uint32Array.of(1, 2, 3))
    using opened = JournalFile.open(file(folder))
    expect(opened.read(3 * entries, 3 * entries + 2)).toEqual(
      Uint32Array.of(3 * entries + 1, 3 * entries + 2),
    )
  },
)

test.each([
  ['cut off', (path: string) => truncateSync(path, 4096 + 8)],
  ['shorter than its header', (path: string) => truncateSync(path, 100)],
  ['garbled', (path: string) => writeFileSync(path, Buffer.alloc(4096 + 64, 'x'))],
])('a journal that is %s is refused with words that name it', (_, damage) => {
  using folder = temporaryFolder()
  HitJournal.open(file(folder), 8)
  damage(file(folder))
  expect(() => HitJournal.open(file(folder))).toThrow(`${file(folder)} is damaged`)
})

test('every block of a new journal is on the disk: a sparse one would kill the process when it is full', () => {
  using folder = temporaryFolder()
  HitJournal.open(file(folder), 64 * 1024)
  const stat = Bun.spawnSync(['stat', '-c', '%b %B %s', file(folder)]).stdout.toString()
  const [blocks = 0, blockBytes = 0, size = 0] = stat.split(' ').map(Number)
  expect(blocks * blockBytes).toBeGreaterThanOrEqual(size)
})
