import { LEASE_MS } from './log.ts'

/** A host that lacks entries for longer gets no requests. */
const OLD_MS = 5000

export const NOT_CURRENT = 'this host is still reading the log of the cluster'

/**
 * Whether a host has the newest data. Two limits, so that a host on a slow connection does not
 * become ready for a moment again and again.
 */
export class Progress {
  /** An end of the log that this host has not reached yet, and when it was the end. */
  #goal: { seq: number; at: number } | undefined
  #isCurrent = false

  get isCurrent(): boolean {
    return this.#isCurrent
  }

  /** The log ended with the entry `head` at the time `at`. */
  see(head: number, at: number): void {
    this.#goal ??= { seq: head, at }
  }

  /** The host has applied the entries up to `seq`. */
  reach(seq: number, now: number): void {
    if (!this.#goal) return
    const ageMs = now - this.#goal.at
    if (seq < this.#goal.seq) {
      if (ageMs > OLD_MS) this.#isCurrent = false
      return
    }
    this.#goal = undefined
    if (ageMs < LEASE_MS) this.#isCurrent = true
  }
}
