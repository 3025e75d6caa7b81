import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { RandomBytes } from '../lib/random.ts'
import type { SecretHasher, SecretPurpose } from './secrets.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `about`: what a text belongs to. It can be opened only for the same. */
interface Use {
  purpose: SecretPurpose
  about: string
}

/**
 * Encrypts a text as nonce, ciphertext and tag. The key is derived from `secret.key`, so a copy of
 * the database alone opens nothing.
 */
export function seal(
  { hasher, random }: { hasher: SecretHasher; random: RandomBytes },
  { purpose, about }: Use,
  text: Uint8Array,
): Buffer {
  const nonce = random(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, hasher.hash(purpose, ''), nonce)
  cipher.setAAD(Buffer.from(about))
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()])
}

/** Throws if the text was encrypted with another key, or for another use. */
export function unseal(
  hasher: SecretHasher,
  { purpose, about }: Use,
  sealed: Uint8Array,
): Uint8Array {
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, hasher.hash(purpose, ''), nonce, {
    authTagLength: TAG_BYTES,
  })
  decipher.setAAD(Buffer.from(about))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  const text = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES))
  return Buffer.concat([text, decipher.final()])
}
