import { Elysia } from 'elysia'
import { findPasswordProblem, PASSWORD_MIN_LENGTH } from '../../accounts/credentials.ts'
import { planName } from '../../accounts/plans.ts'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import { LONG_SESSION_MS, type SessionView } from '../../accounts/sessions.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { findTimeZone } from '../../hits/range.ts'
import { type Html, html } from '../../lib/html.ts'
import { requesterOf, verifyOwnPassword, WRONG_PASSWORD } from '../auth/confirm-password.ts'
import { type CurrentUser, requireAccount, signedIn } from '../auth/guard.ts'
import { cookieSeconds } from '../auth/sign-in.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { confirmPage } from '../ui/confirm.ts'
import { page } from '../ui/layout.ts'
import { zoneForm, zoneOf } from '../ui/zone-form.ts'

const PATH = '/app/account'
/** The response waits for the deletion of this many links; more are deleted in the background. */
const LINKS_AWAITED_MAX = 2000

/** The account's password, sessions and deletion. */
export const accountPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.account', prefix: PATH })
    .use(signedIn(deps))
    .get('', ({ user, query }) => accountPage(deps, user, { done: query.done }))
    .post('/password', async ({ user, form }) => {
      const changed = await changePassword(deps, user, {
        current: form.raw('current'),
        next: form.raw('password'),
      })
      if ('errors' in changed) return accountPage(deps, user, changed)
      return seeOther(`${PATH}?done=password`, [changed.cookie])
    })
    .post('/sessions/end', async ({ user, form }) => {
      const id = Number(form.text('session'))
      if (Number.isSafeInteger(id)) await deps.sessions.end(id, user.account.id)
      return seeOther(`${PATH}?done=session`)
    })
    .post('/sessions/end-others', async ({ user }) => {
      await deps.sessions.endOthers(user.account.id, user.session.id)
      return seeOther(`${PATH}?done=sessions`)
    })
    .post('/time-zone', async ({ user, form }) => {
      const timeZone = findTimeZone(form.text('zone'))
      if (!timeZone) throw new AppError('invalid_value', 'There is no such time zone.')
      await deps.writer.call('setTimeZone', { accountId: user.account.id, timeZone })
      return seeOther(form.text('next') === 'analytics' ? '/app/analytics' : `${PATH}?done=zone`)
    })
    .get('/delete', ({ user }) => deletePage(deps, user))
    .post('/delete', async ({ user, form }) => {
      const { account, origin } = user
      if (!(await verifyOwnPassword(deps, user, form.raw('current')))) {
        return deletePage(deps, user, WRONG_PASSWORD)
      }
      const { linkCount } = requireAccount(deps, user)
      const deletion = await deps.deletion.begin(account.id, deps.clock())
      if (!deletion) return deletePage(deps, user)
      deps.security.record('account.deletion_started', origin, { accountId: account.id })
      if (linkCount <= LINKS_AWAITED_MAX) await deletion.done
      return seeOther('/app/sign-in?done=deleted', [deps.cookies.end('session')])
    })

interface PasswordErrors {
  current?: string | undefined
  password?: string | undefined
}

/**
 * Changes the password, ends every other session, and gives this one a new token, so that copies of
 * its cookie stop working. Changes nothing if it returns errors.
 */
async function changePassword(
  deps: DashboardDeps,
  user: CurrentUser,
  { current, next }: { current: string; next: string },
): Promise<{ errors: PasswordErrors } | { cookie: string }> {
  const { account, session, origin } = user
  const password = findPasswordProblem(next, account.email)
  if (password) return { errors: { password } }
  if (!(await verifyOwnPassword(deps, user, current))) {
    return { errors: { current: WRONG_PASSWORD } }
  }
  const passwordHash = await deps.passwords.hash(next, requesterOf(user))
  const { token, hash: tokenHash } = deps.sessions.newToken()
  const isChanged = await deps.writer.call('changePassword', {
    accountId: account.id,
    keep: session.id,
    passwordHash,
    tokenHash,
    now: deps.clock(),
  })
  if (!isChanged) throw new AppError('sign_in_needed')
  deps.security.record('password.changed', origin, { accountId: account.id })
  return { cookie: deps.cookies.session(token, cookieSeconds(session, deps.clock())) }
}

const DONE = {
  password: 'The password is changed, and every other session has ended.',
  session: 'The session has ended.',
  sessions: 'Every other session has ended.',
  zone: 'The time zone is set.',
}

interface AccountPageProps {
  errors?: PasswordErrors
  done?: string | undefined
}

function accountPage(
  deps: DashboardDeps,
  user: CurrentUser,
  { errors = {}, done }: AccountPageProps,
): Response {
  const account = requireAccount(deps, user)
  return page(user, {
    title: 'Account',
    current: 'account',
    messages: DONE,
    done,
    isRefused: Boolean(errors.current || errors.password),
    main: html`
      <div class="columns cards">
        ${parts.card('You', accountFacts(deps, account))}
        ${parts.card('Password', passwordForm(user, errors))}
      </div>
      ${parts.card('Time zone', zoneForm(user, zoneOf(account)))}
      <div id="security">
        ${parts.card('Two-factor sign-in', twoFactor(account))}
        ${sessionsCard(deps, user)}
      </div>
      ${parts.card('QR codes', [
        html`<p>Your logo and named options for QR codes.</p>`,
        parts.linkButton('Logo and presets', '/app/qr'),
      ])}
      ${parts.card('Delete the account', [
        html`<p>Deletes its API keys, its sessions and all of its links permanently.</p>`,
        parts.linkButton('Delete the account…', `${PATH}/delete`, 'danger'),
      ])}`,
  })
}

function accountFacts({ plans }: DashboardDeps, account: AccountRow): Html {
  const limits = plans[account.plan]
  const budget = (n: number) => (n === 0 ? 'no limit' : parts.count(n))
  return parts.facts([
    ['E-mail address', account.email],
    ['Plan', planName(account.plan)],
    ['Changes a minute', budget(limits.write)],
    ['Reads a minute', budget(limits.read)],
    ['URLs in one bulk', parts.count(limits.bulkMax)],
    ...parts.storedFacts(account, limits),
    ['Since', parts.time(account.createdAt)],
  ])
}

const twoFactor = (account: AccountRow): Html =>
  hasSecondFactor(account)
    ? html`<p>On: after the password, signing in asks for a code.</p>
        ${parts.linkButton('Turn it off…', `${PATH}/two-factor`)}`
    : html`<p>Off: the password alone is enough to sign in.</p>
        ${parts.linkButton('Set it up…', `${PATH}/two-factor`)}`

const passwordForm = (user: CurrentUser, errors: PasswordErrors): Html =>
  parts.form(user, `${PATH}/password`, [
    parts.currentPassword(user, { label: 'Current password', error: errors.current }),
    parts.newPassword({
      label: 'New password',
      hint: `At least ${PASSWORD_MIN_LENGTH} characters. Every other session ends.`,
      error: errors.password,
    }),
    parts.button('Change the password'),
  ])

const stayingUntil = ({ createdAt }: SessionView): Html => html`<br>
  <span class="hint">stays signed in until ${parts.time(createdAt + LONG_SESSION_MS)}</span>`

function sessionsCard(deps: DashboardDeps, user: CurrentUser): Html {
  const sessions = deps.sessions.list(user.account.id)
  const isThis = ({ id }: SessionView) => id === user.session.id
  return parts.card('Sessions', [
    parts.table('Where you are signed in', sessions, {
      Browser: (session) =>
        html`${browserName(session.agent)}${isThis(session) && html` <strong>(this one)</strong>`}`,
      Address: ({ address }) => address,
      'Signed in': (session) =>
        html`${parts.time(session.createdAt)}${session.isLong === 1 && stayingUntil(session)}`,
      'Last seen': ({ seenAt }) => parts.time(seenAt),
      'End it': {
        cell: (session) => (isThis(session) ? '' : endButton(user, session)),
        isHidden: true,
      },
    }),
    sessions.length > 1 && parts.buttonForm(user, `${PATH}/sessions/end-others`, 'End all others'),
  ])
}

const endButton = (user: CurrentUser, { id, address }: SessionView): Html =>
  parts.buttonForm(user, `${PATH}/sessions/end`, 'End', {
    values: { session: id },
    title: `End the session from ${address}`,
  })

/** The common name of a browser and its system, from `User-Agent`. */
function browserName(agent: string): string {
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(agent)?.[1]
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|CrOS|Linux)/.exec(agent)?.[1]
  if (!browser) return agent.slice(0, 40) || 'Unknown'
  const name = { Edg: 'Edge', OPR: 'Opera' }[browser] ?? browser
  return system ? `${name} on ${system === 'Mac OS X' ? 'macOS' : system}` : name
}

function deletePage(deps: DashboardDeps, user: CurrentUser, error?: string): Response {
  const { id, linkCount } = requireAccount(deps, user)
  const frame = {
    title: 'Delete the account',
    current: 'account',
    back: { href: PATH, label: 'Account' },
  } as const
  if (deps.accounts.isLastOwner(id)) {
    const reason = 'This account is the only owner of the service: it cannot be deleted.'
    return page(user, { ...frame, main: parts.notice('note', html`<p>${reason}</p>`) })
  }
  const links = parts.plural(linkCount, 'link')
  const loss =
    linkCount === 0
      ? 'The account has no links.'
      : `${links} of the account stop working, also their printed QR codes.`
  return confirmPage(user, {
    ...frame,
    isRefused: error !== undefined,
    warning: html`<strong>${loss}</strong> Anybody can then claim its codes. This cannot be
      undone.`,
    action: `${PATH}/delete`,
    fields: parts.currentPassword(user, { error }),
    label: linkCount === 0 ? 'Delete the account' : `Delete the account and ${links}`,
  })
}
