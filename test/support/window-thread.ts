/** A thread that shares a `SlidingWindow`: entry file of a worker. */
import { GapQueues } from '../../src/hot/gap-queues.ts'
import { Lock } from '../../src/hot/lock.ts'
import { SlidingWindow, type WindowMemory } from '../../src/hot/sliding-window.ts'

declare const self: Worker

export interface ThreadJob {
  memory: WindowMemory
  thread: number
  /** Words: the threads that are ready, of `threads`; the calls made so far; the time. */
  shared: SharedArrayBuffer
  threads: number
  calls: number
  seed: number
  keys: number
  budgets: readonly number[]
  /** Whether time passes meanwhile. */
  advances: boolean
  /**
   * `none`: a negative control. `forever`: the lock is never released, and what it protects becomes
   * garbage.
   */
  lock: 'normal' | 'none' | 'forever'
}

/** Words of `ThreadJob.shared`. */
const READY = 0
export const CALLS = 1
export const TIME_MS = 2

/** Calls in the order in which the lock let them pass: FIELDS numbers each. */
export const SEQUENCE = 0
export const IS_PEEK = 1
export const KEY = 2
export const BUDGET = 3
export const NOW = 4
export const ALLOWED = 5
export const REMAINING = 6
export const RESET_AFTER_MS = 7
export const FIELDS = 8

/** Lock and counters come before it in each shard. */
const CONTENTS_AT = 192
/** One of so many counted requests takes a millisecond, in the middle of its change. */
const PAUSED_ONE_IN = 200

let job: ThreadJob
let words: Int32Array
let sequence = 0
let random = 1

/** The tests import this file for its constants: only a worker may change its locks. */
if (!Bun.isMainThread) {
  observeWindows()
  self.onmessage = ({ data }: MessageEvent<ThreadJob>) => {
    job = data
    words = new Int32Array(job.shared)
    random = job.seed
    postMessage(run(new SlidingWindow(job.memory, job.thread)))
  }
}

/** Records the order of the calls, and lets threads meet inside a change if they can. */
function observeWindows(): void {
  const { acquire, release } = Lock.prototype
  const { push } = GapQueues.prototype
  Lock.prototype.acquire = function (this: Lock) {
    return job.lock === 'none' || acquire.call(this)
  }
  Lock.prototype.release = function (this: Lock) {
    if (job.lock === 'forever') holdForever()
    sequence = Atomics.add(words, CALLS, 1)
    if (job.lock === 'normal') release.call(this)
  }
  GapQueues.prototype.push = function (this: GapQueues, queue, value) {
    if ((random >>> 8) % PAUSED_ONE_IN === 0) pause(1)
    push.call(this, queue, value)
  }
}

function pause(ms: number): void {
  Atomics.wait(words, READY, Atomics.load(words, READY), ms)
}

function run(window: SlidingWindow): Float64Array {
  const log = new Float64Array(job.calls * FIELDS)
  Atomics.add(words, READY, 1)
  while (Atomics.load(words, READY) < job.threads);
  for (let at = 0; at < log.length; at += FIELDS) {
    const key = next(job.keys)
    const budget = job.budgets[next(job.budgets.length)] as number
    const isPeek = next(8) === 0
    if (job.advances && next(4) === 0) Atomics.add(words, TIME_MS, next(4000))
    const now = Atomics.load(words, TIME_MS)
    const decision = window[isPeek ? 'peek' : 'take'](...addressKey(key), budget, now)
    const { allowed, remaining, resetAfterMs } = decision
    const values = [sequence, isPeek, key, budget, now, allowed, remaining, resetAfterMs]
    log.set(values.map(Number), at)
  }
  return log
}

/** Keys of IPv6 addresses, of which some share a /48. */
export const addressKey = (key: number): [number, number] => [0x2001_0db8, ((key % 5) << 16) | key]

function next(below: number): number {
  random ^= random << 13
  random ^= random >>> 17
  random ^= random << 5
  return (random >>> 0) % below
}

function holdForever(): never {
  new Uint8Array(job.memory.buffer, CONTENTS_AT).fill(0x5a)
  postMessage('held')
  for (;;) pause(1000)
}
