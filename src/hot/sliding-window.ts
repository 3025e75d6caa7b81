import { type RandomBytes, secureRandom } from '../lib/random.ts'
import { type CallerSlotsOptions, callerHash } from './caller-slots.ts'
import { CONTROL_THREAD } from './lock.ts'
import { SharedArrays } from './shared-arrays.ts'
import { ARENA_REFUSED, OVERFLOWED, REFUSED, RESETS, UNCOUNTED } from './window-counters.ts'
import { type Decision, WindowShard, type WindowShardOptions } from './window-shard.ts'

/**
 * Eight threads that handle a request every 15 µs then find one lock in a hundred held. More shards
 * would leave less memory to the busiest caller of each.
 */
const SHARDS = 8
/** With fewer keys, one shard is enough: one thread or a test uses such a window. */
const SHARDED_KEYS_MIN = 2 ** 16

export interface SlidingWindowOptions {
  /**
   * Maximum number of callers at once, from 1 to 16,777,216. Each takes 40 bytes; the tables have a
   * power of two of buckets of 4 bytes, at least 4/3 as many as callers. 196,608 callers take 8.5
   * MiB, 393,216 take 17, and 786,432 take 34.
   */
  keysMax: number
  /**
   * Bytes for the times of requests, in equal parts for the shards. Default: 12 MiB. The first
   * request of a caller in a window takes none, the others two bytes each, in chunks of 16 that
   * take 36 bytes. Altogether, a caller of k requests takes at most 128 + 2.25k bytes (if `keysMax`
   * is three quarters of a power of two).
   */
  arenaBytesMax?: number
  /**
   * Lets a request pass that cannot be counted because no slot or memory is left. For callers that
   * must not be refused, even if some of them exceed the budget.
   */
  failsOpen?: boolean
  /** Keys are addresses, and IPv6 networks are counted by /48 under pressure: see `CallerSlots`. */
  areAddresses?: boolean
  /** Parts with a lock, `keysMax` / `shards` callers and an arena each; a power of two up to 16. */
  shards?: number
  /** Seeds the hash. */
  random?: RandomBytes | undefined
}

/** The memory of a window. It can be sent to another thread, which then shares the window. */
export interface WindowMemory extends WindowShardOptions {
  buffer: SharedArrayBuffer
  shards: number
}

/**
 * HOT PATH. An exact log of each caller's requests in the last 60 seconds, in bounded memory that
 * several threads share: never more than the budget in any 60 seconds, never a refusal under it. No
 * clock of its own, and nothing is allocated after construction. The cost of a call does not depend
 * on the number of keys. Each request is dropped once, by a call after it has left the window.
 *
 * A hash of the caller chooses the shard that counts it. When a shard is full and all its callers
 * have requests in the window, newcomers share its overflow bucket: it may refuse them too early,
 * but no caller gets more than its budget. When its arena is full, a caller with requests in the
 * window is refused until they have left. Both happen in a flood only; `overflowed` and
 * `arenaRefused` count them. With `failsOpen`, such requests pass without being counted;
 * `uncounted` counts them.
 *
 * The memory of a window is that of its shards, one after the other. A shard (`WindowShard`) is:
 * the lock, the counters, the last sum, the times of the latest call and of the origin, the words,
 * keys and buckets of its `KeyIndex`, the records of its callers, the words, ends, next chunks and
 * values of its `GapQueues`, and the cells. Each array begins at a multiple of 64 bytes.
 *
 * The next call changes the object that `take` and `peek` return: read it before that.
 */
export class SlidingWindow {
  readonly #keys: CallerSlotsOptions
  readonly #shards: WindowShard[] = []
  readonly #shardMask: number
  readonly #shardShift: number

  static allocate(options: SlidingWindowOptions): WindowMemory {
    const { keysMax, arenaBytesMax = 12 * 2 ** 20, random = secureRandom } = options
    const { shards = keysMax < SHARDED_KEYS_MIN ? 1 : SHARDS } = options
    const seed = new DataView(random(8).buffer)
    const shard: WindowShardOptions = {
      keysMax: Math.ceil(keysMax / shards),
      arenaBytesMax: arenaBytesMax / shards,
      failsOpen: options.failsOpen ?? false,
      areAddresses: options.areAddresses ?? false,
      seed0: seed.getInt32(0),
      seed1: seed.getInt32(4),
    }
    const measured = new SharedArrays()
    new WindowShard(measured, shard, CONTROL_THREAD)
    const buffer = new SharedArrayBuffer(shards * measured.bytes)
    const memory = { ...shard, shards, buffer }
    for (const each of new SlidingWindow(memory).#shards) each.initialize()
    return memory
  }

  /** `thread` is the number of the calling thread, from 1 to 1,000,000, for its locks. */
  constructor(memory: WindowMemory, thread = CONTROL_THREAD) {
    const { shards, buffer } = memory
    this.#keys = memory
    this.#shardMask = shards - 1
    this.#shardShift = 32 - Math.log2(shards)
    const arrays = new SharedArrays(buffer)
    for (let i = 0; i < shards; i++) this.#shards.push(new WindowShard(arrays, memory, thread))
  }

  /** Number of keys: those with a request in the window, and some that are about to be removed. */
  get size(): number {
    return this.#sum((shard) => shard.size)
  }

  /** The highest memory use so far. */
  get bytes(): number {
    return this.#sum((shard) => shard.bytes)
  }

  /** Number of refused takes. */
  get refused(): number {
    return this.#count(REFUSED)
  }

  /** Number of takes, passed or refused, of callers for which no slot was left. */
  get overflowed(): number {
    return this.#count(OVERFLOWED)
  }

  /** Number of takes and peeks under the budget for which the arena had no room. */
  get arenaRefused(): number {
    return this.#count(ARENA_REFUSED)
  }

  /** Number of takes that passed without being counted. */
  get uncounted(): number {
    return this.#count(UNCOUNTED)
  }

  /** Number of shards that were emptied because a thread ended while it changed them. */
  get resets(): number {
    return this.#count(RESETS)
  }

  /**
   * Spends one request of the key, given as two 32-bit halves; a refusal spends nothing. `budget`
   * is at least 1 and may change from call to call. `nowMs` is in whole milliseconds and monotonic,
   * on a clock that all threads share: an earlier time counts as the latest one given to the shard.
   */
  take(keyHigh: number, keyLow: number, budget: number, nowMs: number): Decision {
    requireBudget(budget)
    const hash = callerHash(this.#keys, keyHigh, keyLow)
    const shard = this.#shardOf(hash)
    if (!shard.lock.acquire()) return shard.passUnlocked(budget)
    const decision = shard.take(hash, keyHigh, keyLow, budget, nowMs)
    shard.lock.release()
    return decision
  }

  /** The decision about a take at this moment. Spends nothing. */
  peek(keyHigh: number, keyLow: number, budget: number, nowMs: number): Decision {
    requireBudget(budget)
    const hash = callerHash(this.#keys, keyHigh, keyLow)
    const shard = this.#shardOf(hash)
    if (!shard.lock.acquire()) return shard.passUnlocked(budget)
    const decision = shard.peek(hash, keyHigh, keyLow, budget, nowMs)
    shard.lock.release()
    return decision
  }

  /**
   * Frees the locks of a thread that has ended. A shard that it was changing is emptied first,
   * because its contents may be inconsistent: its callers have their whole budgets again.
   */
  releaseLocksOf(thread: number): void {
    for (const shard of this.#shards) {
      if (!shard.lock.isHeldBy(thread)) continue
      shard.clear()
      shard.lock.release()
    }
  }

  #shardOf(hash: number): WindowShard {
    return this.#shards[(hash >>> this.#shardShift) & this.#shardMask] as WindowShard
  }

  #count(counter: number): number {
    return this.#sum(({ counters }) => counters.get(counter))
  }

  #sum(read: (shard: WindowShard) => number): number {
    return this.#shards.reduce((sum, shard) => sum + read(shard), 0)
  }
}

/** Before the lock is taken, because nothing may throw while it is held. */
function requireBudget(budget: number): void {
  if (!(budget >= 1)) throw new RangeError('a budget is at least 1')
}
