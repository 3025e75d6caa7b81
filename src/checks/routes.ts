import { Elysia } from 'elysia'
import { CHECKER_PATH, checkerPage } from './page.ts'

/** For everybody who finds the checks in a log. */
export const checkerRoutes = ({ baseUrl }: { baseUrl: string }) =>
  new Elysia({ name: 'checks' }).get(
    CHECKER_PATH,
    () =>
      new Response(checkerPage(new URL(baseUrl).host), {
        headers: { 'content-type': 'text/html; charset=utf-8' },
      }),
  )
