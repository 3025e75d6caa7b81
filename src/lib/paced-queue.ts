import { type MonotonicClock, monotonicClock } from './clock.ts'

export interface Pace {
  /** Jobs that may follow one another at once. */
  burst: number
  /** Beyond those, a job begins so long after the one before it. */
  everyMs: number
}

/** How a queue tells and spends time. */
export interface Time {
  monotonic: MonotonicClock
  /** Resolves so many milliseconds later. */
  rest: (ms: number) => Promise<void>
}

interface PacedQueueOptions extends Pace {
  /** Jobs in the queue at once, the one at work too. */
  places: number
  /** Default: the machine's own. */
  time?: Time | undefined
}

const MACHINE_TIME: Time = { monotonic: monotonicClock, rest: Bun.sleep }

/** Runs jobs one after another, in the order they came, and no faster than its pace. */
export class PacedQueue {
  readonly #options: PacedQueueOptions
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  /** The time up to which the jobs so far reach at the pace. */
  #reach = 0
  #isClosed = false

  constructor(options: PacedQueueOptions) {
    this.#options = options
  }

  get isFull(): boolean {
    return this.#waiting >= this.#options.places
  }

  /**
   * Gives what the job gives, or throws what it throws. `admit` runs when the turn has come, and
   * may refuse the job by throwing: then it costs nobody any time. The queue must not be full.
   */
  async run<Result>(job: () => Promise<Result>, admit = () => {}): Promise<Result> {
    this.#waiting++
    const turn = this.#last.then(async () => {
      admit()
      await this.#pace()
      return job()
    })
    this.#last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      this.#waiting--
    }
  }

  /** Who waits from now on waits for no pace. */
  close(): void {
    this.#isClosed = true
  }

  /** As in the generic cell rate algorithm (ITU-T I.371), but waiting where that refuses. */
  async #pace(): Promise<void> {
    const { burst, everyMs, time = MACHINE_TIME } = this.#options
    const now = time.monotonic()
    this.#reach = Math.max(this.#reach, now) + everyMs
    const waitMs = this.#reach - burst * everyMs - now
    if (waitMs > 0 && !this.#isClosed) await time.rest(waitMs)
  }
}
