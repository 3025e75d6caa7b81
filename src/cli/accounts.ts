import { issueKey, KEY_OVERLAP_MS, type KeyDeps, revokeKey, rotateKey } from '../accounts/keys.ts'
import type { Plan } from '../accounts/plans.ts'
import type { AccountRow } from '../accounts/store.ts'
import { isoTime } from '../lib/clock.ts'
import { CommandError } from './command-error.ts'

/** Commands on accounts and keys. Each returns what it prints. */

/** Makes an account and shows its first key, this once. */
export function createAccount(
  deps: KeyDeps,
  { email, plan, json }: { email: string; plan: Plan; json: boolean },
): string {
  const { key, stored } = issueKey(deps)
  const id = deps.accounts.create(email, plan, stored, deps.clock())
  if (id === undefined) throw new CommandError(`${email} has an account already`)
  if (json) return JSON.stringify({ account_id: id, email, plan, api_key: key })
  return `Account ${email} (${plan}).\nAPI key, shown this once:\n\n  ${key}\n`
}

/** One line an account. */
export function listAccounts({ accounts }: KeyDeps, { json }: { json: boolean }): string {
  const lines = accounts.list().map(({ id, email, plan, linkCount, createdAt }) => {
    const created_at = isoTime(createdAt)
    return json
      ? JSON.stringify({ account_id: id, email, plan, links: linkCount, created_at })
      : `${email}  ${plan}  ${linkCount} links  since ${created_at}`
  })
  return lines.join('\n')
}

export function setPlan(deps: KeyDeps, { email, plan }: { email: string; plan: Plan }): string {
  deps.accounts.setPlan(getAccount(deps, email).id, plan)
  return `${email} is on the ${plan} plan.`
}

export function rotate(
  deps: KeyDeps,
  { email, now, json }: { email: string; now: boolean; json: boolean },
): string {
  const account = getAccount(deps, email)
  const key = rotateKey(deps, account.id, { now })
  if (json) {
    const { id: account_id, plan } = account
    return JSON.stringify({ account_id, email: account.email, plan, api_key: key })
  }
  return [
    `New API key of ${email}, shown this once:\n\n  ${key}\n`,
    `The old one ${ending(deps, now)}.`,
  ].join('\n')
}

export function revoke(deps: KeyDeps, { email, now }: { email: string; now: boolean }): string {
  revokeKey(deps, getAccount(deps, email).id, { now })
  return `The API key of ${email} ${ending(deps, now)}.`
}

function ending({ clock }: KeyDeps, now: boolean): string {
  return now ? 'has ended' : `works until ${isoTime(clock() + KEY_OVERLAP_MS)}`
}

function getAccount({ accounts }: KeyDeps, email: string): AccountRow {
  const account = accounts.findByEmail(email)
  if (!account) throw new CommandError(`no account has the e-mail address ${email}`)
  return account
}
