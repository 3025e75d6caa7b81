import { assert } from '../lib/assert.ts'
import { type Pages, pointerTo, releasePages } from '../lib/mapped-pages.ts'
import {
  ENTRY_BYTES,
  ENTRY_WORDS,
  HEADER_BYTES,
  inaccessible,
  JournalFile,
  type JournalRange,
  restoreJournal,
} from './journal-file.ts'

const ENTRIES_PER_PAGE = 4096 / ENTRY_BYTES
/** Counted entries whose pages are released together: 1 MiB. */
const RELEASED_TOGETHER = (1024 * 1024) / ENTRY_BYTES

/**
 * HOT PATH. Hits that the database does not count yet, in a mapping of the journal's file (format:
 * journal-file.ts). An append is two stores and no system call. Appended hits survive `kill -9`.
 */
export class HitJournal {
  /** Random, and also stored in the database: its position belongs to this journal only. */
  readonly id: string
  readonly #words: Uint32Array
  readonly #entries: number
  /** Of the first entry. */
  readonly #address: number
  /** Positions: the first not known to be counted, and the next to be written. */
  #tail = 0
  #head = 0
  /** Pages before this position are released. */
  #released = 0
  /** The next slot and its lap, kept beside `#head` so that an append divides nothing. */
  #slot = 0
  #lap = 1
  /** Hits that arrived while the ring was full, by link id. They enter it when there is room. */
  readonly #overflow = new Map<number, number>()

  private constructor({ id, entries }: JournalFile, mapping: Uint8Array) {
    this.id = id
    this.#entries = entries
    this.#words = new Uint32Array(mapping.buffer, mapping.byteOffset + HEADER_BYTES)
    this.#address = pointerTo(mapping) + HEADER_BYTES
  }

  /** Maps the file, and creates it if missing. Throws DataError when it is not a whole journal. */
  static open(path: string, entries?: number): HitJournal {
    using file = JournalFile.open(path, entries)
    // Mapped only after the size is known to fit: touching a page past the end kills the process.
    return new HitJournal(file, map(path))
  }

  /** Hits appended and not yet released, including those of `#overflow`. */
  get pending(): number {
    let waiting = 0
    for (const count of this.#overflow.values()) waiting += count
    return this.#head - this.#tail + waiting
  }

  /** Capacity of the ring. */
  get entries(): number {
    return this.#entries
  }

  /** Some hits are in memory only, because the ring is full: a kill would lose them. */
  get overflowing(): boolean {
    return this.#overflow.size > 0
  }

  /** Records one redirect of a link (an id of 1 to 2^32 - 1). Never fails and never waits. */
  append(linkId: number): void {
    if (this.#head - this.#tail >= this.#entries) {
      this.#overflow.set(linkId, (this.#overflow.get(linkId) ?? 0) + 1)
      return
    }
    const word = this.#slot * ENTRY_WORDS
    this.#words[word] = linkId
    this.#words[word + 1] = this.#lap
    this.#head++
    if (++this.#slot === this.#entries) {
      this.#slot = 0
      this.#lap++
    }
  }

  /** The next position to be written. Every entry before it can be read. */
  get head(): number {
    return this.#head
  }

  /** The first position that is not known to be counted. */
  get tail(): number {
    return this.#tail
  }

  /** Entries before `end` are committed: their slots may be overwritten. */
  release(end: number): void {
    assert(end >= this.#tail && end <= this.#head, 'a released range is pending')
    this.#tail = end
    if (end - this.#released >= RELEASED_TOGETHER) this.#releaseCounted()
    if (this.#overflow.size > 0) this.#refill()
  }

  /** Number of hits in the journal from `position` on, for each of `linkIds`. */
  countFrom(position: number, linkIds: readonly number[]): Map<number, number> {
    const counts = new Map(linkIds.map((id) => [id, this.#overflow.get(id) ?? 0]))
    let at = Math.max(position, this.#tail)
    let slot = at % this.#entries
    for (; at < this.#head; at++) {
      const linkId = this.#words[slot * ENTRY_WORDS] as number
      const count = counts.get(linkId)
      if (count !== undefined) counts.set(linkId, count + 1)
      if (++slot === this.#entries) slot = 0
    }
    return counts
  }

  /** Number of hits from `position` on, of all links. */
  totalFrom(position: number): number {
    return this.pending - Math.max(0, Math.min(position, this.#head) - this.#tail)
  }

  /**
   * Continues after an earlier process. `position`: the committed one. `left`: the result of
   * `JournalFile.recover` there. Its hits become pending again, at their old positions.
   */
  resume(
    position: number,
    left: JournalRange = { linkIds: new Uint32Array(), end: position },
  ): void {
    this.#tail = position
    this.#released = position - (position % ENTRIES_PER_PAGE)
    if (left.end - position > left.linkIds.length) this.#closeGaps(position, left.linkIds.length)
    this.#seek(position + left.linkIds.length)
  }

  #seek(position: number): void {
    this.#head = position
    this.#slot = position % this.#entries
    this.#lap = Math.floor(position / this.#entries) + 1
  }

  /**
   * Moves the `count` whole entries from `position` on together, over gaps where a power loss
   * dropped pages. Each is erased before it is written at its new place: a kill in between loses
   * one hit and counts none twice.
   */
  #closeGaps(position: number, count: number): void {
    let from = position
    this.#seek(position)
    while (this.#head < position + count) {
      const word = (from % this.#entries) * ENTRY_WORDS
      if (this.#words[word + 1] === Math.floor(from / this.#entries) + 1) {
        const linkId = this.#words[word] as number
        this.#words[word + 1] = 0
        this.append(linkId)
      }
      from++
    }
  }

  /** Restores header and length of a truncated file. Its hits are lost. */
  restoreLength(path: string): void {
    restoreJournal(path, this)
  }

  #pagesOf(slot: number, length: number): Pages {
    return { address: this.#address + slot * ENTRY_BYTES, bytes: length * ENTRY_BYTES }
  }

  /** Otherwise every page of the ring would stay in memory after one lap. */
  #releaseCounted(): void {
    while (this.#tail - this.#released >= RELEASED_TOGETHER) {
      const slot = this.#released % this.#entries
      const length = Math.min(RELEASED_TOGETHER, this.#entries - slot)
      releasePages(this.#pagesOf(slot, length))
      this.#released += length
    }
  }

  #refill(): void {
    for (const [linkId, count] of this.#overflow) {
      const room = this.#entries - (this.#head - this.#tail)
      const moved = Math.min(room, count)
      this.#overflow.delete(linkId)
      for (let i = 0; i < moved; i++) this.append(linkId)
      if (moved < count) {
        this.#overflow.set(linkId, count - moved)
        return
      }
    }
  }
}

function map(path: string): Uint8Array {
  try {
    return Bun.mmap(path, { shared: true })
  } catch (cause) {
    throw inaccessible(path, cause)
  }
}
