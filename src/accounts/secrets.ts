import type { Database } from 'bun:sqlite'
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { constants, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SettingStore } from '../db/settings.ts'
import { DataError, RUN_RESTORE } from '../lib/data-error.ts'
import { writeOnce } from '../lib/flush.ts'
import type { RandomBytes } from '../lib/random.ts'
import { NO_FOLLOW } from '../lib/symbolic-links.ts'

export type SecretPurpose =
  | 'api-key'
  | 'passcode'
  | 'import'
  | 'link-unlock'
  | 'session'
  | 'one-time-link'
  | 'form'
  | 'shared-page'
  | 'shared-page-address'
  | 'known-device'
  | 'database'
  | 'recovery-code'
  | 'sign-in-step'
  | 'totp-encryption'
  | 'webhook-encryption'
  | 'oidc-sign-in'
  | 'bench-token'

/**
 * Hashes secrets with a key that is stored outside the database: a stolen copy of the database
 * contains no usable secret.
 */
export class SecretHasher {
  readonly #key: Buffer

  /** `key`: 32 bytes. */
  constructor(key: Buffer) {
    this.#key = key
  }

  /** HMAC-SHA-256, 32 bytes. Hashes of different purposes never match. */
  hash(purpose: SecretPurpose, secret: string): Buffer {
    const hasher = new Bun.CryptoHasher('sha256', this.#key)
    return hasher.update(`${purpose}\0${secret}`).digest()
  }
}

const TOKEN_BYTES = 32
export const TOKEN_SHAPE = /^[\w-]{43}$/

/** 256 random bits as 43 characters that are valid in a cookie and in a URL. */
export const newToken = (random: RandomBytes): string =>
  Buffer.from(random(TOKEN_BYTES)).toString('base64url')

/** Constant-time comparison of two hashes. */
export function hashesEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}

export const secretFile = (dataDir: string): string => join(dataDir, 'secret.key')

/**
 * Reads the hashing key of a data folder, or creates one (readable by its owner only) if there is
 * none. `fresh`: no stored hash depends on a key yet. Throws DataError if the file is damaged, or
 * if it is missing although hashes exist: a new key would lock out every account.
 */
export function readSecretKey(dataDir: string, { fresh }: { fresh: boolean }): Buffer {
  const file = secretFile(dataDir)
  const text = readIfThere(file)
  if (text !== undefined) {
    if (!/^[0-9a-f]{64}\n$/.test(text)) {
      throw new DataError(`${file} is damaged. ${RUN_RESTORE}`)
    }
    return Buffer.from(text.trim(), 'hex')
  }
  if (!fresh) {
    throw new DataError(
      `${file} is missing, and no API key or passcode of this database works without it. ` +
        RUN_RESTORE,
    )
  }
  writeOnce(file, `${randomBytes(32).toString('hex')}\n`)
  return readSecretKey(dataDir, { fresh: false })
}

/** The setting that identifies the key of a database's hashes. */
const FINGERPRINT = 'secret_key_fingerprint'

const fingerprintOf = (hasher: SecretHasher) => hasher.hash('database', 'hopcode').toString('hex')

/**
 * Whether the hashes of a database depend on this key. True for a database without that setting: a
 * full disk has refused it.
 */
export function isKeyOf(db: Database, hasher: SecretHasher): boolean {
  const found = new SettingStore(db).findByName(FINGERPRINT)
  return found === undefined || found === fingerprintOf(hasher)
}

/**
 * Stores in the database which key its hashes depend on; `fresh` as above. Throws DataError if that
 * is another key: with this one, every API key and passcode would be refused.
 */
export function claimKey(
  db: Database,
  hasher: SecretHasher,
  { dataDir, fresh }: { dataDir: string; fresh: boolean },
): void {
  if (!fresh && !isKeyOf(db, hasher)) {
    throw new DataError(`${foreignKey(dataDir)} ${FOREIGN_ADVICE}`)
  }
  const settings = new SettingStore(db)
  const fingerprint = fingerprintOf(hasher)
  if (settings.findByName(FINGERPRINT) !== fingerprint) settings.set(FINGERPRINT, fingerprint)
}

export const foreignKey = (dataDir: string): string =>
  `${secretFile(dataDir)} is the key of another database: no API key or passcode works with it.`
export const FOREIGN_ADVICE =
  'Put its own key back, or run "hopcode restore" with a backup, which holds the key too.'

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, { encoding: 'utf8', flag: constants.O_RDONLY | NO_FOLLOW })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new DataError(
      `${file} cannot be opened: ${(error as Error).message}. Is it a file that this user may ` +
        'read and write?',
      { cause: error },
    )
  }
}
