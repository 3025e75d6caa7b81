import type { OneTimeLinkRow } from '../../accounts/one-time-links.ts'
import {
  changeRole,
  invite,
  removeMember,
  withdrawInvite,
} from '../../accounts/operations/members.ts'
import { hasRole, isRole, ROLES, roleName } from '../../accounts/roles.ts'
import type { MemberRow, Role } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { withPassword } from '../auth/confirm-password.ts'
import { asked, type CurrentUser, type PageContext, requireAccount } from '../auth/guard.ts'
import { admin, signedInPages, viewer } from '../page-routes.ts'
import { atField, refuse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { type Form, requireEmail, typed } from '../ui/form.ts'
import { confirmPage, page } from '../ui/layout.ts'
import { day } from '../ui/local-time.ts'

const PATH = '/app/account/members'

/** The members of the account that the pages show. */
export const memberPages = signedInPages({
  'GET /app/account/members': viewer(membersPage, {
    offers: [{ label: 'Members', section: 'account', words: 'invite people team colleagues' }],
  }),
  'POST /app/account/members/invite': admin(
    (context) =>
      withPassword(
        context,
        { label: 'Create the invitation', fields: ['email', 'role'], page: PATH },
        () => sendInvite(context),
      ),
    membersPage,
  ),
  'POST /app/account/members/withdraw': admin(async (context) => {
    await withdrawInvite(asked(context), Number(context.form.text('invite')))
    return `${PATH}?done=withdrawn`
  }),
  'POST /app/account/members/:id/role': admin(
    (context) =>
      withPassword(context, { label: 'Change the role', fields: ['role'], page: PATH }, () =>
        setRole(context),
      ),
    membersPage,
  ),
  // Everybody may leave: the operation checks who removes whom.
  'GET /app/account/members/:id/remove': viewer(removePage),
  'POST /app/account/members/:id/remove': viewer(
    (context) => withPassword(context, { label: 'Remove', page: PATH }, () => remove(context)),
    membersPage,
  ),
  // The choice of the account that the pages show.
  'POST /app/account/open': {
    role: 'viewer',
    personal: true,
    run: async ({ deps, user, form }) => {
      const accountId = Number(form.text('account'))
      const command = { id: user.session.id, personId: user.person.id, accountId }
      if (!Number.isSafeInteger(accountId) || !(await deps.data.members.open(command))) {
        throw new AppError('page_not_found')
      }
      return '/app/links'
    },
  },
})

async function sendInvite(context: PageContext): Promise<Response> {
  const { deps, form } = context
  const about = { email: requireEmail(form), role: chosenRole(form) }
  const { path } = await atField('email', () => invite(asked(context), about))
  return membersPage(context, deps.baseUrl + path)
}

/** Throws for a role that the page does not offer. */
function chosenRole(form: Form): Role {
  const role = form.text('role')
  if (!isRole(role)) throw refuse('Choose a role.')
  return role
}

async function setRole(context: PageContext): Promise<string> {
  const { id: personId } = memberOf(context)
  await changeRole(asked(context), { personId, role: chosenRole(context.form) })
  return `${PATH}?done=role`
}

async function remove(context: PageContext): Promise<string> {
  const { id } = memberOf(context)
  await removeMember(asked(context), id)
  return id === context.user.person.id ? '/app' : `${PATH}?done=removed`
}

const DONE = {
  withdrawn: 'The invitation is withdrawn.',
  role: 'The role is changed.',
  removed:
    'The person is removed, and their sessions in this account have ended. API keys still work: ' +
    'on the page Keys, revoke those that the person knows.',
}

/** `link`: of the new invitation, only in the response that creates it. */
function membersPage(context: PageContext, link?: string): Response {
  const { deps, user } = context
  const members = deps.data.accounts.listMembers(user.account.id)
  const isAdmin = hasRole(user.role, 'admin')
  return page(context, {
    title: `Members of ${requireAccount(context).name}`,
    heading: html`<h1>Members</h1>`,
    at: PATH,
    messages: DONE,
    main: html`
      ${link && invitationCard(link)}
      ${parts.card('People', [
        parts.table('Members, the first ones first', members, {
          Person: ({ id, email, createdAt }) =>
            html`<span class="long">${email}</span>
              ${id === user.person.id && html`<strong>(you)</strong>`}
              <br><span class="hint">since ${day(createdAt, user)}</span>`,
          Role: (member) => (isAdmin ? roleForm(user, member) : roleName(member.role)),
          'Two-factor': ({ totpEnabledAt }) => (totpEnabledAt === null ? 'off' : 'on'),
          Remove: {
            cell: (member) =>
              members.length > 1 &&
              (isAdmin || member.id === user.person.id) &&
              removeLink(member, user.person.id),

            isHidden: true,
          },
        }),
        // Admins read it below, where they invite.
        !isAdmin &&
          html`<p class="hint">${ROLE_CHOICES.map(({ label }) => html`${label}<br>`)}</p>`,
      ])}
      ${
        isAdmin && [
          parts.card('Invite someone', inviteForm(context)),
          parts.card('Pending invitations', pendingInvites(context)),
        ]
      }`,
  })
}

/** What each role may do, in words. */
const ROLE_CHOICES = (
  [
    ['viewer', 'sees links, analytics and exports, and changes nothing'],
    ['editor', 'also creates, changes and deletes links, and sets up QR codes'],
    ['admin', 'also manages keys, members and the account'],
  ] as const satisfies readonly (readonly [Role, string])[]
).map(([value, text]) => ({ value, label: `${roleName(value)}: ${text}` }))

const roleForm = (user: CurrentUser, { id, email, role }: MemberRow): Html =>
  parts.form(
    user,
    `${PATH}/${id}/role`,
    html`<div class="copy">
      ${parts.menu({
        name: 'role',
        label: `Role of ${email}`,
        value: role,
        choices: ROLES.map((value) => ({ value, label: roleName(value) })),
      })}
      ${parts.button('Change', 'plain', { 'aria-label': `Change the role of ${email}` })}
    </div>`,
    { class: 'inline' },
  )

const removeLink = ({ id }: MemberRow, self: number): Html =>
  parts.linkButton(id === self ? 'Leave…' : 'Remove…', `${PATH}/${id}/remove`, 'danger')

const invitationCard = (link: string): Html =>
  parts.card('The invitation', [
    parts.secretOnce('Link for your colleague', link),
    html`<p>It works once, within 7 days. Send it only to your colleague.</p>`,
  ])

const inviteForm = (context: PageContext): Html =>
  parts.form(context.user, `${PATH}/invite`, [
    parts.emailField({
      ...typed(context, 'email'),
      required: true,
      hint: 'Nothing is sent: you get a link to share. Only this address can use it.',
    }),
    parts.radios({
      name: 'role',
      label: 'Role',
      choices: ROLE_CHOICES,
      value: context.form.has('role') ? context.form.text('role') : 'editor',
    }),
    parts.button('Create an invitation'),
  ])

function pendingInvites({ deps, user }: PageContext): Html {
  const now = deps.clock()
  const pending = deps.data.oneTimeLinks.listInvites(now, user.account.id)
  if (pending.length === 0) return html`<p>No pending invitations.</p>`
  const withdrawButton = ({ id, email }: OneTimeLinkRow) =>
    parts.buttonForm(user, `${PATH}/withdraw`, 'Withdraw', {
      look: 'danger',
      values: { invite: id },
      title: `Withdraw the invitation of ${email}`,
    })
  return parts.table('Pending invitations', pending, {
    For: ({ email }) => html`<span class="long">${email ?? ''}</span>`,
    Role: ({ role }) => role && roleName(role),
    'Expires in': ({ endsAt }) => parts.countdown(endsAt, now),
    Withdraw: { cell: withdrawButton, isHidden: true },
  })
}

/** The member that the path names. Throws `page_not_found`. */
function memberOf({ deps, user, params }: PageContext): MemberRow {
  const members = deps.data.accounts.listMembers(user.account.id)
  const found = members.find(({ id }) => String(id) === params.id)
  if (!found) throw new AppError('page_not_found')
  return found
}

function removePage(context: PageContext): Response {
  const { deps, user } = context
  const { id, email } = memberOf(context)
  const isOwn = id === user.person.id
  const isLast = deps.data.accounts.listAccountsOf(id).length === 1
  const subject = isOwn ? 'You lose' : `${email} loses`
  return confirmPage(context, {
    title: isOwn ? 'Leave the account' : 'Remove a member',
    at: PATH,
    back: { href: PATH, label: 'Members' },
    warning: html`<strong>${subject} access to ${user.account.name} immediately.</strong>
      Links and API keys stay with the account. ${
        isLast && 'It is the only account of the person, who cannot sign in any more.'
      }`,
    label: isOwn ? 'Leave the account' : 'Remove',
    cancel: { label: 'Cancel', href: PATH },
  })
}
