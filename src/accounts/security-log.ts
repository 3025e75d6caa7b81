import type { Log } from '../lib/log.ts'
import type { AccountId } from './store.ts'

/** Events of sessions, accounts, keys and invitations. docs/operations/monitoring.md lists them. */
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
  | 'member.removed'
  | 'member.role_changed'
  | 'member.left'
  | 'links.moved'
  | 'account.renamed'
  | 'totp.enabled'
  | 'totp.disabled'
  | 'recovery_code.used'
  | 'identity.connected'
  | 'identity.disconnected'

/** The source of a request. */
export interface Origin {
  /** Network from `clientNetwork`: never the whole address. */
  network: string
  requestId: string
}

interface Details {
  /** The account that the event concerns; undefined if no account has the e-mail address. */
  accountId?: AccountId | undefined
  /** The account that caused the event, if it is another one. */
  byAccountId?: AccountId | undefined
  /** Further fields, without secrets. */
  fields?: Readonly<Record<string, string | number | undefined>>
}

/** Events that a client without an account can cause. */
const WARNINGS: readonly SecurityEvent[] = ['session.refused', 'throttle.engaged']

/** Writes security events to the log. */
export class SecurityLog {
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log
  }

  record(event: SecurityEvent, { network, requestId }: Origin, details: Details = {}): void {
    const fields = {
      account_id: details.accountId,
      by_account_id: details.byAccountId,
      ...details.fields,
      network,
      request_id: requestId,
    }
    if (WARNINGS.includes(event)) this.#log.warn(event, fields)
    else this.#log.info(event, fields)
  }
}
