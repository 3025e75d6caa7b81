import { answerAsProcess, type OwnProcessResult, runInOwnProcess } from './own-process.ts'
import { RequestBytes, type Target } from './raw-client.ts'

export interface BatchLoopOptions {
  hostname: string
  port: number
  /** Used in turn, repeatedly. Each has a `location` of its own. */
  targets: Target[]
  connections: number
  /** Requests that a connection sends in one piece. The next ones follow the last response. */
  together: number
  seconds: number
}

interface Batch {
  bytes: Buffer
  /** In the last response. */
  awaited: Buffer
}

/** More than a response has. */
const TAIL_BYTES = 1024
const TOO_LARGE = 'the kernel does not take a batch at once'

interface BatchLoopResult {
  requests: number
  seconds: number
}

/**
 * A closed loop that leaves most of the machine to the server: it sends requests in batches, and
 * reads only the last response of each. Verify some responses before, and the counts of the service
 * after. Throws if a last response is missing or the server ends a connection.
 */
export const batchLoop = (options: BatchLoopOptions): Promise<OwnProcessResult<BatchLoopResult>> =>
  runInOwnProcess(new URL(import.meta.url), options)

async function generate(options: BatchLoopOptions): Promise<BatchLoopResult> {
  const { hostname, port, targets, together, seconds } = options
  const requests = targets.map((target) => new RequestBytes(target, `${hostname}:${port}`).marked)
  const batches = requests.map((_, first): Batch => {
    const numbers = Array.from(
      { length: together },
      (_, n) => (first * together + n) % requests.length,
    )
    const bytes = Buffer.concat(numbers.flatMap((number) => requests[number] ?? []))
    const last = targets[numbers.at(-1) ?? 0]
    return { bytes, awaited: Buffer.from(`Location: ${last?.location}\r\n`) }
  })
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  let sent = 0

  const load = async () => {
    const finished = Promise.withResolvers<void>()
    let awaited: Buffer = Buffer.alloc(0)
    let rest: Buffer = Buffer.alloc(0)
    const send = (socket: Bun.Socket) => {
      const batch = batches[sent++ % batches.length] as Batch
      awaited = batch.awaited
      if (socket.write(batch.bytes) < batch.bytes.length) finished.reject(new Error(TOO_LARGE))
    }
    const receive = (socket: Bun.Socket, bytes: Buffer) => {
      const text = Buffer.concat([rest, bytes.subarray(-TAIL_BYTES)])
      rest = text.subarray(-TAIL_BYTES)
      const at = rest.indexOf(awaited)
      if (at < 0 || !rest.includes('\r\n\r\n', at)) return
      rest = Buffer.alloc(0)
      if (performance.now() < endsAt) send(socket)
      else finished.resolve()
    }
    const lose = () => finished.reject(new Error('the server ended a connection'))
    const socket = await Bun.connect({
      hostname,
      port,
      socket: { data: receive, close: lose, error: lose },
    })
    send(socket)
    await finished.promise
    socket.terminate()
  }
  const deadline = setTimeout(
    () => {
      throw new Error('responses are missing or lead to other URLs')
    },
    (seconds + 5) * 1000,
  )
  await Promise.all(Array.from({ length: options.connections }, load))
  clearTimeout(deadline)
  return { requests: sent * together, seconds: (performance.now() - startedAt) / 1000 }
}

if (import.meta.main) await answerAsProcess(generate)
