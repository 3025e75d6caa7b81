import { eventually } from './app.ts'

/** A request that a receiver of webhooks got. */
export interface Received {
  method: string
  path: string
  headers: Record<string, string>
  text: string
  body: {
    type: string
    timestamp: string
    sequence: number
    dropped?: number
    more?: boolean
    data: { links: { code: string; url: string | null; hit_count: number }[] }
  }
}

type Respond = (request: Received) => Response | Promise<Response>

/** A receiver of webhooks on this machine, which answers 200 unless told otherwise. */
export class Receiver implements Disposable {
  readonly received: Received[] = []
  /** Answers of the next requests. */
  readonly next: Respond[] = []
  respond: Respond = () => new Response('ok')
  readonly #server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    fetch: async (request) => {
      const text = await request.text()
      const headers = Object.fromEntries(request.headers)
      const path = new URL(request.url).pathname
      const body = request.method === 'POST' ? JSON.parse(text) : {}
      const received = { method: request.method, path, headers, text, body }
      this.received.push(received)
      return (this.next.shift() ?? this.respond)(received)
    },
  })

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/hooks`
  }

  /** The bodies of one type, or of all. */
  bodies(type?: string): Received['body'][] {
    return this.received.map(({ body }) => body).filter((body) => !type || body.type === type)
  }

  /** Resolves when this many requests have come. */
  async until(count: number): Promise<void> {
    await eventually(`the receiver has ${count} requests`, () => this.received.length >= count)
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true)
  }
}

/** Answers with these statuses, one after the other. */
export const statuses = (...all: number[]): Respond[] =>
  all.map((status) => () => new Response(null, { status }))
