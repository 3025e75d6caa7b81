import { Elysia } from 'elysia'
import { issueOneTimeLink } from '../../accounts/one-time-links.ts'
import { PLANS, type Plan, planName } from '../../accounts/plans.ts'
import type { SecurityEvent } from '../../accounts/security-log.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { askForPassword } from '../auth/confirm-password.ts'
import { signedIn, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { storedFacts } from '../stored-facts.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'

const ACCOUNTS = '/app/service/accounts'

/** One account, as the owner of the service sees to it. */
export const serviceAccountPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.serviceAccount', prefix: `${ACCOUNTS}/:id` })
    .use(signedIn(deps, { owner: true }))
    .get('', ({ visitor, params, query }) =>
      accountPage(deps, visitor, getAccount(deps, params.id), { done: query.done }),
    )
    .post('/plan', async ({ visitor, params, form }) => {
      const account = getAccount(deps, params.id)
      const plan = PLANS.find((name) => name === form.text('plan'))
      if (!plan) return accountPage(deps, visitor, account, { problem: 'Choose a plan.' })
      await deps.writer.call('setPlan', { accountId: account.id, plan })
      record(deps, visitor, 'account.plan_changed', { account, plan })
      return goTo(`${ACCOUNTS}/${account.id}?done=plan`)
    })
    .post('/reset', async ({ visitor, params, form }) => {
      const account = getAccount(deps, params.id)
      if (account.disabledAt !== null) return goTo(`${ACCOUNTS}/${account.id}`)
      // The link opens the account, this one's own too: a stolen cookie must not be enough.
      const path = `${ACCOUNTS}/${account.id}/reset`
      const action = { path, label: 'Create a reset link', section: 'service' } as const
      const asked = await askForPassword(deps, visitor, form, action)
      if (asked) return asked
      const about = { purpose: 'reset', accountId: account.id } as const
      const link = issueOneTimeLink(deps, about, deps.clock())
      await deps.writer.call('addOneTimeLink', link.stored)
      return accountPage(deps, visitor, account, { link: deps.baseUrl + link.path })
    })
    .get('/disable', ({ visitor, params }) =>
      disablePage(deps, visitor, getAccount(deps, params.id)),
    )
    .post('/disable', async ({ visitor, params, form }) => {
      const account = getAccount(deps, params.id)
      const links = form.text('links') === '1'
      if (!(await deps.moderation.disableAccount(account.id, { links }))) {
        return disablePage(deps, visitor, account)
      }
      record(deps, visitor, 'account.disabled', { account })
      return goTo(`${ACCOUNTS}/${account.id}?done=disabled`)
    })
    .post('/enable', async ({ visitor, params }) => {
      const account = getAccount(deps, params.id)
      await deps.moderation.enableAccount(account.id)
      record(deps, visitor, 'account.enabled', { account })
      return goTo(`${ACCOUNTS}/${account.id}?done=enabled`)
    })

const record = (
  { security }: DashboardDeps,
  visitor: Visitor,
  event: SecurityEvent,
  { account, plan }: { account: AccountRow; plan?: Plan },
): void =>
  security.record(event, visitor.origin, {
    accountId: account.id,
    byAccountId: visitor.account.id,
    fields: { plan },
  })

/** Throws `page_not_found` for what is no account, or one that is being deleted. */
function getAccount({ accounts }: DashboardDeps, text: string): AccountRow {
  const account = /^\d{1,15}$/.test(text) ? accounts.find(Number(text)) : undefined
  if (!account || account.deletedAt !== null) throw new AppError('page_not_found')
  return account
}

export const planSelect = (value: string, error?: string): Html =>
  parts.select({
    ...{ name: 'plan', label: 'Plan', value, error },
    choices: PLANS.map((plan) => ({ value: plan, label: planName(plan) })),
  })

const DONE: Readonly<Record<string, string>> = {
  plan: 'The plan is changed. Its limits hold from now on.',
  disabled: 'The account is disabled: its keys are refused, its sessions have ended.',
  enabled: 'The account is enabled: its keys and its links work, and its owner can sign in.',
}

interface Shown {
  done?: string | undefined
  /** Sets a new password; in this one answer. */
  link?: string
  problem?: string
}

function accountPage(
  deps: DashboardDeps,
  visitor: Visitor,
  account: AccountRow,
  shown: Shown,
): Response {
  const { done = '', link, problem } = shown
  const good = Object.hasOwn(DONE, done) ? DONE[done] : undefined
  const path = `${ACCOUNTS}/${account.id}`
  return page(visitor, {
    ...{ title: account.email, current: 'service', status: problem ? 422 : 200 },
    main: html`
      <p><a href="${ACCOUNTS}">All accounts</a></p>
      ${good && parts.notice('good', html`<p>${good}</p>`)}
      ${link && resetLink(link, account)}
      <div class="cards two">
        ${parts.card('The account', facts(deps, account))}
        ${parts.card(
          'Plan',
          parts.form({
            ...{ action: `${path}/plan`, csrf: visitor.csrf },
            children: [planSelect(account.plan, problem), parts.button('Change the plan')],
          }),
        )}
        ${parts.card('Password', password(visitor, account, path))}
        ${parts.card('Access', access(visitor, account, path))}
      </div>`,
  })
}

function facts({ accounts, clock, plans }: DashboardDeps, account: AccountRow): Html {
  const keys = accounts.listKeys(account.id, clock())
  const lasting = keys.filter(({ endsAt }) => endsAt === null).length
  const state =
    account.disabledAt === null
      ? 'active'
      : html`<strong>disabled</strong> since ${parts.time(account.disabledAt)}`
  const linksDisabled =
    account.linksDisabledAt !== null &&
    html`<dt>Its links</dt><dd><strong>disabled</strong> since
      ${parts.time(account.linksDisabledAt)}</dd>`
  return html`<dl class="facts">
    <dt>State</dt><dd>${state}</dd>
    ${account.isOwner === 1 && html`<dt>Role</dt><dd>owner of the service</dd>`}
    ${storedFacts(account, plans[account.plan])}
    ${linksDisabled}
    <dt>Since</dt><dd>${parts.time(account.createdAt)}</dd>
    <dt>API key</dt><dd>${lasting > 0 ? 'in force' : keys.length > 0 ? 'ending' : 'none'}</dd>
    <dt>Password</dt><dd>${
      account.passwordChangedAt === null
        ? 'none yet'
        : html`set ${parts.time(account.passwordChangedAt)}`
    }</dd>
    <dt>Two-factor sign-in</dt><dd>${account.totpEnabledAt === null ? 'off' : 'on'}</dd>
  </dl>`
}

const resetLink = (link: string, { email }: AccountRow): Html =>
  parts.card('A new password', [
    parts.shownOnce('Link that sets a new password', link),
    html`<p>Send it to ${email} alone: whoever opens it within 24 hours gets into the account. Links
      made before no longer work.</p>`,
  ])

const password = (visitor: Visitor, account: AccountRow, path: string): Html =>
  account.disabledAt === null
    ? html`<p>Makes a link that sets a new password, once, within 24 hours. Until it is used nothing
        changes; then every session of the account ends.</p>
      ${parts.buttonForm(visitor, { action: `${path}/reset`, label: 'Make a reset link' })}`
    : html`<p>A disabled account has no sign-in. Enable it first.</p>`

const access = (visitor: Visitor, account: AccountRow, path: string): Html =>
  account.disabledAt === null
    ? html`<p>Disabling refuses its API keys and ends its sessions at once. Its links go on, unless
        you stop them too.</p>
      ${parts.linkButton('Disable the account…', `${path}/disable`, 'danger')}`
    : html`<p>Its API keys are refused and nobody can sign in. ${
        account.linksDisabledAt === null ? 'Its links go on.' : 'Visitors of its links get 410.'
      }</p>
      ${account.linksDisabledAt === null && disableLinksForm(visitor, path)}
      ${parts.buttonForm(visitor, {
        ...{ action: `${path}/enable`, label: 'Enable the account', look: 'primary' },
      })}`

const disableLinksForm = (visitor: Visitor, path: string): Html =>
  parts.buttonForm(visitor, {
    action: `${path}/disable`,
    label: 'Disable its links too',
    look: 'danger',
    values: { links: '1' },
  })

function disablePage({ accounts }: DashboardDeps, visitor: Visitor, account: AccountRow): Response {
  const path = `${ACCOUNTS}/${account.id}`
  const shown = { title: 'Disable an account', current: 'service' } as const
  const isLast =
    account.isOwner === 1 && account.disabledAt === null && accounts.countOwners() === 1
  if (isLast) {
    const text = html`<p>${account.email} is the only owner of the service: it cannot be
      disabled.</p>`
    const main = html`${parts.notice('note', text)}<p><a href="${path}">Back to the account</a></p>`
    return page(visitor, { ...shown, main })
  }
  const isSelf = account.id === visitor.account.id
  return page(visitor, {
    ...shown,
    main: html`<div class="card">
      ${parts.notice(
        'bad',
        html`<p><strong>${account.email} is shut out at this moment.</strong>
          Its API keys are refused with 401 and its sessions end. Its
          ${parts.plural(account.linkCount, 'link')} and their QR codes go on, unless you tick the
          box. You can enable it again.
          ${isSelf && html` <strong>This is your own account.</strong>`}</p>`,
      )}
      ${parts.form({
        action: `${path}/disable`,
        csrf: visitor.csrf,
        children: [
          parts.checkbox({ name: 'links', label: 'Its links stop too: visitors get 410' }),
          html`<div class="row">
            ${parts.button('Disable the account', 'danger')}
            ${parts.linkButton('Leave it as it is', path)}
          </div>`,
        ],
      })}
    </div>`,
  })
}
