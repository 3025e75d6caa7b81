/** A chunk is 32 bytes, filled four bits at a time, and the number of the chunk after it. */
const CHUNK_BYTES = 32
const CHUNK_COST_BYTES = CHUNK_BYTES + 4
const CHUNK_SHIFT = 6
const CHUNK_LAST = 2 ** CHUNK_SHIFT - 1

/** A value is written as 2 to 5 nibbles, the top one first; that one tells how many there are. */
const THREE_NIBBLES_FROM = 11 * 16
const FOUR_NIBBLES_FROM = THREE_NIBBLES_FROM + 3 * 256
const FIVE_NIBBLES_FROM = FOUR_NIBBLES_FROM + 4096
const THREE_NIBBLES_MARK = 11 << 8
const FOUR_NIBBLES_MARK = 14 << 12
const FIVE_NIBBLES_MARK = 15 << 16
const VALUE_NIBBLES_MAX = 5

/**
 * HOT PATH. A fixed number of first-in, first-out queues of whole numbers from 0 to 65,535, packed
 * into one arena of at most `arenaBytesMax` bytes. A value below 176 takes 1 byte, below 944 takes
 * 1.5, below 5,040 takes 2, and any other 2.5. An empty queue takes no room in the arena.
 *
 * A queue is a chain of 32-byte chunks: it grows at one end and gives chunks back at the other,
 * nothing is ever copied, and as all chunks are alike, any free one serves any queue. All memory is
 * reserved at construction; the system backs it with pages only as they are first used.
 */
export class DeltaQueues {
  readonly #chunksMax: number
  readonly #bytes: Uint8Array
  /** The chunk after this one, in its queue or in the free list. */
  readonly #nextChunk: Int32Array
  /** Queue q: at 2q the address of its first nibble, at 2q + 1 of its last; both 0 when empty. */
  readonly #ends: Int32Array
  #firstFree = 0
  /** Chunk 0 is never used, so that 0 can stand for "none". */
  #chunksUsed = 1
  /** The nibble that is read next, or 0 past the queue's end. */
  #cursor = 0

  constructor(queues: number, arenaBytesMax: number) {
    if (!(arenaBytesMax >= 0 && arenaBytesMax <= 2 ** 30)) {
      throw new RangeError('arenaBytesMax must be from 0 to 1,073,741,824')
    }
    this.#chunksMax = 1 + Math.floor(arenaBytesMax / CHUNK_COST_BYTES)
    this.#bytes = new Uint8Array(this.#chunksMax * CHUNK_BYTES)
    this.#nextChunk = new Int32Array(this.#chunksMax)
    this.#ends = new Int32Array(2 * queues)
  }

  /** Arena memory used so far: grows with the most chunks ever held at once. */
  get arenaBytes(): number {
    return (this.#chunksUsed - 1) * CHUNK_COST_BYTES
  }

  /** Whether no chunk is free: queues can still be pushed to until their last chunk is full. */
  get isFull(): boolean {
    return this.#firstFree === 0 && this.#chunksUsed === this.#chunksMax
  }

  /** Whether any value can be pushed to the queue now. */
  hasRoom(queue: number): boolean {
    if (!this.isFull) return true
    const last = this.#ends[2 * queue + 1] as number
    return last !== 0 && (last & CHUNK_LAST) + VALUE_NIBBLES_MAX <= CHUNK_LAST
  }

  /** Adds a value at the end. The queue must have room. */
  push(queue: number, value: number): void {
    if (value < THREE_NIBBLES_FROM) {
      this.#write(queue, value, 2)
    } else if (value < FOUR_NIBBLES_FROM) {
      this.#write(queue, THREE_NIBBLES_MARK + value - THREE_NIBBLES_FROM, 3)
    } else if (value < FIVE_NIBBLES_FROM) {
      this.#write(queue, FOUR_NIBBLES_MARK + value - FOUR_NIBBLES_FROM, 4)
    } else {
      this.#write(queue, FIVE_NIBBLES_MARK + value, 5)
    }
  }

  /** Takes the first value out. The queue must not be empty. */
  shift(queue: number): number {
    const first = this.#ends[2 * queue] as number
    this.#cursor = first
    const value = this.#read(this.#ends[2 * queue + 1] as number)
    if (this.#cursor === 0) {
      this.clear(queue)
      return value
    }
    this.#ends[2 * queue] = this.#cursor
    if (this.#cursor >> CHUNK_SHIFT !== first >> CHUNK_SHIFT) {
      this.#nextChunk[first >> CHUNK_SHIFT] = this.#firstFree
      this.#firstFree = first >> CHUNK_SHIFT
    }
    return value
  }

  /**
   * The sum of the first `count` values, which the queue must hold. Takes time for each of them.
   */
  sum(queue: number, count: number): number {
    const last = this.#ends[2 * queue + 1] as number
    this.#cursor = this.#ends[2 * queue] as number
    let total = 0
    for (let i = 0; i < count; i++) total += this.#read(last)
    return total
  }

  /** Empties the queue at once, however long it is. */
  clear(queue: number): void {
    const first = this.#ends[2 * queue] as number
    if (first === 0) return
    const last = this.#ends[2 * queue + 1] as number
    this.#nextChunk[last >> CHUNK_SHIFT] = this.#firstFree
    this.#firstFree = first >> CHUNK_SHIFT
    this.#ends[2 * queue] = 0
    this.#ends[2 * queue + 1] = 0
  }

  #write(queue: number, code: number, nibbles: number): void {
    const bytes = this.#bytes
    let at = this.#ends[2 * queue + 1] as number
    for (let shift = 4 * (nibbles - 1); shift >= 0; shift -= 4) {
      at = at === 0 || (at & CHUNK_LAST) === CHUNK_LAST ? this.#extend(queue, at) : at + 1
      const nibble = (code >> shift) & 15
      // The lower half of a byte comes first and wipes what an earlier use left in the upper half.
      bytes[at >> 1] = (at & 1) === 0 ? nibble : (bytes[at >> 1] as number) | (nibble << 4)
    }
    this.#ends[2 * queue + 1] = at
  }

  /** Puts a new chunk after the one that ends at `last`, and gives its first address. */
  #extend(queue: number, last: number): number {
    let chunk = this.#firstFree
    if (chunk === 0) chunk = this.#chunksUsed++
    else this.#firstFree = this.#nextChunk[chunk] as number
    if (last === 0) this.#ends[2 * queue] = chunk << CHUNK_SHIFT
    else this.#nextChunk[last >> CHUNK_SHIFT] = chunk
    return chunk << CHUNK_SHIFT
  }

  /** The value at the cursor, in a queue whose last nibble is at `last`. */
  #read(last: number): number {
    const top = this.#readNibble(last)
    let code = (top << 4) | this.#readNibble(last)
    if (code < THREE_NIBBLES_FROM) return code
    code = (code << 4) | this.#readNibble(last)
    if (code < FOUR_NIBBLES_MARK >> 4) return code - THREE_NIBBLES_MARK + THREE_NIBBLES_FROM
    code = (code << 4) | this.#readNibble(last)
    if (code < FIVE_NIBBLES_MARK >> 4) return code - FOUR_NIBBLES_MARK + FOUR_NIBBLES_FROM
    return ((code << 4) | this.#readNibble(last)) - FIVE_NIBBLES_MARK
  }

  #readNibble(last: number): number {
    const at = this.#cursor
    if (at === last) this.#cursor = 0
    else if ((at & CHUNK_LAST) !== CHUNK_LAST) this.#cursor = at + 1
    else this.#cursor = (this.#nextChunk[at >> CHUNK_SHIFT] as number) << CHUNK_SHIFT
    return ((this.#bytes[at >> 1] as number) >> ((at & 1) << 2)) & 15
  }
}
