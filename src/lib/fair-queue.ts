import { type MonotonicClock, monotonicClock } from './clock.ts'
import { type Rate, RateGate } from './rate-gate.ts'

/** Clock and timer of a queue. */
export interface Time {
  monotonic: MonotonicClock
  /** Resolves after this many milliseconds. */
  sleep: (ms: number) => Promise<void>
}

/** An account's id, or the address or network of an anonymous client. */
type Key = number | string

export interface Share {
  /** Keys of one group get together what one key of another group gets. Default: the key alone. */
  group?: Key | undefined
  /** Time that the job takes, in the unit of the queue. Default: 1. */
  cost?: number
}

/** `burst`, `everyMs`: the rate at which jobs begin, by their cost. Default: none. */
interface FairQueueOptions extends Partial<Rate> {
  /** Jobs that run at the same time; `keys`: one of each key. Default: 1. */
  atOnce?: number | 'keys'
  /** No job begins while the running ones cost as much. Default: none. */
  costAtOnce?: number
  /** Maximum cost of all jobs in the queue, including the running ones. Default: none. */
  jobsMax?: number
  /** Creates the error of a job for which the queue is full. */
  full?: () => Error
  /** Default: the machine's clock. */
  time?: Time | undefined
}

interface Job {
  key: Key
  cost: number
  admit: () => void
  work: () => Promise<unknown>
  resolve: (result: unknown) => void
  reject: (error: unknown) => void
}

/** Keys with waiting jobs, and the cost of these jobs. */
interface Group {
  key: Key
  keys: number
  cost: number
}

/** The waiting jobs of a key: at least one. */
interface Line {
  key: Key
  group: Group
  jobs: Job[]
  cost: number
  /** Virtual time at which the first job would end if all groups shared the queue equally. */
  end: number
}

/** The key of the rate, which all jobs share. */
const ALL_JOBS = ''
const MACHINE_TIME: Time = { monotonic: monotonicClock, sleep: Bun.sleep }

/**
 * Runs jobs one after another, or a few at once, no faster than its rate if it has one. Groups of
 * keys share its time equally, and so do the keys of a group: self-clocked fair queueing (Golestani
 * 1994). Jobs of equal cost are thus served round-robin, and a short job waits for no long one
 * that has not begun. Jobs of one key run in order of arrival. When the queue is full, a new job
 * displaces the last job of the group, and of the key in it, with the most waiting: so one key can
 * use the whole queue, and none can exclude another.
 */
export class FairQueue {
  readonly #options: FairQueueOptions
  readonly #rate: RateGate
  /** In the order of their last job that has begun. */
  readonly #waiting = new Map<Key, Line>()
  readonly #groups = new Map<Key, Group>()
  /** Virtual time: the end of the last job that has begun. */
  #now = 0
  /** Cost of all jobs, including the running ones. */
  #cost = 0
  #running = 0
  #runningCost = 0
  /** Keys with a running job, if one of each may run. */
  readonly #busy = new Set<Key>()
  #isClosed = false

  constructor(options: FairQueueOptions) {
    this.#options = options
    const { burst = 1, everyMs = 0, time = MACHINE_TIME } = options
    this.#rate = new RateGate({ burst, everyMs }, time.monotonic)
  }

  /**
   * Returns the job's result. Throws the job's error, or `full()`. `admit` runs when the job is
   * next; if it throws, the job is refused and does not count for the rate.
   */
  run<Result>(
    key: Key,
    work: () => Promise<Result>,
    admit = () => {},
    { group: groupKey = key, cost = 1 }: Share = {},
  ): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const group = this.#groups.get(groupKey) ?? { key: groupKey, keys: 0, cost: 0 }
    const line = this.#waiting.get(key) ?? { key, group, jobs: [], cost: 0, end: 0 }
    if (!this.#makeRoom(cost, line)) reject(this.#options.full?.())
    else {
      line.jobs.push({ key, cost, admit, work, resolve, reject })
      this.#add(line, cost)
      this.#cost += cost
      this.#serve()
    }
    return promise as Promise<Result>
  }

  /** From now on, jobs run without the rate. */
  close(): void {
    this.#isClosed = true
  }

  /** Refuses jobs of those with the most until the new one fits. False if that is its own line. */
  #makeRoom(cost: number, own: Line): boolean {
    const { jobsMax = Number.POSITIVE_INFINITY } = this.#options
    while (this.#cost > 0 && this.#cost + cost > jobsMax) {
      const group = largest(this.#groups.values())
      const line = largest(this.#waiting.values().filter((one) => one.group === group))
      const [most, ours] = group === own.group ? [line, own] : [group, own.group]
      if (!line || !most || most.cost <= ours.cost + cost) return false
      const job = line.jobs.pop() as Job
      this.#remove(line, job.cost)
      this.#cost -= job.cost
      job.reject(this.#options.full?.())
    }
    return true
  }

  /** Begins the jobs that may run now. */
  #serve(): void {
    const { atOnce = 1, costAtOnce = Number.POSITIVE_INFINITY } = this.#options
    const most = atOnce === 'keys' ? Number.POSITIVE_INFINITY : atOnce
    while (this.#running < most && this.#runningCost < costAtOnce) {
      const job = this.#next()
      if (!job) return
      this.#running++
      this.#runningCost += job.cost
      void this.#begin(job).then(() => this.#serve())
    }
  }

  async #begin(job: Job): Promise<void> {
    try {
      job.admit()
      const waitMs = this.#rate.waitMs(ALL_JOBS, job.cost)
      this.#rate.count(ALL_JOBS, job.cost)
      if (waitMs > 0 && !this.#isClosed) await (this.#options.time ?? MACHINE_TIME).sleep(waitMs)
      job.resolve(await job.work())
    } catch (error) {
      job.reject(error)
    }
    this.#busy.delete(job.key)
    this.#cost -= job.cost
    this.#running--
    this.#runningCost -= job.cost
  }

  /** Removes the job that ends first in virtual time; of several, that of the key served before. */
  #next(): Job | undefined {
    let line: Line | undefined
    for (const other of this.#waiting.values()) {
      if (!this.#busy.has(other.key) && (!line || other.end < line.end)) line = other
    }
    const job = line?.jobs.shift()
    if (!line || !job) return undefined
    if (this.#options.atOnce === 'keys') this.#busy.add(job.key)
    this.#now = line.end
    this.#remove(line, job.cost)
    const [next] = line.jobs
    if (next) {
      this.#waiting.delete(line.key)
      this.#waiting.set(line.key, line)
      line.end = this.#now + next.cost * line.group.keys
    }
    return job
  }

  /** The line has one more job. The more keys a group has, the later their jobs end. */
  #add(line: Line, cost: number): void {
    const { key, group, jobs } = line
    line.cost += cost
    group.cost += cost
    if (jobs.length > 1) return
    this.#waiting.set(key, line)
    this.#groups.set(group.key, group)
    line.end = this.#now + cost * ++group.keys
  }

  /** The line has one job less. */
  #remove(line: Line, cost: number): void {
    const { key, group, jobs } = line
    line.cost -= cost
    group.cost -= cost
    if (jobs.length > 0) return
    this.#waiting.delete(key)
    if (--group.keys === 0) this.#groups.delete(group.key)
  }
}

/** The first of those with the highest cost. */
function largest<Item extends { cost: number }>(items: Iterable<Item>): Item | undefined {
  let found: Item | undefined
  for (const item of items) if (!found || item.cost > found.cost) found = item
  return found
}
