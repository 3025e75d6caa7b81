import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { startAppending } from '../../test/support/journal-threads.ts'
import { HitJournal } from './journal.ts'
import { CLAIM, HEAD, JournalAppender, type SharedJournal, Tickets } from './journal-appender.ts'
import { JournalFile } from './journal-file.ts'

const THREADS = 4

/** A journal, and what a database would have counted of it. */
function setUp(path: string, entries: number, position = 0) {
  const file = join(path, 'hits.journal')
  const journal = HitJournal.open(file, entries)
  journal.resume(position)
  const reader = JournalFile.open(file)
  const counted: number[] = []
  return {
    file,
    journal,
    reader,
    counted,
    /** Counts like a flush. Fails if the range has an incomplete entry. */
    count(most = entries): void {
      const { head, tail } = journal
      const end = Math.min(head, tail + most)
      const linkIds = reader.read(tail, end)
      expect(linkIds.length).toBe(end - tail)
      for (const id of linkIds) counted.push(id)
      journal.release(end)
    },
  }
}

const positions = [0, 1, 2 ** 31 - 5, 2 ** 32 - 3, 2 ** 33 + 7]
const sizes = [1, 2, 3, 4, 7, 8, 100, 4096]

test.each(sizes)('%d entries hold as many hits, also where a 32-bit position wraps', (entries) => {
  const { lapMask } = new Tickets(entries)
  // The last one is just before the low bits of the lap wrap.
  for (const position of [...positions, (lapMask + 1) * entries - 2]) {
    // A lap has 32 bits.
    if (position + 10 * entries > 2 ** 32 * entries) continue
    using folder = temporaryFolder()
    const { journal, count, counted, file } = setUp(folder.path, entries, position)
    const appender = new JournalAppender(journal.attach())
    const expected: number[] = []
    for (let round = 0; round < 5; round++) {
      for (let n = 0; n < entries; n++) {
        expected.push(expected.length + 1)
        if (n % 2 === 0) journal.append(expected.length)
        else appender.append(expected.length)
      }
      expect(journal.overflow).toBe(0)
      expect(journal.pending).toBe(entries)
      expect(journal.head).toBe(journal.tail + entries)
      expect(JournalFile.open(file).recover(journal.tail).length).toBe(entries)
      journal.append(1)
      expect(journal.overflow).toBe(1)
      expected.push(1)
      count()
      count()
    }
    expect(counted).toEqual(expected)
  }
})

test('hits of another thread beyond a full ring are counted at once, and enter it when there is room', () => {
  using folder = temporaryFolder()
  const { journal, count, counted } = setUp(folder.path, 4)
  const appender = new JournalAppender(journal.attach())
  for (const id of [1, 2, 3, 4, 5, 5, 4_294_967_295]) appender.append(id)
  expect(journal.countFrom(0, [1, 5, 4_294_967_295])).toEqual(
    new Map([
      [1, 1],
      [5, 2],
      [4_294_967_295, 1],
    ]),
  )
  expect(journal.totalFrom(0)).toBe(7)
  expect(journal.overflow).toBe(3)
  while (journal.pending > 0) count()
  expect(counted).toEqual([1, 2, 3, 4, 5, 5, 4_294_967_295])
})

/** Claims the next entry and goes no further, as a thread that is killed or waits for a core. */
function claimNext({ ring, own }: SharedJournal): void {
  const head = new Int32Array(ring)
  Atomics.store(new Int32Array(own), CLAIM, Atomics.load(head, HEAD))
  Atomics.add(head, HEAD, 1)
}

test('hits behind an incomplete entry are in every count, and are flushed once it is complete', () => {
  using folder = temporaryFolder()
  const { journal, count, counted } = setUp(folder.path, 8)
  const slow = journal.attach()
  journal.append(1)
  claimNext(slow)
  for (const id of [2, 2]) journal.append(id)
  expect(journal.pending).toBe(3)
  expect(journal.totalFrom(1)).toBe(2)
  expect(journal.countFrom(0, [0, 1, 2])).toEqual(
    new Map([
      [0, 0],
      [1, 1],
      [2, 2],
    ]),
  )
  count()
  expect(counted).toEqual([1])
  expect(journal.pending).toBe(2)
  // Its thread ends before it completes the entry, which becomes a hit of no link.
  journal.detach(slow)
  count()
  expect(counted).toEqual([1, 0, 2, 2])
  expect(journal.pending).toBe(0)
})

test('a claim that another thread was faster to make hides none of its hits, and ends with its thread', () => {
  using folder = temporaryFolder()
  const { journal, count, counted } = setUp(folder.path, 4)
  const late = journal.attach()
  const claim = new Int32Array(late.own)
  const { ring } = late
  Atomics.store(claim, CLAIM, Atomics.load(new Int32Array(ring), HEAD))
  for (const id of [1, 2]) journal.append(id)
  expect(journal.head).toBe(2)
  expect(journal.countFrom(0, [1])).toEqual(new Map([[1, 1]]))
  count()
  journal.append(3)
  count()
  // Now the claim is one of a position before the tail.
  expect(journal.head).toBe(3)
  journal.detach(late)
  journal.append(4)
  count()
  expect(counted).toEqual([1, 2, 3, 4])
})

test('an entry that a live thread may still complete is not given up with an ended thread', () => {
  using folder = temporaryFolder()
  const { journal, count, counted } = setUp(folder.path, 4)
  const [dead, live] = [journal.attach(), journal.attach()]
  const claim = new Int32Array(live.own)
  Atomics.store(claim, CLAIM, Atomics.load(new Int32Array(live.ring), HEAD))
  claimNext(dead)
  journal.append(5)
  journal.detach(dead)
  expect(journal.head).toBe(0)
  expect(journal.pending).toBe(1)
  // The live thread finds the entry taken, and appends behind it.
  new JournalAppender(live).append(6)
  count()
  expect(counted).toEqual([0, 5, 6])
})

test('threads that append at the same time claim each entry once', async () => {
  using folder = temporaryFolder()
  const HITS = 250_000
  const { journal, count, counted } = setUp(folder.path, THREADS * HITS)
  const threads = await startAppending(
    Array.from({ length: THREADS }, (_, index) => {
      return { shared: journal.attach(), first: 1 + index, links: 1, hits: HITS }
    }),
  )
  await Promise.all(threads.map(({ done }) => done))
  for (const { worker } of threads) worker.terminate()
  expect(journal.head).toBe(THREADS * HITS)
  count()
  const byId = new Uint32Array(1 + THREADS)
  for (const id of counted) byId[id] = (byId[id] ?? 0) + 1
  expect([...byId]).toEqual([0, HITS, HITS, HITS, HITS])
})

test('threads that are terminated block no other thread, and their completed hits count', async () => {
  using folder = temporaryFolder()
  const { journal, count, counted } = setUp(folder.path, 1000)
  const byId = new Uint32Array(100)
  const flush = () => {
    count()
    for (const id of counted.splice(0)) byId[id] = (byId[id] ?? 0) + 1
  }
  const start = async (first: number) => {
    const shared = journal.attach()
    const [thread] = await startAppending([{ shared, first, links: 1, hits: 2 ** 31 - 1 }])
    if (!thread) throw new Error('one thread is started')
    const { worker } = thread
    const closed = new Promise((resolve) => worker.addEventListener('close', resolve))
    return { thread, worker, closed, shared, first }
  }
  const ended = []
  let running = await Promise.all([1, 2, 3].map(start))
  for (let round = 0; round < 5; round++) {
    const [oldest, ...others] = running
    if (!oldest) break
    oldest.worker.terminate()
    // Until then the ring fills, and the thread may wait for the control thread.
    flush()
    await oldest.closed
    journal.detach(oldest.shared)
    ended.push(oldest)
    flush()
    running = [...others, await start(4 + round)]
  }
  for (const { worker, closed, shared } of running) {
    worker.terminate()
    await closed
    journal.detach(shared)
  }
  while (journal.pending > 0) flush()
  expect(journal.head).toBe(journal.tail)
  for (const { thread, first } of [...ended, ...running]) {
    const hits = byId[first] ?? 0
    expect([first, hits >= thread.completed, hits <= thread.begun]).toEqual([first, true, true])
  }
  expect(byId[0]).toBeLessThanOrEqual(ended.length)
  expect(Math.max(...byId)).toBeGreaterThan(100)
}, 60_000)

// Pages of counted hits of the larger ring leave the memory meanwhile.
const RINGS = [5003, 300_000]

test.each(RINGS)(
  'hits of several threads are each counted once while a ring of %d is read, flushed and full',
  async (entries) => {
    using folder = temporaryFolder()
    const HITS = 250_000
    const LINKS = 7
    const { journal, count, counted } = setUp(folder.path, entries, 2 ** 32 - 1000)
    const threads = await startAppending(
      Array.from({ length: THREADS }, (_, index) => {
        return { shared: journal.attach(), first: 1 + index * LINKS, links: LINKS, hits: HITS }
      }),
    )
    const all = Promise.all(threads.map(({ done }) => done))
    const sum = (key: 'begun' | 'completed') => threads.reduce((n, thread) => n + thread[key], 0)
    const byId = new Uint32Array(1 + THREADS * LINKS)
    let committed = 0
    const flush = () => {
      count(Math.ceil(entries / 5))
      for (const id of counted.splice(0)) byId[id] = (byId[id] ?? 0) + 1
      committed = byId.reduce((a, b) => a + b)
    }
    let fillings = 0
    for (let round = 0; sum('completed') < THREADS * HITS; round++) {
      const least = sum('completed')
      const total = committed + journal.totalFrom(journal.tail)
      expect([total >= least, total <= sum('begun')]).toEqual([true, true])
      const one = threads[round % THREADS]
      const ids = Array.from({ length: LINKS }, (_, n) => 1 + (round % THREADS) * LINKS + n)
      const leastOfOne = one?.completed ?? 0
      const waiting = journal.countFrom(journal.tail, ids)
      const found = ids.reduce((n, id) => n + (byId[id] ?? 0) + (waiting.get(id) ?? 0), 0)
      expect([found >= leastOfOne, found <= (one?.begun ?? 0)]).toEqual([true, true])
      if (journal.overflow > 0) fillings++
      // Not before the ring has been full once.
      if (fillings > 0) for (let n = 0; n < 20; n++) flush()
      await Bun.sleep(0)
    }
    await all
    if (journal.overflow > 0) fillings++
    while (journal.pending > 0) flush()
    for (const { worker } of threads) worker.terminate()
    const ids = Array.from({ length: THREADS * LINKS }, (_, n) => n + 1)
    const expected = ids.map((id) => Math.ceil((HITS - ((id - 1) % LINKS)) / LINKS))
    expect([...byId.subarray(1)]).toEqual(expected)
    expect(fillings).toBeGreaterThan(0)
  },
  60_000,
)
