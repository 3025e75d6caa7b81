import { type MonotonicClock, monotonicClock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

/** A longer call hangs: no call of the service needs a tenth of it on a working disk. */
const HANGING_MS = 5 * SECOND
const INTERVAL_MS = 500
/** A longer gap between two checks means that this thread, or the whole process, was stopped. */
const GAP_MAX_MS = 2 * SECOND

interface ThreadWatchOptions {
  /** Threads by name. */
  threads: Readonly<Record<string, { readonly batchMs: number }>>
  log: Log
  monotonic?: MonotonicClock
}

/**
 * Reports threads that hang, for example in a write to a disk that does not respond. The state is
 * computed when it is read, so it ends with the thread's answer. The timer only writes the log.
 */
export class ThreadWatch {
  readonly #options: Required<ThreadWatchOptions>
  readonly #timer = setInterval(() => this.check(), INTERVAL_MS).unref()
  /** Threads that the log reports as hanging, with the longest time seen. */
  readonly #logged = new Map<string, number>()
  #checkedAt: number
  /** Since when this thread has run without a gap, so that it could have received an answer. */
  #runningSince: number

  constructor(options: ThreadWatchOptions) {
    this.#options = { monotonic: monotonicClock, ...options }
    this.#checkedAt = this.#options.monotonic()
    this.#runningSince = this.#checkedAt
  }

  /** The name of the first thread that hangs. */
  get hangingThread(): string | undefined {
    return Object.keys(this.#options.threads).find((name) => this.isHanging(name))
  }

  isHanging(name: string): boolean {
    const runningMs = this.#runningMs()
    return Math.min(this.#options.threads[name]?.batchMs ?? 0, runningMs) > HANGING_MS
  }

  /** Logs each thread that begins to hang, and each that answers again. */
  check(): void {
    const { threads, log } = this.#options
    for (const [thread, { batchMs }] of Object.entries(threads)) {
      const loggedMs = this.#logged.get(thread)
      if (this.isHanging(thread)) {
        const ms = Math.round(batchMs)
        if (loggedMs === undefined) log.error('thread.hanging', { thread, ms })
        this.#logged.set(thread, ms)
      } else if (loggedMs !== undefined) {
        this.#logged.delete(thread)
        log.info('thread.recovered', { thread, hung_ms: loggedMs })
      }
    }
  }

  close(): void {
    this.check()
    clearInterval(this.#timer)
  }

  #runningMs(): number {
    const now = this.#options.monotonic()
    if (now - this.#checkedAt > GAP_MAX_MS) this.#runningSince = now
    this.#checkedAt = now
    return now - this.#runningSince
  }
}
