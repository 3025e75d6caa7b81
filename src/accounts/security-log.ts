import type { Log } from '../lib/log.ts'
import type { AccountId } from './store.ts'

/** What happens to sessions, accounts, keys and invitations: see docs/operations/monitoring.md. */
export type SecurityEvent =
  | 'session.started'
  | 'session.refused'
  | 'throttle.engaged'
  | 'password.changed'
  | 'password.reset'
  | 'key.created'
  | 'key.rotated'
  | 'key.revoked'
  | 'key.ended'
  | 'account.created'
  | 'account.disabled'
  | 'account.enabled'
  | 'account.plan_changed'
  | 'account.deletion_started'
  | 'owner.set_up'
  | 'invite.created'
  | 'invite.withdrawn'
  | 'invite.accepted'
  | 'totp.enabled'
  | 'totp.disabled'
  | 'recovery_code.used'

/** Where a request came from. */
export interface Origin {
  /** As `clientNetwork` writes it: never the whole address. */
  network: string
  requestId: string
}

interface About {
  /** The account that the event is about; undefined where no account has the address. */
  accountId?: AccountId | undefined
  /** Who did it, if not that account itself. */
  byAccountId?: AccountId | undefined
  /** Further fields, without secrets. */
  fields?: Readonly<Record<string, string | number | undefined>>
}

/** Events that anyone can cause without an account. */
const WARNINGS: readonly SecurityEvent[] = ['session.refused', 'throttle.engaged']

/** Writes security events to the log. */
export class SecurityLog {
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log
  }

  record(event: SecurityEvent, { network, requestId }: Origin, about: About = {}): void {
    const fields = {
      account_id: about.accountId,
      by_account_id: about.byAccountId,
      ...about.fields,
      network,
      request_id: requestId,
    }
    if (WARNINGS.includes(event)) this.#log.warn(event, fields)
    else this.#log.info(event, fields)
  }
}
