/** Wall-clock time in epoch milliseconds: for times that are stored or shown. */
export type Clock = () => number

/** Milliseconds from an arbitrary start that never go backwards: for durations and limits. */
export type MonotonicClock = () => number

export const wallClock: Clock = Date.now
export const monotonicClock: MonotonicClock = () => performance.now()

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE

export const isoTime = (epochMs: number): string => new Date(epochMs).toISOString()
