import type { Access } from './auth/access.ts'
import {
  type AnonymousContext,
  anonymousContext,
  type GuardOptions,
  type PageContext,
  type RequestContext,
  userContext,
} from './auth/guard.ts'
import type { DashboardDeps } from './deps.ts'
import { isFormError, type Result, seeOther } from './responses.ts'

export type PageFunction<Context = PageContext> = (context: Context) => Response | Promise<Response>

interface Handler<Context> {
  run: (context: Context) => Result | Promise<Result>
  /**
   * The page that has the form. It shows why `run` has refused what was sent, so that what was
   * typed is not lost.
   */
  page?: PageFunction<Context>
}

type SignedInRoute = Handler<PageContext> & Access & GuardOptions

/** A route for users with this role at least. `more`: its `page`, or other fields. */
const forRole =
  (role: Access['role']) =>
  (
    run: SignedInRoute['run'],
    more: PageFunction | Omit<SignedInRoute, 'role' | 'run'> = {},
  ): SignedInRoute => ({ role, run, ...(typeof more === 'function' ? { page: more } : more) })

export const viewer = forRole('viewer')
export const editor = forRole('editor')
export const admin = forRole('admin')
/** For owners of the service. */
export const owner = forRole('owner')

type Routes<Of> = Readonly<Record<`${'GET' | 'POST'} /${string}`, Of>>

export interface Route {
  method: string
  path: string
  /** Undefined: for everybody. */
  access?: Access
  answer: (deps: DashboardDeps, request: RequestContext) => Promise<Response>
}

/** Pages and forms of signed-in users, by method and path, each with the least role it needs. */
export const signedInPages = (routes: Routes<SignedInRoute>): Route[] =>
  Object.entries(routes).map(([key, route]) => ({
    ...splitKey(key),
    access: route,
    answer: async (deps, request) => answer(route, await userContext(deps, request, route)),
  }))

export const anonymousPages = (routes: Routes<Handler<AnonymousContext>>): Route[] =>
  Object.entries(routes).map(([key, route]) => ({
    ...splitKey(key),
    answer: async (deps, request) => answer(route, await anonymousContext(deps, request)),
  }))

function splitKey(key: string) {
  const [method = '', path = ''] = key.split(' ')
  return { method, path }
}

async function answer<Context extends { refusal?: unknown }>(
  { run, page }: Handler<Context>,
  context: Context,
): Promise<Response> {
  try {
    const result = await run(context)
    return typeof result === 'string' ? seeOther(result) : result
  } catch (error) {
    if (!page || !isFormError(error)) throw error
    return page({ ...context, refusal: error })
  }
}
