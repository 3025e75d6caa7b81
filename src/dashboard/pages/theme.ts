import { Elysia } from 'elysia'
import { isTheme } from '../auth/cookies.ts'
import { signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { safeNext } from '../errors.ts'
import { isHtmx, noContent, seeOther } from '../responses.ts'

/** The choice of colors in the account menu. It is a cookie, so it belongs to this browser. */
export const themePages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.theme', prefix: '/app' })
    .use(signedIn(deps))
    .post('/theme', ({ form, request }) => {
      const theme = form.text('theme')
      const cookie = isTheme(theme) ? deps.cookies.theme(theme) : deps.cookies.end('theme')
      if (isHtmx(request)) return noContent([cookie])
      return seeOther(safeNext(form.text('next')) ?? '/app/account', [cookie])
    })
