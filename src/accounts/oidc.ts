import { unzipSync } from 'node:zlib'
import type * as Library from 'openid-client'
import type { OidcSettings } from '../config.ts'
import { AppError, retryAfter } from '../errors.ts'
import { HOUR, type MonotonicClock, monotonicClock } from '../lib/clock.ts'

/**
 * Sign-in with a provider of OpenID Connect: the authorization code flow with PKCE, by
 * openid-client. The signature of the ID token is not verified, because the token comes from the
 * provider itself over TLS (OpenID Connect Core 1.0, section 3.1.3.7).
 */

/** What the provider must send back, or prove. Secret, and different for each sign-in. */
export interface Checks {
  state: string
  nonce: string
  verifier: string
}

/** What the provider says about a user. */
export interface Claims {
  issuer: string
  subject: string
  email: string | undefined
  isVerified: boolean
  /** Epoch seconds of the user's authentication, unchecked; undefined if the ID token has none. */
  authTime: number | undefined
  /** What `OIDC_REQUIRE` asks for is there. */
  isAllowed: boolean
}

export type OidcReason = 'oidc.state' | 'oidc.provider' | 'oidc.issuer' | 'oidc.denied'

/**
 * Whose problem it is: `silence`: the provider was not reached. `setup`: of this service's settings
 * or its registration at the provider. `answer`: an answer that cannot be used.
 */
type OidcProblem = 'silence' | 'setup' | 'answer'

/** A sign-in that failed at the provider. The message is for the log, and has no secrets. */
export class OidcError extends Error {
  readonly reason: OidcReason
  readonly problem: OidcProblem

  constructor(reason: OidcReason, message: string, problem: OidcProblem = 'answer') {
    super(message)
    this.reason = reason
    this.problem = problem
  }
}

const TIMEOUT_SECONDS = 5
const DISCOVERY_KEPT_MS = HOUR
const ANSWER_BYTES_MAX = 1024 * 1024
/** OpenID Connect Core 1.0, section 2. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/

/** Sign-ins of one network at once that exchange their codes, or wait for discovery. */
const EXCHANGES_MAX = 4
const WAITING_MAX = 20
/** Networks with such sign-ins. */
const NETWORKS_MAX = 50

type Client = typeof Library

interface ProviderOptions {
  settings: OidcSettings
  /** Where the provider sends the browser back to. */
  redirectUri: string
  /** Default: the machine's clock. */
  monotonic?: MonotonicClock
}

export class OidcProvider {
  readonly settings: OidcSettings
  readonly #redirectUri: string
  readonly #monotonic: MonotonicClock
  #found: { configuration: Library.Configuration; at: number } | undefined
  #discovery: Promise<Library.Configuration> | undefined
  /** Sign-ins that hold a slot, by network. */
  readonly #held = new Map<string, number>()

  constructor({ settings, redirectUri, monotonic = monotonicClock }: ProviderOptions) {
    this.settings = settings
    this.#redirectUri = redirectUri
    this.#monotonic = monotonic
  }

  /**
   * The page of the provider, and what the sign-in is then compared with. `isAgain`: the user
   * proves again who they are, also with a session at the provider. Throws OidcError and `busy`.
   */
  begin(isAgain: boolean, network: string): Promise<{ url: string; checks: Checks }> {
    return this.#ask(async (client) => {
      const configuration = await this.#configuration(client, network)
      const checks = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      }
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: this.#redirectUri,
        scope: this.settings.scopes,
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
        ...(isAgain && { max_age: '0' }),
      })
      return { url: url.href, checks }
    })
  }

  /**
   * Exchanges the code for what the provider says about the user. `query`: what the provider has
   * sent with the browser; its `state` was compared already. Throws OidcError and `busy`.
   */
  finish(
    query: URLSearchParams,
    { state, nonce, verifier }: Checks,
    network: string,
  ): Promise<Claims> {
    const exchange = async (client: Client) => {
      const configuration = await this.#configuration(client, network)
      // openid-client derives `redirect_uri` from this address.
      const url = new URL(`${this.#redirectUri}?${query}`)
      const tokens = await client.authorizationCodeGrant(configuration, url, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (!claims) throw new OidcError('oidc.provider', 'the provider sent no ID token')
      const { iss: issuer, sub: subject, auth_time: authTime } = claims
      if (!SUBJECT.test(subject)) {
        throw new OidcError('oidc.provider', 'claim sub: not 1 to 255 characters of ASCII')
      }
      // Thin ID tokens leave the rest to userinfo.
      const { email, email_verified: verified = null } = claims
      const isWhole =
        typeof email === 'string' && verified !== null && this.#required(claims) !== undefined
      const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined
      const info =
        isWhole || !hasMore
          ? {}
          : await client.fetchUserInfo(configuration, tokens.access_token, subject)
      const value = this.#required(claims) ?? this.#required(info)
      const isAllowed = [value].flat().includes(this.settings.require?.value ?? true)
      return { issuer, subject, authTime, isAllowed, ...addressOf([claims, info]) }
    }
    return this.#hold(network, EXCHANGES_MAX, () => this.#ask(exchange))
  }

  /** The value of the claim that is required; true if none is. */
  #required(claims: object): unknown {
    const { require } = this.settings
    return require ? (findClaim(claims, require.claim) ?? undefined) : true
  }

  /** Kept for an hour. Sign-ins at once share one request; a failure is not kept. */
  async #configuration(client: Client, network: string): Promise<Library.Configuration> {
    const found = this.#found
    if (found && this.#monotonic() - found.at < DISCOVERY_KEPT_MS) return found.configuration
    return await this.#hold(`waiting ${network}`, WAITING_MAX, () => {
      this.#discovery ??= this.#discover(client).finally(() => {
        this.#discovery = undefined
      })
      return this.#discovery
    })
  }

  async #discover(client: Client): Promise<Library.Configuration> {
    const { issuer, clientId, clientSecret } = this.settings
    const isPlain = issuer.startsWith('http:')
    const scheme = isPlain ? 'http' : 'https:'
    // What OpenID Connect assumes, unless the provider offers only the other way.
    const authenticate: Library.ClientAuth = (server, ...rest) => {
      const offered = [server.token_endpoint_auth_methods_supported ?? 'client_secret_basic'].flat()
      const isBasic = offered.includes('client_secret_basic')
      const way = isBasic ? client.ClientSecretBasic : client.ClientSecretPost
      way(clientSecret)(server, ...rest)
    }
    const configuration = await client.discovery(
      new URL(issuer),
      clientId,
      undefined,
      authenticate,
      {
        timeout: TIMEOUT_SECONDS,
        execute: isPlain ? [client.allowInsecureRequests] : [],
        [client.customFetch]: boundedFetch,
      },
    )
    // A document that no sign-in can use is not kept.
    for (const name of ['authorization_endpoint', 'token_endpoint'] as const) {
      const isUsable = String(configuration.serverMetadata()[name]).startsWith(scheme)
      if (!isUsable) throw new OidcError('oidc.provider', `discovery has no valid ${name}`)
    }
    this.#found = { configuration, at: this.#monotonic() }
    return configuration
  }

  /** Throws `busy` if too many others with the key have not ended. */
  async #hold<Result>(key: string, most: number, work: () => Promise<Result>): Promise<Result> {
    const held = this.#held.get(key) ?? 0
    if (held >= most || (held === 0 && this.#held.size >= NETWORKS_MAX)) {
      throw new AppError('busy', '', retryAfter(TIMEOUT_SECONDS))
    }
    this.#held.set(key, held + 1)
    try {
      return await work()
    } finally {
      const left = (this.#held.get(key) ?? 0) - 1
      if (left > 0) this.#held.set(key, left)
      else this.#held.delete(key)
    }
  }

  async #ask<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    try {
      // Loaded at the first sign-in: a service without a provider never needs it.
      return await work(await import('openid-client'))
    } catch (error) {
      throw error instanceof OidcError || error instanceof AppError
        ? error
        : explained(error, this.settings)
    }
  }
}

/** The value at a name. Dots may be a part of it, or lead into objects: `realm_access.roles`. */
function findClaim(claims: unknown, name: string): unknown {
  if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) return undefined
  const own = claims as Record<string, unknown>
  if (Object.hasOwn(own, name)) return own[name]
  for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1)) {
    const head = name.slice(0, dot)
    const found = Object.hasOwn(own, head) ? findClaim(own[head], name.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * The address of the first source that has one. It is verified if a source says so of this address,
 * and none says that it is not. Some providers send a text.
 */
function addressOf(
  sources: readonly Record<string, unknown>[],
): Pick<Claims, 'email' | 'isVerified'> {
  const email = sources.map((one) => one.email).find((text) => typeof text === 'string')
  const flags = sources.flatMap(({ email: about = null, email_verified: verified = null }) => {
    if (verified === null) return []
    const isTrue = verified === true || verified === 'true'
    return isTrue && about !== null && about !== email ? [] : [isTrue]
  })
  return { email, isVerified: flags.length > 0 && !flags.includes(false) }
}

/**
 * Reads an answer within the time of its signal, up to `ANSWER_BYTES_MAX` also when it is
 * compressed. Of the headers only the type is left: openid-client would report a challenge in place
 * of the `error` in the body.
 */
const boundedFetch: Library.CustomFetch = async (url, { headers, ...options }) => {
  const response = await fetch(url, {
    ...(options as RequestInit),
    headers: { ...headers, 'accept-encoding': 'identity' },
    redirect: 'manual',
    decompress: false,
  })
  const chunks: Uint8Array[] = []
  let room = ANSWER_BYTES_MAX
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk)
    room -= chunk.length
    if (room < 0) throw new OidcError('oidc.provider', 'the answer has more than 1 MiB')
  }
  const { status, headers: sent } = response
  const bytes = Buffer.concat(chunks)
  const isPacked = (sent.get('content-encoding') ?? 'identity') !== 'identity'
  const body = isPacked ? unzipSync(bytes, { maxOutputLength: ANSWER_BYTES_MAX }) : bytes
  const type = { 'content-type': sent.get('content-type') ?? '' }
  return new Response(body.length > 0 ? body : null, { status, headers: type })
}

/** Errors of RFC 6749 that another configuration ends. */
const SETUP_ERROR = /^(invalid_(request|client|scope)|unauthorized_client|unsupported_\w+)$/

/** The provider was reached, and its certificate is not trusted here. */
const CERTIFICATE = /CERT|SIGNATURE/

/** An error of openid-client. Its message has no secrets; its causes may have tokens. */
function explained(error: unknown, { issuer }: OidcSettings): OidcError {
  const { error: said, cause } = error as { error?: string; cause?: { code?: string } }
  if (cause instanceof OidcError) return cause
  const code = (error as { code?: string }).code ?? cause?.code
  if (said !== undefined) {
    const message = `the provider refused: ${shortened(said)}`
    if (SETUP_ERROR.test(said)) return new OidcError('oidc.provider', message, 'setup')
    if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') return new OidcError('oidc.denied', message)
    return new OidcError(said === 'invalid_grant' ? 'oidc.state' : 'oidc.provider', message)
  }
  if (cause instanceof Response) {
    const problem = cause.status === 401 ? 'setup' : 'answer'
    return new OidcError('oidc.provider', `${code}, status ${cause.status}`, problem)
  }
  const { attribute, claim, body } = detailsOf(cause)
  if (attribute === 'issuer') {
    const says = shortened((body as { issuer?: unknown } | undefined)?.issuer)
    return new OidcError('oidc.issuer', `OIDC_ISSUER is ${issuer}, the provider says ${says}`)
  }
  if (claim === 'nonce') return new OidcError('oidc.state', 'the nonce is another one')
  const what = claim === undefined ? '' : `, claim ${shortened(claim)}`
  const isAnswer = /^(OAUTH|Z|ERR_BUFFER)_(?!TIMEOUT|ABORT)/.test(code ?? '')
  const problem = isAnswer ? 'answer' : CERTIFICATE.test(code ?? '') ? 'setup' : 'silence'
  return new OidcError('oidc.provider', `${code ?? (error as Error).message}${what}`, problem)
}

const DETAILS_DEPTH_MAX = 3

/** What openid-client compared: in a cause of the cause. */
function detailsOf(cause: unknown, depth = 0): Record<string, unknown> {
  if (typeof cause !== 'object' || cause === null || depth > DETAILS_DEPTH_MAX) return {}
  if ('attribute' in cause || 'claim' in cause) return cause as Record<string, unknown>
  // The text of such an error is fixed: it names the claim, and has no value.
  const [, claim] = /^unexpected JWT "(\w+)"/.exec(String((cause as Error).message)) ?? []
  if (claim) return { claim }
  return 'cause' in cause ? detailsOf(cause.cause, depth + 1) : {}
}

const SHOWN_MAX = 200
const shortened = (text: unknown): string => String(text).slice(0, SHOWN_MAX)

/** How long after its start a sign-in can be finished. */
export const FLOW_LIFE_SECONDS = 600
