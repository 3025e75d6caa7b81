import { SECOND } from '../lib/clock.ts'
import type { OutgoingResult, Sender } from '../outgoing/sender.ts'

/** What one check of a destination finds. */

/**
 * `failed`: nobody can reach a page there. `unknown`: the check itself was refused, or met a
 * trouble that passes, so it says nothing about visitors.
 */
export interface Finding {
  outcome: 'alive' | 'failed' | 'unknown'
  /** The status of the last response, or why there is none. */
  status: string
}

const REDIRECTS_MAX = 5
const TIMEOUT_MS = 10 * SECOND
/** Of a whole check. The last request may end `TIMEOUT_MS` after it. */
const CHECK_MS = 20 * SECOND
const GET_BYTES = 4096

const FAILURES: readonly string[] = ['404', '410', 'no_such_name', 'refused', 'bad_certificate']

interface CheckOptions {
  sender: Pick<Sender, 'send'>
  userAgent: string
  /** Whether a host is this service itself, which would count the check as a hit. */
  isOwnHost: (hostname: string) => boolean
}

/** Follows redirects. The sender looks at each hop anew, so none leads inside. Never rejects. */
export async function checkDestination(url: string, options: CheckOptions): Promise<Finding> {
  let current = URL.parse(url)
  const deadline = performance.now() + CHECK_MS
  for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
    if (!current || !/^https?:$/.test(current.protocol)) return unknown('bad_redirect')
    if (options.isOwnHost(current.hostname)) return unknown('own_address')
    const result = await ask(current, deadline, options)
    if (!result.ok) return findingOf(result.error)
    const { location } = result.headers
    if (result.status < 300 || result.status >= 400 || location === undefined) {
      return findingOf(String(result.status))
    }
    current = URL.parse(location, current.href)
  }
  return unknown('too_many_redirects')
}

const unknown = (status: string): Finding => ({ outcome: 'unknown', status })

function findingOf(status: string): Finding {
  if (FAILURES.includes(status)) return { outcome: 'failed', status }
  return /^2/.test(status) ? { outcome: 'alive', status } : unknown(status)
}

/** HEAD; then GET, because some servers answer HEAD with an error or not at all. */
async function ask(
  url: URL,
  deadline: number,
  { sender, userAgent }: CheckOptions,
): Promise<OutgoingResult> {
  const send = async (method: 'HEAD' | 'GET'): Promise<OutgoingResult> => {
    const leftMs = deadline - performance.now()
    if (leftMs <= 0) return { ok: false, error: 'timeout', ms: 0 }
    return sender.send({
      method,
      url,
      headers: { 'User-Agent': userAgent, Accept: '*/*' },
      slotMs: leftMs,
      timeoutMs: Math.min(TIMEOUT_MS, leftMs),
      maxBytes: GET_BYTES,
      allowsHttp: true,
      isPublicOnly: true,
    })
  }
  const head = await send('HEAD')
  const mayDiffer = head.ok
    ? head.status >= 400 && head.status !== 429
    : head.error === 'timeout' || head.error === 'connection_failed'
  return mayDiffer ? send('GET') : head
}
