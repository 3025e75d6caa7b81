import type { Database } from 'bun:sqlite'
import { OneTimeLinkStore } from '../accounts/one-time-links.ts'
import { type PasswordFunctions, Passwords } from '../accounts/passwords.ts'
import { RecoveryCodeReads } from '../accounts/second-factor.ts'
import { SecurityLog } from '../accounts/security-log.ts'
import { SessionReads, Sessions } from '../accounts/sessions.ts'
import { Throttle } from '../accounts/throttle.ts'
import type { Config } from '../config.ts'
import { ImportJobs } from '../import/jobs.ts'
import { HOUR, MINUTE } from '../lib/clock.ts'
import type { Thread } from '../lib/thread.ts'
import { AccountDeletion } from '../links/deletion.ts'
import { Cookies } from './auth/cookies.ts'
import type { DashboardDeps, SharedDeps } from './deps.ts'

interface DashboardOptions {
  config: Config
  db: Database
  shared: SharedDeps
  writer: DashboardDeps['writer']
  startPasswords: () => Promise<Thread<PasswordFunctions>>
}

/**
 * Creates what only the dashboard uses: sessions, passwords, imports, the deletion of accounts. The
 * caller closes `deletion` and `imports`, which write in the background, and `passwords`, which
 * stops their thread.
 */
export function openDashboard(options: DashboardOptions): DashboardDeps {
  const { config, db, shared, writer } = options
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
    passwords: new Passwords({ start: options.startPasswords }),
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
