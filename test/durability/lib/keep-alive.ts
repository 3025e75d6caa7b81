import { connect, type Socket } from 'node:net'

export interface KeepAliveAnswer {
  status: number
  body: string
  /** The answer says that the service closes the connection behind it. */
  isLast: boolean
}

/**
 * One connection that asks one thing after the other. What was asked is with the kernel when `ask`
 * returns, which fetch leaves open: a test can tell what was on its way.
 */
export class KeepAlive {
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #waiting:
    | { resolve: (answer: KeepAliveAnswer) => void; reject: (error: Error) => void }
    | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes as Buffer])
      this.#settle()
    })
    socket.on('error', (error) => this.#fail(error.message))
    socket.on('close', () => this.#fail('closed'))
  }

  static open(url: string): Promise<KeepAlive> {
    const { hostname, port } = new URL(url)
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) }, () => {
        resolve(new KeepAlive(socket))
      })
      socket.once('error', reject)
    })
  }

  /** Rejects if the connection ends first, saying how much of the answer had come. */
  ask(
    method: string,
    path: string,
    headers: readonly string[] = [],
    body = '',
  ): Promise<KeepAliveAnswer> {
    const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
    const head = [`${method} ${path} HTTP/1.1`, 'Host: hop.test', ...headers, ...length]
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      if (this.#socket.destroyed) this.#fail('closed')
      else this.#socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #settle(): void {
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#received.toString('latin1', 0, end)
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0)
    const whole = end + 4 + length
    if (this.#received.length < whole) return
    const body = this.#received.toString('utf8', end + 4, whole)
    this.#received = this.#received.subarray(whole)
    const isLast = /^connection: close\r?$/im.test(head)
    this.#waiting?.resolve({ status: Number(head.split(' ')[1]), body, isLast })
    this.#waiting = undefined
  }

  #fail(reason: string): void {
    const bytes = this.#received.length
    this.#waiting?.reject(new Error(`${reason} after ${bytes} bytes of the answer`))
    this.#waiting = undefined
  }
}
