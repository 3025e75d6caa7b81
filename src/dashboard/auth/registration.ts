import type { OneTimeLinkRow, Purpose } from '../../accounts/one-time-links.ts'
import type { AccountId } from '../../accounts/store.ts'
import { networkOf } from '../../hot/client-address.ts'
import type { AnonymousContext } from './guard.ts'
import { countAttempts } from './sign-in.ts'

/** What every way to a new account or membership does: the form of a link, and a provider. */

/** Throws `too_many_attempts`. */
export function countRegistration({ deps, origin }: AnonymousContext): void {
  const registration = [
    { gate: 'registration', key: origin.address },
    { gate: 'registrationNetwork', key: networkOf(origin.address) },
    { gate: 'registrations', key: 'all' },
  ] as const
  // No await stands before the count, so that parallel requests are all counted.
  deps.throttle.require(registration)
  countAttempts(deps, registration, { origin })
}

export function logNewAccount({ deps, origin }: AnonymousContext, accountId: AccountId): void {
  const fields = { plan: deps.data.accounts.findById(accountId)?.plan }
  deps.security.record('account.created', origin, { accountId, fields })
}

export function logJoin(
  { deps, origin }: AnonymousContext,
  flow: Purpose,
  link: OneTimeLinkRow,
  accountId: AccountId,
): void {
  const { security } = deps
  if (flow === 'setup') security.record('owner.set_up', origin, { accountId })
  if (flow === 'reset') security.record('password.reset', origin, { accountId })
  if (flow === 'invite') {
    const sender = link.personId ? deps.data.accounts.findPerson(link.personId) : undefined
    const byAccountId = sender?.accountId
    const fields = { invite_id: link.id }
    security.record('invite.accepted', origin, { accountId, byAccountId, fields })
  }
}
