import type { Operations } from '../db/subject.ts'
import type { Log } from '../lib/log.ts'
import { type Caller, messageOf } from '../lib/thread.ts'
import type { CollectorFunctions, CollectorState } from './collector.ts'
import type { AddVisits, visits } from './store.ts'

const CHECK_MS = 1000
/** How often the details are written: after a kill, at most those of this time are missing. */
const FLUSH_MS = 10_000

interface VisitFlusherOptions {
  collector: Caller<CollectorFunctions>
  data: { visits: Pick<Operations<typeof visits>, 'add'> }
  /** The id of this host in a cluster; empty for a host alone. */
  host: string
  log: Log
  /** How often the details are written. */
  flushMs?: number | undefined
}

/** Moves details of redirects from their thread to the database. Runs on the control thread. */
export class VisitFlusher {
  /** State of the thread that collects; undefined until it has answered. */
  state: CollectorState | undefined
  readonly #options: VisitFlusherOptions
  /** What the disk or the cluster has refused so far: it is sent again as the same batch. */
  #waiting: AddVisits[] = []
  #flushedAt = performance.now()
  #timer: Timer | undefined
  #running: Promise<void> = Promise.resolve()
  #countryProblem: string | undefined
  #isFailing = false
  #isClosed = false
  readonly #flushMs: number

  constructor(options: VisitFlusherOptions) {
    this.#options = options
    this.#flushMs = options.flushMs ?? FLUSH_MS
    this.#schedule()
  }

  /** Writes what was recorded before. Details that cannot be written are lost; no hit is. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#running
    await this.#write(true).catch(() => {})
  }

  /** Throws if the disk or the cluster refuses. */
  async #write(isDue: boolean): Promise<void> {
    await this.#send()
    const { collector, host } = this.#options
    const { batches, state } = await collector.call('takeVisits', { isDue })
    this.state = state
    this.#waiting = batches.map((batch) => ({ ...batch, host, batch: crypto.randomUUID() }))
    await this.#send()
    if (isDue) this.#flushedAt = performance.now()
  }

  async #send(): Promise<void> {
    const { data, log } = this.#options
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const { damaged } = await data.visits.add(next, { background: true })
      this.#waiting.shift()
      if (damaged > 0) log.warn('visits.rows_replaced', { rows: damaged, reason: 'damaged' })
    }
  }

  #schedule(): void {
    if (this.#isClosed) return
    const delay = Math.min(CHECK_MS, this.#flushMs)
    this.#timer = setTimeout(() => {
      this.#running = this.#check().then(() => this.#schedule())
    }, delay)
  }

  async #check(): Promise<void> {
    const { log } = this.#options
    const isDue = performance.now() - this.#flushedAt >= this.#flushMs
    try {
      await this.#write(isDue)
      if (this.#isFailing) log.info('visits.flush_recovered')
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) log.warn('visits.flush_failed', { reason: messageOf(error) })
      this.#isFailing = true
    }
    const problem = this.state?.countryProblem
    if (problem !== this.#countryProblem) {
      if (problem) log.warn('visits.country_file', { reason: problem })
      else log.info('visits.country_file_recovered')
      this.#countryProblem = problem
    }
  }
}
