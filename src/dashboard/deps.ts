import type { OneTimeLinkStore } from '../accounts/one-time-links.ts'
import type { Passwords } from '../accounts/passwords.ts'
import type { RecoveryCodeReads, SecondFactorWrites } from '../accounts/second-factor.ts'
import type { SecurityLog } from '../accounts/security-log.ts'
import type { Sessions, SessionWrites } from '../accounts/sessions.ts'
import type { OverviewReads } from '../accounts/store.ts'
import type { Throttle } from '../accounts/throttle.ts'
import type { AccountWrites } from '../accounts/writes.ts'
import type { TopLinks } from '../analytics/top.ts'
import type { VisitDetails } from '../analytics/visits.ts'
import type { Blocklist } from '../blocklist/watch.ts'
import type { SettingWrites } from '../db/settings.ts'
import type { Decider } from '../db/writer.ts'
import type { RecentHitReads } from '../hits/recent.ts'
import type { HitSeries } from '../hits/series.ts'
import type { RequestBodies } from '../http/body.ts'
import type { GuardDeps } from '../http/guard.ts'
import type { UnsentResponses } from '../http/unsent.ts'
import type { ImportJobs } from '../import/jobs.ts'
import type { ImportDeps } from '../import/lines.ts'
import type { ImportReads, ImportWrites } from '../import/store.ts'
import type { Log } from '../lib/log.ts'
import type { Caller } from '../lib/thread.ts'
import type { CreateDeps } from '../links/create.ts'
import type { AccountDeletion } from '../links/deletion.ts'
import type { DestinationReads } from '../links/destination.ts'
import type { ExportReads } from '../links/export.ts'
import type { LinkLists } from '../links/lists.ts'
import type { PropertiesDeps } from '../links/properties.ts'
import type { ReadDeps } from '../links/read.ts'
import type { SharedPageReads, SharedPageWrites } from '../links/shared-pages.ts'
import type { TagReads } from '../links/tags.ts'
import type { Moderation } from '../moderation/moderation.ts'
import type { QrImages } from '../qr/images.ts'
import type { QrStore, QrWrites } from '../qr/store.ts'
import type { Vitals } from '../status/vitals.ts'
import type { Cookies } from './auth/cookies.ts'

/** Parts of the service that the pages use. */
export interface SharedDeps
  extends CreateDeps,
    ReadDeps,
    PropertiesDeps,
    GuardDeps,
    Pick<ImportDeps, 'effects'> {
  bodies: RequestBodies
  unsent: UnsentResponses
  /** Reads of many rows. */
  reader: Caller<LinkLists & TagReads & ExportReads & OverviewReads & ImportReads>
  destinations: Pick<DestinationReads, 'find'>
  images: Pick<QrImages, 'render' | 'renderMany' | 'renderText' | 'checkLogo' | 'isReadable'>
  qrStore: QrStore
  moderation: Moderation
  vitals: () => Vitals
  series: HitSeries
  visitDetails: VisitDetails
  sharedPages: SharedPageReads
  top: TopLinks
  blocklist: Pick<Blocklist, 'isBlocked' | 'state'>
  log: Log
}

/** All dependencies of the pages. */
export interface DashboardDeps extends SharedDeps {
  /** Without a trailing slash. */
  baseUrl: string
  /** Where `/` redirects. Default: to the dashboard. */
  rootUrl?: string | undefined
  /** Whether people without an invitation can create an account. */
  signUp: 'open' | 'closed'
  sessions: Sessions
  passwords: Passwords
  throttle: Throttle
  security: SecurityLog
  oneTimeLinks: OneTimeLinkStore
  recoveryCodes: RecoveryCodeReads
  cookies: Cookies
  imports: ImportJobs
  deletion: AccountDeletion
  /** Changes accounts, keys, sessions and settings. */
  writer: Decider &
    Caller<
      AccountWrites &
        SessionWrites &
        SecondFactorWrites &
        SettingWrites &
        QrWrites &
        SharedPageWrites &
        RecentHitReads &
        ImportWrites
    >
}
