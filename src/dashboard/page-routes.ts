import { Elysia } from 'elysia'
import {
  type AnonymousContext,
  anonymousContext,
  type GuardOptions,
  type PageContext,
  type RequestContext,
  userContext,
} from './auth/guard.ts'
import type { DashboardDeps } from './deps.ts'
import { isFormError, seeOther } from './responses.ts'

export type PageFunction<Context = PageContext> = (context: Context) => Response | Promise<Response>

/** Pages and forms by method and path. */
type Pages<Context> = Readonly<Record<`${'GET' | 'POST'} /${string}`, PageFunction<Context>>>

export const signedInPages = (pages: Pages<PageContext>, options?: GuardOptions) =>
  routesOf(pages, (deps, request, route) => userContext(deps, { ...request, route }, options))

export const anonymousPages = (pages: Pages<AnonymousContext>) =>
  routesOf(pages, (deps, request) => anonymousContext(deps, request))

const routesOf =
  <Context>(
    pages: Pages<Context>,
    contextOf: (deps: DashboardDeps, request: RequestContext, route: string) => Promise<Context>,
  ) =>
  (deps: DashboardDeps) => {
    const app = new Elysia()
    for (const [route, run] of Object.entries(pages)) {
      const [method = '', path = ''] = route.split(' ')
      // Without a part that varies, a path has no parameters at all. Elysia decides by the text of
      // this function whether to read the query; a default value makes it overlook the query.
      app.route(method, path, async ({ request, set, query, params }) =>
        run(await contextOf(deps, { request, set, query, params: params ?? {} }, route)),
      )
    }
    return app
  }

/**
 * A form: its action returns the path to redirect to, or a response. If the action refuses what was
 * sent, the form's own page shows that, so that what was typed is not lost.
 */
export const formAction =
  <Context extends { refusal?: unknown }>(
    page: PageFunction<Context>,
    act: (context: Context) => Promise<string | Response>,
  ): PageFunction<Context> =>
  async (context) => {
    try {
      const result = await act(context)
      return typeof result === 'string' ? seeOther(result) : result
    } catch (error) {
      if (!isFormError(error)) throw error
      return page({ ...context, refusal: error })
    }
  }
