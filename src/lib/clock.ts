import { cFunction } from './c-library.ts'

/** Wall-clock time in epoch milliseconds: for times that are stored or shown. */
export type Clock = () => number

/** Milliseconds from an arbitrary start that never go backwards: for durations and limits. */
export type MonotonicClock = () => number

export const wallClock: Clock = Date.now
export const monotonicClock: MonotonicClock = () => performance.now()

export interface Clocks {
  clock: Clock
  monotonic: MonotonicClock
}

/** The machine's clocks, or those that a test sets: two numbers in memory that threads share. */
export function clocksIn(memory: SharedArrayBuffer | undefined): Clocks {
  if (memory === undefined) return { clock: wallClock, monotonic: sharedMonotonicClock() }
  const times = new Float64Array(memory)
  return { clock: () => times[0] as number, monotonic: () => times[1] as number }
}

const CLOCK_MONOTONIC = 1

/**
 * A clock that is the same in all threads of the process, as `monotonicClock` is not: that one
 * starts at 0 in each. On systems other than Linux, it is the same as long as the wall clock is not
 * changed between the starts of two threads.
 */
export function sharedMonotonicClock(): MonotonicClock {
  const signature = { args: ['i32', 'ptr'], returns: 'i32' } as const
  const readClock = cFunction<(clock: number, time: Int32Array) => number>(
    'clock_gettime',
    signature,
  )
  if (!readClock) return () => performance.timeOrigin + performance.now()
  // Seconds and nanoseconds, of which the lower halves are enough.
  const time = new Int32Array(new ArrayBuffer(16))
  readClock(CLOCK_MONOTONIC, time)
  const now = (time[0] as number) * 1000 + (time[2] as number) / 1e6
  // Both clocks run equally fast.
  const origin = now - performance.now()
  return () => origin + performance.now()
}

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export const isoTime = (epochMs: number): string => new Date(epochMs).toISOString()

const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?$/

/**
 * Epoch milliseconds of an ISO 8601 date or time; a date alone begins in UTC, a time without a zone
 * is local. Undefined for other texts, and for a day that does not exist: `Date.parse` reads
 * 30 February as 2 March.
 */
export function parseIsoTime(text: string): number | undefined {
  const day = ISO_TIME.exec(text)?.[1]
  const time = day === undefined ? Number.NaN : Date.parse(text)
  if (day === undefined || Number.isNaN(time)) return undefined
  return isoTime(Date.parse(day)).startsWith(day) ? time : undefined
}

/** `zone`: IANA name. */
export const zonedTime = (epochMs: number, zone: string): Temporal.ZonedDateTime =>
  Temporal.Instant.fromEpochMilliseconds(epochMs).toZonedDateTimeISO(zone)

/** For names of files: ISO 8601's basic form suits all file systems. */
export const fileTime = (epochMs: number): string => isoTime(epochMs).replace(/[:-]/g, '')
