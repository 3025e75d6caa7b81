import { Elysia } from 'elysia'
import { parseEmail } from '../../accounts/credentials.ts'
import { issueOneTimeLink, type OneTimeLinkRow } from '../../accounts/one-time-links.ts'
import { planName } from '../../accounts/plans.ts'
import type { AccountOverview } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { formatBytes } from '../../lib/bytes.ts'
import { type Html, html } from '../../lib/html.ts'
import { type CurrentUser, type Query, signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import { PAGE_SIZE, pageNumber, pager } from '../ui/pager.ts'
import { serviceTabs } from './service.ts'
import { planSelect, requirePlan } from './service-account.ts'

const PATH = '/app/service/accounts'
/** Pending invitations. */
const INVITES_MAX = 100

/** The accounts of the service and its pending invitations, for the owner. */
export const serviceAccountsPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.serviceAccounts', prefix: PATH })
    .use(signedIn(deps, { owner: true }))
    .get('', ({ user, query }) => accountsPage(deps, user, { query }))
    .post('/invites', async ({ user, form }) => {
      const invited = await invite(deps, user, form)
      const sent = 'problem' in invited ? form : undefined
      return accountsPage(deps, user, { query: {}, ...invited, sent })
    })
    .post('/invites/end', async ({ user, form }) => {
      const id = Number(form.text('invite'))
      const isEnded = Number.isSafeInteger(id) && (await deps.writer.call('endInvite', { id }))
      if (isEnded) {
        const about = { accountId: user.account.id, fields: { invite_id: id } }
        deps.security.record('invite.withdrawn', user.origin, about)
      }
      return seeOther(`${PATH}?done=withdrawn`)
    })

async function invite(
  deps: DashboardDeps,
  { account, origin }: CurrentUser,
  form: Form,
): Promise<{ link: string } | { problem: string }> {
  const { accounts, clock, oneTimeLinks, writer } = deps
  const now = clock()
  const text = form.text('email')
  const email = text === '' ? undefined : parseEmail(text)
  const plan = requirePlan(form)
  if (text !== '' && !email) {
    return { problem: 'Enter an address like name@example.com, or leave it empty.' }
  }
  if (email && accounts.findByEmail(email)) {
    return { problem: 'This address already has an account.' }
  }
  if (oneTimeLinks.listInvites(now).length >= INVITES_MAX) {
    return { problem: `${INVITES_MAX} invitations are pending. Withdraw some first.` }
  }
  const about = { purpose: 'invite', accountId: account.id, plan, ...(email && { email }) } as const
  const { path, stored } = issueOneTimeLink(deps, about, now)
  if (!(await writer.call('addOneTimeLink', stored))) throw new AppError('sign_in_needed')
  deps.security.record('invite.created', origin, { accountId: account.id, fields: { plan } })
  return { link: deps.baseUrl + path }
}

const DONE = { withdrawn: 'The invitation is withdrawn.' }

interface AccountsPageProps {
  query: Query
  /** The new invitation's link, only in this response. */
  link?: string
  /** The problem of the address in a refused form. */
  problem?: string
  sent?: Form | undefined
}

async function accountsPage(
  deps: DashboardDeps,
  user: CurrentUser,
  props: AccountsPageProps,
): Promise<Response> {
  const { query, link, problem } = props
  const search = (query.search ?? '').trim().slice(0, 254)
  const number = pageNumber(query.page)
  const range = { limit: PAGE_SIZE, offset: (number - 1) * PAGE_SIZE }
  const { items, total } = await deps.reader.call('accountOverviews', { search, ...range })
  const pathOf = (page: number) => `${PATH}?${new URLSearchParams({ search, page: String(page) })}`
  return page(user, {
    title: 'Accounts',
    current: 'service',
    status: problem ? 422 : 200,
    main: html`
      ${serviceTabs('Accounts')}
      ${parts.flash(DONE, query.done)}
      ${link && invitationCard(link)}
      <div class="cards">
        ${parts.card('Invite someone', inviteForm(user, props))}
        ${parts.card('Pending invitations', pendingInvites(deps, user))}
      </div>
      ${parts.card('All accounts', [
        parts.searchForm(PATH, { name: 'search', label: 'Find by e-mail address', value: search }),
        items.length > 0 ? accountTable(items) : noAccounts(number > 1, search),
        pager(number, total, pathOf),
      ])}`,
  })
}

const invitationCard = (link: string): Html =>
  parts.card('The invitation', [
    parts.secretOnce('Link for your guest', link),
    html`<p>It creates one account, within 7 days. Send it only to your guest.</p>`,
  ])

const noAccounts = (isPastEnd: boolean, search: string): Html => html`
  <p>${isPastEnd ? 'There is no such page.' : html`No accounts match “${search}”.`}
    <a href="${PATH}">Show all accounts</a></p>`

function accountTable(items: readonly AccountOverview[]): Html {
  const rows = items.map((account) => [
    html`<a href="${`${PATH}/${account.id}`}">${shortEmail(account.email)}</a>${
      account.isOwner === 1 && html` <span class="hint">owner</span>`
    }`,
    planName(account.plan),
    parts.count(account.linkCount),
    formatBytes(account.urlBytes),
    parts.time(account.createdAt),
    account.seenAt === null ? 'not recently' : parts.time(account.seenAt),
    account.disabledAt === null ? 'active' : html`<strong>disabled</strong>`,
  ])
  const columns = [
    'Account',
    'Plan',
    { label: 'Links', isNumber: true },
    { label: 'Stored URLs', isNumber: true },
    'Since',
    'Last seen',
    'State',
  ]
  return html`${parts.table({ caption: 'Accounts, newest first', columns, rows })}
    <p class="hint">Last seen: the latest use of an API key or a session that is still stored.</p>`
}

const inviteForm = (user: CurrentUser, { sent, problem }: AccountsPageProps): Html =>
  parts.form({
    action: `${PATH}/invites`,
    csrf: user.csrf,
    children: [
      parts.emailField({
        label: 'E-mail address (optional)',
        value: sent?.text('email'),
        hint: 'Nothing is sent: you get a link to share. Without an address, the guest enters one.',
        error: problem,
      }),
      planSelect(sent?.text('plan') || 'free'),
      parts.button('Create an invitation'),
    ],
  })

function pendingInvites({ oneTimeLinks, clock }: DashboardDeps, user: CurrentUser): Html {
  const now = clock()
  const pending = oneTimeLinks.listInvites(now)
  if (pending.length === 0) return html`<p>No pending invitations.</p>`
  const rows = pending.map((link) => [
    link.email
      ? html`<span class="long">${shortEmail(link.email)}</span>`
      : html`<span class="quiet">anyone with the link</span>`,
    planName(link.plan ?? 'free'),
    parts.countdown(link.endsAt, now),
    parts.buttonForm(user, `${PATH}/invites/end`, 'Withdraw', {
      look: 'danger',
      values: { invite: link.id },
      title: `Withdraw the invitation of ${guestOf(link)}`,
    }),
  ])
  const columns = ['For', 'Plan', 'Expires in', { label: 'Withdraw', isHidden: true }]
  return parts.table({ caption: 'Pending invitations', columns, rows })
}

const guestOf = ({ email, id }: OneTimeLinkRow): string =>
  email ? shortEmail(email) : `anyone with link ${id}`

const EMAIL_SHOWN_MAX = 60

/** The start and the end of an address that is longer than any real one. */
const shortEmail = (email: string): string =>
  email.length > EMAIL_SHOWN_MAX ? `${email.slice(0, 30)}…${email.slice(-29)}` : email
