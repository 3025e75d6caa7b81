import type { Outcome } from '../lib/thread.ts'
import type { LoggedCall } from './entries.ts'
import type { LogSize, OtherHost } from './log.ts'

/** Messages from the writer thread of a host in a cluster to the control thread. */

/** Calls of other hosts, applied up to `seq`, without those that failed. */
export interface AppliedEvent {
  /** Absent where no client waits for the calls. */
  seq?: number
  calls: { name: string; value: unknown }[]
}

/** Calls that no client waits for: they are confirmed with the next report. */
const UNAWAITED_CALLS = new Set([
  'addHits',
  'touchSession',
  'noteKeyUses',
  'pruneBuckets',
  'probeWrites',
  'hashRows',
])

/** The calls of an entry of another host, as the control thread needs them. */
export const awaitedCalls = (
  calls: readonly LoggedCall[],
  outcomes: readonly Outcome[],
): AppliedEvent['calls'] =>
  calls.flatMap(({ name }, at) => {
    const outcome = outcomes[at]
    if (!outcome || 'error' in outcome || UNAWAITED_CALLS.has(name)) return []
    return { name, value: outcome.value }
  })

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
  /** Comparisons of all rows with those of the other hosts that have ended since the start. */
  comparisons: number
  /** As of the last minute; undefined before. */
  log: LogSize | undefined
}

/** The control thread's answer to an AppliedEvent: its effects are applied. */
export interface SeenMessage {
  seen: number
}
