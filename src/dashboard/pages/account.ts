import { Elysia } from 'elysia'
import { findPasswordProblem, PASSWORD_MIN_LENGTH } from '../../accounts/credentials.ts'
import { planName } from '../../accounts/plans.ts'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import type { SessionView } from '../../accounts/sessions.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { requesterOf, verifyOwnPassword, WRONG_PASSWORD } from '../auth/confirm-password.ts'
import { signedIn, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { storedFacts } from '../stored-facts.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'

/** Deleting so many links takes no longer than a visitor waits; more go on behind the answer. */
const LINKS_AWAITED_MAX = 2000

/** The account's password and sessions, and its end. */
export const accountPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.account', prefix: '/app/account' })
    .use(signedIn(deps))
    .get('', ({ visitor, query }) => accountPage(deps, visitor, { done: query.done }))
    .post('/password', async ({ visitor, form }) => {
      const changed = await changePassword(deps, visitor, {
        current: form.raw('current'),
        next: form.raw('password'),
      })
      if ('errors' in changed) return accountPage(deps, visitor, changed)
      const cookies = [deps.cookies.session(changed.token)]
      return goTo('/app/account?done=password', { cookies })
    })
    .post('/sessions/end', async ({ account, form }) => {
      const id = Number(form.text('session'))
      if (Number.isSafeInteger(id)) await deps.sessions.end(id, account.id)
      return goTo('/app/account?done=session')
    })
    .post('/sessions/end-others', async ({ account, session }) => {
      await deps.sessions.endOthers(account.id, session.id)
      return goTo('/app/account?done=sessions')
    })
    .get('/delete', ({ visitor }) => deletePage(deps, visitor, {}))
    .post('/delete', async ({ visitor, form }) => {
      const { account } = visitor
      if (!(await verifyOwnPassword(deps, visitor, form.raw('current')))) {
        return deletePage(deps, visitor, { problem: WRONG_PASSWORD })
      }
      const linkCount = deps.accounts.find(account.id)?.linkCount ?? 0
      const deletion = await deps.deletion.begin(account.id, deps.clock())
      if (!deletion) return deletePage(deps, visitor, {})
      const about = { accountId: account.id }
      deps.security.record('account.deletion_started', visitor.origin, about)
      if (linkCount <= LINKS_AWAITED_MAX) await deletion.done
      return goTo('/app/sign-in?done=deleted', { cookies: [deps.cookies.end('session')] })
    })

interface Errors {
  current?: string | undefined
  password?: string | undefined
}

/**
 * Changes the password, ends every other session, and gives this one a new token, so that copies
 * of its cookie open nothing. Returns what is wrong if nothing was changed.
 */
async function changePassword(
  deps: DashboardDeps,
  visitor: Visitor,
  { current, next }: { current: string; next: string },
): Promise<{ errors: Errors } | { token: string }> {
  const password = findPasswordProblem(next, visitor.account.email)
  if (password) return { errors: { password } }
  if (!(await verifyOwnPassword(deps, visitor, current))) {
    return { errors: { current: WRONG_PASSWORD } }
  }
  const passwordHash = await deps.passwords.hash(next, requesterOf(visitor))
  const { token, hash: tokenHash } = deps.sessions.newToken()
  const isChanged = await deps.writer.call('changePassword', {
    accountId: visitor.account.id,
    keep: visitor.session.id,
    passwordHash,
    tokenHash,
    now: deps.clock(),
  })
  if (!isChanged) throw new AppError('sign_in_needed')
  deps.security.record('password.changed', visitor.origin, { accountId: visitor.account.id })
  return { token }
}

const DONE: Readonly<Record<string, string>> = {
  password: 'The password is changed, and every other session has ended.',
  session: 'The session has ended.',
  sessions: 'Every other session has ended.',
}

interface Shown {
  errors?: Errors
  done?: string | undefined
}

function accountPage(deps: DashboardDeps, visitor: Visitor, shown: Shown): Response {
  const account = deps.accounts.find(visitor.account.id)
  if (!account) throw new AppError('sign_in_needed')
  const { errors = {}, done = '' } = shown
  const good = Object.hasOwn(DONE, done) ? DONE[done] : undefined
  const limits = deps.plans[account.plan]
  return page(visitor, {
    ...{
      title: 'Account',
      current: 'account',
      status: errors.current || errors.password ? 422 : 200,
    },
    main: html`
      ${good && parts.notice('good', html`<p>${good}</p>`)}
      <div class="cards">
        ${parts.card('You', [
          html`<dl class="facts">
            <dt>E-mail address</dt><dd>${account.email}</dd>
            <dt>Plan</dt><dd>${planName(account.plan)}</dd>
            <dt>Changes a minute</dt><dd>${budget(limits.write)}</dd>
            <dt>Reads a minute</dt><dd>${budget(limits.read)}</dd>
            <dt>URLs in one bulk</dt><dd>${limits.bulkMax.toLocaleString('en')}</dd>
            ${storedFacts(account, limits)}
            <dt>Since</dt><dd>${parts.time(account.createdAt)}</dd>
          </dl>`,
        ])}
        ${parts.card('Password', passwordForm(visitor, errors))}
      </div>
      ${parts.card('Two-factor sign-in', twoFactor(account))}
      ${sessionsCard(deps, visitor)}
      ${parts.card('Delete the account', [
        html`<p>Its API keys, its sessions and every one of its links go for good.</p>`,
        parts.linkButton('Delete the account…', '/app/account/delete', 'danger'),
      ])}`,
  })
}

const twoFactor = (account: AccountRow): Html =>
  hasSecondFactor(account)
    ? html`<p>On: after the password, signing in asks for a code.</p>
        ${parts.linkButton('Turn it off…', '/app/account/two-factor')}`
    : html`<p>Off: the password alone is enough to sign in.</p>
        ${parts.linkButton('Set it up…', '/app/account/two-factor')}`

const budget = (n: number) => (n === 0 ? 'no limit' : n.toLocaleString('en'))

const passwordForm = ({ csrf, account }: Visitor, errors: Errors): Html =>
  parts.form({
    ...{ action: '/app/account/password', csrf },
    children: [
      // For password managers, which ask whose password it is.
      html`<input name="username" value="${account.email}" autocomplete="username" hidden>`,
      parts.field({
        ...{ name: 'current', label: 'Current password', type: 'password', required: true },
        ...{ autocomplete: 'current-password', error: errors.current },
      }),
      parts.field({
        ...{ name: 'password', label: 'New password', type: 'password', required: true },
        ...{ autocomplete: 'new-password', extra: { minlength: PASSWORD_MIN_LENGTH } },
        hint: `At least ${PASSWORD_MIN_LENGTH} characters. Every other session ends.`,
        error: errors.password,
      }),
      parts.button('Change the password'),
    ],
  })

function sessionsCard(deps: DashboardDeps, visitor: Visitor): Html {
  const sessions = deps.sessions.list(visitor.account.id)
  const isThis = ({ id }: SessionView) => id === visitor.session.id
  const rows = sessions.map((session) => [
    html`${browserName(session.agent)}${isThis(session) ? html` <strong>(this one)</strong>` : ''}`,
    session.address,
    parts.time(session.createdAt),
    parts.time(session.seenAt),
    isThis(session)
      ? ''
      : parts.buttonForm(visitor, {
          ...{ action: '/app/account/sessions/end', label: 'End' },
          ...{ values: { session: session.id }, title: `End the session from ${session.address}` },
        }),
  ])
  const columns = [
    ...[{ label: 'Browser' }, { label: 'Address' }, { label: 'Signed in' }, { label: 'Last seen' }],
    { label: 'End it', isHidden: true },
  ]
  return parts.card('Sessions', [
    parts.table({ caption: 'Where you are signed in', columns, rows }),
    sessions.length > 1
      ? parts.buttonForm(visitor, {
          ...{ action: '/app/account/sessions/end-others', label: 'End all others' },
        })
      : '',
  ])
}

/** What a browser calls itself, in the few words that its owner knows it by. */
function browserName(agent: string): string {
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(agent)?.[1]
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|CrOS|Linux)/.exec(agent)?.[1]
  if (!browser) return agent.slice(0, 40) || 'Unknown'
  const name = { Edg: 'Edge', OPR: 'Opera' }[browser] ?? browser
  return system ? `${name} on ${system === 'Mac OS X' ? 'macOS' : system}` : name
}

function deletePage(
  deps: DashboardDeps,
  visitor: Visitor,
  { problem }: { problem?: string },
): Response {
  const account = deps.accounts.find(visitor.account.id)
  const count = account?.linkCount ?? 0
  const back = html`<p><a href="/app/account">Back to the account</a></p>`
  const shown = { title: 'Delete the account', current: 'account' } as const
  if (account?.isOwner && deps.accounts.countOwners() === 1) {
    const text = html`<p>This account is the only owner of the service: it cannot be deleted.</p>`
    return page(visitor, { ...shown, main: html`${parts.notice('note', text)}${back}` })
  }
  const links = parts.plural(count, 'link')
  const loss =
    count === 0
      ? 'The account has no links.'
      : `${links} of the account stop working, printed QR codes too.`
  return page(visitor, {
    ...{ ...shown, status: problem ? 422 : 200 },
    main: html`<div class="card">
      ${parts.notice(
        'bad',
        html`<p><strong>${loss}</strong>
        Its codes can then be claimed by anybody. There is no way back.</p>`,
      )}
      ${parts.form({
        ...{ action: '/app/account/delete', csrf: visitor.csrf },
        children: [
          parts.field({
            ...{ name: 'current', label: 'Your password', type: 'password', required: true },
            ...{ autocomplete: 'current-password', error: problem },
          }),
          parts.button(
            count === 0 ? 'Delete the account' : `Delete the account and ${links}`,
            'danger',
          ),
        ],
      })}
      ${back}
    </div>`,
  })
}
