import { Elysia } from 'elysia'
import type { KeyAccess } from '../accounts/keys.ts'
import type { Config } from '../config.ts'
import { type AppError, degradedError } from '../errors.ts'
import type { ResponseState } from '../http/context.ts'
import { admit, enterWithKey, type GuardDeps, publicly } from '../http/guard.ts'
import { longJson } from '../http/unsent.ts'
import { deleteOwnedLink } from '../links/update.ts'
import { YOURLS_PATH } from '../redirect/clear-port.ts'
import * as shlink from './shlink.ts'
import * as yourls from './yourls.ts'

/**
 * The APIs of YOURLS and Shlink, for tools that ask for a host and a key of one of them. They are
 * not part of the description of our API.
 */

type Deps = GuardDeps &
  yourls.YourlsDeps &
  shlink.ShlinkDeps & { health: { totalRedirects(): number | undefined } }

export const compatibleRoutes = (deps: Deps) =>
  new Elysia({ name: 'compatible' })
    .use(yourlsRoutes(deps))
    .use(shlinkRoutes(deps))
    .use(healthRoutes(deps))

const SHLINK_PREFIX = '/rest/v3'

/** A refusal in the form of the API that the path belongs to; undefined for other paths. */
export function compatibleRefusal(
  { refusal, request, path }: { refusal: AppError; request: Request; path: string },
  { compatibleApis: isOn }: Pick<Config, 'compatibleApis'>,
): Response | undefined {
  if (!isOn) return undefined
  if (path === YOURLS_PATH) return yourls.yourlsRefusal(refusal, request)
  return path.startsWith(`${SHLINK_PREFIX}/`) ? shlink.problem(refusal, request) : undefined
}

function yourlsRoutes(deps: Deps) {
  const { answerYourls } = yourls
  return new Elysia({ name: 'compatible.yourls' })
    .derive(async ({ request, set }) => {
      const context = { request, set: set as ResponseState }
      const asked = await yourls.readAsked(deps.bodies, request).catch((error: unknown) => {
        admit(deps, context, { budget: 'read' })
        throw error
      })
      const access = yourls.isCreation(asked) ? 'create' : 'read'
      const { account } = await enterWithKey(deps, context, access, yourls.keyIn(asked))
      return { account, call: { deps, account, asked, signal: request.signal } }
    })
    .get(YOURLS_PATH, ({ call }) => answerYourls(call))
    .post(YOURLS_PATH, ({ call }) => answerYourls(call))
}

/** What each method needs of a key. */
const ACCESS: Readonly<Record<string, KeyAccess>> = {
  POST: 'create',
  PATCH: 'change',
  DELETE: 'manage',
}

function shlinkRoutes(deps: Deps) {
  const [all, one] = ['/short-urls', '/short-urls/:code'] as const
  return new Elysia({ name: 'compatible.shlink', prefix: SHLINK_PREFIX })
    .derive(async ({ request, set }) => {
      const context = { request, set: set as ResponseState }
      return await enterWithKey(deps, context, ACCESS[request.method] ?? 'read')
    })
    .post(all, ({ account, request }) => shlink.createShortUrl(deps, account, request))
    .get(all, async ({ account, request }) =>
      longJson(await shlink.listShortUrls(deps, account, request)),
    )
    .get(one, ({ account, params, query }) =>
      shlink.getShortUrl(deps, account, addressIn(params, query)),
    )
    .patch(one, ({ account, request, params, query }) =>
      shlink.editShortUrl(deps, account, request, addressIn(params, query)),
    )
    .delete(one, async ({ account, params, query }) => {
      await deleteOwnedLink(deps, account, addressIn(params, query))
      return new Response(null, { status: 204 })
    })
}

/** A short URL without its scheme, or a word on the primary domain. */
const addressIn = ({ code }: { code: string }, { domain }: { domain?: string }): string =>
  domain && domain !== 'DEFAULT' ? `${domain}/${code}` : code

function healthRoutes(deps: Deps) {
  const answer = () => {
    if (deps.health.totalRedirects() === undefined) throw degradedError('unhealthy', 'error')
    const body = { status: 'pass', version: shlink.SHLINK_RELEASE, links: {} }
    return Response.json(body, { headers: { 'content-type': 'application/health+json' } })
  }
  return new Elysia({ name: 'compatible.health' })
    .use(publicly(deps, { budget: 'read', reportsState: true }))
    .get('/rest/health', answer)
    .get(`${SHLINK_PREFIX}/health`, answer)
}
