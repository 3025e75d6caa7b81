import type { Database } from 'bun:sqlite'
import { type AccountId, AccountStore } from './store.ts'

/** What somebody has shown beside the password. */
export type Factor =
  /** The time step of a code from the app. */
  | { step: number }
  /** The keyed hash of a recovery code. */
  | { recoveryHash: Uint8Array }

/** Look-ups of recovery codes, on the HTTP thread's own connection. */
export class RecoveryCodeReads {
  readonly #unused
  readonly #countUnused

  constructor(db: Database) {
    this.#unused = db.prepare<{ id: number }, [AccountId, Uint8Array]>(
      'SELECT id FROM recovery_codes WHERE account_id = ? AND hash = ? AND used_at IS NULL',
    )
    this.#countUnused = db.prepare<{ n: number }, [AccountId]>(
      'SELECT count(*) AS n FROM recovery_codes WHERE account_id = ? AND used_at IS NULL',
    )
  }

  isUnused(accountId: AccountId, hash: Uint8Array): boolean {
    return this.#unused.get(accountId, hash) !== null
  }

  countUnused(accountId: AccountId): number {
    return this.#countUnused.get(accountId)?.n ?? 0
  }
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function secondFactorWrites(db: Database) {
  const accounts = new AccountStore(db)
  const useStep = db.prepare<{ id: AccountId }, [number, AccountId]>(
    `UPDATE accounts SET totp_last_step = ?1
     WHERE id = ?2 AND totp_enabled_at IS NOT NULL
       AND (totp_last_step IS NULL OR totp_last_step < ?1)
     RETURNING id`,
  )
  const useRecoveryCode = db.prepare<{ id: number }, [number, AccountId, Uint8Array]>(
    `UPDATE recovery_codes SET used_at = ?
     WHERE account_id = ? AND hash = ? AND used_at IS NULL RETURNING id`,
  )
  const addCode = db.prepare<null, [AccountId, Uint8Array]>(
    'INSERT INTO recovery_codes (account_id, hash) VALUES (?, ?)',
  )

  /** Uses a factor up: no code is accepted twice. False if it was used already. */
  const useFactor = (accountId: AccountId, factor: Factor, now: number): boolean =>
    'step' in factor
      ? useStep.get(factor.step, accountId) !== null
      : useRecoveryCode.get(now, accountId, factor.recoveryHash) !== null

  return {
    useFactor,

    /** Stores a secret that is to be confirmed by a code. False once two-factor sign-in is on. */
    beginTotp({ accountId, secret }: { accountId: AccountId; secret: Uint8Array }): boolean {
      const account = accounts.find(accountId)
      if (!account || account.disabledAt !== null || account.totpEnabledAt !== null) return false
      accounts.change(accountId, { totpSecret: Buffer.from(secret) })
      return true
    },

    /**
     * Turns two-factor sign-in on. `secret` is the stored one that the code of `step` confirms:
     * false, and nothing is changed, if another form has replaced it or was sooner.
     */
    enableTotp(order: {
      accountId: AccountId
      secret: Uint8Array
      step: number
      recoveryHashes: readonly Uint8Array[]
      now: number
    }): boolean {
      const { accountId, secret, step, recoveryHashes, now } = order
      const account = accounts.find(accountId)
      if (!account?.totpSecret || account.totpEnabledAt !== null) return false
      if (!Buffer.from(account.totpSecret).equals(Buffer.from(secret))) return false
      accounts.change(accountId, { totpEnabledAt: now, totpLastStep: step })
      for (const hash of recoveryHashes) addCode.run(accountId, hash)
      return true
    },

    /** Turns two-factor sign-in off. False, and nothing is changed, if the factor is used up. */
    disableTotp(order: { accountId: AccountId; factor: Factor; now: number }): boolean {
      if (!useFactor(order.accountId, order.factor, order.now)) return false
      accounts.clearSecondFactor(order.accountId)
      return true
    },
  }
}

export type SecondFactorWrites = Omit<ReturnType<typeof secondFactorWrites>, 'useFactor'>
