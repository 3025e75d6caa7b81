import type { Database } from 'bun:sqlite'
import { OneTimeLinkStore } from '../accounts/one-time-links.ts'
import { type PasswordFunctions, Passwords } from '../accounts/passwords.ts'
import { RecoveryCodeReads, type SecondFactorWrites } from '../accounts/second-factor.ts'
import { SecurityLog } from '../accounts/security-log.ts'
import { SessionReads, Sessions, type SessionWrites } from '../accounts/sessions.ts'
import type { OverviewReads } from '../accounts/store.ts'
import { Throttle } from '../accounts/throttle.ts'
import type { AccountWrites } from '../accounts/writes.ts'
import type { TopLinks } from '../analytics/top.ts'
import type { VisitDetails } from '../analytics/visits.ts'
import type { Blocklist } from '../blocklist/watch.ts'
import type { Config } from '../config.ts'
import type { Data } from '../data.ts'
import type { SettingWrites } from '../db/settings.ts'
import type { Decider } from '../db/writer.ts'
import type { RecentHitReads } from '../hits/recent.ts'
import type { HitSeries } from '../hits/series.ts'
import type { RequestBodies } from '../http/body.ts'
import type { GuardDeps } from '../http/guard.ts'
import type { UnsentResponses } from '../http/unsent.ts'
import { ImportJobs } from '../import/jobs.ts'
import type { ImportDeps } from '../import/lines.ts'
import type { ImportReads, ImportWrites } from '../import/store.ts'
import { HOUR, MINUTE } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Caller, Thread } from '../lib/thread.ts'
import type { CreateDeps } from '../links/create.ts'
import { AccountDeletion } from '../links/deletion.ts'
import type { DestinationReads } from '../links/destination.ts'
import type { ExportReads } from '../links/export.ts'
import type { LinkLists } from '../links/lists.ts'
import type { PropertiesDeps } from '../links/properties.ts'
import type { ReadDeps } from '../links/read.ts'
import type { TagReads } from '../links/tags.ts'
import type { Moderation } from '../moderation/moderation.ts'
import type { QrImages } from '../qr/images.ts'
import type { QrStore, QrWrites } from '../qr/store.ts'
import type { Vitals } from '../status/vitals.ts'
import { Cookies } from './auth/cookies.ts'

/** Parts of the service that the pages use. */
interface SharedDeps
  extends CreateDeps,
    ReadDeps,
    PropertiesDeps,
    GuardDeps,
    Pick<ImportDeps, 'effects'> {
  data: Data
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
  top: TopLinks
  blocklist: Pick<Blocklist, 'isBlocked' | 'state'>
  log: Log
}

/** Changes accounts, keys, sessions and settings. */
type DashboardWriter = Decider &
  Caller<
    AccountWrites &
      SessionWrites &
      SecondFactorWrites &
      SettingWrites &
      QrWrites &
      RecentHitReads &
      ImportWrites
  >

interface DashboardOptions {
  config: Config
  db: Database
  shared: SharedDeps
  writer: DashboardWriter
  startPasswords: () => Promise<Thread<PasswordFunctions>>
}

/** All dependencies of the pages. */
export type DashboardDeps = ReturnType<typeof openDashboard>

/**
 * Creates what only the dashboard uses: sessions, passwords, imports, the deletion of accounts. The
 * caller closes `deletion` and `imports`, which write in the background, and `passwords`, which
 * stops their thread.
 */
export function openDashboard({ config, db, shared, writer, startPasswords }: DashboardOptions) {
  const { baseUrl, rootUrl, signUp } = config
  const { accounts, links, log, hasher, clock, random } = shared
  if (/^http:/.test(baseUrl) && !/^(localhost|127\.|\[::1\])/.test(new URL(baseUrl).host)) {
    log.warn('dashboard.not_private', { base_url: baseUrl, advice: 'serve it over https' })
  }
  const takeOverMs = config.clusterUrl ? MINUTE : undefined
  return {
    ...shared,
    writer,
    baseUrl,
    rootUrl,
    signUp,
    passwords: new Passwords({ start: startPasswords }),
    deletion: new AccountDeletion({ writer, accounts, links, log, takeOverMs }),
    sessions: new Sessions({
      reads: new SessionReads(db),
      writer,
      hasher,
      clock,
      random,
      idleMs: config.sessionIdleMinutes * MINUTE,
      maxMs: config.sessionMaxHours * HOUR,
    }),
    throttle: new Throttle(shared.monotonic, { signUpsPerDay: config.signUpsPerDay }),
    security: new SecurityLog(log),
    oneTimeLinks: new OneTimeLinkStore(db),
    recoveryCodes: new RecoveryCodeReads(db),
    cookies: new Cookies({ baseUrl }),
    imports: new ImportJobs({ ...shared, writer }),
  }
}
