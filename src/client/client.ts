/**
 * Client of the Hopcode API for Node 20 and later, Bun, Deno and browsers. It uses no package.
 *
 * ```ts
 * const hopcode = new Hopcode({ url: 'https://hop.example', apiKey: 'hop_…' })
 * const { short_url } = await hopcode.shorten('https://example.com/a/long/address')
 * ```
 */

import { HopcodeError, HopcodeNetworkError } from './errors.ts'
import type { Schemas } from './openapi.gen.ts'

export { type ErrorKind, HopcodeError, HopcodeNetworkError } from './errors.ts'

// What methods accept and return. Result fields use the JSON names.

type QueryOf<Name> = Name extends `${infer Operation}_query` ? Operation : never
type Query<Operation extends QueryOf<keyof Schemas>> = Schemas[`${Operation}_query`]

export interface CallOptions {
  /** Cancels the request and its retries. The call rejects with the signal's reason. */
  signal?: AbortSignal
}

export interface ListOptions extends CallOptions, Query<'listLinks'> {}
export interface OwnListOptions extends CallOptions, Query<'listOwnLinks'> {}
export interface HistoryOptions extends CallOptions, Query<'history'> {}
export interface HitsOptions extends CallOptions, Query<'hits'> {}
export interface VisitsOptions extends CallOptions, Omit<Query<'visits'>, 'format'> {}

export interface QrOptions
  extends CallOptions,
    Omit<Query<'qr'>, 'logo' | 'transparent' | 'capitals'> {
  /** The logo of the code's account in the middle. The level is then H. */
  logo?: boolean
  /** No background. */
  transparent?: boolean
  /** The address in capitals, which needs fewer modules. */
  capitals?: boolean
}

/** A link as `shorten` and `bulkShorten` return it when they create it. */
export type CreatedLink = Schemas['ShortenedLink'] & { passcode: string; reused: false }
/** The code that the account already has for the URL. */
export type ReusedLink = Schemas['ShortenedLink'] & { passcode: null; reused: true }
export type ReservedCode = Schemas['ReservedCode'] & { url: null }
export type UpdatedLink = Schemas['UpdatedLink']
export type DeletedCode = Schemas['DeletedCode']

export interface BulkResult {
  count: number
  results: BulkItem[]
}
/** The result of one URL. The API description has one object with the properties of all forms. */
export type BulkItem =
  | (CreatedLink & { ok: true })
  | (ReusedLink & { ok: true })
  | { ok: false; url: string | null; error: string }

export type Link = Schemas['Link']
export type LinkPage = Schemas['LinkPage']
export type ListedLink = Schemas['ListedLink']

/** A link of the account with its optional properties. */
export type OwnLink = Schemas['OwnLink']
export type OwnLinkPage = Schemas['OwnLinkPage']
/**
 * Properties that `patchLink` can change. Null clears one; an absent one stays. `url` needs a key
 * with the access `manage`.
 */
export interface LinkChange extends Omit<Schemas['LinkChange'], 'tags' | 'aliases'> {
  /** At most 20, each of 1 to 40 characters without a comma. Stored in small letters. */
  tags?: readonly string[] | null
  /** All further paths of the link, in exact case, without the first slash: at most 20. */
  aliases?: readonly string[] | null
}

export type LinkHistory = Schemas['LinkHistory']

export type Domains = Schemas['Domains']

/** A line of an export. */
export type ImportedLink = Schemas['ImportedLink']
export type ImportResult = Schemas['ImportResult']
export interface ImportOptions extends CallOptions {
  /** Nothing is written: the results are those that an import of these lines would have now. */
  dryRun?: boolean | undefined
}

export type Hits = Schemas['HitSeries']
export type LinkHits = Schemas['LinkHitSeries']
export type Visits = Schemas['VisitReport']
export type LinkVisits = Schemas['LinkVisitReport']

export interface QrImage {
  /** `image/png` or `image/svg+xml`. */
  type: string
  bytes: Uint8Array<ArrayBuffer>
}

export type QrAddresses = Schemas['QrAddresses']
export type ServiceStatus = Schemas['ServiceStatus']

export interface HopcodeOptions {
  /** Base URL of the service, such as `https://hop.example`. */
  url: string
  /** Required by every operation but the public reads. */
  apiKey?: string
  /** Default: the platform's `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** Time limit of one attempt, in milliseconds. Default: 30,000. */
  timeoutMs?: number
  /** Retries after the first attempt. Default: 5. */
  retriesMax?: number
  /** Resolves after `ms`; rejects with the signal's reason. For tests. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
  /** From 0 to 1, for the jitter of retry delays. Default: `Math.random`. */
  random?: () => number
  /** Current time in epoch milliseconds, for a `Retry-After` that is a date. */
  now?: () => number
}

const RETRIED: readonly number[] = [429, 500, 502, 503, 504]
const FIRST_DELAY_MS = 1000
const DELAY_MAX_MS = 30_000
/** Each delay varies by up to this share of itself, in both directions. */
const JITTER = 0.25

/** The longest delay of `setTimeout`, about 25 days. */
const TIMER_MAX_MS = 2 ** 31 - 1

interface RequestOptions extends CallOptions {
  /** JSON, or lines of it as one text. */
  body?: object | string
  /** The body of the response may take any time, and is not retried. */
  isStream?: boolean
  query?: Readonly<Record<string, string | number | undefined>>
  /** Statuses other than 2xx that are not errors. */
  accept?: readonly number[]
}

const flag = (isSet: boolean | undefined) => (isSet ? 1 : undefined)

/**
 * Every method rejects with `HopcodeError`, `HopcodeNetworkError`, or the reason of its signal.
 * 429, 500, 502, 503, 504 and network errors are retried after 1, 2, 4, 8 and 16 seconds (25 %
 * jitter), or after the response's `Retry-After`. When the answer to `shorten` was lost, its retry
 * returns the link as reused, without the passcode.
 */
export class Hopcode {
  readonly #url: string
  readonly #apiKey: string | undefined
  readonly #fetch: NonNullable<HopcodeOptions['fetch']>
  readonly #timeoutMs: number
  readonly #retriesMax: number
  readonly #sleep: NonNullable<HopcodeOptions['sleep']>
  readonly #random: () => number
  readonly #now: () => number

  /** Throws TypeError unless `url` is an http or https URL. */
  constructor(options: HopcodeOptions) {
    const { protocol } = new URL(options.url)
    if (!/^https?:$/.test(protocol)) throw new TypeError(`not an http or https URL: ${options.url}`)
    this.#url = options.url.replace(/\/+$/, '')
    this.#apiKey = options.apiKey
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init))
    this.#timeoutMs = options.timeoutMs ?? 30_000
    this.#retriesMax = options.retriesMax ?? 5
    this.#sleep = options.sleep ?? sleep
    this.#random = options.random ?? Math.random
    this.#now = options.now ?? Date.now
  }

  /** Creates a link, or returns the one that the account already has for the URL. */
  shorten(url: string, options: CallOptions = {}): Promise<CreatedLink | ReusedLink> {
    return this.#json('POST', '/api/shorten', { ...options, body: { url } })
  }

  /** Shortens many URLs in one request: up to 100, 1,000 or more, depending on the plan. */
  bulkShorten(urls: readonly string[], options: CallOptions = {}): Promise<BulkResult> {
    return this.#json('POST', '/api/bulk-shorten', { ...options, body: { urls } })
  }

  /** Claims a code of 6 to 20 letters and digits, without a destination. */
  reserve(code: string, options: CallOptions = {}): Promise<ReservedCode> {
    return this.#json('POST', '/api/reserve', { ...options, body: { code } })
  }

  /** Sets the destination of a code. */
  update(
    { code, passcode, url }: { code: string; passcode: string; url: string },
    options: CallOptions = {},
  ): Promise<UpdatedLink> {
    return this.#json('POST', '/api/update', { ...options, body: { code, passcode, url } })
  }

  /** Deletes a code. Its short URL stops working, and any account can claim it. */
  delete(
    { code, passcode }: { code: string; passcode: string },
    options: CallOptions = {},
  ): Promise<DeletedCode> {
    return this.#json('POST', '/api/delete', { ...options, body: { code, passcode } })
  }

  /** One page of the account's links with their properties, newest first. */
  links(options: OwnListOptions = {}): Promise<OwnLinkPage> {
    const { limit, offset, search, tag, state, ...call } = options
    const query = { limit, offset, search, tag, state }
    return this.#json('GET', '/api/links', { ...call, query })
  }

  /** All links that match, page by page. Links that are created meanwhile may appear twice. */
  allLinks(options: Omit<OwnListOptions, 'limit' | 'offset'> = {}): AsyncGenerator<OwnLink> {
    return everyItem((page) => this.links({ ...options, ...page }))
  }

  /** A link of the account with its properties, such as title, tags and expiry. */
  getLink(code: string, options: CallOptions = {}): Promise<OwnLink> {
    return this.#json('GET', `/api/links/${encodeURIComponent(code)}`, options)
  }

  /** What was changed about a link and by whom, newest first. `before`: `next` of a page. */
  history(code: string, options: HistoryOptions = {}): Promise<LinkHistory> {
    const { limit, before, ...call } = options
    const path = `/api/links/${encodeURIComponent(code)}/history`
    return this.#json('GET', path, { ...call, query: { limit, before } })
  }

  /** Changes properties of a link. `update` changes its destination, and `url` with some keys. */
  patchLink(code: string, change: LinkChange, options: CallOptions = {}): Promise<OwnLink> {
    const path = `/api/links/${encodeURIComponent(code)}`
    return this.#json('PATCH', path, { ...options, body: change })
  }

  /** Deletes a link without its passcode, with a key with the access `manage`. */
  deleteOwnLink(code: string, options: CallOptions = {}): Promise<DeletedCode> {
    return this.#json('DELETE', `/api/links/${encodeURIComponent(code)}`, options)
  }

  /** The domains for short URLs of the account. The first one is that of the service. */
  domains(options: CallOptions = {}): Promise<Domains> {
    return this.#json('GET', '/api/domains', options)
  }

  /**
   * Creates links with their codes, dates and hits: one result for each, in order. What exists is
   * not changed. At most as many at once as `bulkShorten` accepts.
   */
  importLinks(links: readonly ImportedLink[], options: ImportOptions = {}): Promise<ImportResult> {
    const lines = links.map((link) => JSON.stringify(link))
    return this.importLines(lines, options)
  }

  /** Creates links from the lines of an export, which are JSON: see `importLinks`. */
  importLines(
    lines: readonly string[],
    { dryRun = false, ...options }: ImportOptions = {},
  ): Promise<ImportResult> {
    const query = dryRun && { query: { dry_run: 'true' } }
    return this.#json('POST', '/api/import', { ...options, body: lines.join('\n'), ...query })
  }

  /** All links of the account as one file: JSON Lines for `importLinks`, or CSV. */
  async exportLinks({
    format,
    ...options
  }: CallOptions & { format?: 'jsonl' | 'csv' } = {}): Promise<
    ReadableStream<Uint8Array<ArrayBuffer>>
  > {
    const about = { ...options, query: { format }, isStream: true }
    const { body } = await this.#request('GET', '/api/export', about)
    return body ?? new ReadableStream()
  }

  /** Needs no API key. Does not count a hit. */
  lookup(code: string, options: CallOptions = {}): Promise<Link> {
    return this.#json('GET', `/api/lookup/${encodeURIComponent(code)}`, options)
  }

  /** One page of the account's links, newest first. */
  list({ limit, offset, search, ...options }: ListOptions = {}): Promise<LinkPage> {
    return this.#json('GET', '/api/list', { ...options, query: { limit, offset, search } })
  }

  /** All links that match, page by page. Links that are created meanwhile may appear twice. */
  listAll(options: Omit<ListOptions, 'limit' | 'offset'> = {}): AsyncGenerator<ListedLink> {
    return everyItem((page) => this.list({ ...options, ...page }))
  }

  /** Hits of one of the account's links over time. */
  linkHits(code: string, { from, to, by, ...options }: HitsOptions = {}): Promise<LinkHits> {
    const path = `/api/links/${encodeURIComponent(code)}/hits`
    return this.#json('GET', path, { ...options, query: { from, to, by } })
  }

  /** Hits of all the account's links over time, deleted links included. */
  hits({ from, to, by, ...options }: HitsOptions = {}): Promise<Hits> {
    return this.#json('GET', '/api/hits', { ...options, query: { from, to, by } })
  }

  /** Where the visitors of one of the account's links come from, and what they use. */
  linkVisits(
    code: string,
    { by, from, to, limit, ...options }: VisitsOptions = {},
  ): Promise<LinkVisits> {
    const path = `/api/links/${encodeURIComponent(code)}/visits`
    return this.#json('GET', path, { ...options, query: { by, from, to, limit } })
  }

  /** Where the visitors of all the account's links come from, and what they use. */
  visits({ by, from, to, limit, ...options }: VisitsOptions = {}): Promise<Visits> {
    return this.#json('GET', '/api/visits', { ...options, query: { by, from, to, limit } })
  }

  /** The QR image of a code's short URL. Needs no API key. */
  async qr(
    code: string,
    { logo, transparent, capitals, signal, ...query }: QrOptions = {},
  ): Promise<QrImage> {
    const response = await this.#request('GET', `/api/qr/${encodeURIComponent(code)}`, {
      ...(signal && { signal }),
      query: {
        ...query,
        logo: flag(logo),
        transparent: flag(transparent),
        capitals: flag(capitals),
      },
    })
    const type = response.headers.get('content-type')?.split(';')[0] ?? ''
    return { type, bytes: new Uint8Array(await response.arrayBuffer()) }
  }

  /** Addresses of a code's QR image. Needs no API key. */
  qrAddresses(code: string, options: CallOptions = {}): Promise<QrAddresses> {
    return this.#json('GET', `/api/qr-image/${encodeURIComponent(code)}`, options)
  }

  /**
   * The address of the stored PNG, to which `/qr/{code}` redirects. Not in browsers, which hide the
   * destination of a redirect from scripts: use `qrAddresses` there.
   */
  qrStorageUrl(code: string, options: CallOptions = {}): Promise<string> {
    return this.#location(`/qr/${encodeURIComponent(code)}`, options)
  }

  /** The destination of a short URL. Counts a hit. Not in browsers: use `lookup` there. */
  follow(code: string, options: CallOptions = {}): Promise<string> {
    return this.#location(`/${encodeURIComponent(code)}`, options)
  }

  /** Needs no API key. Ask at most once in 30 seconds. */
  status(options: CallOptions = {}): Promise<ServiceStatus> {
    return this.#json('GET', '/api/status', options)
  }

  async #location(path: string, options: CallOptions): Promise<string> {
    const response = await this.#request('GET', path, { ...options, accept: [302] })
    const location = response.headers.get('location')
    if (location) return location
    throw new HopcodeError('The redirect has no readable Location', { status: response.status })
  }

  async #json<Result>(method: string, path: string, options: RequestOptions): Promise<Result> {
    const response = await this.#request(method, path, options)
    return (await response.json()) as Result
  }

  async #request(method: string, path: string, options: RequestOptions): Promise<Response> {
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#attempt(method, path, options)
      if (outcome instanceof Response) return outcome
      options.signal?.throwIfAborted()
      const isRetried = !(outcome instanceof HopcodeError) || RETRIED.includes(outcome.status)
      if (!isRetried || attempt >= this.#retriesMax) throw outcome
      await this.#sleep(this.#delayMs(attempt, outcome), options.signal)
    }
  }

  /** `attempt` counts from 0. */
  #delayMs(attempt: number, failure: HopcodeError | HopcodeNetworkError): number {
    if (failure instanceof HopcodeError && failure.retryAfter !== undefined) {
      return Math.min(failure.retryAfter * 1000, TIMER_MAX_MS)
    }
    const jitter = 1 + JITTER * (2 * this.#random() - 1)
    return Math.min(FIRST_DELAY_MS * 2 ** attempt * jitter, DELAY_MAX_MS)
  }

  /** The response, read to its end by the caller, or the reason why there is none. */
  async #attempt(
    method: string,
    path: string,
    { body, query = {}, accept = [], signal, isStream = false }: RequestOptions,
  ): Promise<Response | HopcodeError | HopcodeNetworkError> {
    signal?.throwIfAborted()
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) search.set(name, String(value))
    }
    const url = `${this.#url}${path}${search.size > 0 ? `?${search}` : ''}`
    const isText = typeof body === 'string'
    const timeout = isStream ? undefined : AbortSignal.timeout(this.#timeoutMs)
    const signals = [signal, timeout].filter((one) => one !== undefined)
    try {
      const response = await this.#fetch(url, {
        method,
        redirect: 'manual',
        signal: AbortSignal.any(signals),
        headers: {
          accept: 'application/json, image/*',
          ...(this.#apiKey !== undefined && { 'x-api-key': this.#apiKey }),
          ...(body && { 'content-type': isText ? 'application/x-ndjson' : 'application/json' }),
        },
        ...(body && { body: isText ? body : JSON.stringify(body) }),
      })
      if (!response.ok && !accept.includes(response.status)) return await this.#error(response)
      if (isStream) return response
      // A connection that breaks in the middle of the body is retried too.
      const { status, headers } = response
      const bytes = status === 204 || status === 302 ? null : await response.arrayBuffer()
      return new Response(bytes, { status, headers })
    } catch (cause) {
      return new HopcodeNetworkError(`${method} ${this.#url}${path} failed: ${reasonOf(cause)}`, {
        cause,
      })
    }
  }

  async #error(response: Response): Promise<HopcodeError> {
    const text = await response.text()
    const { error, request_id: requestId } = parseObject(text)
    const about = {
      status: response.status,
      requestId: typeof requestId === 'string' ? requestId : undefined,
      retryAfter: this.#secondsOf(response.headers.get('retry-after')),
    }
    return new HopcodeError(typeof error === 'string' ? error : `HTTP ${response.status}`, about)
  }

  /** A number of seconds, or a date (RFC 9110, section 10.2.3). */
  #secondsOf(retryAfter: string | null): number | undefined {
    if (retryAfter === null) return undefined
    if (/^\d+$/.test(retryAfter)) return Number(retryAfter)
    const date = Date.parse(retryAfter)
    return Number.isNaN(date) ? undefined : Math.max(0, (date - this.#now()) / 1000)
  }
}

/** The items of all pages, page by page: for lists that give items and their total number. */
async function* everyItem<Item>(
  pageOf: (page: { limit: number; offset: number }) => Promise<{ items: Item[]; total: number }>,
): AsyncGenerator<Item> {
  const limit = 200
  for (let offset = 0; ; offset += limit) {
    const { items, total } = await pageOf({ limit, offset })
    yield* items
    if (items.length < limit || offset + limit >= total) return
  }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : `${cause}`)

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', cancel)
      resolve()
    }, ms)
    signal?.addEventListener('abort', cancel, { once: true })
  })
}
