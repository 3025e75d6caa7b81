import { MINUTE, type MonotonicClock } from './clock.ts'
import type { Log } from './log.ts'

/** Events that clients can cause without limit, and the maximum lines per minute of each. */
const LINES_PER_MINUTE: Readonly<Record<string, number>> = {
  'destination.own_host': 30,
  'session.refused': 30,
  'throttle.engaged': 30,
  'request.failed': 100,
}

interface LimitedLog extends Log {
  /** Logs how many lines were suppressed since the last line of their event. */
  close(): void
}

/**
 * A log that a flood of requests cannot fill. Lines of an event beyond its limit are only counted;
 * the next line of the event has the count in `suppressed`.
 */
export function limitLines(log: Log, monotonic: MonotonicClock): LimitedLog {
  /** By event: when its minute began, and its lines since. */
  const minutes = new Map<string, { startedAt: number; lines: number }>()
  const maxOf = (event: string): number => LINES_PER_MINUTE[event] ?? Number.POSITIVE_INFINITY
  const suppressedIn = (event: string): number =>
    Math.max(0, (minutes.get(event)?.lines ?? 0) - maxOf(event))

  /** Number of lines suppressed before this one; undefined if this one is suppressed as well. */
  const admit = (event: string): number | undefined => {
    const max = maxOf(event)
    if (max === Number.POSITIVE_INFINITY) return 0
    const now = monotonic()
    const minute = minutes.get(event)
    if (minute && now - minute.startedAt < MINUTE) return ++minute.lines <= max ? 0 : undefined
    const suppressed = suppressedIn(event)
    minutes.set(event, { startedAt: now, lines: 1 })
    return suppressed
  }

  const limited =
    (write: Log['error']): Log['error'] =>
    (event, fields, cause) => {
      const suppressed = admit(event)
      if (suppressed === undefined) return
      write(event, suppressed > 0 ? { ...fields, suppressed } : fields, cause)
    }

  return {
    debug: log.debug,
    info: limited(log.info),
    warn: limited(log.warn),
    error: limited(log.error),
    close() {
      for (const event of minutes.keys()) {
        const suppressed = suppressedIn(event)
        if (suppressed > 0) log.warn(event, { suppressed })
      }
      minutes.clear()
    },
  }
}
