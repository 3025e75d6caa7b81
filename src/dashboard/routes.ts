import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import favicon from './assets/favicon.ico' with { type: 'file' }
import { findAsset, LOGO_PATH } from './assets.ts'
import type { DashboardDeps } from './deps.ts'
import { anonymousPages } from './page-routes.ts'
import { accountPages, themeForms } from './pages/account.ts'
import { analyticsPages } from './pages/analytics.ts'
import { batchPages } from './pages/batch.ts'
import { bulkPages } from './pages/bulk.ts'
import { goPages } from './pages/go.ts'
import { handOverPages } from './pages/hand-over.ts'
import { importPages } from './pages/import.ts'
import { joinPages } from './pages/join.ts'
import { keyPages } from './pages/keys.ts'
import { linkPages } from './pages/link.ts'
import { linksPages } from './pages/links.ts'
import { accountChoicePages, memberPages } from './pages/members.ts'
import { oidcPages } from './pages/oidc.ts'
import { printPages } from './pages/print.ts'
import { publicPageForms, publicPages } from './pages/public-page.ts'
import { qrSettingsPages } from './pages/qr-settings.ts'
import { servicePages } from './pages/service.ts'
import { serviceAccountsPages } from './pages/service-accounts.ts'
import { serviceDomainsPages } from './pages/service-domains.ts'
import { serviceHostsPages } from './pages/service-hosts.ts'
import { serviceLinksPages } from './pages/service-links.ts'
import { signInPages, signOutPages } from './pages/sign-in.ts'
import { twoFactorPages } from './pages/two-factor.ts'

/** Each is charged like a page without a session: browsers load it once. */
const assetFiles = anonymousPages({
  'GET /app/assets/:file': ({ params, request }) => {
    const asset = findAsset(params.file ?? '', request.headers.get('accept-encoding'))
    if (!asset) throw new AppError('page_not_found')
    return asset
  },
})

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

const PAGES = [
  assetFiles,
  sitePages,
  signInPages,
  oidcPages,
  joinPages,
  signOutPages,
  linksPages,
  batchPages,
  bulkPages,
  importPages,
  handOverPages,
  goPages,
  linkPages,
  printPages,
  qrSettingsPages,
  accountPages,
  themeForms,
  memberPages,
  accountChoicePages,
  twoFactorPages,
  keyPages,
  publicPageForms,
  publicPages,
  analyticsPages,
  servicePages,
  serviceAccountsPages,
  serviceLinksPages,
  serviceDomainsPages,
  serviceHostsPages,
]

/** The dashboard at `/app`. */
export function dashboardRoutes(deps: DashboardDeps) {
  const app = new Elysia({ name: 'dashboard' })
  // In a loop: the type of a chain this long is too deep for TypeScript.
  for (const pages of PAGES) app.use(pages(deps))
  return app
}
