import type { LogSize, OtherHost } from './log.ts'

/** Messages from the writer thread of a host in a cluster to the control thread. */

/** Calls of other hosts, applied up to `seq`, without those that failed. */
export interface AppliedEvent {
  /** Absent where no client waits for the calls. */
  seq?: number
  calls: { name: string; value: unknown }[]
}

export interface StateEvent {
  /** Milliseconds since PostgreSQL answered. */
  contactMs: number
  /** Why the last report failed; undefined if it did not. */
  contactProblem: string | undefined
  /** The last known entry of the log. */
  head: number
  /** The last entry that this host has applied. */
  applied: number
  /** The other hosts. */
  hosts: OtherHost[]
  /** Why this host does not have the newest data; undefined if it has. */
  behind: string | undefined
  /** Why this host applies no entries. */
  problem: string | undefined
  /** Number of digests that were equal to those of the other hosts. */
  digestsEqual: number
  /** As of the last minute; undefined before. */
  log: LogSize | undefined
}

/** The control thread's answer to an AppliedEvent: its effects are applied. */
export interface SeenMessage {
  seen: number
}
