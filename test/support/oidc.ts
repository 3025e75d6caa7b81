import type { JWTPayload } from 'jose'
import { type TestApp, testApp } from './app.ts'
import { type Seen, Visitor } from './dashboard.ts'
import { Provider } from './oidc-provider.ts'

export const START = '/app/sign-in/oidc'

export const ANN = {
  sub: 'ann-1',
  email: 'ann@example.com',
  email_verified: true,
} satisfies JWTPayload

/** The service with a provider. `env`: settings beside those that name the provider. */
export async function withProvider(
  env: Record<string, string> = {},
  options: ConstructorParameters<typeof Provider>[0] = {},
) {
  const provider = new Provider(options)
  const app = await testApp({ env: { ...provider.settings, ...env } })
  return {
    app,
    provider,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]()
      await provider[Symbol.asyncDispose]()
    },
  }
}

/** Path and query, as a browser sends them to the address of the service. */
export const pathOf = (url: string | null): string => {
  const { pathname, search } = new URL(url ?? '', 'http://hop.test')
  return pathname + search
}

/** Starts a sign-in and consents. Returns the path that the provider sends the browser to. */
export async function consent(
  visitor: Visitor,
  provider: Provider,
  claims: JWTPayload,
  query = '',
): Promise<string> {
  const begun = await visitor.get(START + query)
  if (begun.location === null) throw new Error(`not sent to the provider: ${begun.status}`)
  return pathOf(provider.consent(begun.location, claims))
}

/** A whole sign-in. */
export const signInWith = async (
  visitor: Visitor,
  provider: Provider,
  claims: JWTPayload,
  query = '',
): Promise<Seen> => visitor.get(await consent(visitor, provider, claims, query))

/** Who the pages of a session are for; empty without one. */
export async function signedInAs(visitor: Visitor): Promise<string> {
  const { text } = await visitor.get('/app/account')
  return /<span class="email">([^<]+)<\/span>/.exec(text)?.[1] ?? ''
}

/** Somebody who has signed in with the provider before, and has no password. */
export async function makeUser(app: TestApp, provider: Provider, claims: JWTPayload = ANN) {
  const visitor = new Visitor(app)
  const seen = await signInWith(visitor, provider, claims)
  if (seen.location !== '/app/links') throw new Error(`no sign-in: ${seen.status}`)
  return visitor
}

interface Refused {
  event: string
  reason?: string
  detail?: string
}

/** The last sign-in that was refused, as the log has it. */
export const lastRefused = (log: readonly string[]): Refused | undefined =>
  log
    .map((line) => JSON.parse(line) as Refused)
    .findLast(({ event }) => event === 'session.refused')

export const lastReason = (log: readonly string[]): string | undefined => lastRefused(log)?.reason
