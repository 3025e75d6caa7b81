import type { Database } from 'bun:sqlite'
import { OneTimeLinkStore } from '../accounts/one-time-links.ts'
import { type PasswordFunctions, Passwords } from '../accounts/passwords.ts'
import { RecoveryCodeReads, type SecondFactorWrites } from '../accounts/second-factor.ts'
import { SecurityLog } from '../accounts/security-log.ts'
import { SessionReads, Sessions, type SessionWrites } from '../accounts/sessions.ts'
import { Throttle } from '../accounts/throttle.ts'
import type { AccountWrites } from '../accounts/writes.ts'
import type { Config } from '../config.ts'
import type { SettingWrites } from '../db/settings.ts'
import { HOUR, MINUTE } from '../lib/clock.ts'
import type { Caller, Thread } from '../lib/thread.ts'
import { Cookies } from './auth/cookies.ts'
import { AccountDeletion } from './deletion.ts'
import type { DashboardDeps } from './deps.ts'

type Own =
  | 'sessions'
  | 'passwords'
  | 'throttle'
  | 'security'
  | 'oneTimeLinks'
  | 'recoveryCodes'
  | 'cookies'
  | 'deletion'
  | 'baseUrl'
  | 'signUp'

interface DashboardOptions {
  config: Config
  db: Database
  /** What the pages share with the rest of the service. */
  shared: Omit<DashboardDeps, Own | 'writer'>
  writer: Caller<AccountWrites & SessionWrites & SecondFactorWrites & SettingWrites>
  startPasswords: () => Promise<Thread<PasswordFunctions>>
}

export interface Dashboard {
  deps: DashboardDeps
  /** Stops background writers. `app.ts` closes the password thread. */
  close(): Promise<void>
}

/** What the dashboard has of its own: sessions, passwords, the deletion of accounts. */
export function openDashboard(options: DashboardOptions): Dashboard {
  const { config, db, shared, writer } = options
  const { baseUrl, signUp, sessionIdleMinutes, sessionMaxHours } = config
  const { accounts, links, log, hasher, clock, random } = shared
  if (/^http:/.test(baseUrl) && !/^(localhost|127\.|\[::1\])/.test(new URL(baseUrl).host)) {
    log.warn('dashboard.not_private', { base_url: baseUrl, advice: 'serve it over https' })
  }
  const passwords = new Passwords({ start: options.startPasswords })
  const deletion = new AccountDeletion({ writer, accounts, links, log })
  const limits = { idleMs: sessionIdleMinutes * MINUTE, maxMs: sessionMaxHours * HOUR }
  const deps: DashboardDeps = {
    ...shared,
    ...{ writer, baseUrl, signUp, passwords, deletion },
    sessions: new Sessions({
      ...{ reads: new SessionReads(db), writer, hasher, clock, random },
      ...limits,
    }),
    throttle: new Throttle(shared.monotonic),
    security: new SecurityLog(log),
    oneTimeLinks: new OneTimeLinkStore(db),
    recoveryCodes: new RecoveryCodeReads(db),
    cookies: new Cookies({ baseUrl }),
  }
  return {
    deps,
    close: () => deletion.close(),
  }
}
