import { networkOf } from '../hot/client-address.ts'
import type { RandomBytes } from '../lib/random.ts'
import type { Passwords, Requester } from './passwords.ts'
import { hashesEqual, type SecretHasher } from './secrets.ts'
import type { AccountReads, PersonId, PersonRow } from './store.ts'
import type { Attempt, Gate, Throttle } from './throttle.ts'

interface SignInDeps {
  data: { accounts: AccountReads }
  passwords: Passwords
  throttle: Throttle
  hasher: SecretHasher
}

export interface SignIn {
  email: string
  password: string
  /** The client's IPv4 address or IPv6 /64 as text. */
  address: string
  /** The browser's trusted-device token, if it has one. */
  deviceToken: string | undefined
  /** Called with each gate of the throttle that this failure has closed. */
  onClosed?: (gate: Gate) => void
}

/**
 * The person with this e-mail address and password; undefined if there is none, after the same
 * work. Throws `too_many_attempts`. The attempts of a queue are decided one after another, so none
 * is verified after another one has used up the allowance. Only its own failures count against a
 * trusted device: other clients cannot lock it out.
 */
export async function signIn(deps: SignInDeps, input: SignIn): Promise<PersonRow | undefined> {
  const { data, throttle, passwords } = deps
  const { password, address, onClosed = () => {} } = input
  const email = input.email.toLowerCase()
  const person = data.accounts.findByEmail(email)
  const device = findTrustedDevice(deps.hasher, person?.id, input.deviceToken)
  const attempts: Attempt[] =
    device === undefined
      ? anonymousAttempts(email, address)
      : [{ gate: 'device', key: `${person?.id} ${device}` }]
  throttle.require(attempts)
  const requester: Requester =
    device === undefined
      ? { queue: 'anonymous', key: networkOf(address) }
      : { queue: 'trusted', key: String(person?.id) }
  const hooks = throttle.hooks(attempts, onClosed)
  const fits = await passwords.verify(password, person?.passwordHash, requester, hooks)
  return fits ? person : undefined
}

function anonymousAttempts(email: string, address: string): Attempt[] {
  // Hashed, so that the key is short even if a long text was sent as the e-mail address.
  const name = new Bun.CryptoHasher('sha256').update(email).digest('base64url')
  return [
    { gate: 'pair', key: `${name} ${address}` },
    { gate: 'address', key: address },
    { gate: 'network', key: networkOf(address) },
    { gate: 'account', key: name },
  ]
}

const DEVICE_BYTES = 16

/** For a browser that the person has signed in with. The token grants no access by itself. */
export function newDeviceToken(
  hasher: SecretHasher,
  random: RandomBytes,
  personId: PersonId,
): string {
  const device = Buffer.from(random(DEVICE_BYTES)).toString('base64url')
  return `${device}.${macOf(hasher, personId, device).toString('base64url')}`
}

const DEVICE_TOKEN_SHAPE = /^([\w-]{22})\.([\w-]{43})$/

/**
 * The device id in a genuine token of the person. It is the same for every spelling of the token,
 * so a browser cannot count as several devices.
 */
export function findTrustedDevice(
  hasher: SecretHasher,
  personId: PersonId | undefined,
  token = '',
): string | undefined {
  const [, device = '', mac = ''] = DEVICE_TOKEN_SHAPE.exec(token) ?? []
  if (personId === undefined || device === '') return undefined
  const isGenuine = hashesEqual(macOf(hasher, personId, device), Buffer.from(mac, 'base64url'))
  return isGenuine ? device : undefined
}

const macOf = (hasher: SecretHasher, personId: PersonId, device: string) =>
  hasher.hash('known-device', `${personId} ${device}`)
