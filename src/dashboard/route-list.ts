import { AppError } from '../errors.ts'
import { findAsset } from './assets.ts'
import { anonymousPages, type Route } from './page-routes.ts'
import { accountDomainPages, accountPages } from './pages/account.ts'
import { activityPages } from './pages/activity.ts'
import { analyticsPages } from './pages/analytics.ts'
import { batchPages } from './pages/batch.ts'
import { bulkPages } from './pages/bulk.ts'
import { campaignPages } from './pages/campaigns.ts'
import { goPages } from './pages/go.ts'
import { handOverPages } from './pages/hand-over.ts'
import { importPages } from './pages/import.ts'
import { joinPages } from './pages/join.ts'
import { keyPages } from './pages/keys.ts'
import { labelFormatPages } from './pages/label-formats.ts'
import { linkPages } from './pages/link.ts'
import { linksPages } from './pages/links.ts'
import { memberPages } from './pages/members.ts'
import { oidcPages } from './pages/oidc.ts'
import { printPages } from './pages/print.ts'
import { qrSettingsPages } from './pages/qr-settings.ts'
import { securityPages } from './pages/security.ts'
import { servicePages, serviceSettingsPages } from './pages/service.ts'
import { serviceAccountsPages } from './pages/service-accounts.ts'
import { serviceAppsPages } from './pages/service-apps.ts'
import { serviceDomainsPages } from './pages/service-domains.ts'
import { serviceHostsPages } from './pages/service-hosts.ts'
import { serviceLinksPages } from './pages/service-links.ts'
import { serviceUnknownPathsPages } from './pages/service-unknown-paths.ts'
import { signInPages } from './pages/sign-in.ts'
import { twoFactorPages } from './pages/two-factor.ts'
import { webhookPages } from './pages/webhooks.ts'

/** Each is charged like a page without a session: browsers load it once. */
const assetFiles = anonymousPages({
  'GET /app/assets/:file': {
    run: ({ params, request }) => {
      const asset = findAsset(params.file ?? '', request.headers.get('accept-encoding'))
      if (!asset) throw new AppError('page_not_found')
      return asset
    },
  },
})

/** In this order, the navigations and “Go to” offer them. */
export const ROUTES: readonly Route[] = [
  assetFiles,
  signInPages,
  oidcPages,
  joinPages,
  linksPages,
  batchPages,
  bulkPages,
  importPages,
  handOverPages,
  labelFormatPages,
  linkPages,
  printPages,
  accountPages,
  memberPages,
  activityPages,
  accountDomainPages,
  qrSettingsPages,
  campaignPages,
  webhookPages,
  securityPages,
  twoFactorPages,
  analyticsPages,
  keyPages,
  servicePages,
  serviceAccountsPages,
  serviceLinksPages,
  serviceDomainsPages,
  serviceAppsPages,
  serviceUnknownPathsPages,
  serviceHostsPages,
  serviceSettingsPages,
  goPages,
].flat()
