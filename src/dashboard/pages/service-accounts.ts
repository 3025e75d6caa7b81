import { parseEmail } from '../../accounts/credentials.ts'
import type { OneTimeLinkRow } from '../../accounts/one-time-links.ts'
import {
  createFurtherAccount,
  disableAccount,
  enableAccount,
  sendLink,
  setPlan,
} from '../../accounts/operations/accounts.ts'
import { invite, removeMember, withdrawInvite } from '../../accounts/operations/members.ts'
import type { AccountOverview } from '../../accounts/overviews.ts'
import { PLANS, type Plan, planName } from '../../accounts/plans.ts'
import { roleName } from '../../accounts/roles.ts'
import type { AccountId, AccountRow, MemberRow } from '../../accounts/store.ts'
import { pastedSearch } from '../../addresses/resolve.ts'
import { AppError } from '../../errors.ts'
import { formatBytes } from '../../lib/bytes.ts'
import { type Html, html } from '../../lib/html.ts'
import { withPassword } from '../auth/confirm-password.ts'
import { asked, type CurrentUser, ownerOf, type PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { owner, signedInPages } from '../page-routes.ts'
import { atField, refuse, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { type Form, typed } from '../ui/form.ts'
import { confirmPage, NEW_ACCOUNT, PAGE_SIZE, page, pageNumber, pager } from '../ui/layout.ts'
import { day } from '../ui/local-time.ts'
import { line, menuButton, menuLink, rowMenu, serviceLinkTable } from '../ui/service-parts.ts'

const PATH = '/app/service/accounts'
const pathOf = ({ id }: Pick<AccountRow, 'id'>) => `${PATH}/${id}` as const

/** The accounts of the service, their members and the pending invitations, for the owner. */
export const serviceAccountsPages = signedInPages({
  'GET /app/service/accounts': owner(accountsPage, {
    offers: [{ label: 'Accounts', section: 'service', words: 'invite people' }],
  }),
  'POST /app/service/accounts/invites': owner((context) => {
    const plan = requirePlan(context.form)
    return withPassword(
      context,
      { label: 'Create the invitation', fields: ['email', 'plan'] },
      () => sendInvite(context, plan),
    )
  }, accountsPage),
  'POST /app/service/accounts/invites/end': owner(async (context) => {
    await withdrawInvite(asOwner(context), Number(context.form.text('invite')))
    return `${PATH}?done=withdrawn`
  }),
  'GET /app/service/accounts/new': owner(newAccountPage),
  'POST /app/service/accounts/new': owner(createAccount, newAccountPage),
  'GET /app/service/accounts/:id': owner(accountPage),
  'GET /app/service/accounts/:id/links': owner(linksPage),
  'POST /app/service/accounts/:id/plan': owner((context) => {
    const account = accountOf(context)
    const plan = requirePlan(context.form)
    return withPassword(context, { label: 'Change the plan', fields: ['plan'] }, async () => {
      await setPlan(asOwner(context, account.id), plan)
      return `${pathOf(account)}?done=plan`
    })
  }),
  'GET /app/service/accounts/:id/disable': owner(disablePage),
  'POST /app/service/accounts/:id/disable': owner((context) => {
    const account = accountOf(context)
    const links = context.form.text('links') === '1'
    const action = { label: 'Disable the account', fields: ['links'] }
    return withPassword(context, action, async () => {
      await disableAccount(asOwner(context, account.id), { links })
      return `${pathOf(account)}?done=disabled`
    })
  }, disablePage),
  'POST /app/service/accounts/:id/enable': owner(async (context) => {
    const account = accountOf(context)
    await enableAccount(asOwner(context, account.id))
    return `${pathOf(account)}?done=enabled`
  }),
  'POST /app/service/accounts/:id/reset': owner((context) => {
    const { deps } = context
    const account = accountOf(context)
    const { id: personId, email } = memberOf(context, account)
    if (account.disabledAt !== null) return pathOf(account)
    // The link gives access to any account, also this one: a stolen cookie must not permit that.
    const action = { label: 'Create a reset link', fields: ['person'] }
    return withPassword(context, action, async () => {
      const { path } = await sendLink(asOwner(context), { purpose: 'reset', personId })
      return linkPage(context, account, {
        title: 'Reset link',
        label: 'Link that sets a new password',
        link: deps.baseUrl + path,
        about: html`Send it only to ${email}: it gives access to the person’s accounts for 24
            hours. Earlier reset links no longer work.`,
      })
    })
  }),
  'POST /app/service/accounts/:id/remove-member': owner((context) => {
    const account = accountOf(context)
    const { id: personId } = memberOf(context, account)
    return withPassword(context, { label: 'Remove', fields: ['person'] }, async () => {
      await removeMember(asOwner(context, account.id), personId)
      return `${pathOf(account)}?done=removed`
    })
  }),
  'POST /app/service/accounts/:id/invite-member': owner((context) => {
    const { deps, form } = context
    const account = accountOf(context)
    const email = parseEmail(form.text('email'))
    if (!email) throw refuse('Enter an address like name@example.com.')
    const action = { label: 'Create the invitation', fields: ['email'] }
    return withPassword(context, action, async () => {
      const { path } = await invite(asOwner(context, account.id), { email, role: 'admin' })
      return linkPage(context, account, {
        title: 'Invitation',
        label: 'Link for the new member',
        link: deps.baseUrl + path,
        about: html`Send it only to ${email}: it works once, within 7 days.`,
      })
    })
  }),
})

/** Without an account: about none. */
const asOwner = (context: PageContext, id?: AccountId) => asked(context, ownerOf(context, id))

async function sendInvite(context: PageContext, plan: Plan): Promise<Response> {
  const { deps, form } = context
  const text = form.text('email')
  const email = text === '' ? undefined : parseEmail(text)
  if (text !== '' && !email)
    throw refuseAt('email', 'Enter an address like name@example.com, or leave it empty.')
  const about = { plan, ...(email && { email }) }
  const { path } = await atField('email', () => invite(asOwner(context), about))
  return accountsPage(context, deps.baseUrl + path)
}

/** The session opens the new account. */
async function createAccount(context: PageContext): Promise<string> {
  const { deps, user, form } = context
  const about = { name: form.text('name'), plan: requirePlan(form) }
  const accountId = await atField('name', () => createFurtherAccount(asOwner(context), about))
  await deps.data.members.open({ id: user.session.id, personId: user.person.id, accountId })
  return '/app/links'
}

function newAccountPage(context: PageContext): Response {
  return page(context, {
    title: 'New account',
    at: PATH,
    back: { href: PATH, label: 'All accounts' },
    main: html`<div class="card">
      <p>A further account has links, keys, members and limits of its own. You are its admin, and
        open it and your others in the menu at the top right.</p>
      ${parts.form(context.user, NEW_ACCOUNT, [
        parts.field({
          ...typed(context, 'name'),
          label: 'Name',
          required: true,
          autocomplete: 'organization',
          hint: 'Members see it, and those you invite.',
          extra: { autofocus: true },
        }),
        planSelect(context.deps, typed(context, 'plan', 'enterprise').value ?? ''),
        parts.button('Create the account'),
      ])}
    </div>`,
  })
}

/** `link`: of the new invitation, only in the response that creates it. */
async function accountsPage(context: PageContext, link?: string): Promise<Response> {
  const { deps, user, query } = context
  const search = (query.search ?? '').trim().slice(0, 254)
  const number = pageNumber(query.page)
  const range = { limit: PAGE_SIZE, offset: (number - 1) * PAGE_SIZE }
  const { items, total } = await deps.data.accounts.overviews({ search, ...range })
  const pageOf = (page: number) => `${PATH}?${new URLSearchParams({ search, page: String(page) })}`
  return page(context, {
    title: 'Accounts',
    at: PATH,
    messages: DONE,
    main: html`
      ${link && invitationCard(link)}
      ${parts.card('All accounts', [
        parts.searchForm(PATH, {
          name: 'search',
          label: 'Find by name, or by the e-mail address of a member',
          value: search,
        }),
        items.length > 0 ? accountTable(items, user) : noAccounts(number > 1, search),
        pager(number, total, pageOf),
      ])}
      <div class="columns cards">
        ${parts.card('Invite someone', inviteForm(context))}
        ${parts.card('Pending invitations', pendingInvites(context))}
      </div>`,
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

const accountTable = (items: readonly AccountOverview[], user: CurrentUser): Html => html`
  ${parts.table(
    'Accounts, newest first',
    items,
    {
      Account: ({ id, name, isOwner }) =>
        html`${line(name, `${PATH}/${id}`)}${
          isOwner === 1 && html` <span class="hint">owner</span>`
        }`,
      Plan: ({ plan }) => planName(plan),
      Links: {
        cell: ({ id, linkCount }) =>
          html`<a href="${`${PATH}/${id}/links`}">${parts.count(linkCount)}</a>`,
        isNumber: true,
      },
      'Stored URLs': { cell: ({ urlBytes }) => formatBytes(urlBytes), isNumber: true },
      Since: ({ createdAt }) => day(createdAt, user),
      'Last seen': ({ seenAt }) => (seenAt === null ? 'not recently' : day(seenAt, user)),
      State: ({ disabledAt }) => (disabledAt === null ? 'active' : html`<strong>disabled</strong>`),
      Actions: { cell: (account) => accountMenu(account, user), isHidden: true },
    },
    { widths: '- s s s s s s x' },
  )}
  <p class="hint">Last seen: the latest use of an API key or a session that is still stored.</p>`

function accountMenu({ id, name, disabledAt }: AccountOverview, user: CurrentUser): Html {
  const path = `${PATH}/${id}`
  return rowMenu(id, name, [
    menuLink('Plan and members', path),
    menuLink('Links', `${path}/links`),
    disabledAt === null
      ? menuLink('Disable…', `${path}/disable`)
      : menuButton(user, `${path}/enable`, 'Enable'),
  ])
}

const inviteForm = (context: PageContext): Html =>
  parts.form(context.user, `${PATH}/invites`, [
    parts.emailField({
      ...typed(context, 'email'),
      label: 'E-mail address (optional)',
      hint: 'Nothing is sent: you get a link to share. Without an address, the guest enters one.',
    }),
    planSelect(context.deps, typed(context, 'plan').value || 'free'),
    parts.button('Create an invitation'),
  ])

function pendingInvites({ deps, user }: PageContext): Html {
  const now = deps.clock()
  const pending = deps.data.oneTimeLinks.listInvites(now)
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
        ? html`<span class="long">${email}</span>`
        : html`<span class="hint">anyone with the link</span>`,
    Plan: ({ plan }) => planName(plan ?? 'free'),
    'Expires in': ({ endsAt }) => parts.countdown(endsAt, now),
    Withdraw: { cell: withdrawButton, isHidden: true },
  })
}

const guestOf = ({ email, id }: OneTimeLinkRow): string => email ?? `anyone with link ${id}`

/** Throws `invalid_value` for a plan that `planSelect` does not offer. */
function requirePlan(form: Form): Plan {
  const plan = PLANS.find((name) => name === form.text('plan'))
  if (!plan) throw refuse('Choose a plan.')
  return plan
}

const planSelect = ({ plans }: DashboardDeps, value: string): Html =>
  parts.select({
    name: 'plan',
    label: 'Plan',
    value,
    choices: PLANS.map((plan) => {
      const { linksMax, write } = plans[plan]
      const links = linksMax === 0 ? 'any number of links' : parts.plural(linksMax, 'link')
      const changes = write === 0 ? 'any number of' : parts.count(write)
      return {
        value: plan,
        label: `${planName(plan)}: ${links}, ${changes} changes a minute`,
      }
    }),
  })

const DONE = {
  withdrawn: 'The invitation is withdrawn.',
  plan: 'The plan is changed. Its limits apply from now on.',
  disabled: 'The account is disabled: its keys are refused, and its sessions have ended.',
  removed: 'The person is removed from the account.',
  enabled: 'The account is enabled: its keys, its links and its sign-in work again.',
}

function accountPage(context: PageContext): Response {
  const { deps, user } = context
  const account = accountOf(context)
  return page(context, {
    title: account.name,
    at: PATH,
    back: { href: PATH, label: 'All accounts' },
    messages: DONE,
    main: html`
      <div class="columns cards">
        ${parts.card('The account', accountFacts(deps, account))}
        ${parts.card(
          'Plan',
          parts.form(user, `${pathOf(account)}/plan`, [
            planSelect(deps, account.plan),
            parts.button('Change the plan'),
          ]),
        )}
      </div>
      ${membersCard(context, account)}
      ${parts.card('Access', access(user, account))}`,
  })
}

function accountFacts({ data, clock, plans }: DashboardDeps, account: AccountRow): Html {
  const keys = data.accounts.listKeys(account.id, clock())
  const hasActiveKey = keys.some(({ endsAt }) => endsAt === null)
  const disabledSince = (time: number) => html`<strong>disabled</strong> since ${parts.time(time)}`
  const { disabledAt, linksDisabledAt } = account
  return parts.facts([
    ['State', disabledAt === null ? 'active' : disabledSince(disabledAt)],
    account.isOwner === 1 && ['Role', 'owner of the service'],
    ...parts
      .storedFacts(account, plans[account.plan])
      .map(
        ([name, value]) => [name, name === 'Links' ? linksLink(account, value) : value] as const,
      ),
    linksDisabledAt !== null && ['State of its links', disabledSince(linksDisabledAt)],
    ['Since', parts.time(account.createdAt)],
    ['API key', hasActiveKey ? 'active' : keys.length > 0 ? 'expiring' : 'none'],
  ])
}

const linksLink = (account: AccountRow, text: string): Html =>
  html`<a href="${`${pathOf(account)}/links`}">${text}</a>`

async function linksPage(context: PageContext): Promise<Response> {
  const { deps, query } = context
  const account = accountOf(context)
  const path = `${pathOf(account)}/links` as const
  const text = (query.search ?? '').trim()
  const number = pageNumber(query.page)
  const { total, links } = await deps.pages.findPage({
    accountId: account.id,
    limit: PAGE_SIZE,
    offset: (number - 1) * PAGE_SIZE,
    ...pastedSearch(deps, account.id, text),
    inProperties: true,
  })
  const pageOf = (to: number) =>
    `${path}?${new URLSearchParams({ search: text, page: String(to) })}`
  return page(context, {
    title: `Links of ${account.name}`,
    at: PATH,
    back: { href: pathOf(account), label: account.name },
    main: parts.card(parts.plural(total, 'link'), [
      parts.searchForm(path, {
        name: 'search',
        label: 'Find by address, destination, title, tag or note',
        value: text,
        autocomplete: 'off',
      }),
      links.length > 0
        ? serviceLinkTable(deps, context.user, {
            caption: 'Links, newest first',
            links,
            hasAccounts: false,
          })
        : html`<p>${text === '' ? 'No links.' : 'No link contains the text.'}</p>`,
      pager(number, total, pageOf),
    ]),
  })
}

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

function disablePage(context: PageContext): Response {
  const account = accountOf(context)
  const path = pathOf(account)
  const { id, name: email, linkCount } = account
  const frame = { title: 'Disable an account', at: PATH, back: { href: path, label: email } }
  if (context.deps.data.accounts.isLastOwner(id)) {
    const reason = `${email} is the only owner of the service: it cannot be disabled.`
    return page(context, { ...frame, main: parts.notice('note', html`<p>${reason}</p>`) })
  }
  const isOwn = id === context.user.account.id
  return confirmPage(context, {
    ...frame,
    warning: html`<strong>${email} loses access immediately.</strong>
      Its API keys are refused with 401 and its sessions end. Its ${parts.plural(linkCount, 'link')}
      and their QR codes keep working, unless you select the option below. You can enable it again.
      ${isOwn && html` <strong>This is your own account.</strong>`}`,
    fields: parts.checkbox({ name: 'links', label: 'Disable its links too: visitors get 410' }),
    label: 'Disable the account',
    cancel: { label: 'Cancel', href: path },
  })
}

interface LinkPageProps {
  title: string
  label: string
  link: string
  about: Html
}

/** The only response that shows a one-time link. */
const linkPage = (context: PageContext, account: AccountRow, props: LinkPageProps): Response =>
  page(context, {
    title: props.title,
    at: PATH,
    back: { href: pathOf(account), label: account.name },
    main: html`<div class="card">
      ${parts.secretOnce(props.label, props.link)}
      <p>${props.about}</p>
    </div>`,
  })

function membersCard({ deps, user }: PageContext, account: AccountRow): Html {
  const members = deps.data.accounts.listMembers(account.id)
  const isActive = account.disabledAt === null
  const action = (name: string, label: string, { id }: MemberRow) =>
    menuButton(user, `${pathOf(account)}/${name}`, label, { person: id })
  const menuOf = (member: MemberRow) =>
    (isActive || members.length > 1) &&
    rowMenu(member.id, member.email, [
      isActive && action('reset', 'Create a reset link', member),
      members.length > 1 && action('remove-member', 'Remove', member),
    ])
  return parts.card('Members', [
    parts.table(
      'Members',
      members,
      {
        Person: ({ email, isOwner }) =>
          html`${line(email)}${isOwner === 1 && html` <span class="hint">owner</span>`}`,
        Role: ({ role }) => roleName(role),
        Password: ({ passwordChangedAt }) =>
          passwordChangedAt === null ? 'none yet' : html`set ${day(passwordChangedAt, user)}`,
        'Two-factor sign-in': ({ totpEnabledAt }) => (totpEnabledAt === null ? 'off' : 'on'),
        Actions: { cell: menuOf, isHidden: true },
      },
      { widths: '- s m m x' },
    ),
    isActive
      ? html`<p class="hint">A reset link sets a new password, once, within 24 hours. Nothing
          changes until it is used; then all sessions of the person end.</p>
          ${parts.form(user, `${pathOf(account)}/invite-member`, [
            parts.emailField({ required: true, label: 'Invite a member' }),
            parts.button('Create an invitation', 'plain'),
          ])}`
      : html`<p>Nobody can open a disabled account. Enable it first.</p>`,
  ])
}

/** Throws `page_not_found` for an unknown account and for one that is being deleted. */
function accountOf({ deps, params: { id = '' } }: PageContext): AccountRow {
  const account = /^\d{1,15}$/.test(id) ? deps.data.accounts.findById(Number(id)) : undefined
  if (!account || account.deletedAt !== null) throw new AppError('page_not_found')
  return account
}

/** The member that the form names; without a name, the first one. Throws `page_not_found`. */
function memberOf({ deps, form }: PageContext, account: AccountRow): MemberRow {
  const members = deps.data.accounts.listMembers(account.id)
  const id = form.text('person')
  const found = id === '' ? members[0] : members.find((one) => String(one.id) === id)
  if (!found) throw new AppError('page_not_found')
  return found
}
