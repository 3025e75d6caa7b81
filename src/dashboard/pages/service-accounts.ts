import { Elysia } from 'elysia'
import { parseEmail } from '../../accounts/credentials.ts'
import { issueOneTimeLink, type OneTimeLinkRow } from '../../accounts/one-time-links.ts'
import { PLANS, planName } from '../../accounts/plans.ts'
import type { AccountOverview } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { formatBytes } from '../../lib/bytes.ts'
import { type Html, html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { signedIn, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import { serviceTabs } from './service.ts'
import { planSelect } from './service-account.ts'

const PAGE_SIZE = 50
const PAGES_MAX = 1_000_000
/** Invitations that wait at once. */
const INVITES_MAX = 100

/** The accounts of the service and who is invited to it: for its owner. */
export const serviceAccountsPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.serviceAccounts', prefix: '/app/service/accounts' })
    .use(signedIn(deps, { owner: true }))
    .get('', ({ visitor, query }) => accountsPage(deps, visitor, { query }))
    .post('/invites', async ({ visitor, form }) => {
      const made = await invite(deps, visitor, form)
      return accountsPage(deps, visitor, { ...made, sent: form })
    })
    .post('/invites/end', async ({ visitor, form }) => {
      const id = Number(form.text('invite'))
      const isEnded = Number.isSafeInteger(id) && (await deps.writer.call('endInvite', { id }))
      if (isEnded) {
        const about = { accountId: visitor.account.id, fields: { invite_id: id } }
        deps.security.record('invite.withdrawn', visitor.origin, about)
      }
      return goTo('/app/service/accounts?done=withdrawn')
    })

type Sent = Pick<Form, 'text'>

interface Shown {
  query?: Readonly<Record<string, string | undefined>>
  /** The new invitation's link, in this one answer. */
  link?: string
  errors?: { email?: string; plan?: string }
  sent?: Sent
}

async function invite(
  deps: DashboardDeps,
  { account, origin }: Visitor,
  form: Form,
): Promise<Pick<Shown, 'link' | 'errors'>> {
  const { accounts, clock, oneTimeLinks, writer } = deps
  const now = clock()
  const text = form.text('email')
  const email = text === '' ? undefined : parseEmail(text)
  const plan = PLANS.find((name) => name === form.text('plan'))
  if (!plan) return { errors: { plan: 'Choose a plan.' } }
  if (text !== '' && !email) {
    return { errors: { email: 'Write an address like name@example.com, or leave it empty.' } }
  }
  if (email && accounts.findByEmail(email)) {
    return { errors: { email: 'This address has an account already.' } }
  }
  if (oneTimeLinks.listInvites(now).length >= INVITES_MAX) {
    return { errors: { email: `${INVITES_MAX} invitations wait already. Withdraw some first.` } }
  }
  const about = { purpose: 'invite', accountId: account.id, plan, ...(email && { email }) } as const
  const { path, stored } = issueOneTimeLink(deps, about, now)
  if (!(await writer.call('addOneTimeLink', stored))) throw new AppError('sign_in_needed')
  deps.security.record('invite.created', origin, { accountId: account.id, fields: { plan } })
  return { link: deps.baseUrl + path }
}

async function accountsPage(
  deps: DashboardDeps,
  visitor: Visitor,
  shown: Shown,
): Promise<Response> {
  const { query = {}, link, errors } = shown
  const search = (query.search ?? '').trim().slice(0, 254)
  const wanted = Number(query.page ?? 1)
  const number = Number.isInteger(wanted) && wanted > 0 ? Math.min(wanted, PAGES_MAX) : 1
  const offset = (number - 1) * PAGE_SIZE
  const found = await deps.reader.call('accountOverviews', { search, limit: PAGE_SIZE, offset })
  return page(visitor, {
    ...{ title: 'Accounts', current: 'service', status: errors ? 422 : 200 },
    main: html`
      ${serviceTabs('accounts')}
      ${query.done === 'withdrawn' && withdrawn()}
      ${link && invited(link)}
      <div class="cards">
        ${parts.card('Invite somebody', inviteForm(visitor, shown))}
        ${parts.card('Invitations that wait', invites(deps, visitor))}
      </div>
      ${parts.card('All accounts', [
        searchForm(search),
        accountTable(found.items, { search, isPastEnd: number > 1 }),
        pager({ search, number, total: found.total }),
      ])}`,
  })
}

const withdrawn = () => parts.notice('good', html`<p>The invitation is withdrawn.</p>`)

const invited = (link: string): Html =>
  parts.card('The invitation', [
    parts.shownOnce('Link for your guest', link),
    html`<p>Whoever opens it can make one account within 7 days. Send it to your guest alone.</p>`,
  ])

const searchForm = (search: string): Html => html`
  <form class="form search" method="get" action="/app/service/accounts" role="search">
    ${parts.field({
      ...{ name: 'search', label: 'Find by e-mail address', type: 'search', value: search },
    })}
    ${parts.button('Find', 'plain')}
  </form>`

function accountTable(
  items: readonly AccountOverview[],
  { search, isPastEnd }: { search: string; isPastEnd: boolean },
): Html {
  if (items.length === 0) {
    const all = html`<a href="/app/service/accounts">Show all accounts</a>`
    const text = isPastEnd ? 'There is no such page.' : html`No address has “${search}” in it.`
    return html`<p>${text} ${all}</p>`
  }
  const rows = items.map((account) => [
    html`<a href="${`/app/service/accounts/${account.id}`}">${shownEmail(account.email)}</a>${
      account.isOwner === 1 && html` <span class="hint">owner</span>`
    }`,
    planName(account.plan),
    account.linkCount.toLocaleString('en'),
    formatBytes(account.urlBytes),
    parts.time(account.createdAt),
    account.seenAt === null ? 'not lately' : parts.time(account.seenAt),
    account.disabledAt === null ? 'active' : html`<strong>disabled</strong>`,
  ])
  const columns = [
    ...[{ label: 'Account' }, { label: 'Plan' }, { label: 'Links', isNumber: true }],
    ...[
      { label: 'Stored URLs', isNumber: true },
      { label: 'Since' },
      { label: 'Last seen' },
      { label: 'State' },
    ],
  ]
  return html`${parts.table({ caption: 'Accounts, newest first', columns, rows })}
    <p class="hint">Last seen: the newest use of an API key or of a session that is still kept.</p>`
}

interface Pages {
  search: string
  number: number
  total: number
}

function pager({ search, number, total }: Pages): Html | false {
  const last = Math.ceil(total / PAGE_SIZE)
  if (last <= 1) return false
  const to = (page: number) =>
    `/app/service/accounts?${new URLSearchParams({ search, page: String(page) })}`
  return html`<nav class="row" aria-label="Pages of accounts">
    ${number > 1 && parts.linkButton('Newer', to(number - 1))}
    <span>Page ${number} of ${last} · ${parts.plural(total, 'account')}</span>
    ${number < last && parts.linkButton('Older', to(number + 1))}
  </nav>`
}

function inviteForm(visitor: Visitor, { sent, errors = {}, link }: Shown): Html {
  // What was sent well is done with.
  const kept = (name: string) => (link ? '' : (sent?.text(name) ?? ''))
  return parts.form({
    ...{ action: '/app/service/accounts/invites', csrf: visitor.csrf },
    children: [
      parts.field({
        ...{ name: 'email', label: 'E-mail address (optional)', type: 'email' },
        ...{ value: kept('email'), error: errors.email },
        hint: 'Nothing is sent: you get a link to pass on. Without an address the guest names one.',
      }),
      planSelect(kept('plan') || 'free', errors.plan),
      parts.button('Make an invitation'),
    ],
  })
}

function invites({ oneTimeLinks, clock }: DashboardDeps, visitor: Visitor): Html {
  const now = clock()
  const waiting = oneTimeLinks.listInvites(now)
  if (waiting.length === 0)
    return html`<p>None waits. One that is used, withdrawn or over is gone.</p>`
  const rows = waiting.map((link: OneTimeLinkRow) => [
    link.email
      ? html`<span class="long">${shownEmail(link.email)}</span>`
      : html`<span class="quiet">whoever has the link</span>`,
    planName(link.plan ?? 'free'),
    parts.countdown(link.endsAt, now),
    parts.buttonForm(visitor, {
      ...{ action: '/app/service/accounts/invites/end', label: 'Withdraw', look: 'danger' },
      ...{ values: { invite: link.id }, title: `Withdraw the invitation of ${guestOf(link)}` },
    }),
  ])
  const columns = [
    ...[{ label: 'For' }, { label: 'Plan' }, { label: 'Ends in' }],
    { label: 'Withdraw', isHidden: true },
  ]
  return parts.table({ caption: 'Invitations that wait', columns, rows })
}

const guestOf = ({ email, id }: OneTimeLinkRow): string =>
  email ? shownEmail(email) : `whoever has link ${id}`

const EMAIL_SHOWN_MAX = 60

/** Its beginning and its end, where it is longer than any that a person has. */
const shownEmail = (email: string): string =>
  email.length > EMAIL_SHOWN_MAX ? `${email.slice(0, 30)}…${email.slice(-29)}` : email
