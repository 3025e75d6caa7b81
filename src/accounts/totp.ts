import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { Secret, TOTP } from 'otpauth/bare'
import type { RandomBytes } from '../lib/random.ts'
import type { SecretHasher } from './secrets.ts'
import type { AccountId } from './store.ts'

/** Codes of an authenticator app (TOTP, RFC 6238): six digits, a new code every 30 seconds. */

const PERIOD_SECONDS = 30
/** Codes that are accepted before and after the current one, for clocks that differ. */
const WINDOW_STEPS = 1
/** RFC 4226, section 4, recommends 160 bits. */
const SECRET_BYTES = 20

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

export const newTotpSecret = (random: RandomBytes): Uint8Array => random(SECRET_BYTES)

/**
 * Encrypts a secret as nonce, ciphertext and tag. The key is derived from `secret.key`, so that a
 * copy of the database alone gives no codes; a secret works for its own account only.
 */
export function sealSecret(
  { hasher, random }: { hasher: SecretHasher; random: RandomBytes },
  accountId: AccountId,
  secret: Uint8Array,
): Buffer {
  const nonce = random(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, encryptionKey(hasher), nonce)
  cipher.setAAD(Buffer.from(String(accountId)))
  return Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()])
}

/** Throws if the secret was encrypted with another key, or for another account. */
export function openSecret(
  hasher: SecretHasher,
  accountId: AccountId,
  sealed: Uint8Array,
): Uint8Array {
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, encryptionKey(hasher), nonce, {
    authTagLength: TAG_BYTES,
  })
  decipher.setAAD(Buffer.from(String(accountId)))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  const text = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES))
  return Buffer.concat([text, decipher.final()])
}

const encryptionKey = (hasher: SecretHasher): Buffer => hasher.hash('totp-encryption', '')

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
