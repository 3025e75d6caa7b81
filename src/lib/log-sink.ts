import { write } from 'node:fs'

/** Maximum number of waiting characters. Further lines are dropped and counted. */
const WAITING_MAX = 4 * 1024 * 1024
/** Interval of retries while a non-blocking descriptor is full. */
const RETRY_MS = 50

interface LogSinkOptions {
  /** A file descriptor; 2 is standard error. */
  descriptor?: number
  waitingMax?: number
}

/**
 * Writes lines in order, without blocking the calling thread. A full pipe, a full disk or a closed
 * reader loses lines, which `dropped` counts.
 */
export class LogSink {
  /** Lines that were not written: too many waited, or the descriptor refused them. */
  dropped = 0
  readonly #descriptor: number
  readonly #waitingMax: number
  #waiting: string[] = []
  /** Characters waiting or being written. */
  #length = 0
  #isWriting = false
  #idle: (() => void) | undefined

  constructor({ descriptor = 2, waitingMax = WAITING_MAX }: LogSinkOptions = {}) {
    this.#descriptor = descriptor
    this.#waitingMax = waitingMax
  }

  /** `line`: without its newline. */
  write(line: string): void {
    if (this.#length + line.length > this.#waitingMax) {
      this.dropped++
      return
    }
    this.#length += line.length
    this.#waiting.push(line)
    if (!this.#isWriting) this.#next()
  }

  /** Resolves once nothing waits, or after `deadlineMs`. */
  async drain(deadlineMs: number): Promise<void> {
    if (!this.#isWriting) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle = resolve
    const deadline = setTimeout(resolve, deadlineMs)
    await promise
    clearTimeout(deadline)
  }

  #next(): void {
    this.#isWriting = this.#waiting.length > 0
    if (!this.#isWriting) {
      this.#idle?.()
      return
    }
    const lines = this.#waiting
    this.#waiting = []
    this.#put(Buffer.from(`${lines.join('\n')}\n`), lines)
  }

  #put(bytes: Buffer, lines: readonly string[]): void {
    write(this.#descriptor, bytes, 0, bytes.length, null, (error, written = 0) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#put(bytes, lines), RETRY_MS)
        return
      }
      if (!error && written < bytes.length) {
        this.#put(bytes.subarray(written), lines)
        return
      }
      if (error) this.dropped += lines.length
      for (const line of lines) this.#length -= line.length
      this.#next()
    })
  }
}
