import type * as Library from 'openid-client'
import { AppError } from '../errors.ts'
import { HOUR, type MonotonicClock, monotonicClock } from '../lib/clock.ts'
import type { OidcSettings } from '../lib/oidc-settings.ts'

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
  /** Epoch seconds of the user's authentication; undefined if the provider does not say. */
  authTime: number | undefined
  /** What `OIDC_REQUIRE` asks for is there. */
  isAllowed: boolean
}

export type OidcReason = 'oidc.state' | 'oidc.provider' | 'oidc.issuer' | 'oidc.denied'

/** A sign-in that failed at the provider. The message is for the log, and has no secrets. */
export class OidcError extends Error {
  readonly reason: OidcReason

  constructor(reason: OidcReason, message: string) {
    super(message)
    this.reason = reason
  }
}

const TIMEOUT_SECONDS = 5
const DISCOVERY_KEPT_MS = HOUR
/** Requests to the provider at once: each may take `TIMEOUT_SECONDS`. */
const REQUESTS_MAX = 20

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
  #requests = 0

  constructor({ settings, redirectUri, monotonic = monotonicClock }: ProviderOptions) {
    this.settings = settings
    this.#redirectUri = redirectUri
    this.#monotonic = monotonic
  }

  /**
   * The page of the provider, and what the sign-in is then compared with. `isAgain`: the user
   * proves again who they are, also with a session at the provider. Throws OidcError.
   */
  begin({ isAgain }: { isAgain: boolean }): Promise<{ url: string; checks: Checks }> {
    return this.#ask(async (client) => {
      const configuration = await this.#configuration(client)
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
   * sent with the browser; its `state` was compared already. Throws OidcError.
   */
  finish(query: URLSearchParams, { state, nonce, verifier }: Checks): Promise<Claims> {
    return this.#ask(async (client) => {
      const configuration = await this.#configuration(client)
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
      const isWhole = claims.email !== undefined && this.#isAllowed(claims)
      const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined
      const info =
        isWhole || !hasMore
          ? {}
          : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
      return this.#claimsOf({ ...info, ...claims })
    })
  }

  #claimsOf(claims: Library.IDToken): Claims {
    const { iss, sub, email, email_verified: verified, auth_time: authTime } = claims
    return {
      issuer: iss,
      subject: sub,
      email: typeof email === 'string' ? email : undefined,
      // Some providers send a text.
      isVerified: verified === true || verified === 'true',
      authTime,
      isAllowed: this.#isAllowed(claims),
    }
  }

  #isAllowed(claims: Library.IDToken): boolean {
    const { require } = this.settings
    if (!require) return true
    const value = Object.hasOwn(claims, require.claim) ? claims[require.claim] : undefined
    return [value].flat().includes(require.value)
  }

  /** Kept for an hour. Sign-ins at once share one request; a failure is not kept. */
  async #configuration(client: Client): Promise<Library.Configuration> {
    const found = this.#found
    if (found && this.#monotonic() - found.at < DISCOVERY_KEPT_MS) return found.configuration
    this.#discovery ??= this.#discover(client).finally(() => {
      this.#discovery = undefined
    })
    return await this.#discovery
  }

  async #discover(client: Client): Promise<Library.Configuration> {
    const { issuer, clientId, clientSecret } = this.settings
    const isPlain = issuer.startsWith('http:')
    // What OpenID Connect assumes, unless the provider offers only the other way.
    const authenticate: Library.ClientAuth = (server, ...rest) => {
      const offered = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
      const isBasic = offered.includes('client_secret_basic')
      const way = isBasic ? client.ClientSecretBasic : client.ClientSecretPost
      way(clientSecret)(server, ...rest)
    }
    const configuration = await client.discovery(
      new URL(issuer),
      clientId,
      undefined,
      authenticate,
      { timeout: TIMEOUT_SECONDS, execute: isPlain ? [client.allowInsecureRequests] : [] },
    )
    this.#found = { configuration, at: this.#monotonic() }
    return configuration
  }

  async #ask<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    if (this.#requests >= REQUESTS_MAX) throw new AppError('busy')
    this.#requests++
    try {
      // Loaded at the first sign-in: a service without a provider never needs it.
      return await work(await import('openid-client'))
    } catch (error) {
      throw error instanceof OidcError || error instanceof AppError
        ? error
        : explained(error, this.settings)
    } finally {
      this.#requests--
    }
  }
}

/** An error of openid-client. Its message has no secrets; its causes may have tokens. */
function explained(error: unknown, { issuer }: OidcSettings): OidcError {
  const { code, error: said, cause } = error as { code?: string; error?: string; cause?: unknown }
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') {
    return new OidcError('oidc.denied', `the provider refused: ${shortened(said)}`)
  }
  if (code === 'OAUTH_RESPONSE_BODY_ERROR') {
    const reason = said === 'invalid_grant' ? 'oidc.state' : 'oidc.provider'
    return new OidcError(reason, `the provider refused the code: ${shortened(said)}`)
  }
  const { attribute, claim, body } = detailsOf(cause)
  if (attribute === 'issuer') {
    const says = shortened((body as { issuer?: unknown } | undefined)?.issuer)
    return new OidcError('oidc.issuer', `OIDC_ISSUER is ${issuer}, the provider says ${says}`)
  }
  if (claim === 'nonce') return new OidcError('oidc.state', 'the nonce is another one')
  const what = claim === undefined ? '' : `, claim ${shortened(claim)}`
  return new OidcError('oidc.provider', `${code ?? (error as Error).message}${what}`)
}

const DETAILS_DEPTH_MAX = 3

/** What openid-client compared: in a cause of the cause. */
function detailsOf(cause: unknown, depth = 0): Record<string, unknown> {
  if (typeof cause !== 'object' || cause === null || depth > DETAILS_DEPTH_MAX) return {}
  if ('attribute' in cause || 'claim' in cause) return cause as Record<string, unknown>
  return 'cause' in cause ? detailsOf(cause.cause, depth + 1) : {}
}

const SHOWN_MAX = 200
const shortened = (text: unknown): string => String(text).slice(0, SHOWN_MAX)

/** How long after its start a sign-in can be finished. */
export const FLOW_LIFE_SECONDS = 600
