import { parseEmail } from '../../accounts/credentials.ts'
import { issueOneTimeLink, type OneTimeLinkRow } from '../../accounts/one-time-links.ts'
import { type Plan, planName } from '../../accounts/plans.ts'
import type { AccountOverview } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { formatBytes } from '../../lib/bytes.ts'
import { type Html, html } from '../../lib/html.ts'
import { logEvent, type PageContext } from '../auth/guard.ts'
import { formAction, signedInPages } from '../page-routes.ts'
import { refuseAt, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import { PAGE_SIZE, pageNumber, pager } from '../ui/pager.ts'
import { serviceTabs } from './service.ts'
import { planSelect, requirePlan } from './service-account.ts'

const PATH = '/app/service/accounts'
/** Pending invitations. */
const INVITES_MAX = 100

/** The accounts of the service and its pending invitations, for the owner. */
export const serviceAccountsPages = signedInPages(
  {
    'GET /app/service/accounts': accountsPage,
    'POST /app/service/accounts/invites': (context) => {
      const plan = requirePlan(context.form)
      return formAction(accountsPage, () => invite(context, plan))(context)
    },
    'POST /app/service/accounts/invites/end': async (context) => {
      const id = Number(context.form.text('invite'))
      const { writer } = context.deps
      const isEnded = Number.isSafeInteger(id) && (await writer.call('endInvite', { id }))
      if (isEnded) logEvent(context, 'invite.withdrawn', { invite_id: id })
      return seeOther(`${PATH}?done=withdrawn`)
    },
  },
  { owner: true },
)

async function invite(context: PageContext, plan: Plan): Promise<Response> {
  const { deps, user, form } = context
  const { accounts, clock, oneTimeLinks, writer } = deps
  const now = clock()
  const text = form.text('email')
  const email = text === '' ? undefined : parseEmail(text)
  if (text !== '' && !email)
    throw refuseAt('email', 'Enter an address like name@example.com, or leave it empty.')
  if (email && accounts.findByEmail(email)) {
    throw refuseAt('email', 'This address already has an account.')
  }
  if (oneTimeLinks.listInvites(now).length >= INVITES_MAX) {
    throw refuseAt('email', `${INVITES_MAX} invitations are pending. Withdraw some first.`)
  }
  const accountId = user.account.id
  const about = { purpose: 'invite', accountId, plan, ...(email && { email }) } as const
  const { path, stored } = issueOneTimeLink(deps, about, now)
  if (!(await writer.call('addOneTimeLink', stored))) throw new AppError('sign_in_needed')
  logEvent(context, 'invite.created', { plan })
  return accountsPage(context, deps.baseUrl + path)
}

const DONE = { withdrawn: 'The invitation is withdrawn.' }

/** `link`: of the new invitation, only in the response that creates it. */
async function accountsPage(context: PageContext, link?: string): Promise<Response> {
  const { deps, query } = context
  const search = (query.search ?? '').trim().slice(0, 254)
  const number = pageNumber(query.page)
  const range = { limit: PAGE_SIZE, offset: (number - 1) * PAGE_SIZE }
  const { items, total } = await deps.reader.call('accountOverviews', { search, ...range })
  const pathOf = (page: number) => `${PATH}?${new URLSearchParams({ search, page: String(page) })}`
  return page(context, {
    title: 'Accounts',
    tabs: serviceTabs('Accounts'),
    messages: DONE,
    main: html`
      ${link && invitationCard(link)}
      <div class="columns cards">
        ${parts.card('Invite someone', inviteForm(context))}
        ${parts.card('Pending invitations', pendingInvites(context))}
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

const accountTable = (items: readonly AccountOverview[]): Html => html`
  ${parts.table('Accounts, newest first', items, {
    Account: ({ id, email, isOwner }) =>
      html`<a href="${`${PATH}/${id}`}">${shortEmail(email)}</a>${
        isOwner === 1 && html` <span class="hint">owner</span>`
      }`,
    Plan: ({ plan }) => planName(plan),
    Links: { cell: ({ linkCount }) => parts.count(linkCount), isNumber: true },
    'Stored URLs': { cell: ({ urlBytes }) => formatBytes(urlBytes), isNumber: true },
    Since: ({ createdAt }) => parts.time(createdAt),
    'Last seen': ({ seenAt }) => (seenAt === null ? 'not recently' : parts.time(seenAt)),
    State: ({ disabledAt }) => (disabledAt === null ? 'active' : html`<strong>disabled</strong>`),
  })}
  <p class="hint">Last seen: the latest use of an API key or a session that is still stored.</p>`

const inviteForm = (context: PageContext): Html =>
  parts.form(context.user, `${PATH}/invites`, [
    parts.emailField({
      ...typed(context, 'email'),
      label: 'E-mail address (optional)',
      hint: 'Nothing is sent: you get a link to share. Without an address, the guest enters one.',
    }),
    planSelect(typed(context, 'plan').value || 'free'),
    parts.button('Create an invitation'),
  ])

function pendingInvites({ deps, user }: PageContext): Html {
  const now = deps.clock()
  const pending = deps.oneTimeLinks.listInvites(now)
  if (pending.length === 0) return html`<p>No pending invitations.</p>`
  const withdrawButton = (link: OneTimeLinkRow) =>
    parts.buttonForm(user, `${PATH}/invites/end`, 'Withdraw', {
      look: 'danger',
      values: { invite: link.id },
      title: `Withdraw the invitation of ${guestOf(link)}`,
    })
  return parts.table('Pending invitations', pending, {
    For: ({ email }) =>
      email
        ? html`<span class="long">${shortEmail(email)}</span>`
        : html`<span class="hint">anyone with the link</span>`,
    Plan: ({ plan }) => planName(plan ?? 'free'),
    'Expires in': ({ endsAt }) => parts.countdown(endsAt, now),
    Withdraw: { cell: withdrawButton, isHidden: true },
  })
}

const guestOf = ({ email, id }: OneTimeLinkRow): string =>
  email ? shortEmail(email) : `anyone with link ${id}`

const EMAIL_SHOWN_MAX = 60

/** The start and the end of an address that is longer than any real one. */
const shortEmail = (email: string): string =>
  email.length > EMAIL_SHOWN_MAX ? `${email.slice(0, 30)}…${email.slice(-29)}` : email
