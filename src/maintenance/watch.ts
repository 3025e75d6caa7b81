import { isoTime, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

interface MaintenanceLogOptions {
  mode: { until(): number | undefined }
  log: Log
  /** How often the mode is looked at. */
  intervalMs?: number
}

/** Says in the log when maintenance begins, changes its end, and ends. */
export class MaintenanceLog {
  readonly #options: MaintenanceLogOptions
  readonly #timer: Timer
  #until: number | undefined

  constructor(options: MaintenanceLogOptions) {
    this.#options = options
    this.look()
    this.#timer = setInterval(() => this.look(), options.intervalMs ?? SECOND)
    this.#timer.unref()
  }

  /** What happens at every interval. */
  look(): void {
    const { mode, log } = this.#options
    let until: number | undefined
    try {
      until = mode.until()
    } catch {
      // Whoever needs the database now reports it; the next look asks again.
      return
    }
    if (until === this.#until) return
    this.#until = until
    if (until === undefined) log.info('maintenance.off')
    else log.info('maintenance.on', { until: isoTime(until) })
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
