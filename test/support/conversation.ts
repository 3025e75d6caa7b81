import { connect, type Socket } from 'node:net'
import type { TestApp } from './app.ts'

export interface Told {
  status: number
  headers: Headers
  text: string
}

/** One connection on which bytes are sent exactly as they are, well-formed or not. */
export class Conversation implements Disposable {
  readonly #socket: Socket
  readonly #answers: Told[] = []
  readonly #bodiless: readonly number[]
  #rest = Buffer.alloc(0)
  #isClosed = false
  #waiting: (() => void)[] = []

  private constructor(socket: Socket, bodiless: readonly number[]) {
    this.#socket = socket
    this.#bodiless = bodiless
    socket.setNoDelay(true)
    socket.on('data', (bytes) => {
      this.#rest = Buffer.concat([this.#rest, bytes as Buffer])
      while (this.#takeAnswer()) {}
      this.#wake()
    })
    // A reset is how a service closes on bytes that it has not read.
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#isClosed = true
      this.#wake()
    })
  }

  /** `bodiless`: which answers, from 0, are to HEAD and have no body whatever they say. */
  static open(url: string, bodiless: readonly number[] = []): Promise<Conversation> {
    const { hostname, port } = new URL(url)
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) }, () => {
        resolve(new Conversation(socket, bodiless))
      })
      socket.once('error', reject)
    })
  }

  send(bytes: string | Uint8Array): void {
    this.#socket.write(bytes)
  }

  /** The answers so far, once there are `count`, or the service has closed the connection. */
  async answers(count: number): Promise<readonly Told[]> {
    await this.#until(() => this.#isClosed || this.#answers.length >= count)
    return this.#answers
  }

  /** The answers, and what came behind them, once the service has closed the connection. */
  async closed(): Promise<{ answers: readonly Told[]; rest: string }> {
    await this.#until(() => this.#isClosed)
    return { answers: this.#answers, rest: this.#rest.toString('latin1') }
  }

  /** Ends the connection and waits until the service has closed it too. */
  async end(): Promise<void> {
    this.#socket.end()
    await this.#until(() => this.#isClosed)
  }

  /** Ends the connection without a word. */
  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.push(resolve)
      await promise
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  #takeAnswer(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n')
    if (end < 0) return false
    const [start = '', ...lines] = this.#rest.toString('latin1', 0, end).split('\r\n')
    const headers = new Headers()
    for (const line of lines) {
      const colon = line.indexOf(':')
      headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
    }
    const hasBody = !this.#bodiless.includes(this.#answers.length)
    const length = hasBody ? Number(headers.get('content-length') ?? 0) : 0
    const whole = end + 4 + length
    if (this.#rest.length < whole) return false
    const text = this.#rest.toString('utf8', end + 4, whole)
    this.#rest = this.#rest.subarray(whole)
    this.#answers.push({ status: Number(start.split(' ')[1]), headers, text })
    return true
  }
}

/** Sends a request up to the middle of its body, then does `meanwhile`, then sends the rest. */
export async function slowly(
  app: TestApp,
  { head, body }: { head: string[]; body: string },
  meanwhile: () => Promise<unknown>,
): Promise<Told> {
  using conversation = await Conversation.open(app.url)
  const length = `Content-Length: ${body.length}`
  conversation.send(
    `${[...head, 'Host: hop.test', length, '', ''].join('\r\n')}${body.slice(0, 3)}`,
  )
  // A whole request on another connection: the first one has been let in by then.
  for (let i = 0; i < 20; i++) await app.call('GET', '/-/live')
  await meanwhile()
  conversation.send(body.slice(3))
  return await firstAnswer(conversation)
}

export async function firstAnswer(conversation: Conversation): Promise<Told> {
  const [told] = await conversation.answers(1)
  if (!told) throw new Error('the service closed the connection without an answer')
  return told
}

/** Sends bytes exactly as they are, which fetch would not, on a connection of their own. */
export async function rawRequest(base: string, head: string[], body = ''): Promise<Told> {
  using client = await Conversation.open(base)
  client.send([...head, `Host: ${new URL(base).host}`, 'Connection: close', '', body].join('\r\n'))
  const [told] = await client.answers(1)
  if (!told) throw new Error('the service closed the connection without an answer')
  return told
}
