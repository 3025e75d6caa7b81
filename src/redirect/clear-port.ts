import { apiKeyOf } from '../accounts/keys.ts'
import type { DomainMap } from '../addresses/map.ts'
import { REFUSALS } from '../errors.ts'
import { headerOf, type PlainRequest } from './plain-request.ts'
import type { Answer } from './responses.ts'
import { isNavigation } from './visitor-page.ts'

/** Requests have an API key in their query or their body. */
export const YOURLS_PATH = '/yourls-api.php'
const CHALLENGES = '/.well-known/acme-challenge/'
const REQUEST_LINE = /^([A-Z]+) (\/[!-~]*) HTTP\/1\.[01]\r\n/
const PROBE = /^\/-\/(live|ready)\/?(\?|$)/
/** A header of the control thread's responses, which browsers ignore without TLS. */
const HSTS = /strict-transport-security: [^\r]*\r\n/i
const HEAD_MAX = 4096
const JSON_HEADERS = {
  'Content-Type': 'application/json;charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
}

interface ClearPortDeps {
  domains: Pick<DomainMap, 'ofHost' | 'primary'>
  baseUrl: string
  /** Without a certificate, nobody is redirected to https. */
  hasCertificate: () => boolean
}

/**
 * The rules of the port without TLS of a service with https. Of what a redirect thread does not
 * answer itself, only probes reach the control thread. All other requests are answered here, and
 * their connections closed.
 */
export class ClearPort {
  /** Answers to the questions of a certificate authority, by token (RFC 8555, section 8.3). */
  challenges: Readonly<Record<string, string>> = {}
  readonly #deps: ClearPortDeps
  readonly #base: URL

  constructor(deps: ClearPortDeps) {
    this.#deps = deps
    this.#base = new URL(deps.baseUrl)
  }

  /** Whether a redirect thread's own answer may be sent: pages are for https. */
  allows(request: PlainRequest, { status }: Answer): boolean {
    return status === 302 || !isNavigation(request)
  }

  /**
   * The last response on the connection. Undefined: the control thread answers. `head`: with a path
   * as its target; undefined if it is not complete. `framed`: undefined for a head that leaves the
   * end of its request in doubt.
   */
  answer(head: string | undefined, framed: object | undefined): Answer | undefined {
    const [, method = '', target = ''] = (head && REQUEST_LINE.exec(head)) || []
    if (head === undefined || target === '') return closing(400, {})
    const path = target.replace(/\?.*$/, '')
    const isRead = method === 'GET' || method === 'HEAD'
    if (path.startsWith(CHALLENGES)) {
      if (isRead) return this.#challenge(path.slice(CHALLENGES.length), method)
      return json(
        405,
        { error: REFUSALS.method_not_allowed.message(method) },
        { Allow: 'GET, HEAD' },
      )
    }
    if (isRead && framed && PROBE.test(target)) return undefined
    const key = apiKeyOf({ get: (name) => headerOf(head, name) })
    if (key !== null || path === YOURLS_PATH) {
      const error = `Use ${this.#deps.baseUrl}: this request was not encrypted`
      return json(403, { error })
    }
    if (!this.#deps.hasCertificate()) return this.#wait()
    const domain = this.#deps.domains.ofHost(headerOf(head, 'host') ?? '')
    const { host, port } = this.#base
    const isOther = domain && !domain.isPrimary && domain.host !== ''
    const address = isOther ? `${domain.host}${port && `:${port}`}` : host
    return closing(308, { Location: `https://${address}${target}` })
  }

  /** The first bytes of a response, without what must not be sent without TLS. */
  strip(bytes: Buffer): Buffer {
    const start = bytes.toString('latin1', 0, HEAD_MAX)
    const found = HSTS.exec(start)
    if (!found) return bytes
    const after = found.index + found[0].length
    return Buffer.concat([bytes.subarray(0, found.index), bytes.subarray(after)])
  }

  #challenge(token: string, method: string): Answer {
    const found = Object.hasOwn(this.challenges, token) ? this.challenges[token] : undefined
    if (found === undefined) return json(404, { error: REFUSALS.path_not_found.message() })
    const body = method === 'HEAD' ? '' : found
    return closing(200, { 'Content-Type': 'text/plain', 'X-Content-Type-Options': 'nosniff' }, body)
  }

  #wait(): Answer {
    const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="10">
<title>${this.#base.hostname}</title>
<p>The certificate for ${this.#base.hostname} is being requested.</p>
</html>
`
    return closing(
      503,
      {
        'Content-Type': 'text/html;charset=utf-8',
        'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
        'Retry-After': '10',
      },
      body,
    )
  }
}

const closing = (status: number, headers: Record<string, string>, body = ''): Answer => ({
  status,
  headers: { ...headers, 'Cache-Control': 'no-store', Connection: 'close' },
  body,
})

const json = (status: number, view: object, headers: Record<string, string> = {}): Answer =>
  closing(status, { ...headers, ...JSON_HEADERS }, JSON.stringify(view))
