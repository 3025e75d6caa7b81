import { MINUTE, type MonotonicClock } from './clock.ts'
import type { Log } from './log.ts'

/** Events that clients can cause without limit, and the maximum lines per minute of each. */
const LINES_PER_MINUTE: Readonly<Record<string, number>> = {
  'session.refused': 30,
  'throttle.engaged': 30,
  'request.failed': 100,
}

interface Minute {
  startedAt: number
  lines: number
  suppressed: number
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
  const minutes = new Map<string, Minute>()

  /** Number of lines suppressed before this one; undefined if this one is suppressed as well. */
  const admit = (event: string): number | undefined => {
    const max = LINES_PER_MINUTE[event]
    if (max === undefined) return 0
    const now = monotonic()
    const minute = minutes.get(event)
    if (!minute || now - minute.startedAt >= MINUTE) {
      minutes.set(event, { startedAt: now, lines: 1, suppressed: 0 })
      return minute?.suppressed ?? 0
    }
    if (minute.lines < max) {
      minute.lines++
      return 0
    }
    minute.suppressed++
    return undefined
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
    info: log.info,
    warn: limited(log.warn),
    error: limited(log.error),
    close() {
      for (const [event, { suppressed }] of minutes) {
        if (suppressed > 0) log.warn(event, { suppressed })
      }
      minutes.clear()
    },
  }
}
