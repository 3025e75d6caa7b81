import { PassedPeers } from '../hot/passed-peers.ts'
import type { Log } from '../lib/log.ts'
import { decodePercent } from '../lib/percent.ts'
import { setPeer } from './context.ts'
import { DEFAULT_HEADERS } from './headers.ts'

/** A client that sends nothing for longer, or takes longer for one request, is disconnected. */
const IDLE_TIMEOUT_SECONDS = 30

/** Any DNS name with a port has fewer characters. */
const HOST_MAX_LENGTH = 300

const LOOPBACK = '127.0.0.1'

/**
 * Answers what the redirect threads forward, on a port of the loopback interface that only this
 * process knows. The client of any other connection, and of one that has ended, is unknown.
 */
export class ControlServer {
  readonly peers = new PassedPeers()
  readonly #server: Bun.Server<undefined>

  constructor(answer: (request: Request) => Response | Promise<Response>, log: Pick<Log, 'error'>) {
    this.#server = Bun.serve({
      hostname: LOOPBACK,
      port: 0,
      // Bodies are bounded by http/body.ts, which answers in JSON; Bun would not.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      fetch: (request, server) => {
        // Before `url` is read: its time is quadratic for a host with escapes, 8 ms for 12 KB.
        if (hostLength(request) > HOST_MAX_LENGTH) return invalidHost()
        const { address = '', port = 0 } = server.requestIP(request) ?? {}
        const url = routableUrl(request.url)
        const routable = url === request.url ? request : new Request(url, request)
        setPeer(routable, (address === LOOPBACK && this.peers.findByPort(port)) || '')
        return answer(routable)
      },
      error: (cause) => {
        log.error('request.failed', { path: 'passed on' }, cause)
        return new Response(null, { status: 500, headers: DEFAULT_HEADERS })
      },
    })
  }

  get port(): number {
    return this.#server.port ?? 0
  }

  /** Closes idle connections. Resolves when the requests under way are answered. */
  async drain(): Promise<void> {
    await this.#server.stop()
  }

  async close(): Promise<void> {
    await this.#server.stop(true)
  }
}

const hostLength = ({ headers }: Request): number => headers.get('host')?.length ?? 0

const invalidHost = (): Response => {
  const error = `Invalid Host: must have at most ${HOST_MAX_LENGTH} characters`
  return Response.json({ error }, { status: 400, headers: DEFAULT_HEADERS })
}

const pathOf = (url: string): string => url.split('?', 1)[0] as string

/**
 * The URL as the router reads it: with a host, which a request of HTTP/1.0 may lack, and a path
 * that can be decoded. A `%` that encodes no character stands for itself.
 */
function routableUrl(url: string): string {
  if (url.startsWith('/')) return routableUrl(`http://localhost${url}`)
  if (!url.includes('%')) return url
  const path = pathOf(url)
  if (decodePercent(path) !== undefined) return url
  return path.replaceAll('%', '%25') + url.slice(path.length)
}
