import { isUtf8 } from 'node:buffer'
import type { Passwords } from '../accounts/passwords.ts'
import { hashesEqual, type SecretHasher } from '../accounts/secrets.ts'
import type { Attempt, Throttle } from '../accounts/throttle.ts'
import { AppError } from '../errors.ts'
import { type Client, clientIp, networkOf } from '../hot/client-address.ts'
import type { RequestBodies } from '../http/body.ts'
import type { RequestHeaders } from '../http/context.ts'
import { type Clock, HOUR, SECOND } from '../lib/clock.ts'
import { isBcrypt } from '../links/link-passwords.ts'
import type { PasswordAttempt, ProtectedLink } from './follow.ts'
import type { PasswordRefusal } from './responses.ts'

export interface GateDeps {
  baseUrl: string
  clock: Clock
  hasher: SecretHasher
  passwords: Passwords
  throttle: Throttle
  /** Null if the link has another hash by now. */
  replacePassword(change: { id: number; before: string; after: string }): Promise<object | null>
}

const UNLOCKED_MS = 12 * HOUR
const MAC_BYTES = 16
const VALUE = /^(\d{1,12})\.([\w-]{22})$/

/**
 * Decides which requests pass the password of a link. A browser that has sent it once has a cookie
 * for 12 hours, which no limit of attempts affects (decision 077).
 */
export class PasswordGate {
  readonly #deps: GateDeps
  readonly #prefix: string
  readonly #attributes: string

  constructor(deps: GateDeps) {
    this.#deps = deps
    const isSecure = deps.baseUrl.startsWith('https:')
    this.#prefix = `${isSecure ? '__Host-' : ''}hopcode-unlock-`
    const maxAge = `Max-Age=${UNLOCKED_MS / SECOND}`
    this.#attributes = `; Path=/; ${maxAge}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
  }

  /** Whether the browser has sent the present password of the link within 12 hours. */
  isUnlocked(headers: RequestHeaders, link: ProtectedLink): boolean {
    const cookies = new Bun.CookieMap(headers.get('cookie') ?? '')
    const [, expiry, mac = ''] = VALUE.exec(cookies.get(this.#nameOf(link)) ?? '') ?? []
    if (expiry === undefined || Number(expiry) * SECOND <= this.#deps.clock()) return false
    return hashesEqual(this.#macOf(link, expiry), Buffer.from(mac, 'base64url'))
  }

  /** `Set-Cookie` for a browser that has sent the password. */
  cookie(link: ProtectedLink): string {
    const expiry = String(Math.floor((this.#deps.clock() + UNLOCKED_MS) / SECOND))
    const mac = this.#macOf(link, expiry).toString('base64url')
    return `${this.#nameOf(link)}=${expiry}.${mac}${this.#attributes}`
  }

  /** Verifies a password, within the limits of guessing. Throws only if a thread fails. */
  async verify(link: ProtectedLink, password: string, client: Client): Promise<PasswordAttempt> {
    const { passwords, throttle } = this.#deps
    const { id, hash } = link
    const address = clientIp(client)
    const network = networkOf(address)
    const attempts: Attempt[] = [
      { gate: 'linkPair', key: `${id} ${address}` },
      { gate: 'linkAddress', key: address },
      { gate: 'linkNetwork', key: network },
      { gate: 'link', key: String(id) },
    ]
    const queue = isBcrypt(hash) ? 'importedLink' : 'visitor'
    const requester = { queue, key: network, link: String(id) } as const
    try {
      throttle.require(attempts)
      const hooks = throttle.hooks(attempts, () => {})
      const fits = await passwords.verify(password, hash, requester, hooks)
      if (!fits) return { refusal: { code: 'wrong_password' } }
      return { unlocked: isBcrypt(hash) ? await this.#renew(link, password, network) : link }
    } catch (error) {
      return { refusal: refusalOf(error) }
    }
  }

  /**
   * Replaces a hash of bcrypt, which takes ten times as long to verify, by one of Argon2id. If the
   * disk is full or the queue is, the old one stays, and the visitor passes all the same.
   */
  async #renew(link: ProtectedLink, password: string, network: string): Promise<ProtectedLink> {
    const { passwords, replacePassword } = this.#deps
    const { id, hash: before } = link
    try {
      const requester = { queue: 'visitor', key: network, link: String(id) } as const
      const after = await passwords.hash(password, requester)
      const replaced = await replacePassword({ id, before, after })
      return replaced === null ? link : { id, hash: after }
    } catch {
      return link
    }
  }

  /** The same for all addresses of a link. It does not tell the id of the link. */
  #nameOf({ id }: ProtectedLink): string {
    return this.#prefix + this.#deps.hasher.hash('link-unlock', `name ${id}`).toString('hex', 0, 4)
  }

  /** Another password has another hash, also the same one that is set again. */
  #macOf({ id, hash }: ProtectedLink, expiry: string): Buffer {
    return this.#deps.hasher.hash('link-unlock', `${id} ${expiry} ${hash}`).subarray(0, MAC_BYTES)
  }
}

function refusalOf(error: unknown): PasswordRefusal {
  if (!(error instanceof AppError)) throw error
  const code = error.code === 'too_many_attempts' ? error.code : 'busy'
  return { code, retryAfter: error.headers['retry-after'] ?? '1' }
}

/**
 * The password of `Authorization: Basic`, with any user name (RFC 7617): in UTF-8, as the challenge
 * says, or in Latin-1, which some programs send all the same.
 */
export function basicPassword(headers: RequestHeaders): string | undefined {
  const [, token] = /^basic +([A-Za-z0-9+/=_-]+)$/i.exec(headers.get('authorization') ?? '') ?? []
  if (token === undefined) return undefined
  const bytes = Buffer.from(token, 'base64')
  const text = bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1')
  const colon = text.indexOf(':')
  return colon < 0 ? undefined : text.slice(colon + 1)
}

const FORM_TYPE = 'application/x-www-form-urlencoded'
/** The longest password, percent-encoded. */
const FORM_BYTES_MAX = 2048

/** The password of the form; empty without one. Throws AppError for a body that is no form. */
export async function formPassword(
  bodies: RequestBodies,
  request: Request,
  holder: string,
): Promise<string> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';')
  if (type.trim().toLowerCase() !== FORM_TYPE)
    throw new AppError('unsupported_media_type', FORM_TYPE)
  using body = await bodies.read(request, { holder, bytesMax: FORM_BYTES_MAX })
  return new URLSearchParams(new TextDecoder().decode(body.bytes)).get('password') ?? ''
}
