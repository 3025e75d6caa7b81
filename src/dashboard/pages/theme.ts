import { isTheme } from '../auth/cookies.ts'
import { safeNext } from '../errors.ts'
import { signedInPages } from '../page-routes.ts'
import { isHtmx, noContent, seeOther } from '../responses.ts'

/** The choice of colors in the account menu. It is a cookie, so it belongs to this browser. */
export const themePages = signedInPages({
  'POST /app/theme': ({ deps, form, request }) => {
    const theme = form.text('theme')
    const cookie = isTheme(theme) ? deps.cookies.theme(theme) : deps.cookies.end('theme')
    if (isHtmx(request)) return noContent([cookie])
    return seeOther(safeNext(form.text('next')) ?? '/app/account', [cookie])
  },
})
