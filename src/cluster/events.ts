import type { LogSize, OtherHost } from './log.ts'

/** Messages from the writer thread of a host in a cluster to the control thread. */

/** Calls of other hosts, applied up to `seq`. */
export interface AppliedEvent {
  seq: number
  /** `value` is absent for a call that failed. */
  calls: { name: string; value?: unknown }[]
}

export interface StateEvent {
  /** Milliseconds since PostgreSQL answered. */
  contactMs: number
  /** The last known entry of the log. */
  head: number
  /** The last entry that this host has applied. */
  applied: number
  hosts: OtherHost[]
  /** Why this host makes no changes; undefined while it has the newest data. */
  problem: string | undefined
  /** Comparisons of all rows with those of the other hosts that have ended since the start. */
  comparisons: number
  /** Size of the log, measured once a minute; undefined before. */
  log: LogSize | undefined
}

/** The control thread's answer to an AppliedEvent: its readers of events know it. */
export interface SeenMessage {
  seen: number
}
