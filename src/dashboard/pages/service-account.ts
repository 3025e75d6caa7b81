import { Elysia } from 'elysia'
import { issueOneTimeLink } from '../../accounts/one-time-links.ts'
import { PLANS, type Plan, planName } from '../../accounts/plans.ts'
import type { SecurityEvent } from '../../accounts/security-log.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { withPassword } from '../auth/confirm-password.ts'
import { type CurrentUser, signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { confirmPage } from '../ui/confirm.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'

const ACCOUNTS = '/app/service/accounts'
const pathOf = ({ id }: AccountRow) => `${ACCOUNTS}/${id}` as const

/** One account, for the owner of the service. */
export const serviceAccountPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.serviceAccount', prefix: `${ACCOUNTS}/:id` })
    .use(signedIn(deps, { owner: true }))
    .get('', ({ user, params, query }) =>
      accountPage(deps, user, { account: requireAccount(deps, params.id), done: query.done }),
    )
    .post('/plan', async ({ user, params, form }) => {
      const account = requireAccount(deps, params.id)
      const plan = requirePlan(form)
      await deps.writer.call('setPlan', { accountId: account.id, plan })
      log(deps, user, 'account.plan_changed', { account, plan })
      return seeOther(`${pathOf(account)}?done=plan`)
    })
    .post('/reset', ({ user, params, form }) => {
      const account = requireAccount(deps, params.id)
      if (account.disabledAt !== null) return seeOther(pathOf(account))
      // The link gives access to any account, also this one: a stolen cookie must not permit that.
      const action = { path: `${pathOf(account)}/reset`, label: 'Create a reset link' } as const
      return withPassword(deps, user, form, action, async () => {
        const about = { purpose: 'reset', accountId: account.id } as const
        const link = issueOneTimeLink(deps, about, deps.clock())
        await deps.writer.call('addOneTimeLink', link.stored)
        return accountPage(deps, user, { account, link: deps.baseUrl + link.path })
      })
    })
    .get('/disable', ({ user, params }) => disablePage(deps, user, requireAccount(deps, params.id)))
    .post('/disable', async ({ user, params, form }) => {
      const account = requireAccount(deps, params.id)
      const links = form.text('links') === '1'
      if (!(await deps.moderation.disableAccount(account.id, { links }))) {
        return disablePage(deps, user, account)
      }
      log(deps, user, 'account.disabled', { account })
      return seeOther(`${pathOf(account)}?done=disabled`)
    })
    .post('/enable', async ({ user, params }) => {
      const account = requireAccount(deps, params.id)
      await deps.moderation.enableAccount(account.id)
      log(deps, user, 'account.enabled', { account })
      return seeOther(`${pathOf(account)}?done=enabled`)
    })

const log = (
  { security }: DashboardDeps,
  user: CurrentUser,
  event: SecurityEvent,
  { account, plan }: { account: AccountRow; plan?: Plan },
): void =>
  security.record(event, user.origin, {
    accountId: account.id,
    byAccountId: user.account.id,
    fields: { plan },
  })

/** Throws `page_not_found` for an unknown account and for one that is being deleted. */
function requireAccount({ accounts }: DashboardDeps, text: string): AccountRow {
  const account = /^\d{1,15}$/.test(text) ? accounts.find(Number(text)) : undefined
  if (!account || account.deletedAt !== null) throw new AppError('page_not_found')
  return account
}

/** Throws `invalid_value` for a plan that `planSelect` does not offer. */
export function requirePlan(form: Form): Plan {
  const plan = PLANS.find((name) => name === form.text('plan'))
  if (!plan) throw new AppError('invalid_value', 'Choose a plan.')
  return plan
}

export const planSelect = (value: string): Html =>
  parts.select({
    name: 'plan',
    label: 'Plan',
    value,
    choices: PLANS.map((plan) => ({ value: plan, label: planName(plan) })),
  })

const DONE = {
  plan: 'The plan is changed. Its limits apply from now on.',
  disabled: 'The account is disabled: its keys are refused, and its sessions have ended.',
  enabled: 'The account is enabled: its keys, its links and its sign-in work again.',
}

interface AccountPageProps {
  account: AccountRow
  done?: string | undefined
  /** The new reset link, only in this response. */
  link?: string
}

function accountPage(deps: DashboardDeps, user: CurrentUser, props: AccountPageProps): Response {
  const { account, done, link } = props
  return page(user, {
    title: account.email,
    current: 'service',
    back: { href: ACCOUNTS, label: 'All accounts' },
    messages: DONE,
    done,
    main: html`
      ${link && resetLinkCard(link, account)}
      <div class="columns cards">
        ${parts.card('The account', accountFacts(deps, account))}
        ${parts.card(
          'Plan',
          parts.form(user, `${pathOf(account)}/plan`, [
            planSelect(account.plan),
            parts.button('Change the plan'),
          ]),
        )}
        ${parts.card('Password', password(user, account))}
        ${parts.card('Access', access(user, account))}
      </div>`,
  })
}

function accountFacts({ accounts, clock, plans }: DashboardDeps, account: AccountRow): Html {
  const keys = accounts.listKeys(account.id, clock())
  const hasActiveKey = keys.some(({ endsAt }) => endsAt === null)
  const disabledSince = (time: number) => html`<strong>disabled</strong> since ${parts.time(time)}`
  const { disabledAt, linksDisabledAt, passwordChangedAt } = account
  return parts.facts([
    ['State', disabledAt === null ? 'active' : disabledSince(disabledAt)],
    account.isOwner === 1 && ['Role', 'owner of the service'],
    ...parts.storedFacts(account, plans[account.plan]),
    linksDisabledAt !== null && ['State of its links', disabledSince(linksDisabledAt)],
    ['Since', parts.time(account.createdAt)],
    ['API key', hasActiveKey ? 'active' : keys.length > 0 ? 'expiring' : 'none'],
    [
      'Password',
      passwordChangedAt === null ? 'none yet' : html`set ${parts.time(passwordChangedAt)}`,
    ],
    ['Two-factor sign-in', account.totpEnabledAt === null ? 'off' : 'on'],
  ])
}

const resetLinkCard = (link: string, { email }: AccountRow): Html =>
  parts.card('Reset link', [
    parts.secretOnce('Link that sets a new password', link),
    html`<p>Send it only to ${email}: it gives access to the account for 24 hours. Earlier reset
      links no longer work.</p>`,
  ])

const password = (user: CurrentUser, account: AccountRow): Html =>
  account.disabledAt === null
    ? html`<p>Creates a link that sets a new password, once, within 24 hours. Nothing changes until
        it is used; then all sessions of the account end.</p>
      ${parts.buttonForm(user, `${pathOf(account)}/reset`, 'Create a reset link')}`
    : html`<p>Nobody can sign in to a disabled account. Enable it first.</p>`

const access = (user: CurrentUser, account: AccountRow): Html => {
  const path = pathOf(account)
  if (account.disabledAt === null) {
    return html`<p>Disabling refuses its API keys and ends its sessions immediately. Its links keep
        working, unless you disable them too.</p>
      ${parts.linkButton('Disable the account…', `${path}/disable`, 'danger')}`
  }
  const areLinksActive = account.linksDisabledAt === null
  return html`<p>Its API keys are refused and nobody can sign in. ${
    areLinksActive ? 'Its links keep working.' : 'Visitors of its links get 410.'
  }</p>
    ${
      areLinksActive &&
      parts.buttonForm(user, `${path}/disable`, 'Disable its links too', {
        look: 'danger',
        values: { links: '1' },
      })
    }
    ${parts.buttonForm(user, `${path}/enable`, 'Enable the account', { look: 'primary' })}`
}

function disablePage(
  { accounts }: DashboardDeps,
  user: CurrentUser,
  account: AccountRow,
): Response {
  const path = pathOf(account)
  const { id, email, linkCount } = account
  const frame = {
    title: 'Disable an account',
    current: 'service',
    back: { href: path, label: email },
  } as const
  if (accounts.isLastOwner(id)) {
    const reason = `${email} is the only owner of the service: it cannot be disabled.`
    return page(user, { ...frame, main: parts.notice('note', html`<p>${reason}</p>`) })
  }
  const isOwn = id === user.account.id
  return confirmPage(user, {
    ...frame,
    warning: html`<strong>${email} loses access immediately.</strong>
      Its API keys are refused with 401 and its sessions end. Its ${parts.plural(linkCount, 'link')}
      and their QR codes keep working, unless you select the option below. You can enable it again.
      ${isOwn && html` <strong>This is your own account.</strong>`}`,
    action: `${path}/disable`,
    fields: parts.checkbox({ name: 'links', label: 'Disable its links too: visitors get 410' }),
    label: 'Disable the account',
    cancel: { label: 'Cancel', href: path },
  })
}
