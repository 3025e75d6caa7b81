import { crc32 } from 'node:zlib'
import { type Operations, subject, write } from '../db/subject.ts'
import { type Clock, DAY, MINUTE } from '../lib/clock.ts'
import { type RandomBytes, randomString } from '../lib/random.ts'
import type { SecretHasher } from './secrets.ts'
import {
  type AccountId,
  type AccountReads,
  accountStore,
  type KeyHolder,
  type KeyRow,
  type NewKey,
} from './store.ts'

/** How long a rotated or revoked key still works. */
export const KEY_OVERLAP_MS = DAY

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

/**
 * The account of an `X-API-Key` header; undefined for an absent, malformed, unknown or expired key.
 */
export function findAccount(deps: KeyCheckDeps, key: string | null): KeyHolder | undefined {
  if (key === null || !isApiKey(key)) return undefined
  const now = deps.clock()
  const account = deps.data.accounts.findByKeyHash(deps.hasher.hash('api-key', key), now)
  if (account) deps.keyUses.note(account.keyId, now)
  return account
}

export type KeyLabel = Pick<KeyRow, 'name' | 'scope'>

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
  { hasher, random }: KeyDeps,
  { name, scope }: KeyLabel = FIRST_KEY,
  createdBy: string | null = null,
): { key: string; stored: NewKey } {
  const key = newApiKey(random)
  const hash = hasher.hash('api-key', key)
  const prefix = key.slice(0, SHOWN_LENGTH)
  return { key, stored: { hash, prefix, lastFour: key.slice(-4), name, scope, createdBy } }
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

/** Keys of an account that were neither rotated nor revoked. */
export const KEYS_MAX = 20
/** Keys of an account that work, including those that expire soon. */
const WORKING_KEYS_MAX = 2 * KEYS_MAX

/** `gone`: the key was rotated, revoked or ended meanwhile. */
type KeyResult = { keyId: number } | { refused: 'name_taken' | 'too_many' | 'gone' }

interface KeyCommand {
  accountId: AccountId
  keyId: number
  now: number
}

interface KeyReplacement extends Omit<KeyCommand, 'keyId'> {
  /** Null stands for keys without a name. */
  name?: string | null | undefined
  next?: NewKey
  endsAt: number
}

const isFull = (stored: readonly KeyRow[]) => stored.length >= WORKING_KEYS_MAX

const findWithoutExpiry = (stored: readonly KeyRow[], keyId: number) =>
  stored.find((key) => key.id === keyId && hasNoExpiry(key))

/** API keys of accounts. `AccountReads` finds them. */
export const keys = subject({
  writes: {
    create: write({
      prepare(db) {
        const accounts = accountStore(db)
        return ({
          accountId,
          key,
          now,
        }: Omit<KeyCommand, 'keyId'> & { key: NewKey }): KeyResult => {
          const stored = accounts.listKeys(accountId, now)
          if (findKeyByName(stored, keyName(key))) return { refused: 'name_taken' }
          if (isFull(stored) || stored.filter(hasNoExpiry).length >= KEYS_MAX) {
            return { refused: 'too_many' }
          }
          return { keyId: accounts.addKey(accountId, key, now) }
        }
      },
    }),

    /** Replaces a key by a new one with its name and scope. */
    rotate: write({
      prepare(db) {
        const accounts = accountStore(db)
        return (command: KeyCommand & { next: NewKey; endsAt: number }): KeyResult => {
          const { accountId, keyId, next, endsAt, now } = command
          const stored = accounts.listKeys(accountId, now)
          const old = findWithoutExpiry(stored, keyId)
          if (!old) return { refused: 'gone' }
          if (isFull(stored)) return { refused: 'too_many' }
          const { name, scope } = old
          accounts.revokeKeys(accountId, endsAt, name)
          return { keyId: accounts.addKey(accountId, { ...next, name, scope }, now) }
        }
      },
    }),

    /** False if the key expires already, or does not exist. */
    revoke: write({
      prepare(db) {
        const accounts = accountStore(db)
        return ({ accountId, keyId, endsAt, now }: KeyCommand & { endsAt: number }): boolean => {
          const key = findWithoutExpiry(accounts.listKeys(accountId, now), keyId)
          if (key) accounts.revokeKeys(accountId, endsAt, key.name)
          return key !== undefined
        }
      },
    }),

    /**
     * For the command line: keys of this name expire at `endsAt`; without a name, all of the
     * account. `next` replaces them.
     */
    replace: write({
      prepare(db) {
        const accounts = accountStore(db)
        return ({ accountId, name, next, endsAt, now }: KeyReplacement): void => {
          accounts.revokeKeys(accountId, endsAt, name)
          if (next) accounts.addKey(accountId, next, now)
        }
      },
    }),

    expire: write({
      prepare(db) {
        const accounts = accountStore(db)
        return ({ accountId, keyId, now }: KeyCommand): boolean =>
          accounts.expireKey(accountId, keyId, now)
      },
    }),

    noteUses: write({
      prepare(db) {
        const accounts = accountStore(db)
        return (uses: readonly { keyId: number; at: number }[]): void => {
          for (const { keyId, at } of uses) accounts.noteKeyUse(keyId, at)
        }
      },
    }),
  },
})

type KeyUseCalls = Pick<Operations<typeof keys>, 'noteUses'>

/** Keys remembered at once. Beyond this all are forgotten, which only costs more writes. */
const NOTED_MAX = 10_000
/** How long uses are collected before they are written together. */
const COLLECT_MS = 1000

/**
 * When each API key was last used, written in the background at most once a minute for each key.
 * HOT PATH: a redirect with a key calls `note`, which costs one Map lookup.
 */
export class KeyUses {
  readonly #keys: KeyUseCalls
  readonly #noted = new Map<number, number>()
  #waiting: { keyId: number; at: number }[] = []
  #timer: Timer | undefined

  constructor(data: { keys: KeyUseCalls }) {
    this.#keys = data.keys
  }

  note(keyId: number, now: number): void {
    const last = this.#noted.get(keyId)
    if (last !== undefined && now - last < MINUTE) return
    if (this.#noted.size >= NOTED_MAX) this.#noted.clear()
    if (this.#waiting.length >= NOTED_MAX) return
    this.#noted.set(keyId, now)
    this.#waiting.push({ keyId, at: now })
    this.#timer ??= setTimeout(() => void this.#write(), COLLECT_MS)
  }

  /** Writes the collected uses. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#write()
  }

  async #write(): Promise<void> {
    this.#timer = undefined
    const uses = this.#waiting
    if (uses.length === 0) return
    this.#waiting = []
    // A failed write loses only a time on a page, and the service's health reports the disk.
    await this.#keys.noteUses(uses, { background: true }).catch(() => {})
  }
}
