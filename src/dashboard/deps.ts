import { OidcProvider } from '../accounts/oidc.ts'
import type { Passwords } from '../accounts/passwords.ts'
import { SecurityLog } from '../accounts/security-log.ts'
import { Sessions } from '../accounts/sessions.ts'
import { Throttle } from '../accounts/throttle.ts'
import type { TopLinks } from '../analytics/top.ts'
import type { VisitDetails } from '../analytics/visits.ts'
import type { Blocklist } from '../blocklist/watch.ts'
import type { CertificateSource } from '../certificates/status.ts'
import type { Config } from '../config.ts'
import type { Data } from '../data.ts'
import type { HitSeries } from '../hits/series.ts'
import type { RequestBodies } from '../http/body.ts'
import type { GuardDeps } from '../http/guard.ts'
import type { UnsentResponses } from '../http/unsent.ts'
import { ImportJobs } from '../import/jobs.ts'
import type { ImportKit } from '../import/lines.ts'
import { HOUR, MINUTE } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { AccountDeletion } from '../links/deletion.ts'
import type { DestinationReads } from '../links/destination.ts'
import type { ListKit } from '../lists/export.ts'
import type { QrImages } from '../qr/images.ts'
import { lastBackupAt } from '../status/last-backup.ts'
import type { Vitals } from '../status/vitals.ts'
import type { Webhooks } from '../webhooks/control.ts'
import type { AccessTable } from './auth/access.ts'
import { Cookies } from './auth/cookies.ts'

/** Where the provider sends browsers back to. */
export const OIDC_CALLBACK = '/app/sign-in/oidc/callback'

/** Parts of the service that the pages use. */
type CommonDeps = ImportKit &
  ListKit &
  GuardDeps & {
    data: Data
    passwords: Passwords
    bodies: RequestBodies
    unsent: UnsentResponses
    destinations: Pick<DestinationReads, 'findByCode'>
    images: Pick<
      QrImages,
      | 'render'
      | 'findLeftOut'
      | 'findMissing'
      | 'renderText'
      | 'sheetSvg'
      | 'sheetPdf'
      | 'holdZip'
      | 'checkLogo'
      | 'isReadable'
    >
    vitals: () => Vitals
    series: HitSeries
    visitDetails: VisitDetails
    top: TopLinks
    blocklist: Pick<Blocklist, 'isBlocked' | 'isOwn' | 'refusalOf' | 'state'>
    log: Log
    webhooks: Webhooks
    /** Undefined without https. */
    certificates: Pick<CertificateSource, 'status' | 'retry'> | undefined
  }

interface DashboardOptions {
  config: Config
  common: CommonDeps
  access: AccessTable
}

/** All dependencies of the pages. */
export type DashboardDeps = ReturnType<typeof openDashboard>

/**
 * Creates what only the dashboard uses: sessions, imports, the deletion of accounts. The caller
 * closes `deletion` and `imports`, which write in the background.
 */
export function openDashboard({ config, common, access }: DashboardOptions) {
  const { baseUrl, rootUrl, signUp, operatorName, operatorLogo } = config
  const { data, links, log, hasher, clock, random } = common
  if (/^http:/.test(baseUrl) && !/^(localhost|127\.|\[::1\])/.test(new URL(baseUrl).host)) {
    log.warn('dashboard.not_private', { base_url: baseUrl, advice: 'serve it over https' })
  }
  const { oidc: settings, passwordSignIn } = config
  const redirectUri = `${baseUrl}${OIDC_CALLBACK}`
  return {
    ...common,
    access,
    baseUrl,
    rootUrl,
    signUp,
    /** Undefined without a provider. */
    oidc: settings && new OidcProvider({ settings, redirectUri, monotonic: common.monotonic }),
    passwordSignIn,
    operatorName,
    operatorLogo,
    settings: config.settings,
    /** Undefined if destinations are not checked. */
    checks: config.checkDestinations ? data.checks : undefined,
    /** Epoch ms; undefined if no backup was recorded. */
    lastBackupAt: () => lastBackupAt(config.dataDir),
    deletion: new AccountDeletion({ data, links, log }),
    sessions: new Sessions({
      data,
      hasher,
      clock,
      random,
      idleMs: config.sessionIdleMinutes * MINUTE,
      maxMs: config.sessionMaxHours * HOUR,
    }),
    throttle: new Throttle(common.monotonic, { signUpsPerDay: config.signUpsPerDay }),
    security: new SecurityLog(log),
    cookies: new Cookies({ baseUrl }),
    imports: new ImportJobs(common),
  }
}
