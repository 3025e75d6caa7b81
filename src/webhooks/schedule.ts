import { DAY, HOUR, MINUTE, SECOND } from '../lib/clock.ts'

/** When a delivery is tried again, and when a webhook is given up: pure functions. */

/** From a failed attempt to the next one: the example of Standard Webhooks. */
const DELAYS_MS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
]
export const ATTEMPTS_MAX = DELAYS_MS.length + 1
/** Each delay varies by up to this share of itself, in both directions. */
const JITTER = 0.2
const RETRY_AFTER_MAX_MS = DAY

/** A webhook without a success for this time is disabled. */
export const FAILING_MAX_MS = 5 * DAY

/** Statuses with which `Retry-After` counts. */
const ASKS_TO_WAIT = [429, 503]

interface FailedAttempt {
  /** From 1. */
  attempt: number
  now: number
  status: number | null
  /** The header as it was sent. */
  retryAfter?: string | undefined
  /** From 0 to 1. */
  random: number
}

/** When the next attempt is due, as epoch ms; null if that was the last one. */
export function nextAttemptAt(failed: FailedAttempt): number | null {
  const { attempt, now, status, retryAfter, random } = failed
  const delay = DELAYS_MS[attempt - 1]
  if (delay === undefined) return null
  const varied = delay * (1 - JITTER + 2 * JITTER * random)
  const asked = ASKS_TO_WAIT.includes(status ?? 0) ? waitOf(retryAfter, now) : 0
  return Math.round(now + Math.max(varied, Math.min(asked, RETRY_AFTER_MAX_MS)))
}

/** Milliseconds of a `Retry-After`: seconds, or a date. 0 for any other text. */
function waitOf(text: string | undefined, now: number): number {
  if (text === undefined) return 0
  if (/^\d{1,9}$/.test(text)) return Number(text) * SECOND
  const until = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(until) ? 0 : Math.max(0, until - now)
}
