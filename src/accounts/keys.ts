import { crc32 } from 'node:zlib'
import type { Clock } from '../lib/clock.ts'
import { type RandomBytes, randomString } from '../lib/random.ts'
import type { SecretHasher } from './secrets.ts'
import type { AccountReads, KeyHolder, KeyLabel, KeyRow, KeyScope, NewKey } from './store.ts'

/** The characters of a key that its owner may see again, from its start. */
const SHOWN_LENGTH = 8

export interface KeyDeps {
  hasher: SecretHasher
  clock: Clock
  random: RandomBytes
}

export interface KeyCheckDeps extends KeyDeps {
  data: { accounts: AccountReads }
  /** Records when each key was last used. */
  keyUses: { note(keyId: number, now: number): void }
}

/** The key of a request: `X-API-Key`, or without that header `Authorization: Bearer` (RFC 6750). */
export const apiKeyOf = (headers: Pick<Headers, 'get'>): string | null =>
  headers.get('x-api-key') ?? BEARER.exec(headers.get('authorization') ?? '')?.[1] ?? null

const BEARER = /^bearer +(\S+)$/i

/** The account of a key; undefined for an absent, malformed, unknown or expired one. */
export function findAccount(deps: KeyCheckDeps, key: string | null): KeyHolder | undefined {
  if (key === null || !isApiKey(key)) return undefined
  const now = deps.clock()
  const account = deps.data.accounts.findByKeyHash(deps.hasher.hash('api-key', key), now)
  if (account) deps.keyUses.note(account.by.keyId, now)
  return account
}

/** What a route of the API needs of a key. `manage`: what a passcode permits, without one. */
export type KeyAccess = 'read' | 'create' | 'change' | 'manage'

const ACCESS: Readonly<Record<KeyScope, readonly KeyAccess[]>> = {
  write: ['read', 'create', 'change'],
  read: ['read'],
  create: ['create'],
  manage: ['read', 'create', 'change', 'manage'],
}

export const KEY_SCOPES = Object.keys(ACCESS) as KeyScope[]

export const hasAccess = ({ keyScope }: Pick<KeyHolder, 'keyScope'>, access: KeyAccess): boolean =>
  ACCESS[keyScope].includes(access)

/**
 * The account that a request is charged to. A key that only creates stands in the source of a page:
 * what needs no key, or another one, is charged to the address of its caller. `access`: absent for
 * a public endpoint.
 */
export const payerOf = (
  account: KeyHolder | undefined,
  access?: KeyAccess,
): KeyHolder | undefined =>
  account?.keyScope === 'create' && access !== 'create' ? undefined : account

export const KEY_REQUESTS_DEFAULT = 60
const KEY_REQUESTS_MAX = 6000
const ORIGINS_MAX = 10
export const ORIGINS_LENGTH_MAX = 1000

export const BAD_KEY_REQUESTS = `must be a number from 1 to ${KEY_REQUESTS_MAX}`
export const BAD_ORIGINS = `must be at most ${ORIGINS_MAX} addresses like https://shop.example`

/** The requests of a key in any 60 seconds. Undefined for a text that is no such number. */
export function parseKeyRequests(text: string): number | undefined {
  const isOne = /^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= KEY_REQUESTS_MAX
  return isOne ? Number(text) : undefined
}

/** Origins that a text lists, as browsers send them. Undefined if one of its parts is none. */
export function parseOrigins(text: string): string[] | undefined {
  if (text.length > ORIGINS_LENGTH_MAX) return undefined
  const parts = text.split(/[\s,]+/).filter((part) => part !== '')
  const origins = parts.flatMap((part) => {
    const url = URL.parse(part)
    const isOrigin = url && /^https?:\/\/[^*]+$/.test(url.origin) && url.href === `${url.origin}/`
    return isOrigin ? [url.origin] : []
  })
  const isValid = origins.length === parts.length && origins.length <= ORIGINS_MAX
  return isValid ? [...new Set(origins)] : undefined
}

const FIRST_KEY: KeyLabel = { name: null, scope: 'write' }
const FIRST_KEY_NAME = 'Default'

/** The name as people see and type it. */
export const keyName = ({ name }: Pick<KeyLabel, 'name'>): string => name ?? FIRST_KEY_NAME

/** The key without an expiry that has this name, in any letter case: there is at most one. */
export function findKeyByName(keys: readonly KeyRow[], name: string): KeyRow | undefined {
  const wanted = name.toLowerCase()
  return keys.find((key) => hasNoExpiry(key) && keyName(key).toLowerCase() === wanted)
}

/** A key that was neither rotated nor revoked. */
export const hasNoExpiry = ({ endsAt }: Pick<KeyRow, 'endsAt'>): boolean => endsAt === null

/** A new key and its stored form. The key itself is shown once and stored nowhere. */
export function issueKey(
  { hasher, random }: Pick<KeyDeps, 'hasher' | 'random'>,
  label: KeyLabel = FIRST_KEY,
  createdBy: string | null = null,
): { key: string; stored: NewKey } {
  const key = newApiKey(random)
  const hash = hasher.hash('api-key', key)
  const prefix = key.slice(0, SHOWN_LENGTH)
  return { key, stored: { hash, prefix, lastFour: key.slice(-4), ...label, createdBy } }
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PREFIX = 'hop_'
const RANDOM_LENGTH = 30
const CHECKSUM_LENGTH = 6
const SHAPE = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`)

/**
 * `hop_`, 30 random base62 characters (178 bits), and a checksum that detects a typing error
 * without a database lookup.
 */
export function newApiKey(random: RandomBytes): string {
  const body = PREFIX + randomString(random, BASE62, RANDOM_LENGTH)
  return body + checksum(body)
}

export function isApiKey(text: string): boolean {
  if (!SHAPE.test(text)) return false
  const body = text.slice(0, -CHECKSUM_LENGTH)
  return checksum(body) === text.slice(-CHECKSUM_LENGTH)
}

/** CRC-32 (ISO 3309) in base62, most significant digit first. */
function checksum(body: string): string {
  let rest = crc32(body)
  let digits = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = BASE62[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
