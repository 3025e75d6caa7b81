import type { SharedArrays } from './shared-arrays.ts'

/** A chunk holds 16 values of two bytes, and the number of the next chunk in four more. */
const CHUNK_VALUES = 16
const CHUNK_COST_BYTES = 2 * CHUNK_VALUES + 4
const CHUNK_SHIFT = 4
const CHUNK_LAST = CHUNK_VALUES - 1

// Words of an arena. Chunk 0 is never used, so that 0 can stand for "none".
const FIRST_FREE = 0
const CHUNKS_USED = 1
const WORDS = 2

/**
 * HOT PATH. A fixed number of first-in, first-out queues of whole numbers from 0 to 65,535 in one
 * arena of at most `arenaBytesMax` bytes. An empty queue takes no room in the arena.
 *
 * A queue is a chain of chunks: it grows at one end and frees chunks at the other, and values are
 * never copied. All chunks have the same size, so any queue can use any free one. All state is in
 * shared memory, which is zero while all queues are empty; the caller excludes other threads.
 */
export class GapQueues {
  readonly #chunksMax: number
  readonly #words: Int32Array
  readonly #values: Uint16Array
  /** The chunk after this one, in its queue or in the free list. */
  readonly #nextChunk: Int32Array
  /** Queue q: at 2q the index of its first value, at 2q + 1 of its last; both 0 when empty. */
  readonly #ends: Int32Array

  constructor(memory: SharedArrays, queues: number, arenaBytesMax: number) {
    if (!(arenaBytesMax >= 0 && arenaBytesMax <= 2 ** 30)) {
      throw new RangeError('arenaBytesMax must be from 0 to 1,073,741,824')
    }
    this.#chunksMax = Math.floor(arenaBytesMax / CHUNK_COST_BYTES)
    this.#words = memory.int32(WORDS)
    this.#ends = memory.int32(2 * queues)
    this.#nextChunk = memory.int32(1 + this.#chunksMax)
    this.#values = memory.uint16((1 + this.#chunksMax) * CHUNK_VALUES)
  }

  /** The highest use of the arena so far, in bytes. */
  get arenaBytes(): number {
    return (this.#words[CHUNKS_USED] as number) * CHUNK_COST_BYTES
  }

  /** Whether no chunk is free. A queue still accepts values until its last chunk is full. */
  get isFull(): boolean {
    return this.#words[FIRST_FREE] === 0 && this.#words[CHUNKS_USED] === this.#chunksMax
  }

  /** Whether a value can be pushed to the queue now. */
  hasRoom(queue: number): boolean {
    if (!this.isFull) return true
    const last = this.#ends[2 * queue + 1] as number
    return last !== 0 && (last & CHUNK_LAST) !== CHUNK_LAST
  }

  /** Appends a value. The queue must have room. */
  push(queue: number, value: number): void {
    const last = this.#ends[2 * queue + 1] as number
    const isWhole = last === 0 || (last & CHUNK_LAST) === CHUNK_LAST
    const at = isWhole ? this.#extend(queue, last) : last + 1
    this.#values[at] = value
    this.#ends[2 * queue + 1] = at
  }

  /** Removes and returns the first value. The queue must not be empty. */
  shift(queue: number): number {
    const first = this.#ends[2 * queue] as number
    const value = this.#values[first] as number
    if (first === this.#ends[2 * queue + 1]) {
      this.clear(queue)
      return value
    }
    this.#ends[2 * queue] = this.#after(first)
    if ((first & CHUNK_LAST) === CHUNK_LAST) {
      this.#nextChunk[first >> CHUNK_SHIFT] = this.#words[FIRST_FREE] as number
      this.#words[FIRST_FREE] = first >> CHUNK_SHIFT
    }
    return value
  }

  /** The sum of the first `count` values, in O(count). The queue must have that many. */
  sum(queue: number, count: number): number {
    let at = this.#ends[2 * queue] as number
    let total = 0
    for (let i = 0; i < count; i++) {
      total += this.#values[at] as number
      at = this.#after(at)
    }
    return total
  }

  /** Empties the queue, in constant time. */
  clear(queue: number): void {
    const first = this.#ends[2 * queue] as number
    if (first === 0) return
    const last = this.#ends[2 * queue + 1] as number
    this.#nextChunk[last >> CHUNK_SHIFT] = this.#words[FIRST_FREE] as number
    this.#words[FIRST_FREE] = first >> CHUNK_SHIFT
    this.#ends[2 * queue] = 0
    this.#ends[2 * queue + 1] = 0
  }

  /** Appends a chunk to the queue that ends at `last`. Returns the index of its first value. */
  #extend(queue: number, last: number): number {
    const words = this.#words
    let chunk = words[FIRST_FREE] as number
    if (chunk === 0) {
      chunk = (words[CHUNKS_USED] as number) + 1
      words[CHUNKS_USED] = chunk
    } else words[FIRST_FREE] = this.#nextChunk[chunk] as number
    if (last === 0) this.#ends[2 * queue] = chunk << CHUNK_SHIFT
    else this.#nextChunk[last >> CHUNK_SHIFT] = chunk
    return chunk << CHUNK_SHIFT
  }

  /** The index of the value after the one at `at`, which must not be the queue's last. */
  #after(at: number): number {
    if ((at & CHUNK_LAST) !== CHUNK_LAST) return at + 1
    return (this.#nextChunk[at >> CHUNK_SHIFT] as number) << CHUNK_SHIFT
  }
}
