/**
 * A client beside an attack, on a thread of its own: sends a request over one connection every few
 * milliseconds, and watches the service's memory.
 */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

export interface ProbeTarget {
  port: number
  /** The whole request. Of `COUNTER`, each has a number of its own. */
  request: string
  /** The status of a request that succeeds. */
  status: number
  pid: number
}

/** As long as the number that takes its place. */
export const COUNTER = '########'

export interface Observed {
  /** Milliseconds, ascending, of each request. */
  latencies: number[]
  /** Requests with another status than the expected one. */
  failed: number
  /** MiB resident at the beginning, and at the highest. */
  residentBefore: number
  residentMost: number
}

const PAUSE_MS = 4
const MEMORY_EVERY_MS = 20

declare const self: Worker

function residentMebibytes(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

/** One request at a time; resolves with the status. */
function exchange(socket: Socket, request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    const done = (work: () => void) => {
      socket.off('data', read)
      socket.off('error', fail)
      socket.off('close', close)
      work()
    }
    const read = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) return
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0)
      if (text.length < end + 4 + length) return
      done(() => resolve(Number(text.split(' ', 2)[1])))
    }
    const fail = (error: Error) => done(() => reject(error))
    const close = () => done(() => reject(new Error('closed')))
    socket.on('data', read)
    socket.on('error', fail)
    socket.on('close', close)
    socket.write(request)
  })
}

const open = (port: number) =>
  new Promise<Socket>((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })

async function repeat(target: ProbeTarget, stopped: () => boolean): Promise<Observed> {
  const { port, pid } = target
  const before = residentMebibytes(pid)
  const observed: Observed = { latencies: [], failed: 0, residentBefore: before, residentMost: 0 }
  const look = () => {
    observed.residentMost = Math.max(observed.residentMost, residentMebibytes(pid))
  }
  const timer = setInterval(look, MEMORY_EVERY_MS)
  let socket: Socket | undefined
  let sent = 0
  while (!stopped()) {
    try {
      socket ??= await open(port)
      const start = performance.now()
      const number = String(sent++).padStart(COUNTER.length, '0')
      const status = await exchange(socket, target.request.replaceAll(COUNTER, number))
      observed.latencies.push(performance.now() - start)
      if (status !== target.status) observed.failed++
    } catch {
      socket?.destroy()
      socket = undefined
      observed.failed++
    }
    await Bun.sleep(PAUSE_MS)
  }
  socket?.destroy()
  clearInterval(timer)
  look()
  observed.latencies.sort((a, b) => a - b)
  return observed
}

let isStopped = false
if (!Bun.isMainThread) {
  self.onmessage = async ({ data }: MessageEvent<ProbeTarget | 'stop'>) => {
    if (data === 'stop') isStopped = true
    else self.postMessage(await repeat(data, () => isStopped))
  }
}
