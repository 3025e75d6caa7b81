import { within } from '../../src/lib/deadline.ts'
import { Histogram, type HistogramJson } from './histogram.ts'
import { answerAsProcess, runInOwnProcess } from './own-process.ts'
import { RequestBytes, type Target } from './raw-client.ts'

interface BatchLoopOptions {
  hostname: string
  /** Each gets alternating time slices of `sliceSeconds`, so that noise affects all alike. */
  servers: BatchServer[]
  /** Connections to each server. */
  connections: number
  /** Requests that a connection sends in one piece. The next ones follow the last response. */
  pipelineDepth: number
  /** Duration of all time slices of all servers together. */
  seconds: number
  sliceSeconds: number
  /** To each server: the load ends after as many, rounded up to whole batches. */
  requestsMax?: number
}

interface BatchServer {
  port: number
  /** Used round-robin. Each has a `location` of its own. */
  targets: Target[]
}

export interface BatchLoopFigures {
  requests: number
  seconds: number
  /** Latency of batches in nanoseconds. */
  latency: HistogramJson
}

/**
 * A closed loop that uses little CPU itself: it sends requests in batches, and parses only the last
 * response of each. Verify some responses before, and the counts of the service after. Throws if a
 * last response is missing or a server ends a connection. Returns the figures of each server, and
 * the seconds of CPU that the generator took.
 */
export async function batchLoop(
  options: BatchLoopOptions,
): Promise<{ figures: BatchLoopFigures[]; cpuSeconds: number }> {
  const file = new URL(import.meta.url)
  const { result, cpuSeconds } = await runInOwnProcess<BatchLoopFigures[]>(file, options)
  return { figures: result, cpuSeconds }
}

/** Maximum wait for the last responses. */
const GRACE_SECONDS = 5

async function generate(options: BatchLoopOptions): Promise<BatchLoopFigures[]> {
  const { servers, seconds, sliceSeconds } = options
  const loads = await Promise.all(servers.map((server) => BatchLoad.open(server, options)))
  const takeTurns = async () => {
    for (let left = seconds / servers.length; left > 0; left -= sliceSeconds) {
      for (const load of loads) await load.run(Math.min(left, sliceSeconds))
      // The next time slices have the opposite order.
      loads.reverse()
    }
  }
  const deadlineMs = (seconds + GRACE_SECONDS) * 1000
  await within(deadlineMs, takeTurns(), 'responses are missing, or lead to other URLs')
  return servers.map(({ port }) => (loads.find((load) => load.port === port) as BatchLoad).close())
}

/** Pipelined requests as one buffer. */
export class Batch {
  readonly bytes: Buffer
  /** Bytes that only the last response contains. */
  readonly awaited: Buffer

  /** `numbers`: the requests of the batch, as indexes into `requests`, which wrap around. */
  constructor(requests: readonly Buffer[], targets: readonly Target[], numbers: readonly number[]) {
    const count = requests.length
    this.bytes = Buffer.concat(numbers.flatMap((number) => requests[number % count] ?? []))
    this.awaited = Buffer.from(`Location: ${targets[(numbers.at(-1) ?? 0) % count]?.location}\r\n`)
  }
}

/** The load on one server. */
class BatchLoad {
  readonly port: number
  readonly #batches: Batch[]
  readonly #pipelineDepth: number
  readonly #batchesMax: number
  readonly #latency = new Histogram()
  #connections: BatchConnection[] = []
  #sent = 0
  #seconds = 0

  static async open(server: BatchServer, options: BatchLoopOptions): Promise<BatchLoad> {
    const load = new BatchLoad(server, options)
    const { hostname, connections } = options
    const { port } = server
    load.#connections = await Promise.all(
      Array.from({ length: connections }, () => BatchConnection.open(hostname, port)),
    )
    return load
  }

  private constructor(
    { port, targets }: BatchServer,
    { hostname, pipelineDepth, requestsMax = Number.POSITIVE_INFINITY }: BatchLoopOptions,
  ) {
    this.port = port
    this.#pipelineDepth = pipelineDepth
    this.#batchesMax = requestsMax / pipelineDepth
    const requests = targets.map((target) => new RequestBytes(target, `${hostname}:${port}`).marked)
    this.#batches = requests.map((_, first) => {
      const numbers = Array.from({ length: pipelineDepth }, (_, n) => first * pipelineDepth + n)
      return new Batch(requests, targets, numbers)
    })
  }

  async run(seconds: number): Promise<void> {
    const startedAt = Bun.nanoseconds()
    const endsAt = startedAt + seconds * 1e9
    const drive = async (connection: BatchConnection) => {
      for (let now = startedAt; now < endsAt && this.#sent < this.#batchesMax; ) {
        await connection.send(this.#batches[this.#sent++ % this.#batches.length] as Batch)
        const answeredAt = Bun.nanoseconds()
        this.#latency.record(answeredAt - now)
        now = answeredAt
      }
    }
    await Promise.all(this.#connections.map(drive))
    this.#seconds += (Bun.nanoseconds() - startedAt) / 1e9
  }

  close(): BatchLoopFigures {
    for (const connection of this.#connections) connection.close()
    const requests = this.#sent * this.#pipelineDepth
    return { requests, seconds: this.#seconds, latency: this.#latency.toJSON() }
  }
}

/** More bytes than a response has. */
const TAIL_BYTES = 1024

/** Carries one batch at a time. */
export class BatchConnection {
  #socket: Bun.Socket | undefined
  #tail: Buffer = Buffer.alloc(0)
  #batch: Batch | undefined
  #answered = Promise.withResolvers<void>()

  static async open(hostname: string, port: number): Promise<BatchConnection> {
    const connection = new BatchConnection()
    const lose = () => connection.#answered.reject(new Error('a server ended a connection'))
    connection.#socket = await Bun.connect({
      hostname,
      port,
      socket: { data: (_, bytes) => connection.#receive(bytes), close: lose, error: lose },
    })
    return connection
  }

  /** Resolves when the last response of the batch has come. */
  send(batch: Batch): Promise<void> {
    this.#batch = batch
    this.#answered = Promise.withResolvers()
    const sent = this.#socket?.write(batch.bytes) ?? 0
    if (sent < batch.bytes.length) throw new Error('the kernel does not take a batch at once')
    return this.#answered.promise
  }

  close(): void {
    this.#socket?.terminate()
  }

  #receive(bytes: Buffer): void {
    const end = bytes.subarray(-TAIL_BYTES)
    const tail = this.#tail.length === 0 ? end : Buffer.concat([this.#tail, end])
    const at = this.#batch ? tail.indexOf(this.#batch.awaited) : -1
    if (at >= 0 && tail.includes('\r\n\r\n', at)) {
      this.#tail = Buffer.alloc(0)
      this.#answered.resolve()
    } else this.#tail = Buffer.from(tail.subarray(-TAIL_BYTES))
  }
}

if (import.meta.main) await answerAsProcess(generate)
