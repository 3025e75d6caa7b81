import { findPasswordProblem, parseEmail } from '../../accounts/credentials.ts'
import type { issueKey } from '../../accounts/keys.ts'
import type { OneTimeLinkRow } from '../../accounts/one-time-links.ts'
import type { AccountId } from '../../accounts/store.ts'
import type { Gate } from '../../accounts/throttle.ts'
import type { JoinResult } from '../../accounts/writes.ts'
import type { DashboardDeps } from '../deps.ts'
import type { Form } from '../ui/form.ts'
import type { ClientOrigin } from './origin.ts'

/** What the pages that create an account, or give one a new password, do with their forms. */

export type Door = 'setup' | 'join' | 'reset' | 'sign-up'

export interface At {
  door: Door
  token?: string
}

export interface Errors {
  email?: string | undefined
  password?: string | undefined
  /** Of the password that an existing account has. */
  current?: string | undefined
}

export const PASSWORD_NEEDED =
  'This address has an account already. Enter the password that it has now, or choose another ' +
  'address if you do not know it.'

/** The address that the form's account has already, or is given by its link. */
export function findAddress(
  { accounts }: DashboardDeps,
  door: Door,
  link: OneTimeLinkRow | undefined,
): string | undefined {
  const account = door === 'reset' && link?.accountId ? accounts.find(link.accountId) : undefined
  return account?.email ?? link?.email ?? undefined
}

/** `address`: the one that is given, and wins over what was sent. */
export function judgeJoin(
  sent: Form,
  address: string | undefined,
): { email: string; password: string } | { errors: Errors } {
  const email = address ?? parseEmail(sent.text('email'))
  const password = sent.raw('password')
  const errors: Errors = {
    email: email === undefined ? 'Write an address like name@example.com.' : undefined,
    password: findPasswordProblem(password, email),
  }
  if (email === undefined || errors.password) return { errors }
  return { email, password }
}

/** Throws `too_many_attempts`. */
export function countRegistration(deps: DashboardDeps, origin: ClientOrigin): void {
  const registration = [{ gate: 'registration', key: origin.address }] as const
  deps.throttle.require(registration)
  // At once, so that of many sent together none slips through.
  recordEngaged(deps, origin, deps.throttle.count(registration))
}

function recordEngaged(
  { security }: DashboardDeps,
  origin: ClientOrigin,
  gates: readonly Gate[],
  accountId?: AccountId,
): void {
  for (const gate of gates) {
    security.record('throttle.engaged', origin, { accountId, fields: { gate } })
  }
}

/**
 * Whoever registered the owner's address first must not become the owner with the owner's help.
 * Gives the stored hash that `current` was verified against; null where no account, or one without
 * a password, has the address.
 */
export async function proveExisting(
  deps: DashboardDeps,
  claim: { link: OneTimeLinkRow; origin: ClientOrigin; email: string; current: string },
): Promise<{ hash: string | null } | { errors: Errors }> {
  const { accounts, passwords, throttle } = deps
  const { link, origin, email, current } = claim
  const account = accounts.findByEmail(email)
  const hash = account?.passwordHash ?? null
  if (hash === null) return { hash }
  if (current === '') return { errors: { current: PASSWORD_NEEDED } }
  const attempts = [{ gate: 'session', key: `setup ${link.id}` }] as const
  const by = { queue: 'oneTimeLink', key: String(link.id) } as const
  const hooks = throttle.hooks(attempts, (gate) => recordEngaged(deps, origin, [gate], account?.id))
  const fits = await passwords.verify(current, hash, by, hooks)
  return fits ? { hash } : { errors: { current: 'This is not the password of that account.' } }
}

interface Newcomer {
  email: string
  passwordHash: string
  key: ReturnType<typeof issueKey>['stored']
  /** The stored hash that the password of an existing account was verified against. */
  provedHash: string | null
}

export async function storeJoin(
  { writer, hasher, clock }: DashboardDeps,
  { door, token = '' }: At,
  { provedHash, ...newcomer }: Newcomer,
): Promise<JoinResult> {
  const now = clock()
  const tokenHash = hasher.hash('one-time-link', token)
  if (door === 'setup') {
    return writer.call('setUpOwner', { ...newcomer, provedHash, tokenHash, now })
  }
  if (door === 'join') return writer.call('acceptInvite', { ...newcomer, tokenHash, now })
  if (door === 'reset') {
    const { passwordHash } = newcomer
    return writer.call('resetPassword', { tokenHash, passwordHash, now })
  }
  const accountId = await writer.call('createAccount', { ...newcomer, plan: 'free', now })
  return accountId === undefined ? { refused: 'email_taken' } : { accountId, hasNewKey: true }
}

export function recordJoin(
  { security, accounts }: DashboardDeps,
  origin: ClientOrigin,
  how: { door: Door; link: OneTimeLinkRow | undefined; accountId: AccountId; isNew: boolean },
): void {
  const { door, link, accountId, isNew } = how
  if (isNew) {
    const fields = { plan: accounts.find(accountId)?.plan }
    security.record('account.created', origin, { accountId, fields })
  }
  if (door === 'setup') security.record('owner.set_up', origin, { accountId })
  if (door === 'reset') security.record('password.reset', origin, { accountId })
  if (door === 'join') {
    security.record('invite.accepted', origin, {
      accountId,
      byAccountId: link?.accountId ?? undefined,
      fields: { invite_id: link?.id },
    })
  }
}
