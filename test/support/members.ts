import { issueKey } from '../../src/accounts/keys.ts'
import {
  issueOneTimeLink,
  OneTimeLinkStore,
  type Purpose,
} from '../../src/accounts/one-time-links.ts'
import { accounts } from '../../src/accounts/operations/accounts.ts'
import type { Plan } from '../../src/accounts/plans.ts'
import type { KeyLabel } from '../../src/accounts/store.ts'
import { resetPassword, resetTwoFactor, setupLink } from '../../src/cli/accounts.ts'
import type { DataFolder } from '../../src/data-folder.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { eventually, type TestApp } from './app.ts'
import { PASSWORD, Visitor } from './dashboard.ts'
import { operationsOn } from './subjects.ts'

/** What the command line and the owner do to accounts. */

const administer = <Result>(app: TestApp, work: (folder: DataFolder) => Result): Result =>
  app.administer(work)

/** The path of a new one-time link; `email` names whose password a reset sets. */
export function addOneTimeLink(
  app: TestApp,
  { purpose, plan, email }: { purpose: Purpose; plan?: Plan; email?: string },
): string {
  return administer(app, ({ db, accounts, hasher }) => {
    const personId = purpose === 'reset' ? accounts.findByEmail(email ?? '')?.id : undefined
    const about = {
      purpose,
      ...(plan && { plan }),
      ...(personId === undefined ? email && { email } : { personId }),
    }
    const { path, stored } = issueOneTimeLink({ hasher, random: secureRandom }, about, app.now())
    new OneTimeLinkStore(db).add(stored)
    return path
  })
}

/**
 * Somebody with an account and a session: a new account of the Free plan, or `<plan>@example.com`
 * of the test with a password.
 */
export async function makeMember(app: TestApp, email: string): Promise<Visitor> {
  const member = new Visitor(app)
  const name = email.split('@')[0] ?? ''
  const isTests = ['free', 'pro', 'enterprise'].includes(name)
  if (isTests) app.key(name)
  const path = addOneTimeLink(
    app,
    isTests ? { purpose: 'reset', email } : { purpose: 'invite', email, plan: 'free' },
  )
  await member.post(path, { email, password: PASSWORD })
  return member
}

const idOf = ({ accounts }: DataFolder, email: string): number => {
  const id = accounts.findByEmail(email)?.id
  if (id === undefined) throw new Error(`the test has no account ${email}`)
  return id
}

/** Goes with changes of an account by commands. */
export const operator = (app: TestApp, accountId: number) =>
  ({ accountId, by: 'operator', now: app.now() }) as const

export const disable = (app: TestApp, email: string): void =>
  administer(app, (folder) => {
    operationsOn(folder.db, accounts).disable({ author: operator(app, idOf(folder, email)) })
  })

/** What `hopcode account reset-password --json` prints. */
export const resetPasswordByCommand = (app: TestApp, email: string): Promise<string> =>
  resetPassword(app.administration, { email, json: true })

/** What `hopcode account reset-two-factor` prints. */
export const resetTwoFactorByCommand = (app: TestApp, email: string): Promise<string> =>
  resetTwoFactor(app.administration, { email })

/** The link that `hopcode account setup-link --another` prints, with the test's address. */
export const setupLinkByCommand = async (app: TestApp): Promise<string> => {
  const administration = { ...app.administration, baseUrl: app.url }
  return JSON.parse(await setupLink(administration, { another: true, json: true })).link
}

/** A further API key of an account. */
export const addKey = (app: TestApp, email: string, label: KeyLabel): string =>
  administer(app, (folder) => {
    const { key, stored } = issueKey(app.administration, label)
    folder.accounts.addKey(idOf(folder, email), stored, app.now())
    return key
  })

/** A key that may do everything, of an account that is named like its plan (`free`). */
export function addManager(app: TestApp, name: string): string {
  app.key(name)
  return addKey(app, `${name}@example.com`, { name: 'Manager', scope: 'manage' })
}

/** When the account's newest key was last used. */
export const lastUseOfKey = (app: TestApp, email: string): number | null | undefined =>
  administer(app, (folder) => {
    return folder.accounts.listKeys(idOf(folder, email), app.now())[0]?.lastUsedAt
  })

/** As a service leaves it that is stopped right after a deletion has begun. */
export const markDeleted = (app: TestApp, email: string): void =>
  administer(app, (folder) => {
    operationsOn(folder.db, accounts).beginDeletion({ author: operator(app, idOf(folder, email)) })
  })

/** Waits until the sessions that were seen just now are written. */
export const settled = (app: TestApp): Promise<void> =>
  eventually('the sighting is written', () =>
    administer(app, ({ db }) => {
      const query = db.query<{ n: number }, [number]>(
        'SELECT count(*) AS n FROM sessions WHERE seen_at = ?',
      )
      return (query.get(app.now())?.n ?? 0) > 0
    }),
  )

/** The path of an invitation to the account that `from` sees. */
export async function inviteTo(from: Visitor, email: string, role = 'admin'): Promise<string> {
  const page = '/app/account/members'
  const { text } = await from.post(`${page}/invite`, { email, role }, { from: page })
  return /value="[^"]*(\/app\/join\/[\w-]+)"/.exec(text)?.[1] ?? ''
}
