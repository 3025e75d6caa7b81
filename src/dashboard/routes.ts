import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { findAsset } from './assets.ts'
import type { DashboardDeps } from './deps.ts'
import { anonymousPages } from './page-routes.ts'
import { accountPages } from './pages/account.ts'
import { analyticsPages } from './pages/analytics.ts'
import { batchPages } from './pages/batch.ts'
import { bulkPages } from './pages/bulk.ts'
import { exportPages } from './pages/export.ts'
import { hitFiles } from './pages/hits-csv.ts'
import { importPages } from './pages/import.ts'
import { joinPages } from './pages/join.ts'
import { keyPages } from './pages/keys.ts'
import { linkPages } from './pages/link.ts'
import { linkQrFiles } from './pages/link-qr.ts'
import { linksPages } from './pages/links.ts'
import { qrSettingsPages } from './pages/qr-settings.ts'
import { servicePages } from './pages/service.ts'
import { serviceAccountPages } from './pages/service-account.ts'
import { serviceAccountsPages } from './pages/service-accounts.ts'
import { serviceLinksPages } from './pages/service-links.ts'
import { sharedPages, sharingPages } from './pages/shared.ts'
import { signInPages, signOutPages } from './pages/sign-in.ts'
import { sitePages } from './pages/site.ts'
import { themePages } from './pages/theme.ts'
import { twoFactorPages } from './pages/two-factor.ts'
import { visitPages } from './pages/visits.ts'

/** The dashboard at `/app`. */
export const dashboardRoutes = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard' })
    .use(assetFiles(deps))
    .use(sitePages(deps))
    .use(signInPages(deps))
    .use(joinPages(deps))
    .use(signOutPages(deps))
    .use(themePages(deps))
    .use(linksPages(deps))
    .use(batchPages(deps))
    .use(bulkPages(deps))
    .use(exportPages(deps))
    .use(importPages(deps))
    .use(linkPages(deps))
    .use(linkQrFiles(deps))
    .use(qrSettingsPages(deps))
    .use(accountPages(deps))
    .use(twoFactorPages(deps))
    .use(keyPages(deps))
    .use(visitPages(deps))
    .use(sharingPages(deps))
    .use(sharedPages(deps))
    .use(analyticsPages(deps))
    .use(hitFiles(deps))
    .use(servicePages(deps))
    .use(serviceAccountsPages(deps))
    .use(serviceAccountPages(deps))
    .use(serviceLinksPages(deps))

/** Each is charged like a page without a session: browsers load it once. */
const assetFiles = anonymousPages({
  'GET /app/assets/:file': ({ params, request }) => {
    const asset = findAsset(params.file ?? '', request.headers.get('accept-encoding'))
    if (!asset) throw new AppError('page_not_found')
    return asset
  },
})
