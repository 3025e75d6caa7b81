import { Histogram } from './histogram.ts'
import { answerAsProcess, type OwnProcessResult, runInOwnProcess } from './own-process.ts'
import { Connection, RequestBytes, type Target } from './raw-client.ts'
import type { ResponseScanner } from './response-scanner.ts'
import { type LoadResult, LoadTally } from './tally.ts'

export interface ClosedLoopOptions {
  hostname: string
  port: number
  /** Used round-robin. */
  targets: Target[]
  /** Connections, each sending its next request as soon as the last is answered. */
  connections: number
  seconds: number
  /** The number of the first request, which chooses its target and its text. Default: 0. */
  firstNumber?: number
}

/** The figures that both generators can give. Latencies in microseconds. */
export interface ClosedLoopFigures {
  generator: 'wrk' | 'own'
  /**
   * Responses that came within `seconds`. The server may have answered one more per connection
   * after that.
   */
  requests: number
  seconds: number
  p50: number
  p99: number
  /** Only our own generator measures it. */
  max?: number
  /** Requests without the expected response; wrk.ts says what wrk checks. */
  failed: number
  /** User and system time of the generator. */
  cpuSeconds: number
}

/** Our generator in a separate process; it checks every response. */
export async function ownClosedLoop(options: ClosedLoopOptions): Promise<ClosedLoopFigures> {
  const { result, cpuSeconds }: OwnProcessResult<LoadResult> = await runInOwnProcess(
    new URL(import.meta.url),
    options,
  )
  const latency = Histogram.fromJson(result.latency)
  return {
    generator: 'own',
    requests: result.answered,
    seconds: result.seconds,
    p50: latency.percentile(50) / 1000,
    p99: latency.percentile(99) / 1000,
    max: latency.max / 1000,
    failed: result.wrong + result.lost + result.unanswered,
    cpuSeconds,
  }
}

/**
 * Every connection sends its next request at once; after `seconds`, waits for the last responses.
 */
async function generate(options: ClosedLoopOptions): Promise<LoadResult> {
  const { hostname, port, targets, seconds, firstNumber = 0 } = options
  const tally = new LoadTally(targets)
  const requests = targets.map((target) => new RequestBytes(target, `${hostname}:${port}`))
  const finished = Promise.withResolvers<void>()
  let sent = 0
  let stopping = false
  let lastAnswerAt = 0

  const send = (connection: Connection) => {
    const number = firstNumber + sent
    const index = number % targets.length
    connection.number = number
    connection.intendedAt = Bun.nanoseconds()
    tally.sent()
    sent += 1
    const bytes = requests[index]?.numbered(connection.number)
    if (bytes) connection.send(bytes, targets[index]?.method)
  }
  const answered = (connection: Connection, scanner: ResponseScanner) => {
    lastAnswerAt = Bun.nanoseconds()
    const latencyNs = lastAnswerAt - connection.intendedAt
    tally.answered(connection.number % targets.length, scanner, latencyNs)
    if (!stopping && !scanner.closes) send(connection)
    else if (tally.open === 0) finished.resolve()
  }
  const lost = (_: Connection, inFlight: boolean, reason: string) => {
    if (inFlight) tally.lost(reason)
    if (tally.open === 0) finished.resolve()
  }

  const connections = Array.from(
    { length: options.connections },
    () => new Connection({ answered, lost }),
  )
  await Promise.all(connections.map((connection) => connection.open(hostname, port)))
  const startedAt = Bun.nanoseconds()
  for (const connection of connections) send(connection)
  setTimeout(() => {
    stopping = true
  }, seconds * 1000)
  const deadline = setTimeout(finished.resolve, (seconds + 5) * 1000)
  await finished.promise
  clearTimeout(deadline)
  for (const connection of connections) connection.close()
  return tally.result((lastAnswerAt - startedAt) / 1e9)
}

if (import.meta.main) await answerAsProcess(generate)
