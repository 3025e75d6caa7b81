import { createHash, type KeyObject, sign } from 'node:crypto'
import { z } from 'zod'
import { SECOND } from '../lib/clock.ts'
import { parseJson } from '../lib/json.ts'
import { VERSION } from '../lib/version.ts'
import { oneLine } from './status.ts'

/** A client of ACME (RFC 8555), with renewal information (RFC 9773). Decision 091. */

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

const TIMEOUT_MS = 30 * SECOND
const ANSWER_BYTES_MAX = 1024 * 1024
/** Pebble refuses some nonces on purpose; others nearly none. */
const NONCE_TRIES = 10
const RETRY_AFTER_MAX_MS = 7 * 24 * 3600 * SECOND
const POLL_MIN_MS = 250
const POLL_MAX_MS = 5 * SECOND

const Url = z.string().max(2000)
const Directory = z.object({
  newNonce: Url,
  newAccount: Url,
  newOrder: Url,
  renewalInfo: Url.optional(),
})
const Identifier = z.object({ type: z.string(), value: z.string() })
const Problem = z.object({
  type: z.string().default(''),
  detail: z.string().default(''),
  subproblems: z
    .array(z.object({ identifier: Identifier.optional(), detail: z.string().default('') }))
    .default([]),
})
const Order = z.object({
  status: z.string(),
  authorizations: z.array(Url).max(200),
  finalize: Url,
  certificate: Url.optional(),
  error: Problem.optional(),
})
const Authorization = z.object({
  status: z.string(),
  identifier: Identifier,
  challenges: z.array(
    z.object({
      type: z.string(),
      url: Url,
      status: z.string(),
      token: z
        .string()
        .regex(/^[\w-]{1,200}$/)
        .optional(),
      error: Problem.optional(),
    }),
  ),
})
const RenewalInfo = z.object({
  suggestedWindow: z.object({ start: z.string(), end: z.string() }),
})

export type Order = z.infer<typeof Order>
export type Authorization = z.infer<typeof Authorization>
type Problem = z.infer<typeof Problem>

/** A refusal of the authority, whose message is on one line. */
export class AcmeError extends Error {
  override readonly name = 'AcmeError'
  readonly status: number
  /** The last part of the problem's type, such as `rateLimited`. */
  readonly type: string
  readonly retryAfterMs: number | undefined
  /** Names that the refusal is about, with what is wrong with each. */
  readonly names: ReadonlyMap<string, string>

  constructor(status: number, problem: Problem, retryAfterMs?: number) {
    super(withoutSecrets(problem.detail) || `the authority answered ${status}`)
    this.status = status
    this.type = problem.type.replace(/^.*:/, '')
    this.retryAfterMs = retryAfterMs
    this.names = new Map(
      problem.subproblems.flatMap(({ identifier, detail }) =>
        identifier ? [[identifier.value, withoutSecrets(detail)] as const] : [],
      ),
    )
  }
}

/** A sentence of the authority without tokens and key authorizations. */
export const withoutSecrets = (text: string): string => oneLine(text.replace(/[\w-]{40,}/g, '…'))

const base64url = (text: string): string => Buffer.from(text).toString('base64url')

interface AcmeOptions {
  directory: string
  /** Of the account: P-256. */
  keys: { publicKey: KeyObject; privateKey: KeyObject }
  /** Undefined until there is one. */
  accountUrl: string | undefined
  fetch: Fetch
  /** The time of the authority, epoch ms, of each of its answers. */
  onDate: (date: number) => void
  /** Of one request and its answer. */
  timeoutMs?: number
}

interface AcmeAnswer {
  status: number
  headers: Headers
  text: string
}

export class AcmeClient {
  readonly #options: AcmeOptions
  readonly #jwk: { crv: unknown; kty: unknown; x: unknown; y: unknown }
  #urls: z.infer<typeof Directory> | undefined
  #nonce: string | undefined
  #accountUrl: string | undefined

  constructor(options: AcmeOptions) {
    this.#options = options
    this.#accountUrl = options.accountUrl
    const { crv, kty, x, y } = options.keys.publicKey.export({ format: 'jwk' })
    this.#jwk = { crv, kty, x, y }
  }

  /** Asks the authority for its time, and whether it answers at all. */
  async connect(): Promise<void> {
    const { newNonce } = await this.#directory()
    await this.#request(newNonce, { method: 'HEAD' })
  }

  /** Creates the account, or finds that of the key. Returns its URL. */
  async register(email: string): Promise<string> {
    const { newAccount } = await this.#directory()
    const contact = [`mailto:${email}`]
    const { headers } = await this.#post(newAccount, { termsOfServiceAgreed: true, contact })
    this.#accountUrl = headers.get('location') ?? ''
    return this.#accountUrl
  }

  async createOrder(
    names: readonly string[],
    replaces: string | undefined,
  ): Promise<{ url: string; order: Order }> {
    const { newOrder } = await this.#directory()
    const identifiers = names.map((value) => ({ type: 'dns', value }))
    const answer = await this.#post(newOrder, { identifiers, ...(replaces && { replaces }) })
    return { url: answer.headers.get('location') ?? '', order: parsed(Order, answer) }
  }

  async order(url: string): Promise<Order> {
    return parsed(Order, await this.#post(url, ''))
  }

  async authorization(url: string): Promise<Authorization> {
    return parsed(Authorization, await this.#post(url, ''))
  }

  /** What the service answers for a token (RFC 8555, section 8.1). */
  keyAuthorization(token: string): string {
    const hash = createHash('sha256').update(JSON.stringify(this.#jwk)).digest('base64url')
    return `${token}.${hash}`
  }

  /** Has the authority ask for the token of a challenge. */
  async respond(challengeUrl: string): Promise<void> {
    await this.#post(challengeUrl, {})
  }

  async finalize(url: string, request: Buffer): Promise<void> {
    await this.#post(url, { csr: request.toString('base64url') })
  }

  /** The certificate with its chain: PEM. */
  async download(url: string): Promise<string> {
    return (await this.#post(url, '', 'application/pem-certificate-chain')).text
  }

  /**
   * When the authority wants a certificate to be renewed, and when to ask again. Undefined: it does
   * not say.
   */
  async renewalInfo(id: string) {
    const { renewalInfo } = await this.#directory()
    if (renewalInfo === undefined) return undefined
    const answer = await this.#request(`${renewalInfo}/${id}`, {})
    if (answer.status !== 200) throw refusalOf(answer)
    const { start, end } = parsed(RenewalInfo, answer).suggestedWindow
    return {
      start: Date.parse(start),
      end: Date.parse(end),
      retryAfterMs: retryAfterOf(answer.headers),
    }
  }

  async #directory() {
    if (this.#urls) return this.#urls
    const answer = await this.#request(this.#options.directory, {})
    if (answer.status !== 200) throw refusalOf(answer)
    this.#urls = parsed(Directory, answer)
    return this.#urls
  }

  /** `payload`: empty to read. */
  async #post(url: string, payload: object | '', accept = 'application/json'): Promise<AcmeAnswer> {
    for (let tries = 1; ; tries++) {
      if (!this.#nonce) await this.connect()
      const body = this.#signed(url, payload)
      const headers = { 'content-type': 'application/jose+json', accept }
      const answer = await this.#request(url, { method: 'POST', headers, body })
      if (answer.status < 400) return answer
      const refusal = refusalOf(answer)
      if (refusal.type !== 'badNonce' || tries === NONCE_TRIES) throw refusal
    }
  }

  #signed(url: string, payload: object | ''): string {
    const account = this.#accountUrl ? { kid: this.#accountUrl } : { jwk: this.#jwk }
    const header = { alg: 'ES256', nonce: this.#nonce, url, ...account }
    this.#nonce = undefined
    const parts = {
      protected: base64url(JSON.stringify(header)),
      payload: payload === '' ? '' : base64url(JSON.stringify(payload)),
    }
    const key = { key: this.#options.keys.privateKey, dsaEncoding: 'ieee-p1363' } as const
    const signature = sign('sha256', Buffer.from(`${parts.protected}.${parts.payload}`), key)
    return JSON.stringify({ ...parts, signature: signature.toString('base64url') })
  }

  /** Throws an error of the network, or one for an address on another server. */
  async #request(url: string, init: RequestInit): Promise<AcmeAnswer> {
    if (URL.parse(url)?.origin !== new URL(this.#options.directory).origin) {
      throw new Error('the authority names an address on another server')
    }
    const headers = { 'user-agent': `hopcode/${VERSION}`, ...init.headers }
    const signal = AbortSignal.timeout(this.#options.timeoutMs ?? TIMEOUT_MS)
    const response = await this.#options.fetch(url, { ...init, headers, redirect: 'error', signal })
    const date = Date.parse(response.headers.get('date') ?? '')
    if (!Number.isNaN(date)) this.#options.onDate(date)
    this.#nonce = response.headers.get('replay-nonce') ?? this.#nonce
    return { status: response.status, headers: response.headers, text: await textOf(response) }
  }
}

/** Asks until the answer is final, or the deadline is over. Returns the last answer. */
export async function askUntil<Answer>(
  isFinal: (answer: Answer) => boolean,
  ask: () => Promise<Answer>,
  deadline: number,
): Promise<Answer> {
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(2 * pauseMs, POLL_MAX_MS)) {
    const answer = await ask()
    if (isFinal(answer) || performance.now() > deadline) return answer
    await Bun.sleep(pauseMs)
  }
}

/** Throws for a body that is longer than any of the protocol. */
async function textOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > ANSWER_BYTES_MAX) throw new Error('an answer of the authority is too long')
  }
  return text
}

function parsed<Schema extends z.ZodType>(schema: Schema, { text }: AcmeAnswer): z.infer<Schema> {
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    throw new Error('an answer of the authority is malformed')
  }
}

function refusalOf({ status, headers, text }: AcmeAnswer): AcmeError {
  // A server in front of the authority sends other texts.
  const found = Problem.safeParse(parseJson(text))
  const none = { type: '', detail: '', subproblems: [] }
  return new AcmeError(status, found.success ? found.data : none, retryAfterOf(headers))
}

/** Seconds, or a date. */
function retryAfterOf(headers: Headers): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const date = Date.parse(headers.get('date') ?? '')
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND : Date.parse(text) - date
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), RETRY_AFTER_MAX_MS)
}
