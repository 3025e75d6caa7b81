import type { Database } from 'bun:sqlite'
import {
  findKeyByName,
  isLasting,
  issueKey,
  KEY_OVERLAP_MS,
  type KeyDeps,
  keyName,
  revokeKey,
  rotateKey,
} from '../accounts/keys.ts'
import { issueOneTimeLink, type OneTimeLinkStore } from '../accounts/one-time-links.ts'
import type { Plan } from '../accounts/plans.ts'
import type { AccountRow, KeyRow } from '../accounts/store.ts'
import { accountWrites } from '../accounts/writes.ts'
import { inTransaction } from '../db/open.ts'
import { isoTime } from '../lib/clock.ts'
import { CommandError } from './args.ts'

/** Commands on accounts and keys. Each returns what it prints. */

export interface LinkDeps extends KeyDeps {
  oneTimeLinks: OneTimeLinkStore
  /** Without a slash at its end. */
  baseUrl: string
}

/** Creates an account and shows its first key, which is never shown again. */
export function createAccount(
  deps: KeyDeps,
  { email, plan, json }: { email: string; plan: Plan; json: boolean },
): string {
  const { key, stored } = issueKey(deps)
  const id = deps.accounts.create(email, plan, stored, deps.clock())
  if (id === undefined) throw new CommandError(`${email} has an account already`)
  if (json) return JSON.stringify({ account_id: id, email, plan, api_key: key })
  return `Account ${email} (${plan}).\nAPI key. Copy it now: you won't see it again.\n\n  ${key}\n`
}

/** One line per account. */
export function listAccounts({ accounts }: KeyDeps, { json }: { json: boolean }): string {
  const lines = accounts.list().map(({ id, email, plan, linkCount, createdAt }) => {
    const created_at = isoTime(createdAt)
    return json
      ? JSON.stringify({ account_id: id, email, plan, links: linkCount, created_at })
      : `${email}  ${plan}  ${linkCount} links  since ${created_at}`
  })
  return lines.length === 0 && !json ? 'No accounts.' : lines.join('\n')
}

export function setPlan(deps: KeyDeps, { email, plan }: { email: string; plan: Plan }): string {
  deps.accounts.setPlan(getAccount(deps, email).id, plan)
  return `${email} is on the ${plan} plan.`
}

/** Creates a one-time link that sets the account's password. Earlier links stop working. */
export function resetPassword(
  deps: LinkDeps,
  { email, json }: { email: string; json: boolean },
): string {
  const { id: accountId } = getAccount(deps, email)
  const { link, ends_at } = addLink(deps, { purpose: 'reset', accountId })
  if (json) return JSON.stringify({ account_id: accountId, email, link, ends_at })
  return `Sets a new password for ${email}, once, until ${ends_at}:\n\n  ${link}\n`
}

/** For a member whose phone and recovery codes are lost. */
export function resetTwoFactor({ accounts }: KeyDeps, { email }: { email: string }): string {
  const account = getAccount({ accounts }, email)
  if (account.totpEnabledAt === null) return `Two-factor sign-in is not on for ${email}.`
  accounts.clearSecondFactor(account.id)
  return `Two-factor sign-in is off for ${email}: the password alone is enough to sign in.`
}

/** Creates a one-time link that creates the owner account. Earlier links stop working. */
export function setupLink(
  deps: LinkDeps,
  { another, json }: { another: boolean; json: boolean },
): string {
  const owner = deps.accounts.list().find(({ isOwner, disabledAt }) => isOwner && !disabledAt)
  if (owner && !another) {
    throw new CommandError(
      `${owner.email} is the owner already. For a new password: hopcode account reset-password ` +
        `--email ${owner.email}. For a further owner: hopcode account setup-link --another`,
    )
  }
  const { link, ends_at } = addLink(deps, { purpose: 'setup' })
  if (json) return JSON.stringify({ link, ends_at })
  return `Creates the owner account, once, until ${ends_at}:\n\n  ${link}\n`
}

function addLink(
  deps: LinkDeps,
  about: { purpose: 'setup' } | { purpose: 'reset'; accountId: number },
): { link: string; ends_at: string } {
  const { path, stored } = issueOneTimeLink(deps, about, deps.clock())
  deps.oneTimeLinks.add(stored)
  return { link: deps.baseUrl + path, ends_at: isoTime(stored.endsAt) }
}

export function rotate(
  deps: KeyDeps,
  { email, name, now, json }: { email: string; name: string; now: boolean; json: boolean },
): string {
  const account = getAccount(deps, email)
  const key = rotateKey(deps, account.id, { now, of: chooseKey(deps, account, name) })
  if (json) {
    const { id: account_id, plan } = account
    return JSON.stringify({ account_id, email: account.email, plan, api_key: key })
  }
  return [
    `New API key of ${email}. Copy it now: you won't see it again.\n\n  ${key}\n`,
    `The old key ${expiry(deps, now)}.`,
  ].join('\n')
}

export function revoke(
  deps: KeyDeps,
  { email, name, now }: { email: string; name: string; now: boolean },
): string {
  const account = getAccount(deps, email)
  revokeKey(deps, account.id, { now, of: chooseKey(deps, account, name) })
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
  const keys = accounts.listKeys(id, clock()).filter(isLasting)
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

function expiry({ clock }: KeyDeps, now: boolean): string {
  return now ? 'has expired' : `works until ${isoTime(clock() + KEY_OVERLAP_MS)}`
}

/** Refuses the account's keys and ends its sessions. With `links`, its links answer 410. */
export function disableAccount(
  db: Database,
  deps: KeyDeps,
  { email, links }: { email: string; links: boolean },
): string {
  const { id: accountId } = getAccount(deps, email)
  const command = { accountId, links, now: deps.clock() }
  if (!inTransaction(db, () => accountWrites(db).disableAccount(command))) {
    throw new CommandError(`${email} is the only owner of the service: it cannot be disabled`)
  }
  const itsLinks = links ? 'Visitors of its links get 410.' : 'Its links still work.'
  return `${email} is disabled: its keys are refused and its sessions are closed. ${itsLinks}`
}

export function enableAccount(db: Database, deps: KeyDeps, { email }: { email: string }): string {
  const { id: accountId } = getAccount(deps, email)
  inTransaction(db, () => accountWrites(db).enableAccount({ accountId }))
  return `${email} is enabled: its keys, its sign-in and its links work.`
}

function getAccount({ accounts }: Pick<KeyDeps, 'accounts'>, email: string): AccountRow {
  const account = accounts.findByEmail(email)
  if (!account) throw new CommandError(`no account has the e-mail address ${email}`)
  return account
}
