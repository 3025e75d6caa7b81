interface Job {
  keys: readonly string[]
  start: () => Promise<void>
  reject: (error: Error) => void
}

/** Keys whose last job is remembered. */
const SERVED_MAX = 1000

/**
 * Starts jobs one after another that have several keys each, such as a network and a link. The next
 * job is the one whose keys were all served the longest time ago: many networks that ask about one
 * link delay no other link, and one network that asks about many links delays no other network.
 */
export class Rotation {
  readonly #options: { jobsMax: number; full: () => Error }
  readonly #waiting: Job[] = []
  readonly #servedAt = new Map<string, number>()
  #served = 0
  #isServing = false

  /** `full`: creates the error of a job for which there is no room. */
  constructor(options: { jobsMax: number; full: () => Error }) {
    this.#options = options
  }

  /** Returns the job's result. Throws the job's error, or `full()`. */
  run<Result>(keys: readonly string[], work: () => Promise<Result>): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    if (this.#waiting.length >= this.#options.jobsMax && !this.#displace(keys)) {
      reject(this.#options.full())
      return promise
    }
    this.#waiting.push({ keys, start: () => work().then(resolve, reject), reject })
    void this.#serve()
    return promise
  }

  async #serve(): Promise<void> {
    if (this.#isServing) return
    this.#isServing = true
    for (let job = this.#next(); job; job = this.#next()) await job.start()
    this.#isServing = false
  }

  /** Refuses the last job of the key with the most jobs. False if one of `own` has as many. */
  #displace(own: readonly string[]): boolean {
    const counts = new Map(own.map((key) => [key, 1]))
    for (const key of this.#waiting.flatMap(({ keys }) => keys)) {
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
    const most = Math.max(...counts.values())
    if (own.some((key) => counts.get(key) === most)) return false
    const at = this.#waiting.findLastIndex(({ keys }) =>
      keys.some((key) => counts.get(key) === most),
    )
    for (const { reject } of this.#waiting.splice(at, 1)) reject(this.#options.full())
    return true
  }

  #next(): Job | undefined {
    const timesOf = ({ keys }: Job) =>
      keys.map((key) => this.#servedAt.get(key) ?? 0).sort((one, other) => other - one)
    const isSooner = (one: number[], other: number[]) => {
      const at = one.findIndex((time, i) => time !== other[i])
      return at >= 0 && (one[at] ?? 0) < (other[at] ?? 0)
    }
    let next: { at: number; times: number[] } | undefined
    for (const [at, job] of this.#waiting.entries()) {
      const times = timesOf(job)
      if (!next || isSooner(times, next.times)) next = { at, times }
    }
    const [job] = next ? this.#waiting.splice(next.at, 1) : []
    if (this.#servedAt.size > SERVED_MAX) this.#servedAt.clear()
    this.#served++
    for (const key of job?.keys ?? []) this.#servedAt.set(key, this.#served)
    return job
  }
}
