import { Histogram } from '../lib/histogram.ts'

const INTERVAL_MS = 20

/**
 * How late a timer of the HTTP thread fires: for that long, no request was served. A stall shows in
 * every timer that it holds up once, as one long delay.
 */
export class EventLoopDelay {
  readonly seconds = new Histogram([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5])
  readonly #timer: Timer
  #expected: number

  constructor() {
    this.#expected = performance.now() + INTERVAL_MS
    this.#timer = setInterval(() => this.#look(), INTERVAL_MS)
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const now = performance.now()
    this.seconds.observe(Math.max(0, now - this.#expected) / 1000)
    this.#expected = now + INTERVAL_MS
  }
}
