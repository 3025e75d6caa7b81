import { within } from '../../src/lib/deadline.ts'
import { Batch, BatchConnection } from './batch-loop.ts'
import { Histogram, type HistogramJson } from './histogram.ts'
import { answerAsProcess, type OwnProcessResult, runInOwnProcess } from './own-process.ts'
import { RequestBytes, type Target } from './raw-client.ts'
import { takeRealTimePolicy } from './real-time.ts'

interface OpenBatchesOptions {
  hostname: string
  port: number
  /** Used round-robin. Each has a `location` of its own. */
  targets: Target[]
  /** Requests that are due each second, whether or not the server keeps up. */
  ratePerSecond: number
  seconds: number
  connections: number
}

interface OpenBatchesResult {
  /** Responses of each target, in the targets' order. */
  byTarget: number[]
  /**
   * Nanoseconds until the batch of a request was answered: from the moment it was sent if there
   * always was a free connection, else from the moment it was due.
   */
  latency: HistogramJson
  /** Nanoseconds by which the generator itself was late, for each reading of the clock. */
  lateness: HistogramJson
}

/** Time between two batches: requests are sent later than they are due by as much. */
const TICK_MS = 0.5
/** Sent first and not timed: meanwhile the engine compiles this program. */
const WARM_UP_SECONDS = 1
const BATCH_MAX = 500
/** Maximum wait for the last responses. */
const GRACE_SECONDS = 5
const NOT_ANSWERED = 'the server does not answer in time, or leads to other URLs'
/** Never changes: waiting for it is a sleep with a finer resolution than Bun.sleep. */
const NEVER = new Int32Array(new SharedArrayBuffer(4))

/**
 * An open loop that uses little CPU itself, also at high rates: the requests of a tick are sent in
 * one piece over a free connection, and only the last response is parsed. Verify some responses
 * before, and the counts of the service after. Throws if a last response is missing or the server
 * ends a connection.
 */
export const openBatches = (
  options: OpenBatchesOptions,
): Promise<OwnProcessResult<OpenBatchesResult>> =>
  runInOwnProcess(new URL(import.meta.url), options)

async function generate(options: OpenBatchesOptions): Promise<OpenBatchesResult> {
  takeRealTimePolicy()
  const { hostname, port, targets, ratePerSecond, seconds } = options
  const requests = targets.map((target) => new RequestBytes(target, `${hostname}:${port}`).marked)
  const opened = Array.from({ length: options.connections }, () =>
    BatchConnection.open(hostname, port),
  )
  const free = await Promise.all(opened)
  const latency = new Histogram()
  const lateness = new Histogram()
  const byTarget = targets.map(() => 0)
  const pending: Promise<void>[] = []
  const untimed = Math.floor(ratePerSecond * WARM_UP_SECONDS)
  const total = untimed + Math.floor(ratePerSecond * seconds)
  const startedAt = Bun.nanoseconds()
  const dueAt = (number: number) => startedAt + (number / ratePerSecond) * 1e9
  let sent = 0

  const send = async (connection: BatchConnection, numbers: number[], sentAt?: number) => {
    await connection.send(new Batch(requests, targets, numbers))
    const answeredAt = Bun.nanoseconds()
    for (const number of numbers) {
      if (number >= untimed) latency.record(answeredAt - (sentAt ?? dueAt(number)))
      byTarget[number % targets.length] = (byTarget[number % targets.length] ?? 0) + 1
    }
    free.push(connection)
  }
  const deadline = startedAt + (WARM_UP_SECONDS + seconds + GRACE_SECONDS) * 1e9
  let wasFree = true
  while (sent < total) {
    const now = Bun.nanoseconds()
    if (now > deadline) throw new Error(NOT_ANSWERED)
    const due = Math.min(total, Math.floor(((now - startedAt) / 1e9) * ratePerSecond))
    const connection = due > sent ? free.shift() : undefined
    if (connection) {
      const end = Math.min(due, sent + BATCH_MAX)
      const numbers = Array.from({ length: end - sent }, (_, n) => sent + n)
      pending.push(send(connection, numbers, wasFree ? now : undefined))
      sent = end
    }
    wasFree = free.length > 0
    Atomics.wait(NEVER, 0, 0, TICK_MS)
    await new Promise((resolve) => setImmediate(resolve))
    if (sent >= untimed) lateness.record(Bun.nanoseconds() - now - TICK_MS * 1e6)
  }
  await within(GRACE_SECONDS * 1000, Promise.all(pending), NOT_ANSWERED)
  for (const connection of free) connection.close()
  return { byTarget, latency: latency.toJSON(), lateness: lateness.toJSON() }
}

if (import.meta.main) await answerAsProcess(generate)
