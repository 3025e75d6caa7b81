import { findPasswordProblem, parseEmail } from '../../accounts/credentials.ts'
import type { issueKey } from '../../accounts/keys.ts'
import type { OneTimeLinkRow, Purpose } from '../../accounts/one-time-links.ts'
import type { AccountId } from '../../accounts/store.ts'
import type { JoinResult } from '../../accounts/writes.ts'
import { networkOf } from '../../hot/client-address.ts'
import { FormRefusal, refuseAt } from '../responses.ts'
import type { Form } from '../ui/form.ts'
import type { AnonymousContext } from './guard.ts'
import { countAttempts } from './sign-in.ts'

/** The rules of the pages that create an account or reset its password. */

export type JoinFlow = Purpose | 'sign-up'

export const PASSWORD_NEEDED =
  'This address already has an account. Enter its current password, or choose another address if ' +
  'you do not know it.'

/** The address that the link's account or the link itself determines. */
export function findAddress(
  { deps }: AnonymousContext,
  flow: JoinFlow,
  link: OneTimeLinkRow | undefined,
): string | undefined {
  const account =
    flow === 'reset' && link?.accountId ? deps.accounts.find(link.accountId) : undefined
  return account?.email ?? link?.email ?? undefined
}

/** `address`, if given, takes precedence over the one in the form. Throws `FormRefusal`. */
export function parseJoin(
  sent: Form,
  address: string | undefined,
): { email: string; password: string } {
  const email = address ?? parseEmail(sent.text('email'))
  const password = sent.raw('password')
  const problem = findPasswordProblem(password, email)
  if (email !== undefined && !problem) return { email, password }
  throw new FormRefusal({
    ...(email === undefined && { email: 'Enter an address like name@example.com.' }),
    ...(problem && { password: problem }),
  })
}

/** Throws `too_many_attempts`. */
export function countRegistration({ deps, origin }: AnonymousContext): void {
  const registration = [
    { gate: 'registration', key: origin.address },
    { gate: 'registrationNetwork', key: networkOf(origin.address) },
    { gate: 'registrations', key: 'all' },
  ] as const
  // Without an await before the count, so that parallel requests are all counted.
  deps.throttle.require(registration)
  countAttempts(deps, registration, { origin })
}

/**
 * Setting up the owner with the address of an existing account needs that account's password:
 * otherwise anybody could register the address first and become the owner. Returns the stored hash
 * that `current` was verified against; null if no account with a password has the address. Throws
 * `FormRefusal`.
 */
export async function proveExisting(
  { deps, origin, form }: AnonymousContext,
  link: OneTimeLinkRow,
  email: string,
): Promise<string | null> {
  const { accounts, passwords, throttle, security } = deps
  const current = form.raw('current')
  const account = accounts.findByEmail(email)
  const hash = account?.passwordHash ?? null
  if (hash === null) return null
  if (current === '') throw refuseAt('current', PASSWORD_NEEDED)
  const attempts = [{ gate: 'session', key: `setup ${link.id}` }] as const
  const by = { queue: 'oneTimeLink', key: String(link.id) } as const
  const hooks = throttle.hooks(attempts, (gate) =>
    security.record('throttle.engaged', origin, { accountId: account?.id, fields: { gate } }),
  )
  const isRight = await passwords.verify(current, hash, by, hooks)
  if (!isRight) throw refuseAt('current', 'This is not the password of that account.')
  return hash
}

interface Newcomer {
  email: string
  passwordHash: string
  key: ReturnType<typeof issueKey>['stored']
  /** The stored hash that the password of an existing account was verified against. */
  provedHash: string | null
}

export async function storeJoin(
  { deps, params: { token = '' } }: AnonymousContext,
  flow: Purpose,
  { provedHash, ...newcomer }: Newcomer,
): Promise<JoinResult> {
  const { writer, moderation, hasher, clock } = deps
  const now = clock()
  const tokenHash = hasher.hash('one-time-link', token)
  if (flow === 'setup') {
    return moderation.setUpOwner({ ...newcomer, provedHash, tokenHash, now })
  }
  if (flow === 'invite') return writer.call('acceptInvite', { ...newcomer, tokenHash, now })
  const { passwordHash } = newcomer
  return writer.call('resetPassword', { tokenHash, passwordHash, now })
}

interface Joined {
  flow: JoinFlow
  link?: OneTimeLinkRow
  accountId: AccountId
  isNew: boolean
}

export function logJoin({ deps, origin }: AnonymousContext, joined: Joined): void {
  const { security, accounts } = deps
  const { flow, link, accountId, isNew } = joined
  if (isNew) {
    const fields = { plan: accounts.find(accountId)?.plan }
    security.record('account.created', origin, { accountId, fields })
  }
  if (flow === 'setup') security.record('owner.set_up', origin, { accountId })
  if (flow === 'reset') security.record('password.reset', origin, { accountId })
  if (flow === 'invite') {
    security.record('invite.accepted', origin, {
      accountId,
      byAccountId: link?.accountId ?? undefined,
      fields: { invite_id: link?.id },
    })
  }
}
