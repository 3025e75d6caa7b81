import { type Pointer, toArrayBuffer } from 'bun:ffi'
import { ENTRY_BYTES, ENTRY_WORDS } from './journal-file.ts'

/**
 * Memory that the threads of a process share to append to one journal. A ticket is a position in
 * 32 bits: the slot in its low bits, and the low bits of the lap in the others. No slot has all of
 * its bits set, so no ticket is `NONE`.
 */

/** Words of `ring`. The head is alone in its cache line, because every append changes it. */
export const HEAD = 0
export const TAIL = 32
/** The complete lap of the tail. Its 32 bits are enough for 2^54 hits. */
export const TAIL_LAP = 33
export const RING_WORDS = 64

/** Words of `own`. */
/** Ticket that an append in progress has claimed or tries to claim. */
export const CLAIM = 0
/** Hits written to and read from the spill, modulo 2^32. */
export const SPILLED = 1
export const COLLECTED = 2
export const SPILL = 32
/**
 * Capacity for hits of one thread that the control thread has not collected, if the ring is full.
 */
export const SPILL_ENTRIES = 64 * 1024
export const OWN_WORDS = SPILL + SPILL_ENTRIES

export const NONE = -1

/** The data that a thread needs to append. It can be sent with `postMessage`. */
export interface SharedJournal {
  /** Pointer to the first entry. The mapping does not move as long as its HitJournal exists. */
  address: number
  entries: number
  ring: SharedArrayBuffer
  /** The words of this appender; only `COLLECTED` is written by the control thread. */
  own: SharedArrayBuffer
}

/** Converts positions to tickets and back. */
export class Tickets {
  readonly entries: number
  readonly slotBits: number
  readonly slotMask: number
  /** Mask of the low bits of a lap. */
  readonly lapMask: number

  constructor(entries: number) {
    this.entries = entries
    this.slotBits = 32 - Math.clz32(entries)
    this.slotMask = 2 ** this.slotBits - 1
    this.lapMask = 2 ** (32 - this.slotBits) - 1
  }

  lapOf(position: number): number {
    return Math.floor(position / this.entries) + 1
  }

  of(position: number): number {
    return (this.lapOf(position) << this.slotBits) | (position % this.entries)
  }

  /** The first position with this ticket in or after the lap of `tail`. */
  positionOf(ticket: number, tail: number): number {
    const tailLap = this.lapOf(tail)
    const lap = tailLap + (((ticket >>> this.slotBits) - tailLap) & this.lapMask)
    return (lap - 1) * this.entries + (ticket & this.slotMask)
  }
}

/**
 * HOT PATH. Appends to the journal of a HitJournal in this or another thread. An append is a few
 * atomic operations and no system call. Appended hits survive `kill -9`.
 */
export class JournalAppender {
  readonly #words: Uint32Array
  readonly #ring: Int32Array
  readonly #own: Int32Array
  readonly #tickets: Tickets

  constructor({ address, entries, ring, own }: SharedJournal) {
    // One mapping for all threads: a second one would count twice as memory of the process.
    const memory = toArrayBuffer(address as Pointer, 0, entries * ENTRY_BYTES)
    this.#words = new Uint32Array(memory)
    this.#ring = new Int32Array(ring)
    this.#own = new Int32Array(own)
    this.#tickets = new Tickets(entries)
  }

  /**
   * Records one redirect of a link (an id of 1 to 2^32 - 1). Never fails. Waits only if the ring
   * is full and the control thread has not collected the last 65,536 hits of this thread.
   */
  append(linkId: number): void {
    if (!this.appendIfRoom(linkId)) this.#spill(linkId)
  }

  /** Returns false if the ring is full. */
  appendIfRoom(linkId: number): boolean {
    const ring = this.#ring
    const { entries, slotBits, slotMask, lapMask } = this.#tickets
    for (;;) {
      const ticket = Atomics.load(ring, HEAD)
      if (((ticket - Atomics.load(ring, TAIL)) | 0) === 1 << slotBits) {
        Atomics.store(this.#own, CLAIM, NONE)
        return false
      }
      // Before the entry is claimed, so that the control thread knows every incomplete entry.
      Atomics.store(this.#own, CLAIM, ticket)
      const slot = ticket & slotMask
      const next = slot === entries - 1 ? ((ticket | slotMask) + 1) | 0 : ticket + 1
      if (Atomics.compareExchange(ring, HEAD, ticket, next) !== ticket) continue
      const tailLap = Atomics.load(ring, TAIL_LAP)
      const lap = tailLap + (((ticket >>> slotBits) - tailLap) & lapMask)
      this.#words[slot * ENTRY_WORDS] = linkId
      Atomics.store(this.#words, slot * ENTRY_WORDS + 1, lap)
      Atomics.store(this.#own, CLAIM, NONE)
      return true
    }
  }

  #spill(linkId: number): void {
    const own = this.#own
    const spilled = Atomics.load(own, SPILLED)
    const oldest = (spilled - SPILL_ENTRIES) | 0
    while (Atomics.load(own, COLLECTED) === oldest) Atomics.wait(own, COLLECTED, oldest)
    own[SPILL + (spilled & (SPILL_ENTRIES - 1))] = linkId
    Atomics.store(own, SPILLED, (spilled + 1) | 0)
  }
}
