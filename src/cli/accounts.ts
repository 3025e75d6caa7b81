import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { issueBenchToken } from '../accounts/bench-token.ts'
import {
  BAD_KEY_REQUESTS,
  BAD_ORIGINS,
  findKeyByName,
  hasNoExpiry,
  issueKey,
  KEY_REQUESTS_DEFAULT,
  KEY_SCOPES,
  keyName,
  parseKeyRequests,
  parseOrigins,
} from '../accounts/keys.ts'
import { BAD_KEY_NAME, parseKeyName } from '../accounts/names.ts'
import * as operations from '../accounts/operations/accounts.ts'
import { operator } from '../accounts/operations/asked.ts'
import {
  createKey as addKey,
  KEY_OVERLAP_MS,
  revokeKey,
  rotateKey,
} from '../accounts/operations/keys.ts'
import type { Plan } from '../accounts/plans.ts'
import type { AccountReads, AccountRow, KeyRow, KeyScope, PersonRow } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { isoTime } from '../lib/clock.ts'
import {
  type Administration,
  PAGE,
  type Page,
  type PageOptions,
  printing,
  printPages,
} from './administration.ts'
import { CommandError } from './errors.ts'
import { ACCOUNT, EMAIL, type Flag, JSON_LINES, JSON_OBJECT, PLAN, parseText } from './options.ts'

export function addAccountCommands(program: Command): Command {
  const account = program.command('account').description('accounts and their owner')
  account
    .command('create')
    .description('create an account and show its API key')
    .requiredOption(...EMAIL)
    .addOption(PLAN)
    .option(...JSON_OBJECT)
    .action((options) => run('createAccount', options, { creates: true }))
  account
    .command('list')
    .description('list the accounts with their plans')
    .option(...JSON_LINES)
    .action((options) => printPages(accountCommands, 'listAccounts', options))
  account
    .command('set-plan')
    .description('change the plan of an account')
    .requiredOption(...EMAIL)
    .option(...ACCOUNT)
    .addOption(PLAN)
    .option(...JSON_OBJECT)
    .action((options) => run('setPlan', options))
  account
    .command('reset-password')
    .description('show a link that sets a new password, once')
    .requiredOption(...EMAIL)
    .option(...JSON_OBJECT)
    .action((options) => run('resetPassword', options))
  account
    .command('reset-two-factor')
    .description('turn two-factor sign-in off if the device is lost')
    .requiredOption(...EMAIL)
    .option(...JSON_OBJECT)
    .action((options) => run('resetTwoFactor', options))
  account
    .command('setup-link')
    .description('show a link that creates the owner account, once')
    .option('--another', 'create a further owner account beside the existing one')
    .option(...JSON_OBJECT)
    .action((options) => run('setupLink', options, { creates: true }))
  account
    .command('disable')
    .description('refuse the API keys and the sign-in of an account')
    .requiredOption(...EMAIL)
    .option(...ACCOUNT)
    .option('--links', 'disable its links too: visitors get 410')
    .option(...JSON_OBJECT)
    .action((options) => run('disableAccount', options))
  account
    .command('enable')
    .description('accept the API keys and the sign-in of an account again; its links work too')
    .requiredOption(...EMAIL)
    .option(...ACCOUNT)
    .option(...JSON_OBJECT)
    .action((options) => run('enableAccount', options))
  return account
}

const KEY_NAME = [
  '--name <N>',
  'the name of the API key; needed if the account has several',
  parseText,
] as const
const NOW = ['--now', 'the old key expires immediately, not in 24 hours'] as const
const ANY_KEY =
  'With several keys, --name chooses one; without it the command changes nothing and lists the ' +
  'names. With one key, --name is not needed.'

const SCOPE = new Option('--scope <S>', 'what the key may do')
  .choices(KEY_SCOPES)
  .default('write' as const)

/** Refuses a text that is no such value. */
const parsed =
  <Value>({ parse, problem }: { parse(text: string): Value | undefined; problem: string }) =>
  (text: string): Value => {
    const value = parse(parseText(text))
    if (value === undefined) throw new InvalidArgumentError(`It ${problem}.`)
    return value
  }
const PER_MINUTE = { parse: parseKeyRequests, problem: BAD_KEY_REQUESTS }
const ORIGINS = { parse: parseOrigins, problem: BAD_ORIGINS }
const parseName = parsed({ parse: parseKeyName, problem: BAD_KEY_NAME })

export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('API keys of accounts')
  key
    .command('create')
    .summary('show a further API key of an account')
    .description(
      'Show a further API key. write: create and change links; a new destination or a deletion ' +
        'needs the passcode. read: nothing is changed. create: only shorten and reserve, for the ' +
        'source of a web page. manage: also new destinations and deletions without passcodes.',
    )
    .requiredOption(...EMAIL)
    .option(...ACCOUNT)
    .requiredOption('--name <N>', 'its name, which no other key of the account has', parseName)
    .addOption(SCOPE)
    .option('--per-minute <N>', 'requests of a key with the scope create', parsed(PER_MINUTE))
    .option('--origins <LIST>', 'origins whose pages may use a key that creates', parsed(ORIGINS))
    .option(...JSON_OBJECT)
    .action((options) => run('createKey', options))
  key
    .command('rotate')
    .summary('show a new API key; the old one works for 24 more hours')
    .description(
      'Show a new API key with the name and the access of the old one, which works for 24 more ' +
        `hours. ${ANY_KEY}`,
    )
    .requiredOption(...EMAIL)
    .option(...ACCOUNT)
    .option(...KEY_NAME)
    .option(...NOW)
    .option(...JSON_OBJECT)
    .action((options) => run('rotate', options))
  key
    .command('revoke')
    .summary('let an API key expire in 24 hours, without a new one')
    .description(`Let an API key expire in 24 hours, without a new one. ${ANY_KEY}`)
    .requiredOption(...EMAIL)
    .option(...ACCOUNT)
    .option(...KEY_NAME)
    .option(...NOW)
    .option(...JSON_OBJECT)
    .action((options) => run('revoke', options))
  program
    .command('bench-token')
    .description('show a token with which a bench may load this service for an hour')
    .requiredOption(...EMAIL)
    .option(...ACCOUNT)
    .option(...JSON_OBJECT)
    .action((options) => run('benchToken', options))
}

/** What the commands run. Each function returns what is printed. */
export const accountCommands = {
  createAccount,
  listAccounts,
  setPlan,
  resetPassword,
  resetTwoFactor,
  setupLink,
  createKey,
  rotate,
  revoke,
  disableAccount,
  enableAccount,
  benchToken,
}

const run = printing(accountCommands)

/** Creates an account and shows its first key, which is never shown again. */
export async function createAccount(
  deps: Administration,
  { email, plan, json }: { email: string; plan: Plan; json?: Flag },
): Promise<string> {
  const { key, stored } = issueKey(deps)
  const account = { email, plan, key: stored, now: deps.clock() }
  const id = await deps.data.accounts.create(account)
  if (id === undefined) throw new AppError('email_taken', email)
  if (json) return JSON.stringify({ account_id: id, email, plan, api_key: key })
  return `Account ${email} (${plan}).\nAPI key. Copy it now: you won't see it again.\n\n  ${key}\n`
}

/** One line per account, the oldest first. */
export function listAccounts(
  { data: { accounts } }: Administration,
  { json, after = 0 }: PageOptions,
): Page {
  const page = accounts.list({ after, limit: PAGE })
  const lines = page.map(({ id, name, plan, linkCount, createdAt }) => {
    const created_at = isoTime(createdAt)
    const email = accounts.listMembers(id)[0]?.email ?? name
    if (json)
      return JSON.stringify({ account_id: id, email, name, plan, links: linkCount, created_at })
    const label = name === email ? email : `${name} (${email})`
    return `${label}  ${plan}  ${linkCount} links  since ${created_at}`
  })
  const next = page.length === PAGE ? page.at(-1)?.id : undefined
  return { text: lines.join('\n') || (json || after > 0 ? '' : 'No accounts.'), next }
}

export async function setPlan(
  deps: Administration,
  { email, account, plan, json }: AccountOptions & { plan: Plan },
): Promise<string> {
  const { id: accountId } = await getAccount(deps, email, account)
  await operations.setPlan(operator(deps, accountId), plan)
  if (json) return JSON.stringify({ account_id: accountId, email, plan })
  return `${email} is on the ${plan} plan.`
}

/** Creates a one-time link that sets the person's password. Earlier links stop working. */
export async function resetPassword(
  deps: Administration,
  { email, json }: { email: string; json?: Flag },
): Promise<string> {
  const { id: personId, accountId } = await getPerson(deps, email)
  const { link, ends_at } = await sendLink(deps, { purpose: 'reset', personId })
  if (json) return JSON.stringify({ account_id: accountId, email, link, ends_at })
  return `Sets a new password for ${email}, once, until ${ends_at}:\n\n  ${link}\n`
}

/** For a member whose phone and recovery codes are lost. */
export async function resetTwoFactor(
  deps: Administration,
  { email, json }: { email: string; json?: Flag },
): Promise<string> {
  const { id: personId, accountId, totpEnabledAt } = await getPerson(deps, email)
  const wasOn = totpEnabledAt !== null
  if (wasOn) await deps.data.secondFactors.reset({ personId })
  if (json) return JSON.stringify({ account_id: accountId, email, was_on: wasOn })
  if (!wasOn) return `Two-factor sign-in is not on for ${email}.`
  return `Two-factor sign-in is off for ${email}: the password alone is enough to sign in.`
}

/** Creates a one-time link that creates the owner account. Earlier links stop working. */
export async function setupLink(
  deps: Administration,
  { another, json }: { another?: Flag; json?: Flag },
): Promise<string> {
  await deps.writer.catchUp()
  const owner = deps.data.accounts.listOwners()[0]
  if (owner && !another) {
    throw new CommandError(
      `${owner.email} is the owner already. For a new password: hopcode account reset-password ` +
        `--email ${owner.email}. For a further owner: hopcode account setup-link --another`,
    )
  }
  const { link, ends_at } = await sendLink(deps, { purpose: 'setup' })
  if (json) return JSON.stringify({ link, ends_at })
  return `Creates the owner account, once, until ${ends_at}:\n\n  ${link}\n`
}

async function sendLink(
  deps: Administration,
  about: Parameters<typeof operations.sendLink>[1],
): Promise<{ link: string; ends_at: string }> {
  const { path, endsAt } = await operations.sendLink(operator(deps), about)
  return { link: deps.baseUrl + path, ends_at: isoTime(endsAt) }
}

interface NewKeyOptions extends AccountOptions {
  name: string
  scope: KeyScope
  perMinute?: number | undefined
  origins?: string[] | undefined
}

export async function createKey(
  deps: Administration,
  { email, account: named, name, scope, json, ...options }: NewKeyOptions,
): Promise<string> {
  const isForPages = scope === 'create'
  const { perMinute = isForPages ? KEY_REQUESTS_DEFAULT : null, origins = null } = options
  if (!isForPages && (perMinute ?? origins) !== null) {
    throw new CommandError('--per-minute and --origins are for --scope create')
  }
  const account = await getAccount(deps, email, named)
  const key = await addKey(operator(deps, account.id), { name, scope, perMinute, origins })
  if (json) return JSON.stringify({ account_id: account.id, email, name, scope, api_key: key })
  return `API key “${name}” of ${email}. Copy it now: you won't see it again.\n\n  ${key}\n`
}

interface KeyOptions extends AccountOptions {
  name?: string | undefined
  now?: Flag
}

/** The new key has the name and the access of the old one. */
export async function rotate(
  deps: Administration,
  { email, account: named, name, now, json }: KeyOptions,
): Promise<string> {
  const account = await getAccount(deps, email, named)
  const { key, endsAt } = await rotateKey(operator(deps, account.id), {
    keyId: chooseKey(deps, { id: account.id, email }, name)?.id,
    overlapMs: now ? 0 : KEY_OVERLAP_MS,
  })
  if (json) {
    const { id: account_id, plan } = account
    return JSON.stringify({ account_id, email, plan, api_key: key })
  }
  return [
    `New API key of ${email}. Copy it now: you won't see it again.\n\n  ${key}\n`,
    `The old key ${expiry(endsAt, now)}.`,
  ].join('\n')
}

export async function revoke(
  deps: Administration,
  { email, account: named, name, now, json }: KeyOptions,
): Promise<string> {
  const account = await getAccount(deps, email, named)
  const key = chooseKey(deps, { id: account.id, email }, name)
  const endsAt = await revokeKey(operator(deps, account.id), {
    keyId: key?.id,
    overlapMs: now ? 0 : KEY_OVERLAP_MS,
  })
  // Another command was faster.
  if (endsAt === undefined) throw new AppError('key_gone')
  if (json) {
    const ends_at = isoTime(endsAt)
    return JSON.stringify({
      account_id: account.id,
      email,
      name: key ? keyName(key) : null,
      ends_at,
    })
  }
  return `The API key of ${email} ${expiry(endsAt, now)}.`
}

/**
 * The key that a command changes: the one with the name, or the only one. Undefined if every key
 * expires already: then the command changes all of them. With several keys, no key is guessed.
 */
function chooseKey(
  { data: { accounts }, clock }: Administration,
  { id, email }: { id: number; email: string },
  name: string | undefined,
): KeyRow | undefined {
  const keys = accounts.listKeys(id, clock()).filter(hasNoExpiry)
  const names = keys.map(keyName).join(', ')
  if (name === undefined) {
    if (keys.length <= 1) return keys[0]
    throw new CommandError(`${email} has ${keys.length} keys. Choose one with --name: ${names}`)
  }
  const found = findKeyByName(keys, name)
  if (found) return found
  const known = names === '' ? 'It has no active key.' : `Its keys: ${names}`
  throw new CommandError(`${email} has no key with the name ${name}. ${known}`)
}

/** The end of a sentence about an old key. */
const expiry = (endsAt: number, immediately: Flag): string =>
  immediately ? 'has expired' : `works until ${isoTime(endsAt)}`

/** Refuses the account's keys and ends its sessions. With `links`, its links answer 410. */
export async function disableAccount(
  deps: Administration,
  { email, account, links, json }: AccountOptions & { links?: Flag },
): Promise<string> {
  const { id: accountId } = await getAccount(deps, email, account)
  await operations.disableAccount(operator(deps, accountId), { links: links === true })
  if (json) {
    return JSON.stringify({ account_id: accountId, email, disabled: true, links: links === true })
  }
  const itsLinks = links ? 'Visitors of its links get 410.' : 'Its links still work.'
  return `${email} is disabled: its keys are refused and its sessions are closed. ${itsLinks}`
}

export async function enableAccount(
  deps: Administration,
  { email, account, json }: AccountOptions,
): Promise<string> {
  const { id: accountId } = await getAccount(deps, email, account)
  await operations.enableAccount(operator(deps, accountId))
  if (json) return JSON.stringify({ account_id: accountId, email, disabled: false })
  return `${email} is enabled: its keys, its sign-in and its links work.`
}

export async function benchToken(
  deps: Administration,
  { email, account, json }: AccountOptions,
): Promise<string> {
  const { id: accountId } = await getAccount(deps, email, account)
  const token = issueBenchToken(deps, accountId)
  return json ? JSON.stringify({ account_id: accountId, email, token }) : token
}

async function getPerson(
  { data: { accounts }, writer }: Administration,
  email: string,
): Promise<PersonRow> {
  await writer.catchUp()
  return requirePerson(accounts, email)
}

interface AccountOptions {
  email: string
  /** The name or the number of an account of the person. */
  account?: string | undefined
  json?: Flag
}

/** Throws CommandError. */
async function getAccount(
  deps: Administration,
  email: string,
  account?: string,
): Promise<AccountRow> {
  return accountOf(deps.data.accounts, await getPerson(deps, email), account)
}

export function requirePerson(accounts: AccountReads, email: string): PersonRow {
  const person = accounts.findByEmail(email)
  if (!person) throw new CommandError(`no account has the e-mail address ${email}`)
  return person
}

/** The account of a person with this name or number; without one, the only account. */
export function accountOf(
  accounts: AccountReads,
  { id, email }: PersonRow,
  text?: string,
): AccountRow {
  const own = accounts.listAccountsOf(id)
  const named = text === undefined ? own : own.filter((one) => isNamed(one, text))
  const account = named[0] && accounts.findById(named[0].id)
  if (account && named.length === 1) return account
  const names = own.map((one) => `${one.name} (${one.id})`).join(', ')
  throw new CommandError(`${email} has these accounts. Choose one with --account: ${names}`)
}

/** The account with a name or a number, else the one of the person with this e-mail address. */
export function findAccount(accounts: AccountReads, text: string): AccountRow {
  const [named, ...others] = accounts.listByName(text)
  if (named && others.length === 0) return named
  if (named) {
    const numbers = [named, ...others].map(({ id }) => id).join(', ')
    throw new CommandError(`several accounts have this name. Choose one by its number: ${numbers}`)
  }
  const person = accounts.findByEmail(text)
  if (person) return accountOf(accounts, person)
  throw new CommandError(`no account has the e-mail address ${text}`)
}

const isNamed = ({ id, name }: Pick<AccountRow, 'id' | 'name'>, text: string): boolean =>
  String(id) === text || name.toLowerCase() === text.toLowerCase()
