import { afterAll, expect, test } from 'bun:test'
import * as thread from '../../test/support/window-thread.ts'
import { SlidingWindow, type WindowMemory } from './sliding-window.ts'
import { WINDOW_MS } from './window-shard.ts'

const THREADS = 4
const SEED = 4_052_620

const seededBytes = (length: number) => new Uint8Array(length).fill(7)

const newWorker = () => new Worker(new URL('../../test/support/window-thread.ts', import.meta.url))
const workers = Array.from({ length: THREADS }, newWorker)
afterAll(() => {
  for (const worker of workers) worker.terminate()
})

/** One call of a thread, by the names of window-thread.ts. */
type Call = Float64Array
const field = (call: Call, name: number) => call[name] as number

type Job = Pick<thread.ThreadJob, 'keys' | 'budgets' | 'advances'> & Partial<thread.ThreadJob>

function send(worker: Worker, job: thread.ThreadJob): Promise<Float64Array> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data)
    worker.onerror = ({ message }) => reject(new Error(message))
    worker.postMessage(job)
  })
}

/** The calls of all threads on one window at once, in the order of the lock. */
async function callsOf(memory: WindowMemory, options: Job, startMs = 0): Promise<Call[]> {
  const shared = new SharedArrayBuffer(12)
  new Int32Array(shared)[thread.TIME_MS] = startMs
  const common = { memory, shared, threads: THREADS, calls: 2000, lock: 'normal' as const }
  const logs = await Promise.all(
    workers.map((worker, index) =>
      send(worker, { ...common, seed: SEED + index, thread: index + 1, ...options }),
    ),
  )
  return logs
    .flatMap((log) =>
      Array.from({ length: log.length / thread.FIELDS }, (_, index) =>
        log.subarray(index * thread.FIELDS, (index + 1) * thread.FIELDS),
      ),
    )
    .sort((one, other) => field(one, thread.SEQUENCE) - field(other, thread.SEQUENCE))
}

/** Takes that passed over the budget, and refusals under it, by plain lists of times. */
function violationsOf(calls: readonly Call[]): number {
  const passed = new Map<number, number[]>()
  let latest = 0
  let violations = 0
  for (const call of calls) {
    const key = field(call, thread.KEY)
    latest = Math.max(latest, field(call, thread.NOW))
    const times = (passed.get(key) ?? []).filter((time) => time > latest - WINDOW_MS)
    const isAllowed = call[thread.ALLOWED] === 1
    if (isAllowed !== times.length < field(call, thread.BUDGET)) violations++
    if (isAllowed && call[thread.IS_PEEK] === 0) times.push(latest)
    passed.set(key, times)
  }
  return violations
}

// spec: Limits | Rate window
test('of four threads on one window, none passes a request over the budget or refuses one under it', async () => {
  for (let round = 0; round < 12; round++) {
    const memory = SlidingWindow.allocate({ keysMax: 64, shards: 1 })
    const job = { keys: 1 + 3 * round, budgets: [1, 3, 40, 120], advances: true }
    const calls = await callsOf(memory, { ...job, seed: SEED * (round + 1) })
    expect(calls.map((call) => call[thread.SEQUENCE] as number)).toEqual([...calls.keys()])
    expect(violationsOf(calls)).toBe(0)
  }
})

const CROWDED = [
  { name: 'one shard', shards: 1, keysMax: 64 },
  { name: 'four shards', shards: 4, keysMax: 256 },
  { name: 'more callers than slots', shards: 2, keysMax: 12 },
  { name: 'more callers than slots, failing open', shards: 2, keysMax: 12, failsOpen: true },
  { name: 'networks counted by /48', shards: 1, keysMax: 12, areAddresses: true },
  { name: 'a full arena', shards: 1, keysMax: 64, arenaBytesMax: 180 },
]

test.each(CROWDED)(
  'threads get the decisions that one thread would get: $name',
  async (options) => {
    const { name: _, ...window } = options
    for (let round = 0; round < 4; round++) {
      const create = () => SlidingWindow.allocate({ ...window, random: seededBytes })
      const shared = create()
      const job = { keys: 30, budgets: [2, 7, 60], advances: true, seed: SEED + 1000 * round }
      const calls = await callsOf(shared, job, round % 2 === 0 ? 0 : 2 ** 31 - 2_000_000)
      const alone = new SlidingWindow(create())
      let different = 0
      for (const call of calls) {
        const [budget, now] = [field(call, thread.BUDGET), field(call, thread.NOW)]
        const name = call[thread.IS_PEEK] === 1 ? 'peek' : 'take'
        const decision = alone[name](...thread.addressKey(field(call, thread.KEY)), budget, now)
        const { allowed, remaining, resetAfterMs } = decision
        const expected = [Number(allowed), remaining, resetAfterMs]
        const figures = [thread.ALLOWED, thread.REMAINING, thread.RESET_AFTER_MS]
        if (figures.some((figure, index) => call[figure] !== expected[index])) different++
      }
      expect(different).toBe(0)
      const { size, refused, overflowed, arenaRefused, uncounted } = alone
      const all = { size, refused, overflowed, arenaRefused, uncounted, resets: 0 }
      expect(new SlidingWindow(shared)).toMatchObject(all)
    }
  },
)

/** Takes that passed beyond the budget of one caller, at one moment. */
async function excessOf(lock: 'normal' | 'none'): Promise<number> {
  const budget = 5000
  const memory = SlidingWindow.allocate({ keysMax: 8 })
  const job = { keys: 1, budgets: [budget], advances: false, lock }
  const calls = await callsOf(memory, job)
  const isPass = (call: Call) => call[thread.ALLOWED] === 1 && call[thread.IS_PEEK] === 0
  return calls.filter(isPass).length - budget
}

test('at one moment, threads pass exactly the budget', async () => {
  for (let round = 0; round < 5; round++) expect(await excessOf('normal')).toBe(0)
})

test('without the lock, threads pass more than the budget', async () => {
  let excess = 0
  for (let round = 0; round < 20 && excess === 0; round++) excess = await excessOf('none')
  expect(excess).toBeGreaterThan(0)
})

test('a thread that ends inside the lock stops no other, and the window works again', async () => {
  const memory = SlidingWindow.allocate({ keysMax: 8 })
  const window = new SlidingWindow(memory)
  const job = { memory, shared: new SharedArrayBuffer(12), threads: 1, calls: 1, seed: SEED }
  const more = { keys: 1, budgets: [5], advances: false }
  const ending = newWorker()
  const ended = new Promise((resolve) => ending.addEventListener('close', resolve))
  await send(ending, { ...job, ...more, thread: 9, lock: 'forever' })
  const waiting = send(workers[0] as Worker, { ...job, ...more, thread: 2, lock: 'normal' })
  ending.terminate()
  await ended
  window.releaseLocksOf(3)
  expect(window.resets).toBe(0)
  window.releaseLocksOf(9)
  expect(window.resets).toBe(1)
  expect((await waiting)[thread.ALLOWED]).toBe(1)
  const results = Array.from({ length: 6 }, () => window.take(1, 2, 5, 0).allowed)
  expect(results).toEqual([true, true, true, true, true, false])
})
