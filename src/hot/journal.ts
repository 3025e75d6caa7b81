import { assert } from '../lib/assert.ts'
import { pointerTo, releasePages } from '../lib/c-library.ts'
import {
  CLAIM,
  COLLECTED,
  HEAD,
  JournalAppender,
  NONE,
  OWN_WORDS,
  RING_WORDS,
  type SharedJournal,
  SPILL,
  SPILL_ENTRIES,
  SPILLED,
  TAIL,
  TAIL_LAP,
  Tickets,
} from './journal-appender.ts'
import {
  ENTRY_BYTES,
  ENTRY_WORDS,
  HEADER_BYTES,
  inaccessible,
  JournalFile,
  restoreJournal,
} from './journal-file.ts'

const ENTRIES_PER_PAGE = 4096 / ENTRY_BYTES
/** Counted entries whose pages are released together: 1 MiB. */
const RELEASED_TOGETHER = (1024 * 1024) / ENTRY_BYTES

/**
 * The journal on the control thread: hits that the database does not count yet, in a mapping of the
 * journal's file (format: journal-file.ts). Other threads append with a JournalAppender; only the
 * control thread counts and releases.
 */
export class HitJournal {
  /** Random, and also stored in the database: its position belongs to this journal only. */
  readonly id: string
  /** Capacity of the ring. */
  readonly entries: number
  readonly #words: Uint32Array
  readonly #tickets: Tickets
  /** Pointer to the first entry. */
  readonly #address: number
  readonly #ring = new Int32Array(new SharedArrayBuffer(RING_WORDS * 4))
  readonly #appender: JournalAppender
  /** Words of the appenders of other threads: `own` of SharedJournal. */
  readonly #live: Int32Array[] = []
  /** The same of ended threads, until none of their appends is incomplete. */
  #ended: Int32Array[] = []
  /** The first position not known to be counted. */
  #tail = 0
  /** Pages before this position are released. */
  #released = 0
  /** Hits that arrived while the ring was full, by link id. They enter it when there is room. */
  readonly #overflow = new Map<number, number>()

  private constructor({ id, entries }: JournalFile, mapping: Uint8Array) {
    this.id = id
    this.entries = entries
    this.#tickets = new Tickets(entries)
    this.#words = new Uint32Array(mapping.buffer, mapping.byteOffset + HEADER_BYTES)
    this.#address = pointerTo(mapping) + HEADER_BYTES
    // The appender of this thread has no spill: it adds to the overflow itself.
    this.#appender = new JournalAppender(this.#shareWith(new SharedArrayBuffer(SPILL * 4)))
    this.#seek(0)
  }

  /** Maps the file, and creates it if missing. Throws DataError when it is not a whole journal. */
  static open(path: string, entries?: number): HitJournal {
    using file = JournalFile.open(path, entries)
    // Mapped only after the size is known to fit: touching a page past the end kills the process.
    return new HitJournal(file, map(path))
  }

  /** For the JournalAppender of one other thread. Pass the result to `detach` when it has ended. */
  attach(): SharedJournal {
    const own = new Int32Array(new SharedArrayBuffer(OWN_WORDS * 4))
    own[CLAIM] = NONE
    this.#live.push(own)
    return this.#shareWith(own.buffer as SharedArrayBuffer)
  }

  /**
   * The thread with this appender has ended: it stores nothing any more. An append that it did not
   * complete becomes a hit of no link (id 0), because its redirect was not answered.
   */
  detach({ own }: SharedJournal): void {
    const at = this.#live.findIndex(({ buffer }) => buffer === own)
    assert(at >= 0, 'a detached appender is attached')
    this.#ended.push(...this.#live.splice(at, 1))
  }

  /** Hits appended and not yet released, including those of `#overflow`. */
  get pending(): number {
    return this.totalFrom(this.#tail)
  }

  /** Hits in memory only, because the ring is full: a kill would lose them. */
  get overflow(): number {
    this.collect()
    return this.#countOverflow()
  }

  /** Records one redirect of a link (an id of 1 to 2^32 - 1). Never fails and never waits. */
  append(linkId: number): void {
    if (!this.#appender.appendIfRoom(linkId)) this.#addOverflow(linkId)
  }

  /** The first entry that is incomplete or not claimed yet. All entries before it can be read. */
  get head(): number {
    const claimed = this.#claimed()
    return this.#incompleteBefore(claimed)[0] ?? claimed
  }

  /** The first position that is not known to be counted. */
  get tail(): number {
    return this.#tail
  }

  /** Entries before `end` are committed: their slots may be overwritten. */
  release(end: number): void {
    assert(end >= this.#tail && end <= this.head, 'a released range is pending')
    this.#setTail(end)
    this.#releaseCounted()
    this.collect()
  }

  /** Number of hits in the journal from `position` on, for each of `linkIds`. */
  countFrom(position: number, linkIds: readonly number[]): Map<number, number> {
    // Before the head is read, because it moves hits into the ring.
    this.collect()
    const head = this.#claimed()
    const incomplete = this.#incompleteBefore(head)
    const counts = new Map(linkIds.map((id) => [id, this.#overflow.get(id) ?? 0]))
    let at = Math.max(position, this.#tail)
    let slot = at % this.entries
    for (; at < head; at++) {
      const linkId = this.#words[slot * ENTRY_WORDS] as number
      const count = counts.get(linkId)
      if (count !== undefined && !incomplete.includes(at)) counts.set(linkId, count + 1)
      if (++slot === this.entries) slot = 0
    }
    return counts
  }

  /** Number of hits from `position` on, of all links. */
  totalFrom(position: number): number {
    this.collect()
    const head = this.#claimed()
    const from = Math.max(this.#tail, Math.min(position, head))
    // The database has counted no incomplete entry, so all of them are after its position.
    return head - from - this.#incompleteBefore(head).length + this.#countOverflow()
  }

  /**
   * Continues after an earlier process. `position`: the committed one. `left`: the result of
   * `JournalFile.recover` there. Its hits become pending again, at their old positions. Gaps become
   * hits of no link (id 0), so that another kill loses and doubles nothing.
   */
  resume(position: number, left: Uint32Array = new Uint32Array()): void {
    this.#released = position - (position % ENTRIES_PER_PAGE)
    this.#seek(position + left.length)
    this.#setTail(position)
    let gap = left.indexOf(0)
    while (gap >= 0) {
      this.#complete(position + gap)
      gap = left.indexOf(0, gap + 1)
    }
  }

  /**
   * Collects the hits that other threads appended while the ring was full, and moves hits of the
   * overflow into the ring if there is room. Needed several times a second: a thread waits while
   * 65,536 of its hits are not collected.
   */
  collect(): void {
    for (const own of [...this.#live, ...this.#ended]) {
      const spilled = Atomics.load(own, SPILLED)
      let at = Atomics.load(own, COLLECTED)
      if (at === spilled) continue
      for (; at !== spilled; at = (at + 1) | 0) {
        this.#addOverflow((own[SPILL + (at & (SPILL_ENTRIES - 1))] as number) >>> 0)
      }
      Atomics.store(own, COLLECTED, at)
      Atomics.notify(own, COLLECTED)
    }
    if (this.#overflow.size > 0) this.#refill()
  }

  #countOverflow(): number {
    let hits = 0
    for (const count of this.#overflow.values()) hits += count
    return hits
  }

  #shareWith(own: SharedArrayBuffer): SharedJournal {
    const ring = this.#ring.buffer as SharedArrayBuffer
    return { address: this.#address, entries: this.entries, ring, own }
  }

  /** Sets head and tail. No other thread may append meanwhile. */
  #seek(position: number): void {
    Atomics.store(this.#ring, HEAD, this.#tickets.of(position))
    this.#setTail(position)
  }

  #setTail(position: number): void {
    this.#tail = position
    // The lap first: an appender that reads the new tail needs a lap from which it can count on.
    Atomics.store(this.#ring, TAIL_LAP, this.#tickets.lapOf(position))
    Atomics.store(this.#ring, TAIL, this.#tickets.of(position))
  }

  /** The next position to be claimed. */
  #claimed(): number {
    return this.#tickets.positionOf(Atomics.load(this.#ring, HEAD), this.#tail)
  }

  /**
   * The positions that threads have claimed and not completed, ascending. `head`: the result of
   * `#claimed`, which must be read first: an entry before it is complete or in a published claim.
   *
   * Completes those of ended threads. A live thread may have published the same claim: only one of
   * the two has the entry, and the claim of a live thread soon changes.
   */
  #incompleteBefore(head: number): number[] {
    const incomplete = [...this.#claims([...this.#live, ...this.#ended])]
      .filter((at) => at >= this.#tail && at < head && !this.#isComplete(at))
      .sort((a, b) => a - b)
    if (this.#ended.length === 0) return incomplete
    const awaited = this.#claims(this.#live)
    for (const at of incomplete) {
      // Checked again: a live thread may have completed it and withdrawn its claim meanwhile.
      if (!awaited.has(at) && !this.#isComplete(at)) this.#complete(at)
    }
    this.collect()
    this.#ended = this.#ended.filter((own) => awaited.intersection(this.#claims([own])).size > 0)
    return incomplete.filter((at) => awaited.has(at))
  }

  #claims(appenders: readonly Int32Array[]): Set<number> {
    const claims = appenders.map((own) => Atomics.load(own, CLAIM))
    const claimed = claims.filter((claim) => claim !== NONE)
    return new Set(claimed.map((claim) => this.#tickets.positionOf(claim, this.#tail)))
  }

  #isComplete(position: number): boolean {
    const word = (position % this.entries) * ENTRY_WORDS + 1
    return Atomics.load(this.#words, word) === this.#tickets.lapOf(position)
  }

  /** Makes an incomplete entry a hit of no link, which only the total of all hits counts. */
  #complete(position: number): void {
    const word = (position % this.entries) * ENTRY_WORDS
    this.#words[word] = 0
    Atomics.store(this.#words, word + 1, this.#tickets.lapOf(position))
  }

  /** Restores header and length of a truncated file. Its hits are lost. */
  restoreLength(path: string): void {
    restoreJournal(path, this)
  }

  /** Otherwise every page of the ring would stay in memory after one lap. */
  #releaseCounted(): void {
    while (this.#tail - this.#released >= RELEASED_TOGETHER) {
      const slot = this.#released % this.entries
      const length = Math.min(RELEASED_TOGETHER, this.entries - slot)
      const address = this.#address + slot * ENTRY_BYTES
      releasePages({ address, bytes: length * ENTRY_BYTES })
      this.#released += length
    }
  }

  #addOverflow(linkId: number, count = 1): void {
    this.#overflow.set(linkId, (this.#overflow.get(linkId) ?? 0) + count)
  }

  #refill(): void {
    for (const [linkId, count] of this.#overflow) {
      this.#overflow.delete(linkId)
      for (let moved = 0; moved < count; moved++) {
        if (this.#appender.appendIfRoom(linkId)) continue
        this.#addOverflow(linkId, count - moved)
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
