/**
 * The service as its contract describes it, in plain lists: no cache, no index, no thread, no
 * database. It shares no code with the service.
 */

import { type Account, accountOf, type Plan } from './accounts.ts'
import { type Expected, Refusal, type Success } from './expected.ts'
import { type ImportedRow, importRows } from './imports.ts'
import { isBlocked, qrFault } from './judge.ts'
import { Links } from './links.ts'
import { type Rate, Windows } from './windows.ts'

/** One HTTP request, as it goes out. */
export interface Call {
  method: string
  /** With its query. */
  path: string
  key?: string
  /** The caller's address, in its normal form. */
  from: string
  body?: string
  type?: string
}

/** When a request arrives: by the clock on the wall, and by one that nobody sets. */
export interface Moment {
  now: number
  elapsed: number
}

export interface ModelSettings {
  baseUrl: string
  cdnUrl: string
  plans: Record<Plan, { read: number; write: number; bulk: number }>
  anonymous: { read: number; write: number; redirect: number }
  blockedHosts: readonly string[]
}

interface Route {
  name: string
  budget: 'read' | 'write'
  /** Redirects and images go on during maintenance. */
  goesOn: boolean
  /** The path's own part, decoded. */
  code: string
}

export class Model {
  readonly accounts: Account[] = []
  readonly links: Links
  readonly windows = new Windows()
  readonly settings: ModelSettings
  maintenanceUntil = 0
  totalRedirects = 0

  constructor(settings: ModelSettings) {
    this.settings = { ...settings }
    this.links = new Links(this.settings)
  }

  /** Changes the model as the call changes the service, and says what the answer must be. */
  predict(call: Call, moment: Moment): Expected {
    const { pathname, searchParams } = new URL(call.path, 'http://x')
    const route = routeOf(pathname)
    const account = accountOf(this.accounts, call.key, moment.now)
    const rate = account
      ? this.windows.take(
          `${route.budget} of ${account.name}`,
          this.settings.plans[account.plan][route.budget],
          moment.elapsed,
        )
      : this.#chargeAddress(call, route, moment)
    const answer = outcomeOf(() => {
      this.#refuseEarly(rate, route, moment)
      refuseMethod(call, route)
      const needsKey = route.budget === 'write' || route.name === 'list'
      if (needsKey && !account) throw new Refusal(401, 'Invalid or missing API key')
      if (route.budget === 'write') return this.#write(route, account as Account, call, moment)
      if (route.name === 'list') return this.links.list(account as Account, searchParams)
      return this.#read(route, searchParams, call, moment)
    })
    const body = call.method === 'HEAD' ? undefined : answer.body
    return {
      ...answer,
      body,
      headers: {
        'retry-after': null,
        allow: null,
        location: null,
        'x-service-code': null,
        'x-ratelimit-limit': String(rate.limit),
        'x-ratelimit-remaining': String(rate.remaining),
        'x-ratelimit-reset': String(Math.ceil((moment.now + rate.resetAfterMs) / 1000)),
        'x-request-id': /./,
        ...(body !== undefined && { 'content-type': /^application\/json\b/ }),
        ...answer.headers,
      },
    }
  }

  /** A redirect that finds its link has a window of its own. */
  #chargeAddress(call: Call, route: Route, { elapsed }: Moment): Rate {
    const isRead = call.method === 'GET' || call.method === 'HEAD'
    const url = route.name === 'follow' ? this.links.findByPath(route.code)?.url : undefined
    const isFound = url && !isBlocked(url, this.settings.blockedHosts)
    const charge = isRead && isFound ? 'redirect' : route.budget
    const limit = this.settings.anonymous[charge]
    return this.windows.take(`${charge} of ${groupOf(call.from)}`, limit, elapsed)
  }

  #refuseEarly(rate: Rate, { goesOn }: Route, { now }: Moment): void {
    if (!goesOn && this.maintenanceUntil > now) {
      const seconds = Math.ceil((this.maintenanceUntil - now) / 1000)
      const until = new Date(this.maintenanceUntil).toISOString()
      throw new Refusal(503, `Service under maintenance until ${until}`, {
        'retry-after': String(seconds),
      })
    }
    if (rate.refused) {
      const seconds = Math.ceil(rate.resetAfterMs / 1000)
      throw new Refusal(429, `Rate limit exceeded. Retry in ${seconds} seconds.`, {
        'retry-after': String(seconds),
      })
    }
  }

  #write({ name }: Route, owner: Account, call: Call, { now }: Moment): Success {
    if (name === 'import') return this.#import(owner, call, now)
    const body = parseBody(call)
    if (name === 'shorten') return this.links.shorten(owner, body, now)
    if (name === 'reserve') return this.links.reserve(owner, body, now)
    if (name === 'update') return this.links.update(owner, body)
    if (name === 'delete') return this.links.delete(owner, body)
    return this.links.bulk(owner, body, now, this.settings.plans[owner.plan].bulk)
  }

  #import(owner: Account, { body = '', type = '' }: Call, now: number): Success {
    if (type !== LINES_TYPE) throw new Refusal(415, /./)
    const rows = body.split('\n').map((line) => JSON.parse(line) as ImportedRow)
    const most = this.settings.plans[owner.plan].bulk
    if (rows.length > most) throw new Refusal(400, `The body must have between 1 and ${most} lines`)
    return importRows(this.links, owner, rows, now)
  }

  #read({ name, code: text }: Route, query: URLSearchParams, call: Call, { now }: Moment): Success {
    if (name === 'status') return this.#status(now)
    const fault = name === 'qr' ? qrFault(query) : undefined
    if (fault) throw new Refusal(400, fault)
    const link = this.links.get(text, name === 'follow' ? this.links.findByPath(text) : undefined)
    const { code, url } = link
    if (name === 'lookup') return { status: 200, body: this.links.lookup(link) }
    if (name === 'qr-image') return { status: 200, body: this.links.addressesOf(link) }
    if (name === 'qr') {
      const type = query.get('format') === 'svg' ? 'image/svg+xml' : 'image/png'
      const caching = 'public, max-age=86400, immutable'
      const headers = { 'content-type': type, 'cache-control': caching }
      return { status: 200, body: undefined, headers }
    }
    if (name === 'stored') {
      const caching = 'public, max-age=31536000, immutable'
      const headers = { location: this.links.imageOf(code), 'cache-control': caching }
      return { status: 302, body: undefined, headers }
    }
    if (url === null) throw new Refusal(404, `Code not found: ${code}`)
    // Its host was listed after it was created.
    if (isBlocked(url, this.settings.blockedHosts)) throw new Refusal(410, `Link disabled: ${code}`)
    if (call.method === 'GET') {
      link.hits++
      this.totalRedirects++
    }
    const sent = /^[\x21-\x7e]+$/.test(url) ? url : new URL(url).href
    // All hosts of the model's URLs are in their normal form, or not ASCII.
    const location = sent
      .replace(/^[^?#]*/, (path) => path.replaceAll('\\', '/'))
      .replace(/["<>\\^`{|}]/g, (sign) => `%${Buffer.from(sign).toString('hex').toUpperCase()}`)
    const headers = { location, 'cache-control': 'no-store', 'x-service-code': code }
    return { status: 302, body: undefined, headers }
  }

  #status(now: number): Success {
    return {
      status: 200,
      body: {
        status: 'operational',
        database: 'ok',
        total_redirects: this.totalRedirects,
        response_time_ms: 0,
        timestamp: new Date(now).toISOString(),
        version: /./,
      },
    }
  }
}

export const LINES_TYPE = 'application/x-ndjson'

function routeOf(path: string): Route {
  const [first = '', second = '', third = ''] = path.split('/').slice(1).map(decodeURIComponent)
  if (first === 'qr') return { name: 'stored', budget: 'read', goesOn: true, code: second }
  if (first !== 'api') return { name: 'follow', budget: 'read', goesOn: true, code: first }
  const isRead = ['list', 'status', 'lookup', 'qr', 'qr-image'].includes(second)
  return { name: second, budget: isRead ? 'read' : 'write', goesOn: false, code: third }
}

function refuseMethod({ method }: Call, { budget }: Route): void {
  const allowed = budget === 'write' ? ['POST'] : ['GET', 'HEAD']
  if (allowed.includes(method)) return
  throw new Refusal(405, `Method not allowed: ${method}`, { allow: allowed.join(', ') })
}

function parseBody({ body = '', type = '' }: Call): Record<string, unknown> {
  if (!/^application\/json\s*(;|$)/i.test(type)) throw new Refusal(415, /./)
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    throw new Refusal(400, /^Invalid JSON/)
  }
  const isObject = typeof value === 'object' && value !== null
  return isObject ? (value as Record<string, unknown>) : {}
}

/** An IPv4 address stands for itself, an IPv6 one for its network of 64 bits. */
function groupOf(address: string): string {
  const plain = address.replace(/^::ffff:/, '')
  return plain.includes(':') ? plain.split(':').slice(0, 4).join(':') : plain
}

function outcomeOf(work: () => Success): Success {
  try {
    return work()
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown
    return { status: thrown.status, body: thrown.body, headers: thrown.headers }
  }
}
