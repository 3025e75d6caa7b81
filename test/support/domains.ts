import { addDomain, type DomainInput } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { type Answer, type CallOptions, type TestApp, testApp } from './app.ts'

/** `go` answers its own links, `old` all. */
export const GO = 'go.example'
export const OLD = 'old.example'
export const PRIMARY = 'hop.test'

/** A link on `GO`, and one without a domain. */
export const L = 'AAAAAA'
export const M = 'BBBBBB'
export const L_URL = 'https://example.com/l'
export const M_URL = 'https://example.com/m'

export const add = (app: TestApp, input: DomainInput) =>
  addDomain(app.administration, operatorOf(app.administration), input)

/** A service with both domains, which all accounts may use, and both links of `free`. */
export async function appWithDomains(env: Record<string, string> = {}): Promise<TestApp> {
  const app = await testApp({ env: { IMPORT_ALIASES: 'all', ...env } })
  await add(app, { host: GO, for: 'all' })
  await add(app, { host: OLD, for: 'all', codes: 'all' })
  await app.claim(L, L_URL)
  await app.claim(M, M_URL)
  await patch(app, L, { domain: GO })
  return app
}

export const patch = (app: TestApp, code: string, json: object, key = 'free'): Promise<Answer> =>
  app.call('PATCH', `/api/links/${code}`, { key, json })

/** A request with a `Host` of its own. */
export const get = (app: TestApp, host: string, path: string, options: CallOptions = {}) =>
  app.call('GET', path, { ...options, headers: { host, ...options.headers } })

/** The status and the `Location` or the error. */
export async function outcome(app: TestApp, host: string, path: string): Promise<unknown[]> {
  const { status, headers, body } = await get(app, host, path)
  return [status, headers.get('location') ?? body.error]
}

/** The message of a refused change. `expect(…).rejects` would block the answer of the writer. */
export const refusalOf = (change: Promise<unknown>): Promise<string> =>
  change.then(
    () => 'not refused',
    (error: Error) => error.message,
  )
