/** Wall-clock time, epoch milliseconds: what is stored, shown and compared with dates. */
export type Clock = () => number

/** Milliseconds from an arbitrary start that never go backwards: what the limiter measures with. */
export type MonotonicClock = () => number

export const wallClock: Clock = Date.now
export const monotonicClock: MonotonicClock = () => performance.now()

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE

export const isoTime = (epochMs: number): string => new Date(epochMs).toISOString()
