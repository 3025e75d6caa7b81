import { MINUTE } from '../lib/clock.ts'
import { parseRecoveryCode } from './recovery-codes.ts'
import type { Factor, RecoveryCodeReads } from './second-factor-store.ts'
import { hashesEqual, type SecretHasher } from './secrets.ts'
import { findDevice } from './sign-in.ts'
import type { AccountRow, AccountStore } from './store.ts'
import type { Attempt } from './throttle.ts'
import { findStep, openSecret } from './totp.ts'

/** The second step of a sign-in: what stands between the password and the session. */

/** How long the code may take after the password. */
const STEP_LIFE_MS = 5 * MINUTE

const TOKEN_SHAPE = /^(\d{1,15})\.(\d{1,15})\.([\w-]{43})$/

export const hasSecondFactor = ({ totpEnabledAt }: AccountRow): boolean => totpEnabledAt !== null

/**
 * What a browser keeps whose password was right: it names the account, opens nothing without a
 * code, and ends after five minutes or with that password.
 */
export function newStepToken(hasher: SecretHasher, account: AccountRow, now: number): string {
  const endsAt = now + STEP_LIFE_MS
  return `${account.id}.${endsAt}.${macOf(hasher, account, endsAt).toString('base64url')}`
}

/** The account whose second factor is asked for; undefined for a token that is forged or over. */
export function findStepAccount(
  { hasher, accounts }: { hasher: SecretHasher; accounts: AccountStore },
  token: string | undefined,
  now: number,
): AccountRow | undefined {
  const [, id = '', end = '', mac = ''] = TOKEN_SHAPE.exec(token ?? '') ?? []
  const account = id === '' ? undefined : accounts.find(Number(id))
  const endsAt = Number(end)
  // Ends too far ahead: the clock was set back.
  if (!account || now >= endsAt || endsAt - now > STEP_LIFE_MS) return undefined
  const expected = macOf(hasher, account, endsAt)
  if (!hashesEqual(expected, Buffer.from(mac, 'base64url'))) return undefined
  return account.disabledAt === null && hasSecondFactor(account) ? account : undefined
}

const macOf = (
  hasher: SecretHasher,
  { id, passwordHash, totpEnabledAt }: AccountRow,
  endsAt: number,
): Buffer => hasher.hash('sign-in-step', `${id} ${endsAt} ${totpEnabledAt} ${passwordHash}`)

/** What limits guesses at the codes of an account. */
export function codeAttempts(
  hasher: SecretHasher,
  { id }: AccountRow,
  { address, known }: { address: string; known: string | undefined },
): Attempt[] {
  const device = findDevice(hasher, id, known)
  return device === undefined
    ? [
        { gate: 'code', key: String(id) },
        { gate: 'address', key: address },
      ]
    : [{ gate: 'codeDevice', key: `${id} ${device}` }]
}

/**
 * The factor that a text shows: a code from the app that was not used yet, or a recovery code.
 * Using it up is the writer's work.
 */
export function findFactor(
  { hasher, recoveryCodes }: { hasher: SecretHasher; recoveryCodes: RecoveryCodeReads },
  { id, totpSecret, totpLastStep }: AccountRow,
  text: string,
  now: number,
): Factor | undefined {
  const step =
    totpSecret && findStep(openSecret(hasher, id, totpSecret), text.replace(/\s/g, ''), now)
  if (step && step > (totpLastStep ?? 0)) return { step }
  const code = parseRecoveryCode(text)
  const recoveryHash = code && hasher.hash('recovery-code', code)
  return recoveryHash && recoveryCodes.isUnused(id, recoveryHash) ? { recoveryHash } : undefined
}
