import { MINUTE, type MonotonicClock } from '../lib/clock.ts'
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

/** Events that anyone can cause without an account: at most `LINES_PER_MINUTE` of each. */
const FLOODABLE: readonly SecurityEvent[] = ['session.refused', 'throttle.engaged']
const LINES_PER_MINUTE = 30

interface Minute {
  startedAt: number
  lines: number
  suppressed: number
}

/** Writes security events to the log. A flood of refusals costs a bounded number of lines. */
export class SecurityLog {
  readonly #log: Log
  readonly #monotonic: MonotonicClock
  readonly #minutes = new Map<SecurityEvent, Minute>()

  constructor({ log, monotonic }: { log: Log; monotonic: MonotonicClock }) {
    this.#log = log
    this.#monotonic = monotonic
  }

  record(event: SecurityEvent, { network, requestId }: Origin, about: About = {}): void {
    const isFloodable = FLOODABLE.includes(event)
    const suppressed = isFloodable ? this.#admit(event) : 0
    if (suppressed === undefined) return
    const fields = {
      account_id: about.accountId,
      by_account_id: about.byAccountId,
      ...about.fields,
      network,
      request_id: requestId,
      // Lines of this event that were left out since the last one.
      suppressed: suppressed || undefined,
    }
    if (isFloodable) this.#log.warn(event, fields)
    else this.#log.info(event, fields)
  }

  /** Says how many lines were left out and not reported yet. */
  close(): void {
    for (const [event, { suppressed }] of this.#minutes) {
      if (suppressed > 0) this.#log.warn(event, { suppressed })
    }
    this.#minutes.clear()
  }

  /** How many lines the next one stands for beside itself; undefined if it is left out too. */
  #admit(event: SecurityEvent): number | undefined {
    const now = this.#monotonic()
    const minute = this.#minutes.get(event)
    if (!minute || now - minute.startedAt >= MINUTE) {
      this.#minutes.set(event, { startedAt: now, lines: 1, suppressed: 0 })
      return minute?.suppressed ?? 0
    }
    if (minute.lines >= LINES_PER_MINUTE) {
      minute.suppressed++
      return undefined
    }
    minute.lines++
    return 0
  }
}
