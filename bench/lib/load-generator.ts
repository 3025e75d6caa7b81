// The generator's own process: load.ts starts it.
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { setThreadPriority } from '../../src/lib/priority.ts'
import { Connection, type Expected, expectedOf, type TlsSessions } from './connection.ts'
import type {
  ClosedLoad,
  ConnectionUse,
  LoadedServer,
  LoadInput,
  LoadOptions,
  OpenLoad,
  Percentiles,
  Remote,
} from './load.ts'
import { answerAsProcess } from './own-process.ts'
import { takeRealTimePolicy, takeShortSlices } from './real-time.ts'
import { RequestBytes } from './request.ts'
import { HOSTNAME } from './server.ts'

/** The connections to one server, the requests in flight, and the tally of their responses. */
class Sender {
  readonly connections = new Set<Connection>()
  readonly latency = createHistogram()
  /** Requests in one piece: the last one of them has a Location that no other one has. */
  readonly batchMax: number
  readonly #targets: Expected[]
  readonly #remote: Remote
  readonly #port: number
  readonly #use: ConnectionUse
  readonly #sessions: TlsSessions = { resumed: 0 }
  readonly #requests: RequestBytes[]
  /** Batches of the greatest length by the target that they begin with. */
  readonly #batches: Buffer[] = []
  readonly #right: Float64Array
  #isOver = false
  #answered = 0
  #wrong = 0
  #lost = 0
  #firstFault: string | undefined
  /** Called when a connection is free: in the beginning, and after responses. */
  onFree: (connection: Connection) => void = () => {}
  onLost: (connection: Connection) => void = () => {}
  /** Called when a connection of one request has ended. */
  onReplaced: () => void = () => {}
  /** Records the latencies of answered requests. */
  time: (connection: Connection, now: number) => void
  /** The number of the next request. */
  next: number
  /** Requests that are neither answered nor lost. */
  inFlight = 0
  lastAnswerAt = 0

  constructor({ port, targets, remote }: LoadedServer, load: LoadOptions & Partial<ClosedLoad>) {
    const { batch = 1, firstNumber = 0, use = 'kept' } = load
    this.#targets = targets.map(expectedOf)
    this.#port = port
    this.#remote = remote ?? { address: HOSTNAME, host: `${HOSTNAME}:${port}` }
    this.#use = use
    this.batchMax = Math.min(batch, targets.length)
    const closing = use === 'server closes' ? { Connection: 'close' } : {}
    this.#requests = targets.map((target) => {
      const headers = { ...target.headers, ...closing }
      return new RequestBytes({ ...target, headers }, this.#remote.host)
    })
    this.#right = new Float64Array(targets.length)
    this.next = firstNumber
    this.time = ({ sentAt, openedAt }, now) =>
      record(this.latency, now - (use === 'kept' ? sentAt : openedAt))
  }

  async open(count = 1): Promise<void> {
    const events = { answered: this.#onAnswered, lost: this.#onLost }
    const opened = Array.from({ length: count }, () => new Connection(events))
    await Promise.all(
      opened.map((connection) => connection.open(this.#remote, this.#port, this.#sessions)),
    )
    for (const connection of opened) {
      if (this.#isOver) connection.close()
      this.connections.add(connection)
      this.onFree(connection)
    }
  }

  /** Sends the next `count` requests. */
  send(connection: Connection, count: number): void {
    const number = this.next
    const last = this.#targets[(number + count - 1) % this.#targets.length] as Expected
    this.next += count
    this.inFlight += count
    connection.send(this.#bytesOf(number, count), last, number, count)
  }

  #bytesOf(number: number, count: number): Buffer {
    const requests = this.#requests
    const first = number % requests.length
    if (count === 1) return (requests[first] as RequestBytes).numbered(number)
    const kept = count === this.batchMax ? this.#batches[first] : undefined
    if (kept) return kept
    const parts = Array.from({ length: count }, (_, n) => requests[(first + n) % requests.length])
    const bytes = Buffer.concat(parts.map((request) => (request as RequestBytes).marked))
    if (count === this.batchMax) this.#batches[first] = bytes
    return bytes
  }

  readonly #onAnswered = (connection: Connection, fault: string): void => {
    const { number, count } = connection
    this.lastAnswerAt = Bun.nanoseconds()
    this.#answered += count
    this.inFlight -= count
    this.time(connection, this.lastAnswerAt)
    if (fault !== '') {
      this.#wrong += count
      this.#firstFault ??= fault
    } else {
      for (let n = number; n < number + count; n++) {
        const target = n % this.#right.length
        this.#right[target] = (this.#right[target] as number) + 1
      }
    }
    if (this.#use === 'visitor closes') {
      connection.close()
      this.connections.delete(connection)
      this.onReplaced()
    }
    // The server is about to close it: `#onLost` follows.
    if (this.#use === 'kept') this.onFree(connection)
  }

  /** Counts a connection that could not be opened. */
  fail(error: unknown): void {
    this.#lost += 1
    this.#firstFault ??= error instanceof Error ? error.message : String(error)
  }

  readonly #onLost = (connection: Connection, reason: string): void => {
    this.connections.delete(connection)
    if (connection.isBusy) {
      this.inFlight -= connection.count
      this.#lost += connection.count
      this.#firstFault ??= reason
    }
    if (this.#use === 'server closes' && !connection.isBusy) this.onReplaced()
    else this.onLost(connection)
  }

  /** Closes the connections. */
  finish(seconds: number, lateness = createHistogram(), unsent = 0) {
    this.#isOver = true
    for (const connection of this.connections) connection.close()
    return {
      answered: this.#answered,
      rightByTarget: [...this.#right],
      wrong: this.#wrong,
      lost: this.#lost,
      unanswered: this.inFlight,
      unsent,
      ...(this.#firstFault !== undefined && { firstFault: this.#firstFault }),
      seconds,
      resumed: this.#sessions.resumed,
      latency: percentilesOf(this.latency),
      lateness: percentilesOf(lateness),
    }
  }
}

const record = (histogram: RecordableHistogram, ns: number): void =>
  histogram.record(Math.max(1, Math.round(ns)))

function percentilesOf(histogram: RecordableHistogram): Percentiles {
  const of = (percent: number) => histogram.percentile(percent) / 1000
  return { p50: of(50), p99: of(99), p999: of(99.9), max: histogram.max / 1000 }
}

const DRAIN_SECONDS = 5

async function runClosed(servers: LoadedServer[], load: ClosedLoad) {
  const { connections, seconds, drainSeconds = DRAIN_SECONDS, sliceSeconds = seconds } = load
  const loads = servers.map((server) => ({
    sender: new Sender(server, load),
    seconds: 0,
  }))
  const isKept = (load.use ?? 'kept') === 'kept'
  for (const { sender } of loads) if (isKept) await sender.open(connections)
  const takeTurns = async () => {
    const order = [...loads]
    for (let left = seconds / loads.length; left > 0; left -= sliceSeconds) {
      for (const one of order) {
        one.seconds += await runSlice(one.sender, Math.min(left, sliceSeconds), load)
      }
      // The next time slices have the opposite order.
      order.reverse()
    }
  }
  const deadline = Promise.withResolvers<void>()
  const timer = setTimeout(deadline.resolve, (seconds + drainSeconds) * 1000)
  await Promise.race([takeTurns(), deadline.promise])
  clearTimeout(timer)
  return loads.map(({ sender, seconds }) => sender.finish(seconds))
}

/** Returns the seconds until the last response. */
async function runSlice(sender: Sender, seconds: number, load: ClosedLoad): Promise<number> {
  const { firstNumber = 0, requestsMax = Number.POSITIVE_INFINITY } = load
  const ended = Promise.withResolvers<void>()
  const startedAt = Bun.nanoseconds()
  const endsAt = startedAt + seconds * 1e9
  sender.lastAnswerAt = startedAt
  const isOver = () => sender.lastAnswerAt >= endsAt || sender.next - firstNumber >= requestsMax
  const endIfIdle = () => {
    if (sender.inFlight === 0) ended.resolve()
  }
  sender.onFree = (connection) => {
    if (isOver()) endIfIdle()
    else sender.send(connection, sender.batchMax)
  }
  sender.onLost = endIfIdle
  sender.onReplaced = () => {
    if (isOver()) endIfIdle()
    else {
      sender.open().catch((error: unknown) => {
        sender.fail(error)
        endIfIdle()
      })
    }
  }
  if (sender.connections.size === 0) {
    for (let n = 0; n < load.connections; n++) sender.onReplaced()
  }
  for (const connection of sender.connections) sender.onFree(connection)
  await ended.promise
  return (sender.lastAnswerAt - startedAt) / 1e9
}

const REQUESTS_MAX = 20_000_000
const RECONNECTS_MAX = 100
/** Resolution of Bun's timers: for requests due sooner, the loop polls the clock. */
const TIMER_NS = 2e6
/** Never changes: waiting for it is a sleep with a finer resolution than Bun.sleep. */
const NEVER = new Int32Array(new SharedArrayBuffer(4))
/** How often a generator without a free connection checks its backlog. */
const BUSY_MS = 5

class OpenRun {
  readonly #sender: Sender
  readonly #load: OpenLoad
  readonly #batch: number
  readonly #untimed: number
  readonly #lateness = createHistogram()
  readonly #free: Connection[] = []
  readonly #finished = Promise.withResolvers<void>()
  #total: number
  /** No request is due while the connections are being opened. */
  #startedAt = Number.POSITIVE_INFINITY
  /** Requests that are due so far; those from the sender's next on wait for a connection. */
  #due = 0
  #reconnects = 0
  #drainTimer: ReturnType<typeof setTimeout> | undefined
  /** Set while every connection waits for a response; it runs the next tick. */
  #busyTimer: ReturnType<typeof setTimeout> | undefined
  /** The start of the last tick; 0 if the next one follows after more than `sleepMs`. */
  #tickAt = 0

  constructor(server: LoadedServer, load: OpenLoad) {
    const { ratePerSecond, seconds, batch = 1, untimedSeconds = 0 } = load
    this.#load = load
    this.#batch = batch
    this.#untimed = Math.floor(ratePerSecond * untimedSeconds)
    this.#total = this.#untimed + Math.floor(ratePerSecond * seconds)
    if (this.#total > REQUESTS_MAX) throw new RangeError(`at most ${REQUESTS_MAX} requests a run`)
    this.#sender = new Sender(server, load)
    this.#sender.time = this.#time
    this.#sender.onFree = this.#use
    this.#sender.onLost = this.#replace
  }

  async run() {
    const sender = this.#sender
    await sender.open(this.#load.connections)
    this.#startedAt = Bun.nanoseconds()
    sender.lastAnswerAt = this.#startedAt
    this.#tick()
    await this.#finished.promise
    clearTimeout(this.#drainTimer)
    const seconds = (sender.lastAnswerAt - this.#startedAt) / 1e9
    return sender.finish(seconds, this.#lateness, this.#due - sender.next)
  }

  #dueAt(number: number): number {
    return this.#startedAt + (number / this.#load.ratePerSecond) * 1e9
  }

  readonly #tick = (): void => {
    const { backlogMax = 2 * this.#load.ratePerSecond, drainSeconds = DRAIN_SECONDS } = this.#load
    const sender = this.#sender
    const now = this.#advance()
    if (this.#batch > 1 && this.#tickAt > 0) {
      record(this.#lateness, now - this.#tickAt - (this.#load.sleepMs ?? 0) * 1e6)
    }
    this.#tickAt = now
    this.#busyTimer = undefined
    while (sender.next < this.#due && this.#free.length > 0) {
      if (this.#batch === 1) record(this.#lateness, Bun.nanoseconds() - this.#dueAt(sender.next))
      this.#send(this.#free.shift() as Connection, false)
    }
    if (this.#due - sender.next > backlogMax) this.#total = this.#due
    if (this.#due < this.#total) this.#wait()
    else this.#drainTimer = setTimeout(this.#finished.resolve, drainSeconds * 1000)
    this.#endIfDone()
  }

  #advance(): number {
    const now = Bun.nanoseconds()
    while (this.#due < this.#total && this.#dueAt(this.#due) <= now) this.#due += 1
    return now
  }

  #wait(): void {
    if (this.#free.length === 0) {
      // The next response sends due requests: polling would only use CPU time of the server.
      this.#tickAt = 0
      this.#busyTimer = setTimeout(this.#tick, BUSY_MS)
      return
    }
    const waitNs = this.#dueAt(this.#due) - Bun.nanoseconds()
    if (waitNs > TIMER_NS) {
      this.#tickAt = 0
      setTimeout(this.#tick, Math.floor((waitNs - TIMER_NS / 2) / 1e6))
      return
    }
    const { sleepMs = 0 } = this.#load
    if (sleepMs > 0) Atomics.wait(NEVER, 0, 0, sleepMs)
    setImmediate(this.#tick)
  }

  #send(connection: Connection, isDelayed: boolean): void {
    connection.isDelayed = isDelayed
    const { next, batchMax } = this.#sender
    this.#sender.send(connection, Math.min(batchMax, this.#due - next))
  }

  readonly #use = (connection: Connection): void => {
    // A batch is what falls due between two ticks, unless it waits for a connection.
    const isNeeded = this.#batch === 1 || this.#free.length === 0
    if (isNeeded) this.#advance()
    if (isNeeded && this.#sender.next < this.#due) this.#send(connection, true)
    else this.#release(connection)
    this.#endIfDone()
  }

  #release(connection: Connection): void {
    this.#free.push(connection)
    if (this.#busyTimer === undefined) return
    clearTimeout(this.#busyTimer)
    this.#busyTimer = undefined
    setImmediate(this.#tick)
  }

  readonly #replace = (connection: Connection): void => {
    const at = this.#free.indexOf(connection)
    if (at !== -1) this.#free.splice(at, 1)
    this.#endIfDone()
    this.#reconnects += 1
    // If the server is gone, the result shows the requests as unsent.
    if (this.#reconnects <= RECONNECTS_MAX) this.#sender.open().catch(() => {})
  }

  readonly #time = ({ number, count, sentAt, isDelayed }: Connection, now: number): void => {
    const isFromSending = this.#batch > 1 && !isDelayed
    for (let n = Math.max(number, this.#untimed); n < number + count; n++) {
      record(this.#sender.latency, now - (isFromSending ? sentAt : this.#dueAt(n)))
    }
  }

  #endIfDone(): void {
    const { next, inFlight } = this.#sender
    if (next === this.#total && inFlight === 0) this.#finished.resolve()
  }
}

await answerAsProcess(async ({ servers, ...load }: LoadInput) => {
  if (!('ratePerSecond' in load)) return await runClosed(servers, load)
  // Real clients run on other machines: they do not compete with the service for cores.
  if (load.priority === 'background') setThreadPriority('background')
  else if (load.priority === 'real-time') takeRealTimePolicy()
  else takeShortSlices()
  return [await new OpenRun(servers[0] as LoadedServer, load).run()]
})
