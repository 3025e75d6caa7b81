import { setThreadPriority } from '../../src/lib/priority.ts'
import { Histogram, type HistogramJson } from './histogram.ts'
import { answerAsProcess, type OwnProcessResult, runInOwnProcess } from './own-process.ts'
import { Connection, RequestBytes, type Target } from './raw-client.ts'
import { takeRealTimePolicy, takeShortSlices } from './real-time.ts'
import type { ResponseScanner } from './response-scanner.ts'
import { type LoadResult, LoadTally } from './tally.ts'

export interface OpenLoopOptions {
  hostname: string
  port: number
  /** Used round-robin. */
  targets: Target[]
  /** Requests that are due each second, whether or not the server keeps up. */
  ratePerSecond: number
  /** Duration: rate times seconds is the number of requests. */
  seconds: number
  /** Connections, each with one request in flight at most. */
  connections: number
  /**
   * Due requests that may wait for a free connection; with more, the run ends as saturated.
   * Default: 2 s of arrivals.
   */
  backlogMax?: number
  /** How long to wait for the last responses. Default: 5. */
  drainSeconds?: number
  /**
   * Milliseconds that the generator sleeps between two readings of the clock; without sleeping it
   * uses a whole core. Requests are sent, and responses noticed, later by as much. Default: 0.
   */
  sleepMs?: number
  /** Its latencies do not matter: it runs with the lowest priority. Default: false. */
  isBackground?: boolean
  /**
   * Uses a real-time policy, so that waiting for a core is not measured. Only with `sleepMs`, and
   * at rates that leave its core idle most of the time: Linux throttles real-time threads that do
   * not sleep. Default: false.
   */
  isPunctual?: boolean
}

export interface OpenLoopResult extends LoadResult {
  ratePerSecond: number
  /**
   * The server (or the generator) fell behind by more than the backlog: percentiles are lower
   * bounds.
   */
  saturated: boolean
  /** Nanoseconds by which the generator itself was late while a connection was free. */
  lateness: HistogramJson
}

const REQUESTS_MAX = 20_000_000
const RECONNECTS_MAX = 100
/** Resolution of Bun's timers: for requests due sooner, the loop polls the clock. */
const TIMER_NS = 2e6
/** Never changes: waiting for it is a sleep with a finer resolution than Bun.sleep. */
const NEVER = new Int32Array(new SharedArrayBuffer(4))
/** How often a generator without a free connection checks whether it is saturated. */
const BUSY_MS = 5

/**
 * Sends requests at a fixed rate over raw keep-alive connections and measures each from the moment
 * it was due, not from when it could leave (after Gil Tene's "coordinated omission"): a stall of
 * the server shows in every request that fell due meanwhile. Throws if a connection cannot be
 * opened.
 */
export async function openLoop(options: OpenLoopOptions): Promise<OpenLoopResult> {
  const total = Math.floor(options.ratePerSecond * options.seconds)
  if (total > REQUESTS_MAX) throw new RangeError(`at most ${REQUESTS_MAX} requests a run`)
  if (options.targets.length === 0) throw new RangeError('a run needs a target')
  const run = new OpenLoopRun(options, total)
  await run.connect()
  return run.run()
}

/** The same in a separate process, whose CPU time is not counted as the caller's. */
export const openLoopProcess = (
  options: OpenLoopOptions,
): Promise<OwnProcessResult<OpenLoopResult>> => runInOwnProcess(new URL(import.meta.url), options)

class OpenLoopRun {
  readonly #options: OpenLoopOptions
  readonly #tally: LoadTally
  readonly #lateness = new Histogram()
  readonly #requests: RequestBytes[]
  readonly #connections = new Set<Connection>()
  readonly #free: Connection[] = []
  readonly #backlogMax: number
  readonly #intervalNs: number
  readonly #finished = Promise.withResolvers<void>()
  #total: number
  /** No request is due while the connections are being opened. */
  #startedAt = Number.POSITIVE_INFINITY
  #lastAnswerAt = 0
  /** Requests that are due so far; those from `#sent` on wait for a connection. */
  #due = 0
  #sent = 0
  #saturated = false
  #over = false
  #reconnects = 0
  #drainTimer: ReturnType<typeof setTimeout> | undefined
  /** Set while every connection waits for a response; it runs the next tick. */
  #busyTimer: ReturnType<typeof setTimeout> | undefined

  constructor(options: OpenLoopOptions, total: number) {
    this.#options = options
    this.#total = total
    this.#tally = new LoadTally(options.targets)
    const host = `${options.hostname}:${options.port}`
    this.#requests = options.targets.map((target) => new RequestBytes(target, host))
    this.#backlogMax = options.backlogMax ?? Math.ceil(options.ratePerSecond * 2)
    this.#intervalNs = 1e9 / options.ratePerSecond
  }

  async connect(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.connections }, () => this.#open()))
  }

  async run(): Promise<OpenLoopResult> {
    this.#startedAt = Bun.nanoseconds()
    this.#lastAnswerAt = this.#startedAt
    this.#tick()
    await this.#finished.promise
    this.#over = true
    const now = Bun.nanoseconds()
    for (let number = this.#sent; number < this.#due; number++) {
      this.#tally.latency.record(now - this.#intendedAt(number))
    }
    for (const connection of this.#connections) {
      if (connection.inFlight) this.#tally.latency.record(now - connection.intendedAt)
      connection.close()
    }
    return {
      ...this.#tally.result((this.#lastAnswerAt - this.#startedAt) / 1e9),
      ratePerSecond: this.#options.ratePerSecond,
      saturated: this.#saturated,
      unsent: this.#due - this.#sent,
      lateness: this.#lateness.toJSON(),
    }
  }

  #intendedAt(number: number): number {
    return this.#startedAt + number * this.#intervalNs
  }

  readonly #tick = (): void => {
    this.#busyTimer = undefined
    this.#advance()
    while (this.#sent < this.#due) {
      const connection = this.#free.shift()
      if (!connection) break
      this.#lateness.record(Bun.nanoseconds() - this.#intendedAt(this.#sent))
      this.#send(connection)
    }
    if (this.#due - this.#sent > this.#backlogMax) {
      this.#saturated = true
      this.#total = this.#due
    }
    if (this.#due < this.#total) this.#wait()
    else this.#drain()
  }

  #advance(): void {
    const now = Bun.nanoseconds()
    while (this.#due < this.#total && this.#intendedAt(this.#due) <= now) this.#due += 1
  }

  #wait(): void {
    if (this.#free.length === 0) {
      // The next response sends due requests: polling would only use CPU time of the server.
      this.#busyTimer = setTimeout(this.#tick, BUSY_MS)
      return
    }
    const waitNs = this.#intendedAt(this.#due) - Bun.nanoseconds()
    if (waitNs > TIMER_NS) {
      setTimeout(this.#tick, Math.floor((waitNs - TIMER_NS / 2) / 1e6))
      return
    }
    const { sleepMs = 0 } = this.#options
    if (sleepMs > 0) Atomics.wait(NEVER, 0, 0, sleepMs)
    setImmediate(this.#tick)
  }

  #drain(): void {
    const { drainSeconds = 5 } = this.#options
    if (this.#isDone()) this.#finish()
    else this.#drainTimer = setTimeout(() => this.#finish(), drainSeconds * 1000)
  }

  #finish(): void {
    clearTimeout(this.#drainTimer)
    this.#finished.resolve()
  }

  #isDone(): boolean {
    return this.#sent === this.#total && this.#tally.open === 0
  }

  #send(connection: Connection): void {
    const number = this.#sent
    const index = number % this.#requests.length
    this.#sent += 1
    connection.number = number
    connection.intendedAt = this.#intendedAt(number)
    this.#tally.sent()
    const bytes = this.#requests[index]?.numbered(number)
    if (bytes) connection.send(bytes, this.#options.targets[index]?.method)
  }

  #reuse(connection: Connection): void {
    this.#advance()
    if (this.#sent < this.#due) this.#send(connection)
    else this.#release(connection)
    if (this.#due === this.#total && this.#isDone()) this.#finish()
  }

  #release(connection: Connection): void {
    this.#free.push(connection)
    if (this.#busyTimer === undefined) return
    clearTimeout(this.#busyTimer)
    this.#busyTimer = undefined
    setImmediate(this.#tick)
  }

  async #open(): Promise<void> {
    const connection = new Connection({ answered: this.#answered, lost: this.#lost })
    await connection.open(this.#options.hostname, this.#options.port)
    if (this.#over) return connection.close()
    this.#connections.add(connection)
    this.#reuse(connection)
  }

  readonly #answered = (connection: Connection, scanner: ResponseScanner): void => {
    this.#lastAnswerAt = Bun.nanoseconds()
    const latencyNs = this.#lastAnswerAt - connection.intendedAt
    this.#tally.answered(connection.number % this.#requests.length, scanner, latencyNs)
    if (!scanner.closes) this.#reuse(connection)
  }

  readonly #lost = (connection: Connection, inFlight: boolean, reason: string): void => {
    this.#connections.delete(connection)
    const at = this.#free.indexOf(connection)
    if (at !== -1) this.#free.splice(at, 1)
    if (inFlight) this.#tally.lost(reason)
    if (this.#due === this.#total && this.#isDone()) this.#finish()
    this.#reconnects += 1
    // If the server is gone, the result shows the requests as unsent.
    if (this.#reconnects <= RECONNECTS_MAX) this.#open().catch(() => {})
  }
}

if (import.meta.main) {
  await answerAsProcess((options: OpenLoopOptions) => {
    // Real clients run on other machines: they do not compete with the service for cores.
    if (options.isBackground) setThreadPriority('background')
    else if (options.isPunctual) takeRealTimePolicy()
    else takeShortSlices()
    return openLoop(options)
  })
}
