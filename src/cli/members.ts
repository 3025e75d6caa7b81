import { type Command, Option } from '@commander-js/extra-typings'
import * as accounts from '../accounts/operations/accounts.ts'
import { operator } from '../accounts/operations/asked.ts'
import * as operations from '../accounts/operations/members.ts'
import { ROLES } from '../accounts/roles.ts'
import type { Role } from '../accounts/store.ts'
import { BAD_ISSUER, isIssuer } from '../config.ts'
import { isoTime } from '../lib/clock.ts'
import { findAccount, requirePerson } from './accounts.ts'
import { type Administration, printing } from './administration.ts'
import { CommandError } from './errors.ts'
import {
  ACCOUNT_NAMED,
  EMAIL_OF_PERSON,
  type Flag,
  JSON_LINES,
  JSON_OBJECT,
  parseText,
} from './options.ts'

const ROLE = ['--role <ROLE>', 'what the person may do in the account'] as const

/** The subcommands of `account` about its members, and its name, which they see. */
export function addMemberCommands(account: Command): void {
  account
    .command('rename')
    .description('give an account another name, which its members see')
    .requiredOption(...ACCOUNT_NAMED)
    .requiredOption('--name <NAME>', 'the new name', parseText)
    .option(...JSON_OBJECT)
    .action((options) => run('renameAccount', options))
  account
    .command('disconnect')
    .summary('disconnect a person from the sign-in provider')
    .description(
      'Disconnect all users of the sign-in provider from a person, and end the sessions that ' +
        'they have started. A link of "hopcode account reset-password" lets the person sign in.',
    )
    .requiredOption(...EMAIL_OF_PERSON)
    .option(...JSON_OBJECT)
    .action((options) => run('disconnectPerson', options))
  account
    .command('issuer')
    .summary('keep people connected when the sign-in provider has another address')
    .description(
      'Keep the people connected who sign in with the provider when its issuer has changed and ' +
        'its users are the same ones. Then change OIDC_ISSUER.',
    )
    .argument('<OLD>', 'the issuer until now', parseText)
    .argument('<NEW>', 'as OIDC_ISSUER will be: exactly as the provider names itself', parseText)
    .option(...JSON_OBJECT)
    .action((from, to, options) => run('renameIssuer', { from, to, ...options }))
  const member = account.command('member').description('people who share an account')
  member
    .command('add')
    .description('show a link with which a person joins an account, once')
    .requiredOption(...ACCOUNT_NAMED)
    .requiredOption(...EMAIL_OF_PERSON)
    .addOption(new Option(...ROLE).choices(ROLES).default('editor' as const))
    .option(...JSON_OBJECT)
    .action((options) => run('addMember', options))
  member
    .command('role')
    .description('change what a person may do in an account')
    .requiredOption(...ACCOUNT_NAMED)
    .requiredOption(...EMAIL_OF_PERSON)
    .addOption(new Option(...ROLE).choices(ROLES).makeOptionMandatory())
    .option(...JSON_OBJECT)
    .action((options) => run('setMemberRole', options))
  member
    .command('remove')
    .description('remove a person from an account; the links stay with the account')
    .requiredOption(...ACCOUNT_NAMED)
    .requiredOption(...EMAIL_OF_PERSON)
    .option(...JSON_OBJECT)
    .action((options) => run('removeMember', options))
  member
    .command('list')
    .description('list the members of an account')
    .requiredOption(...ACCOUNT_NAMED)
    .option(...JSON_LINES)
    .action((options) => run('listMembers', options))
}

interface MemberOptions {
  account: string
  email: string
  json?: Flag
}

/** What the commands run. Each function returns what is printed. */
export const memberCommands = {
  renameAccount,
  disconnectPerson,
  renameIssuer,
  addMember,
  setMemberRole,
  removeMember,
  listMembers,
}

const run = printing(memberCommands)

async function renameAccount(
  deps: Administration,
  { account: named, name: text, json }: { account: string; name: string; json?: Flag },
): Promise<string> {
  await deps.writer.catchUp()
  const { id: accountId, name: before } = findAccount(deps.data.accounts, named)
  const name = await accounts.renameAccount(operator(deps, accountId), text)
  if (json) return JSON.stringify({ account_id: accountId, name })
  return `${before} has the name ${name} now.`
}

async function addMember(
  deps: Administration,
  { account: name, email, role, json }: MemberOptions & { role: Role },
): Promise<string> {
  await deps.writer.catchUp()
  const account = findAccount(deps.data.accounts, name)
  const { path, endsAt } = await operations.invite(operator(deps, account.id), { role, email })
  const link = deps.baseUrl + path
  const ends_at = isoTime(endsAt)
  if (json) return JSON.stringify({ account_id: account.id, email, role, link, ends_at })
  return `Lets ${email} join ${account.name} as ${role}, once, until ${ends_at}:\n\n  ${link}\n`
}

async function disconnectPerson(
  deps: Administration,
  { email, json }: { email: string; json?: Flag },
): Promise<string> {
  await deps.writer.catchUp()
  const { id: personId } = requirePerson(deps.data.accounts, email)
  const disconnected = await deps.data.identities.disconnectAll({ personId })
  if (json) return JSON.stringify({ email, disconnected })
  return disconnected === 0
    ? `${email} has nothing connected.`
    : `${email} is disconnected from ${disconnected === 1 ? 'a user' : `${disconnected} users`}.`
}

async function renameIssuer(
  deps: Administration,
  { from, to, json }: { from: string; to: string; json?: Flag },
): Promise<string> {
  if (!isIssuer(to)) throw new CommandError(`${to} is no issuer: it ${BAD_ISSUER}`)
  await deps.writer.catchUp()
  const renamed = await deps.data.identities.renameIssuer({ from, to })
  if (renamed === 0) throw new CommandError(`nobody is connected with a user of ${from}`)
  if (renamed === 'taken') {
    throw new CommandError(`different people are connected with one user of ${from} and ${to}`)
  }
  if (json) return JSON.stringify({ from, to, renamed })
  return `${renamed === 1 ? 'A user' : `${renamed} users`} of ${from} can sign in from ${to} now.`
}

async function setMemberRole(
  deps: Administration,
  { account: name, email, role, json }: MemberOptions & { role: Role },
): Promise<string> {
  await deps.writer.catchUp()
  const account = findAccount(deps.data.accounts, name)
  const { id: personId } = requirePerson(deps.data.accounts, email)
  await operations.changeRole(operator(deps, account.id), { personId, role })
  if (json) return JSON.stringify({ account_id: account.id, email, role })
  return `${email} has the role ${role} in ${account.name}.`
}

async function removeMember(
  deps: Administration,
  { account: name, email, json }: MemberOptions,
): Promise<string> {
  await deps.writer.catchUp()
  const account = findAccount(deps.data.accounts, name)
  const { id: personId } = requirePerson(deps.data.accounts, email)
  await operations.removeMember(operator(deps, account.id), personId)
  if (json) return JSON.stringify({ account_id: account.id, email, removed: true })
  return `${email} is removed from ${account.name}. The sessions there have ended.`
}

/** One line per member, the first ones first. */
async function listMembers(
  deps: Administration,
  { account: name, json }: Omit<MemberOptions, 'email'>,
): Promise<string> {
  await deps.writer.catchUp()
  const account = findAccount(deps.data.accounts, name)
  const lines = deps.data.accounts
    .listMembers(account.id)
    .map(({ id, email, role, totpEnabledAt, createdAt }) => {
      const since = isoTime(createdAt)
      const two_factor = totpEnabledAt !== null
      const issuers = deps.data.identities.list(id).map(({ issuer }) => issuer)
      return json
        ? JSON.stringify({ account_id: account.id, email, role, two_factor, issuers, since })
        : [
            `${email}  ${role}  since ${since}  two-factor sign-in ${two_factor ? 'on' : 'off'}`,
            ...issuers,
          ].join('  ')
    })
  return lines.join('\n')
}
