import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import favicon from './assets/favicon.ico' with { type: 'file' }
import { LOGO_PATH } from './assets.ts'
import type { DashboardDeps } from './deps.ts'
import { publicPages } from './pages/public-page.ts'
import { ROUTES } from './route-list.ts'

/** A search engine may follow short links: it indexes their destinations. */
const ROBOTS = `User-agent: *
Disallow: /app
Disallow: /api/
`

const DAY_SECONDS = 24 * 3600

/** Files that browsers and search engines ask every host for. They are small and need no limit. */
const sitePages = ({
  rootUrl = '/app',
  operatorLogo,
}: Pick<DashboardDeps, 'rootUrl' | 'operatorLogo'>) =>
  new Elysia({ name: 'dashboard.site' })
    .get('/', ({ redirect }) => redirect(rootUrl, 302))
    .get(LOGO_PATH, () => logoFile(operatorLogo))
    .get('/robots.txt', () => fileOf(ROBOTS, 'text/plain; charset=utf-8'))
    .get('/favicon.ico', () => fileOf(Bun.file(favicon), 'image/x-icon'))

/** An SVG may contain scripts: the policy keeps a browser that opens the file from running them. */
function logoFile(path: string | undefined): Response {
  if (path === undefined) throw new AppError('page_not_found')
  const type = /\.png$/i.test(path) ? 'image/png' : 'image/svg+xml'
  const response = fileOf(Bun.file(path), type)
  response.headers.set(
    'content-security-policy',
    "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  )
  return response
}

const fileOf = (body: string | Blob, type: string): Response =>
  new Response(body, {
    headers: { 'content-type': type, 'cache-control': `public, max-age=${DAY_SECONDS}` },
  })

/** The dashboard at `/app`. */
export function dashboardRoutes(deps: DashboardDeps): Elysia {
  const app = new Elysia({ name: 'dashboard' }).use(sitePages(deps)).use(publicPages(deps))
  for (const { method, path, answer } of ROUTES) {
    // Without a part that varies, a path has no parameters at all. Elysia decides by the text of
    // this function whether to read the query; a default value makes it overlook the query.
    app.route(method, path, ({ request, set, query, params }) =>
      answer(deps, { request, set, query, params: params ?? {} }),
    )
  }
  return app as unknown as Elysia
}
