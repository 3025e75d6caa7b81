import { type MonotonicClock, monotonicClock } from './clock.ts'

export interface Pace {
  /** Jobs that may start without a pause. */
  burst: number
  /** Beyond the burst, the minimum time between the starts of two jobs. */
  everyMs: number
}

/** Clock and timer of a queue. */
export interface Time {
  monotonic: MonotonicClock
  /** Resolves after this many milliseconds. */
  sleep: (ms: number) => Promise<void>
}

/** An account's id, or the network of an anonymous client. */
type Key = number | string

interface FairQueueOptions extends Partial<Pace> {
  /** Jobs that run at the same time. Default: 1. */
  atOnce?: number
  /** Maximum number of jobs in the queue, including the running ones. */
  jobsMax: number
  /** Creates the error of a job for which the queue is full. */
  full: () => Error
  /** Default: the machine's clock. */
  time?: Time | undefined
}

interface Job {
  admit: () => void
  work: () => Promise<unknown>
  resolve: (result: unknown) => void
  reject: (error: unknown) => void
}

const MACHINE_TIME: Time = { monotonic: monotonicClock, sleep: Bun.sleep }

/**
 * Runs jobs one after another, or a few at once, no faster than its pace if it has one. Keys are
 * served round-robin, the jobs of one key in order of arrival. When the queue is full, a new job
 * displaces the last job of the key with the most jobs: so one key can use the whole queue, and
 * none can exclude another.
 */
export class FairQueue {
  readonly #options: FairQueueOptions
  /** Waiting jobs by key; the first key is served next. */
  readonly #waiting = new Map<Key, Job[]>()
  #size = 0
  #running = 0
  /** When the jobs so far would end if each took `everyMs`: the theoretical arrival time. */
  #reach = 0
  #isClosed = false

  constructor(options: FairQueueOptions) {
    this.#options = options
  }

  /**
   * Returns the job's result. Throws the job's error, or `full()`. `admit` runs when the job is
   * next; if it throws, the job is refused and does not count for the pace.
   */
  run<Result>(key: Key, work: () => Promise<Result>, admit = () => {}): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const own = this.#waiting.get(key) ?? []
    if (this.#size >= this.#options.jobsMax && !this.#displace(own.length + 1)) {
      reject(this.#options.full())
    } else {
      own.push({ admit, work, resolve, reject })
      this.#waiting.set(key, own)
      this.#size++
      if (this.#running < (this.#options.atOnce ?? 1)) void this.#serve()
    }
    return promise as Promise<Result>
  }

  /** From now on, jobs run without the pace. */
  close(): void {
    this.#isClosed = true
  }

  /** Refuses one job of the key with the most jobs. False if it has at most `most`. */
  #displace(most: number): boolean {
    let longest: Job[] = []
    for (const jobs of this.#waiting.values()) if (jobs.length > longest.length) longest = jobs
    if (longest.length <= most) return false
    longest.pop()?.reject(this.#options.full())
    this.#size--
    return true
  }

  async #serve(): Promise<void> {
    this.#running++
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
    this.#running--
  }

  /** Removes the first job of the first key, and moves the key to the end. */
  #next(): Job | undefined {
    for (const [key, jobs] of this.#waiting) {
      const job = jobs.shift()
      this.#waiting.delete(key)
      if (jobs.length > 0) this.#waiting.set(key, jobs)
      return job
    }
    return undefined
  }

  /** The generic cell rate algorithm (ITU-T I.371), which waits instead of refusing. */
  async #pace(): Promise<void> {
    const { burst = 1, everyMs = 0, time = MACHINE_TIME } = this.#options
    const now = time.monotonic()
    this.#reach = Math.max(this.#reach, now) + everyMs
    const waitMs = this.#reach - burst * everyMs - now
    if (waitMs > 0 && !this.#isClosed) await time.sleep(waitMs)
  }
}
