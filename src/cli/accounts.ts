import {
  findKeyByName,
  hasNoExpiry,
  issueKey,
  KEY_OVERLAP_MS,
  type KeyDeps,
  keyName,
} from '../accounts/keys.ts'
import { issueOneTimeLink } from '../accounts/one-time-links.ts'
import type { Plan } from '../accounts/plans.ts'
import type { AccountRow, KeyRow } from '../accounts/store.ts'
import { isoTime } from '../lib/clock.ts'
import { CommandError } from './args.ts'
import type { CommandWriter } from './writer.ts'

/** Commands on accounts and keys. Each returns what it prints. */

interface CommandDeps extends KeyDeps {
  writer: CommandWriter
}

export interface LinkDeps extends CommandDeps {
  /** Without a slash at its end. */
  baseUrl: string
}

/** Creates an account and shows its first key, which is never shown again. */
export async function createAccount(
  deps: CommandDeps,
  { email, plan, json }: { email: string; plan: Plan; json: boolean },
): Promise<string> {
  const { key, stored } = issueKey(deps)
  const account = { email, plan, key: stored, now: deps.clock() }
  const id = await deps.writer.call('createAccount', account)
  if (id === undefined) throw new CommandError(`${email} has an account already`)
  if (json) return JSON.stringify({ account_id: id, email, plan, api_key: key })
  return `Account ${email} (${plan}).\nAPI key. Copy it now: you won't see it again.\n\n  ${key}\n`
}

/** One line per account. */
export function listAccounts(
  { accounts }: Pick<KeyDeps, 'accounts'>,
  { json }: { json: boolean },
): string {
  const lines = accounts.list().map(({ id, email, plan, linkCount, createdAt }) => {
    const created_at = isoTime(createdAt)
    return json
      ? JSON.stringify({ account_id: id, email, plan, links: linkCount, created_at })
      : `${email}  ${plan}  ${linkCount} links  since ${created_at}`
  })
  return lines.length === 0 && !json ? 'No accounts.' : lines.join('\n')
}

export async function setPlan(
  deps: CommandDeps,
  { email, plan }: { email: string; plan: Plan },
): Promise<string> {
  const { id: accountId } = getAccount(deps, email)
  await deps.writer.call('setPlan', { accountId, plan })
  return `${email} is on the ${plan} plan.`
}

/** Creates a one-time link that sets the account's password. Earlier links stop working. */
export async function resetPassword(
  deps: LinkDeps,
  { email, json }: { email: string; json: boolean },
): Promise<string> {
  const { id: accountId } = getAccount(deps, email)
  const { link, ends_at } = await addLink(deps, { purpose: 'reset', accountId })
  if (json) return JSON.stringify({ account_id: accountId, email, link, ends_at })
  return `Sets a new password for ${email}, once, until ${ends_at}:\n\n  ${link}\n`
}

/** For a member whose phone and recovery codes are lost. */
export async function resetTwoFactor(
  deps: CommandDeps,
  { email }: { email: string },
): Promise<string> {
  const account = getAccount(deps, email)
  if (account.totpEnabledAt === null) return `Two-factor sign-in is not on for ${email}.`
  await deps.writer.call('resetTotp', { accountId: account.id })
  return `Two-factor sign-in is off for ${email}: the password alone is enough to sign in.`
}

/** Creates a one-time link that creates the owner account. Earlier links stop working. */
export async function setupLink(
  deps: LinkDeps,
  { another, json }: { another: boolean; json: boolean },
): Promise<string> {
  const owner = deps.accounts.list().find(({ isOwner, disabledAt }) => isOwner && !disabledAt)
  if (owner && !another) {
    throw new CommandError(
      `${owner.email} is the owner already. For a new password: hopcode account reset-password ` +
        `--email ${owner.email}. For a further owner: hopcode account setup-link --another`,
    )
  }
  const { link, ends_at } = await addLink(deps, { purpose: 'setup' })
  if (json) return JSON.stringify({ link, ends_at })
  return `Creates the owner account, once, until ${ends_at}:\n\n  ${link}\n`
}

async function addLink(
  deps: LinkDeps,
  about: { purpose: 'setup' } | { purpose: 'reset'; accountId: number },
): Promise<{ link: string; ends_at: string }> {
  const { path, stored } = issueOneTimeLink(deps, about, deps.clock())
  await deps.writer.call('addOneTimeLink', stored)
  return { link: deps.baseUrl + path, ends_at: isoTime(stored.endsAt) }
}

/** The new key has the name and the access of the old one. */
export async function rotate(
  deps: CommandDeps,
  { email, name, now, json }: { email: string; name: string; now: boolean; json: boolean },
): Promise<string> {
  const account = getAccount(deps, email)
  const old = chooseKey(deps, account, name)
  const { key, stored } = issueKey(deps, old)
  const next = { accountId: account.id, name: old?.name, next: stored }
  await deps.writer.call('replaceKeys', Object.assign(next, expiryAt(deps, now)))
  if (json) {
    const { id: account_id, plan } = account
    return JSON.stringify({ account_id, email: account.email, plan, api_key: key })
  }
  return [
    `New API key of ${email}. Copy it now: you won't see it again.\n\n  ${key}\n`,
    `The old key ${expiry(deps, now)}.`,
  ].join('\n')
}

export async function revoke(
  deps: CommandDeps,
  { email, name, now }: { email: string; name: string; now: boolean },
): Promise<string> {
  const account = getAccount(deps, email)
  const old = { accountId: account.id, name: chooseKey(deps, account, name)?.name }
  await deps.writer.call('replaceKeys', Object.assign(old, expiryAt(deps, now)))
  return `The API key of ${email} ${expiry(deps, now)}.`
}

/**
 * The key that a command changes: the one with the name, or the only one. Undefined if every key
 * expires already: then the command changes all of them. With several keys, no key is guessed.
 */
function chooseKey(
  { accounts, clock }: KeyDeps,
  { id, email }: AccountRow,
  name: string,
): KeyRow | undefined {
  const keys = accounts.listKeys(id, clock()).filter(hasNoExpiry)
  const names = keys.map(keyName).join(', ')
  if (name === '') {
    if (keys.length <= 1) return keys[0]
    throw new CommandError(`${email} has ${keys.length} keys. Choose one with --name: ${names}`)
  }
  const found = findKeyByName(keys, name)
  if (found) return found
  const known = names === '' ? 'It has no active key.' : `Its keys: ${names}`
  throw new CommandError(`${email} has no key with the name ${name}. ${known}`)
}

function expiryAt({ clock }: KeyDeps, now: boolean): { endsAt: number; now: number } {
  const time = clock()
  return { endsAt: now ? time : time + KEY_OVERLAP_MS, now: time }
}

function expiry({ clock }: KeyDeps, now: boolean): string {
  return now ? 'has expired' : `works until ${isoTime(clock() + KEY_OVERLAP_MS)}`
}

/** Refuses the account's keys and ends its sessions. With `links`, its links answer 410. */
export async function disableAccount(
  deps: CommandDeps,
  { email, links }: { email: string; links: boolean },
): Promise<string> {
  const { id: accountId } = getAccount(deps, email)
  const command = { accountId, links, now: deps.clock() }
  if (!(await deps.writer.call('disableAccount', command))) {
    throw new CommandError(`${email} is the only owner of the service: it cannot be disabled`)
  }
  const itsLinks = links ? 'Visitors of its links get 410.' : 'Its links still work.'
  return `${email} is disabled: its keys are refused and its sessions are closed. ${itsLinks}`
}

export async function enableAccount(
  deps: CommandDeps,
  { email }: { email: string },
): Promise<string> {
  const { id: accountId } = getAccount(deps, email)
  await deps.writer.call('enableAccount', { accountId })
  return `${email} is enabled: its keys, its sign-in and its links work.`
}

function getAccount({ accounts }: Pick<KeyDeps, 'accounts'>, email: string): AccountRow {
  const account = accounts.findByEmail(email)
  if (!account) throw new CommandError(`no account has the e-mail address ${email}`)
  return account
}
