import { networkOf } from '../hot/client-network.ts'
import type { RandomBytes } from '../lib/random.ts'
import type { Passwords, Requester } from './passwords.ts'
import { hashesEqual, type SecretHasher } from './secrets.ts'
import type { AccountId, AccountRow, AccountStore } from './store.ts'
import type { Attempt, Gate, Throttle } from './throttle.ts'

interface SignInDeps {
  accounts: AccountStore
  passwords: Passwords
  throttle: Throttle
  hasher: SecretHasher
}

export interface SignIn {
  email: string
  password: string
  /** The visitor's address, as text that is the same for one visitor. */
  address: string
  /** What `markKnown` gave this browser when it last signed in, if it did. */
  known: string | undefined
  /** Called for each gate of the throttle that this failure has closed. */
  onEngaged?: (gate: Gate) => void
}

/**
 * The account whose e-mail address and password these are; undefined if there is none, after the
 * same work. Throws `too_many_attempts`. Attempts are judged one after another, so that none slips
 * through beside the one that exhausts the allowance. A browser that has signed in before is held
 * to its own failures alone: no stranger can lock it out.
 */
export async function signIn(deps: SignInDeps, order: SignIn): Promise<AccountRow | undefined> {
  const { throttle, passwords, accounts } = deps
  const email = order.email.toLowerCase()
  const account = accounts.findByEmail(email)
  const attempts = attemptsOf(deps, { ...order, email }, account?.id)
  throttle.require(attempts)
  const by: Requester = attempts.some(({ gate }) => gate === 'device')
    ? { queue: 'known', key: String(account?.id) }
    : { queue: 'anonymous', key: networkOf(order.address) }
  const fits = await passwords.verify(order.password, account?.passwordHash, by, {
    before: () => throttle.require(attempts),
    after: (fits) => {
      if (!fits) for (const gate of throttle.count(attempts)) order.onEngaged?.(gate)
      if (fits) throttle.clear(attempts.filter(({ gate }) => gate === 'pair' || gate === 'device'))
    },
  })
  return fits ? account : undefined
}

function attemptsOf(
  { hasher }: SignInDeps,
  { email, address, known }: SignIn,
  accountId: AccountId | undefined,
): Attempt[] {
  const device = findDevice(hasher, accountId, known)
  if (device !== undefined) return [{ gate: 'device', key: `${accountId} ${device}` }]
  // As short as can be, however long the text is that a stranger calls an address.
  const name = new Bun.CryptoHasher('sha256').update(email).digest('base64url')
  return [
    { gate: 'pair', key: `${name} ${address}` },
    { gate: 'address', key: address },
    { gate: 'network', key: networkOf(address) },
    { gate: 'account', key: name },
  ]
}

const DEVICE_BYTES = 16

/** A mark for a browser that has signed in to the account: it says so, and opens nothing. */
export function markKnown(hasher: SecretHasher, random: RandomBytes, accountId: AccountId): string {
  const device = Buffer.from(random(DEVICE_BYTES)).toString('base64url')
  return `${device}.${macOf(hasher, accountId, device).toString('base64url')}`
}

const MARK_SHAPE = /^([\w-]{22})\.([\w-]{43})$/

/** The device that a genuine mark of the account names: the same however the mark is written. */
export function findDevice(
  hasher: SecretHasher,
  accountId: AccountId | undefined,
  mark = '',
): string | undefined {
  const [, device = '', mac = ''] = MARK_SHAPE.exec(mark) ?? []
  if (accountId === undefined || device === '') return undefined
  const isGenuine = hashesEqual(macOf(hasher, accountId, device), Buffer.from(mac, 'base64url'))
  return isGenuine ? device : undefined
}

const macOf = (hasher: SecretHasher, accountId: AccountId, device: string) =>
  hasher.hash('known-device', `${accountId} ${device}`)
