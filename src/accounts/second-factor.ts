/** Two-factor sign-in: the step after the password, codes of an app (TOTP), recovery codes. */

import type { Database } from 'bun:sqlite'
import { createHmac } from 'node:crypto'
import { Secret, TOTP } from 'otpauth/bare'
import { type DataOf, subject, write } from '../db/subject.ts'
import { MINUTE } from '../lib/clock.ts'
import { type RandomBytes, randomString } from '../lib/random.ts'
import { seal, unseal } from './sealed.ts'
import { hashesEqual, type SecretHasher } from './secrets.ts'
import { findTrustedDevice } from './sign-in.ts'
import { type AccountReads, accountStore, type PersonId, type PersonRow } from './store.ts'
import type { Attempt } from './throttle.ts'

export const hasSecondFactor = ({ totpEnabledAt }: PersonRow): boolean => totpEnabledAt !== null

/** How long the code may be entered after the password. */
const STEP_LIFE_MS = 5 * MINUTE

const STEP_TOKEN_SHAPE = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})(?:\.(\d{1,15}))?\.([\w-]{43})$/

/**
 * The first step of a sign-in. `identityId`: what proved it; 0 for the password. `provedAt`: see
 * `FirstProof`.
 */
export interface FirstStep {
  person: PersonRow
  identityId: number
  provedAt?: number | undefined
}

/**
 * Issued to a browser after the first step of a sign-in. It names the person, grants nothing
 * without a code, and expires after five minutes or when the password changes.
 */
export function newStepToken(hasher: SecretHasher, step: FirstStep, now: number): string {
  const expiresAt = now + STEP_LIFE_MS
  const mac = stepMac(hasher, step, expiresAt).toString('base64url')
  const proved = step.provedAt === undefined ? '' : `.${step.provedAt}`
  return `${step.person.id}.${expiresAt}.${step.identityId}${proved}.${mac}`
}

/** The step of a token that is neither forged nor expired, if there is still a second factor. */
export function findFirstStep(
  { hasher, data }: { hasher: SecretHasher; data: { accounts: AccountReads } },
  token: string | undefined,
  now: number,
): FirstStep | undefined {
  const [, id = '', expiry = '', identity = '', proved, mac = ''] =
    STEP_TOKEN_SHAPE.exec(token ?? '') ?? []
  const person = id === '' ? undefined : data.accounts.findPerson(Number(id))
  const expiresAt = Number(expiry)
  // Expires too far ahead: the clock was set back.
  if (!person || now >= expiresAt || expiresAt - now > STEP_LIFE_MS) return undefined
  const provedAt = proved === undefined ? undefined : Number(proved)
  const step = { person, identityId: Number(identity), provedAt }
  const expected = stepMac(hasher, step, expiresAt)
  if (!hashesEqual(expected, Buffer.from(mac, 'base64url'))) return undefined
  return person.hasAccount === 1 && hasSecondFactor(person) ? step : undefined
}

const stepMac = (
  hasher: SecretHasher,
  { person: { id, passwordHash, totpEnabledAt }, identityId, provedAt }: FirstStep,
  expiresAt: number,
): Buffer =>
  hasher.hash(
    'sign-in-step',
    `${id} ${expiresAt} ${identityId} ${provedAt} ${totpEnabledAt} ${passwordHash}`,
  )

/** The gates at which a guessed code of a person is counted. */
export function codeAttempts(
  hasher: SecretHasher,
  { id }: PersonRow,
  { address, deviceToken }: { address: string; deviceToken: string | undefined },
): Attempt[] {
  const device = findTrustedDevice(hasher, id, deviceToken)
  return device === undefined
    ? [
        { gate: 'code', key: String(id) },
        { gate: 'address', key: address },
      ]
    : [{ gate: 'codeDevice', key: `${id} ${device}` }]
}

/** The second factor of one sign-in. */
export type Factor =
  /** The time step of a code from the app. */
  | { kind: 'totp'; step: number }
  /** The keyed hash of a recovery code. */
  | { kind: 'recovery'; recoveryHash: Uint8Array }

/**
 * The factor that a text stands for: a code from the app that is not used yet, or a recovery code.
 * The writer thread marks it as used.
 */
export function findFactor(
  { hasher, data }: { hasher: SecretHasher; data: DataOf<{ secondFactors: typeof secondFactors }> },
  { id, totpSecret, totpLastStep }: PersonRow,
  text: string,
  now: number,
): Factor | undefined {
  const step =
    totpSecret && findStep(openSecret(hasher, id, totpSecret), text.replace(/\s/g, ''), now)
  if (step && step > (totpLastStep ?? 0)) return { kind: 'totp', step }
  const code = parseRecoveryCode(text)
  const recoveryHash = code && hasher.hash('recovery-code', code)
  return recoveryHash && data.secondFactors.isUnusedCode(id, recoveryHash)
    ? { kind: 'recovery', recoveryHash }
    : undefined
}

// Codes of an authenticator app (TOTP, RFC 6238): six digits, a new code every 30 seconds.

const PERIOD_SECONDS = 30
/** Codes that are accepted before and after the current one, for clocks that differ. */
const WINDOW_STEPS = 1
/** RFC 4226, section 4, recommends 160 bits. */
const SECRET_BYTES = 20

export const newTotpSecret = (random: RandomBytes): Uint8Array => random(SECRET_BYTES)

const useOf = (personId: PersonId) =>
  ({ purpose: 'totp-encryption', about: String(personId) }) as const

/** A secret works for its own person only. */
export const sealSecret = (
  deps: { hasher: SecretHasher; random: RandomBytes },
  personId: PersonId,
  secret: Uint8Array,
): Buffer => seal(deps, useOf(personId), secret)

/** Throws if the secret was encrypted with another key, or for another person. */
export const openSecret = (
  hasher: SecretHasher,
  personId: PersonId,
  sealed: Uint8Array,
): Uint8Array => unseal(hasher, useOf(personId), sealed)

/** The `otpauth://` URL that an app reads from a QR code, and the key that can be typed instead. */
export function describeSecret(
  secret: Uint8Array,
  { issuer, email }: { issuer: string; email: string },
): { url: string; key: string } {
  const totp = totpOf(secret, { issuer, label: email })
  return { url: totp.toString(), key: totp.secret.base32 }
}

/** The time step that a code belongs to; undefined for a wrong one. `now` is wall-clock time. */
export function findStep(secret: Uint8Array, code: string, now: number): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined
  const delta = totpOf(secret).validate({ token: code, timestamp: now, window: WINDOW_STEPS })
  if (delta === null) return undefined
  return TOTP.counter({ period: PERIOD_SECONDS, timestamp: now }) + delta
}

function totpOf(secret: Uint8Array, names: { issuer?: string; label?: string } = {}): TOTP {
  return new TOTP({
    ...names,
    secret: new Secret({ buffer: Uint8Array.from(secret).buffer }),
    algorithm: 'SHA1',
    digits: 6,
    period: PERIOD_SECONDS,
    hmac: (_, key, message) => createHmac('sha1', key).update(message).digest(),
  })
}

// Recovery codes: each replaces the app's code once, when the device is lost.

export const RECOVERY_CODES = 10
/** Characters without look-alikes. Ten of them are 50 bits. */
const RECOVERY_ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'
const RECOVERY_LENGTH = 10
const RECOVERY_SHAPE = new RegExp(`^[${RECOVERY_ALPHABET}]{${RECOVERY_LENGTH}}$`)

/** Recovery codes in the form that is hashed; `showRecoveryCode` makes them readable. */
export const newRecoveryCodes = (random: RandomBytes): string[] =>
  Array.from({ length: RECOVERY_CODES }, () =>
    randomString(random, RECOVERY_ALPHABET, RECOVERY_LENGTH),
  )

export const showRecoveryCode = (code: string): string => `${code.slice(0, 5)}-${code.slice(5)}`

/** A code as typed, in any letter case, with or without the dash; undefined for another text. */
function parseRecoveryCode(text: string): string | undefined {
  const code = text.replace(/[\s-]/g, '').toUpperCase()
  return RECOVERY_SHAPE.test(code) ? code : undefined
}

/**
 * Returns the function that marks a factor as used, so no code is accepted twice. It returns false
 * if the factor was used already. For the writer thread.
 */
export function factorUser(db: Database) {
  const useStep = db.prepare<{ id: PersonId }, [number, PersonId]>(
    `UPDATE people SET totp_last_step = ?1
     WHERE id = ?2 AND totp_enabled_at IS NOT NULL
       AND (totp_last_step IS NULL OR totp_last_step < ?1)
     RETURNING id`,
  )
  const useRecoveryCode = db.prepare<{ id: number }, [number, PersonId, Uint8Array]>(
    `UPDATE recovery_codes SET used_at = ?
     WHERE person_id = ? AND hash = ? AND used_at IS NULL RETURNING id`,
  )
  return (personId: PersonId, factor: Factor, now: number): boolean =>
    factor.kind === 'totp'
      ? useStep.get(factor.step, personId) !== null
      : useRecoveryCode.get(now, personId, factor.recoveryHash) !== null
}

/** Two-factor sign-in of people, and their recovery codes. */
export const secondFactors = subject({
  reads(db) {
    const unused = db.prepare<{ id: number }, [PersonId, Uint8Array]>(
      'SELECT id FROM recovery_codes WHERE person_id = ? AND hash = ? AND used_at IS NULL',
    )
    const countUnused = db.prepare<{ n: number }, [PersonId]>(
      'SELECT count(*) AS n FROM recovery_codes WHERE person_id = ? AND used_at IS NULL',
    )
    return {
      isUnusedCode: (personId: PersonId, hash: Uint8Array): boolean =>
        unused.get(personId, hash) !== null,

      countUnusedCodes: (personId: PersonId): number => countUnused.get(personId)?.n ?? 0,
    }
  },

  writes: {
    /** Stores a secret that a code must confirm. False if two-factor sign-in is already on. */
    begin: write((db) => {
      const accounts = accountStore(db)
      return ({ personId, secret }: { personId: PersonId; secret: Uint8Array }): boolean => {
        const person = accounts.findPerson(personId)
        if (!person?.hasAccount || person.totpEnabledAt !== null) return false
        accounts.changePerson(personId, { totpSecret: secret })
        return true
      }
    }),

    /**
     * Turns two-factor sign-in on. `secret` is the stored one that the code of `step` confirms.
     * False, and nothing is changed, if another form has replaced it or has turned it on already.
     */
    enable: write((db) => {
      const accounts = accountStore(db)
      const addCode = db.prepare<null, [PersonId, Uint8Array]>(
        'INSERT INTO recovery_codes (person_id, hash) VALUES (?, ?)',
      )
      return (command: {
        personId: PersonId
        secret: Uint8Array
        step: number
        recoveryHashes: readonly Uint8Array[]
        now: number
      }): boolean => {
        const { personId, secret, step, recoveryHashes, now } = command
        const person = accounts.findPerson(personId)
        if (!person?.totpSecret || person.totpEnabledAt !== null) return false
        if (!Buffer.from(person.totpSecret).equals(Buffer.from(secret))) return false
        accounts.changePerson(personId, { totpEnabledAt: now, totpLastStep: step })
        for (const hash of recoveryHashes) addCode.run(personId, hash)
        return true
      }
    }),

    /** Turns two-factor sign-in off. False, and nothing is changed, if the factor was used. */
    disable: write((db) => {
      const accounts = accountStore(db)
      const useFactor = factorUser(db)
      return (command: { personId: PersonId; factor: Factor; now: number }): boolean => {
        if (!useFactor(command.personId, command.factor, command.now)) return false
        accounts.clearSecondFactor(command.personId)
        return true
      }
    }),

    /** Turns two-factor sign-in off without a factor: for the command line. */
    reset: write((db) => {
      const accounts = accountStore(db)
      return ({ personId }: { personId: PersonId }): void => accounts.clearSecondFactor(personId)
    }),
  },
})
