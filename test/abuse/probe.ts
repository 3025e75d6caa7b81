/**
 * A visitor beside an attack, on a thread of its own: follows one short link over one connection
 * every few milliseconds, and watches the service's memory.
 */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

export interface ProbeTarget {
  port: number
  path: string
  pid: number
}

export interface Observed {
  /** Milliseconds, ascending, of each redirect. */
  latencies: number[]
  /** Redirects that were answered with anything but 302. */
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

async function follow({ port, path, pid }: ProbeTarget, stopped: () => boolean): Promise<Observed> {
  const before = residentMebibytes(pid)
  const observed: Observed = { latencies: [], failed: 0, residentBefore: before, residentMost: 0 }
  const look = () => {
    observed.residentMost = Math.max(observed.residentMost, residentMebibytes(pid))
  }
  const timer = setInterval(look, MEMORY_EVERY_MS)
  const request = `GET ${path} HTTP/1.1\r\nHost: hop.test\r\n\r\n`
  let socket: Socket | undefined
  while (!stopped()) {
    try {
      socket ??= await open(port)
      const start = performance.now()
      const status = await exchange(socket, request)
      observed.latencies.push(performance.now() - start)
      if (status !== 302) observed.failed++
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
    else self.postMessage(await follow(data, () => isStopped))
  }
}
