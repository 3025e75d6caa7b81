import { createHash } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'

/**
 * A provider of OpenID Connect whose user consents at once, and whose tokens can be wrong in the
 * ways that a client must notice. What it does right is in OpenID Connect Core 1.0, section 3.1.
 */

export const CLIENT_ID = 'hopcode'
export const CLIENT_SECRET = 'not so secret: %&+'

export const DISCOVERY = '/.well-known/openid-configuration'

interface Grant {
  redirectUri: string
  challenge: string
  claims: JWTPayload
  isUsed: boolean
}

interface Options {
  /** How it names itself, in place of its address. */
  issuer?: string
  /** Ways of a client to send its secret. */
  methods?: readonly string[]
  port?: number
  /** For https: a certificate of `localhost`. */
  tls?: { cert: string; key: string }
}

export class Provider implements AsyncDisposable {
  readonly #server: Bun.Server<undefined>
  readonly #options: Options
  #key = generateKeyPair('RS256')
  #keyId = 1
  /** Of the last token. */
  #subject: string | undefined
  readonly #grants = new Map<string, Grant>()
  /** Claims of the user that are only at the userinfo endpoint. */
  info: JWTPayload = {}
  /** Changes the next ID tokens. */
  spoil: (claims: JWTPayload) => JWTPayload = (claims) => claims
  /** Answers a request in its place. It may wait. */
  instead: (path: string) => Response | undefined | Promise<Response | undefined> = () => undefined
  isUnsigned = false
  /** It takes requests and does not answer. */
  isSilent = false
  /** Requests by path. */
  readonly requests: string[] = []

  constructor(options: Options = {}) {
    this.#options = options
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: options.port ?? 0,
      ...(options.tls && { tls: options.tls }),
      fetch: (request) => this.#answer(request),
    })
  }

  get url(): string {
    const origin = this.#options.tls ? 'https://localhost' : 'http://127.0.0.1'
    return `${origin}:${this.#server.port}`
  }

  get port(): number {
    return this.#server.port ?? 0
  }

  get issuer(): string {
    return this.#options.issuer ?? this.url
  }

  get settings(): Record<string, string> {
    return {
      OIDC_ISSUER: this.url,
      OIDC_CLIENT_ID: CLIENT_ID,
      OIDC_CLIENT_SECRET: CLIENT_SECRET,
      OIDC_NAME: 'Example SSO',
    }
  }

  count(path: string): number {
    return this.requests.filter((one) => one === path).length
  }

  rotateKeys(): void {
    this.#key = generateKeyPair('RS256')
    this.#keyId++
  }

  /** The user signs in at the page of the provider. Returns where the browser is sent back to. */
  consent(location: string, claims: JWTPayload): string {
    const { searchParams: query } = new URL(location)
    const code = crypto.randomUUID()
    const nonce = query.get('nonce')
    this.#grants.set(code, {
      redirectUri: query.get('redirect_uri') ?? '',
      challenge: query.get('code_challenge') ?? '',
      claims: { ...claims, ...(nonce !== null && { nonce }) },
      isUsed: false,
    })
    const back = new URL(query.get('redirect_uri') ?? '')
    back.search = String(new URLSearchParams({ code, state: query.get('state') ?? '' }))
    return back.href
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true)
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    this.requests.push(pathname)
    if (this.isSilent) await new Promise(() => {})
    const other = await this.instead(pathname)
    if (other) return other
    if (pathname === DISCOVERY) return Response.json(this.#metadata())
    if (pathname === '/token') return await this.#token(request)
    if (pathname === '/userinfo') return Response.json({ sub: this.#subject, ...this.info })
    if (pathname === '/jwks') {
      const { publicKey } = await this.#key
      const key = { ...(await exportJWK(publicKey)), kid: String(this.#keyId), alg: 'RS256' }
      return Response.json({ keys: [key] })
    }
    return new Response('', { status: 404 })
  }

  #metadata() {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.url}/authorize`,
      token_endpoint: `${this.url}/token`,
      userinfo_endpoint: `${this.url}/userinfo`,
      jwks_uri: `${this.url}/jwks`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
      ...(this.#options.methods && {
        token_endpoint_auth_methods_supported: this.#options.methods,
      }),
    }
  }

  async #token(request: Request): Promise<Response> {
    const body = new URLSearchParams(await request.text())
    const refuse = (error: string, status = 400) => Response.json({ error }, { status })
    if (!this.#isClient(request, body)) return refuse('invalid_client', 401)
    const grant = this.#grants.get(body.get('code') ?? '')
    const verifier = body.get('code_verifier') ?? ''
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const isRight =
      grant !== undefined &&
      !grant.isUsed &&
      grant.challenge === challenge &&
      grant.redirectUri === body.get('redirect_uri')
    if (!isRight) return refuse('invalid_grant')
    grant.isUsed = true
    const now = Math.floor(Date.now() / 1000)
    const claims = this.spoil({
      iss: this.issuer,
      aud: CLIENT_ID,
      iat: now,
      exp: now + 300,
      ...grant.claims,
    })
    const { privateKey } = await this.#key
    const token = this.isUnsigned
      ? new UnsecuredJWT(claims).encode()
      : await new SignJWT(claims)
          .setProtectedHeader({ alg: 'RS256', kid: String(this.#keyId) })
          .sign(privateKey)
    this.#subject = grant.claims.sub
    return Response.json({
      access_token: 'secret-access-token',
      token_type: 'Bearer',
      id_token: token,
    })
  }

  #isClient({ headers }: Request, body: URLSearchParams): boolean {
    const methods = this.#options.methods ?? ['client_secret_basic']
    const basic = /^Basic (.+)$/.exec(headers.get('authorization') ?? '')?.[1]
    if (!basic) {
      return methods.includes('client_secret_post') && body.get('client_secret') === CLIENT_SECRET
    }
    // RFC 6749, section 2.3.1: both parts are form-encoded.
    const [id = '', secret = ''] = atob(basic)
      .split(':')
      .map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
    return methods.includes('client_secret_basic') && id === CLIENT_ID && secret === CLIENT_SECRET
  }
}
