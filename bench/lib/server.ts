import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TemporaryFolder, tieToThisProcess } from './leftovers.ts'
import {
  cpuSecondsOf,
  type Memory,
  mainThreadSecondsOf,
  memoryOf,
  usualWorkerSecondsOf,
} from './process-stats.ts'

export const HOSTNAME = '127.0.0.1'

/** How to start one variant. The process itself must be the server, not a child of it. */
export interface Launch {
  name: string
  command: (port: number) => string[]
  /** In addition to PATH and HOME; nothing else is inherited. */
  env?: (port: number) => Record<string, string>
  /** A path answered below 500 once the server is ready. */
  readyPath: string
}

const READY_DEADLINE_MS = 20_000
const READY_POLL_MS = 20
const PORT_IN_USE = /in use|EADDRINUSE/
/** The service guarantees to exit within 10 s. */
const STOP_DEADLINE_MS = 12_000

/**
 * Starts a server in a separate process and waits until it is ready. Throws with the end of its
 * output if it is not ready in time.
 */
export async function startServer(launch: Launch, attempts = 3): Promise<Server> {
  const server = spawnServer(launch)
  try {
    await server.untilReady()
  } catch (error) {
    await server.kill()
    // A connection of the load before may have got the free port meanwhile.
    const isTaken = attempts > 1 && error instanceof Error && PORT_IN_USE.test(error.message)
    if (!isTaken) throw error
    return await startServer(launch, attempts - 1)
  }
  return server
}

/** Starts a server without waiting. */
export const spawnServer = (launch: Launch): Server => new Server(launch, freePort())

/** A server under load. Disposal kills it if it was not stopped. */
export class Server {
  readonly name: string
  readonly port: number
  readonly #launch: Launch
  readonly #child: Bun.Subprocess
  readonly #folder = new TemporaryFolder()
  readonly #startedAt = performance.now()

  constructor(launch: Launch, port: number) {
    this.#launch = launch
    this.name = launch.name
    this.port = port
    const { PATH = '', HOME = '' } = process.env
    // The output goes to a file: a full pipe without a reader would block the server.
    const output = Bun.file(this.#outputFile)
    const child = Bun.spawn(launch.command(port), {
      cwd: this.#folder.path,
      env: { PATH, HOME, ...launch.env?.(port) },
      stdin: 'ignore',
      stdout: output,
      stderr: output,
    })
    this.#child = tieToThisProcess(child)
  }

  get pid(): number {
    return this.#child.pid
  }

  get origin(): string {
    return `http://${HOSTNAME}:${this.port}`
  }

  get ageSeconds(): number {
    return (performance.now() - this.#startedAt) / 1000
  }

  /** User and system time so far, all threads. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.pid)
  }

  /** The same for the workers with the usual priority, which in Hopcode are those of redirects. */
  redirectThreadSeconds(): number {
    return usualWorkerSecondsOf(this.pid)
  }

  /** The same for the control thread only. */
  controlThreadSeconds(): number {
    return mainThreadSecondsOf(this.pid)
  }

  memory(): Memory {
    return memoryOf(this.pid)
  }

  async untilReady(): Promise<void> {
    while (this.#child.exitCode === null && this.ageSeconds * 1000 < READY_DEADLINE_MS) {
      const answer = await fetch(this.origin + this.#launch.readyPath, {
        redirect: 'manual',
      }).catch(() => undefined)
      await answer?.arrayBuffer()
      if (answer && answer.status < 500) return
      await Bun.sleep(READY_POLL_MS)
    }
    throw new Error(`${this.name} did not become ready:\n${this.#outputEnd()}`)
  }

  /** Stops it with SIGTERM. Throws unless it exits with 0 in time. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    const deadline = setTimeout(() => this.#child.kill('SIGKILL'), STOP_DEADLINE_MS)
    await this.#child.exited
    clearTimeout(deadline)
    const words = this.#outputEnd()
    await this.kill()
    const { exitCode, signalCode } = this.#child
    if (exitCode !== 0)
      throw new Error(`${this.name} ended with ${signalCode ?? exitCode}:\n${words}`)
  }

  /** Kills it if it still runs. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
    this.#folder[Symbol.dispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }

  get #outputFile(): string {
    return join(this.#folder.path, 'output')
  }

  #outputEnd(): string {
    return readFileSync(this.#outputFile, 'utf8').trim().split('\n').slice(-10).join('\n')
  }
}

/** A port that is free now. */
function freePort(): number {
  const listener = Bun.listen({ hostname: HOSTNAME, port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}
