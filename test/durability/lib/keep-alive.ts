import { Conversation } from '../../support/conversation.ts'

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
  readonly #client: Conversation
  #asked = 0

  private constructor(client: Conversation) {
    this.#client = client
  }

  static async open(url: string): Promise<KeepAlive> {
    return new KeepAlive(await Conversation.open(url))
  }

  /** Rejects if the connection ends first. */
  async ask(
    method: string,
    path: string,
    headers: readonly string[] = [],
    body = '',
  ): Promise<KeepAliveAnswer> {
    const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
    const head = [`${method} ${path} HTTP/1.1`, 'Host: hop.test', ...headers, ...length]
    this.#client.send(`${head.join('\r\n')}\r\n\r\n${body}`)
    const answers = await this.#client.answers(++this.#asked)
    const told = answers[this.#asked - 1]
    if (!told) throw new Error('closed before the whole answer')
    const { status, headers: received, text } = told
    return { status, body: text, isLast: received.get('connection') === 'close' }
  }

  close(): void {
    this.#client[Symbol.dispose]()
  }
}
