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

interface FairQueueOptions extends Pace {
  /** Jobs in the queue at once, the running one included. */
  places: number
  /** The error of a job that has no place. */
  full: () => Error
  /** Default: the machine's own. */
  time?: Time | undefined
}

interface Job {
  admit: () => void
  work: () => Promise<unknown>
  resolve: (result: unknown) => void
  reject: (error: unknown) => void
}

const MACHINE_TIME: Time = { monotonic: monotonicClock, rest: Bun.sleep }

/**
 * Runs jobs one after another and no faster than its pace. Keys are served in turn (round-robin),
 * the jobs of one key in the order they came. When all places are taken, a new job displaces the
 * latest one of the key that has the most: so a key alone can use every place, and no key can keep
 * another out.
 */
export class FairQueue {
  readonly #options: FairQueueOptions
  /** Waiting jobs; the first key is served next. */
  readonly #waiting = new Map<string, Job[]>()
  #size = 0
  #isRunning = false
  /** The time up to which the jobs so far reach at the pace. */
  #reach = 0
  #isClosed = false

  constructor(options: FairQueueOptions) {
    this.#options = options
  }

  /**
   * Returns what the job returns, or throws what it throws, or the error of a full queue. `admit`
   * runs when the job is next, and may refuse it by throwing: then it takes no time of the pace.
   */
  run<Result>(key: string, work: () => Promise<Result>, admit = () => {}): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const own = this.#waiting.get(key) ?? []
    if (this.#size >= this.#options.places && !this.#displace(own.length + 1)) {
      reject(this.#options.full())
    } else {
      own.push({ admit, work, resolve, reject })
      this.#waiting.set(key, own)
      this.#size++
      if (!this.#isRunning) void this.#serve()
    }
    return promise as Promise<Result>
  }

  /** Jobs that still wait no longer wait for the pace. */
  close(): void {
    this.#isClosed = true
  }

  /** Makes room if a key has more than `most` waiting jobs. */
  #displace(most: number): boolean {
    let longest: Job[] = []
    for (const jobs of this.#waiting.values()) if (jobs.length > longest.length) longest = jobs
    if (longest.length <= most) return false
    longest.pop()?.reject(this.#options.full())
    this.#size--
    return true
  }

  async #serve(): Promise<void> {
    this.#isRunning = true
    for (let job = this.#next(); job; job = this.#next()) {
      try {
        job.admit()
        await this.#pace()
        job.resolve(await job.work())
      } catch (error) {
        job.reject(error)
      }
      this.#size--
    }
    this.#isRunning = false
  }

  /** Takes the first job of the first key, which goes to the end. */
  #next(): Job | undefined {
    for (const [key, jobs] of this.#waiting) {
      const job = jobs.shift()
      this.#waiting.delete(key)
      if (jobs.length > 0) this.#waiting.set(key, jobs)
      return job
    }
    return undefined
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
