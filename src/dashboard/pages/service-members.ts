import { parseEmail } from '../../accounts/credentials.ts'
import { issueOneTimeLink, NO_MEMBERS } from '../../accounts/one-time-links.ts'
import { roleName } from '../../accounts/roles.ts'
import type { AccountRow, MemberRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { withPassword } from '../auth/confirm-password.ts'
import type { PageContext } from '../auth/guard.ts'
import { signedInPages } from '../page-routes.ts'
import { refuse, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import { REMOVE_PROBLEMS } from './members.ts'

export const SERVICE_ACCOUNTS = '/app/service/accounts'
export const pathOf = ({ id }: Pick<AccountRow, 'id'>) => `${SERVICE_ACCOUNTS}/${id}` as const

/** The members of any account, for the owner of the service. */
export const serviceMemberPages = signedInPages(
  {
    'POST /app/service/accounts/:id/reset': (context) => {
      const { deps } = context
      const account = accountOf(context)
      const { id: personId, email } = memberOf(context, account)
      if (account.disabledAt !== null) return seeOther(pathOf(account))
      // The link gives access to any account, also this one: a stolen cookie must not permit that.
      const action = { label: 'Create a reset link', fields: ['person'] }
      return withPassword(context, action, async () => {
        const link = issueOneTimeLink(deps, { purpose: 'reset', personId }, deps.clock())
        await deps.data.oneTimeLinks.add(link.stored)
        return linkPage(context, account, {
          title: 'Reset link',
          label: 'Link that sets a new password',
          link: deps.baseUrl + link.path,
          about: html`Send it only to ${email}: it gives access to the person’s accounts for 24
            hours. Earlier reset links no longer work.`,
        })
      })
    },
    'POST /app/service/accounts/:id/remove-member': (context) => {
      const account = accountOf(context)
      const { id: personId } = memberOf(context, account)
      return withPassword(context, { label: 'Remove', fields: ['person'] }, async () => {
        const command = { accountId: account.id, personId, by: null }
        const result = await context.deps.data.members.remove(command)
        if (result !== 'done') throw refuse(REMOVE_PROBLEMS[result])
        log(context, 'member.removed', account, { member_id: personId })
        return seeOther(`${pathOf(account)}?done=removed`)
      })
    },
    'POST /app/service/accounts/:id/invite-member': (context) => {
      const { deps, user, form } = context
      const account = accountOf(context)
      const email = parseEmail(form.text('email'))
      if (!email) throw refuse('Enter an address like name@example.com.')
      const action = { label: 'Create the invitation', fields: ['email'] }
      return withPassword(context, action, async () => {
        const about = { purpose: 'invite', personId: user.person.id, email } as const
        const to = { accountId: account.id, role: 'admin' } as const
        const { path, stored } = issueOneTimeLink(deps, { ...about, ...to }, deps.clock())
        const added = await deps.data.oneTimeLinks.add(stored)
        if (added === 'full') throw refuse(NO_MEMBERS)
        if (added === 'not_allowed') throw new AppError('sign_in_needed')
        log(context, 'invite.created', account)
        return linkPage(context, account, {
          title: 'Invitation',
          label: 'Link for the new member',
          link: deps.baseUrl + path,
          about: html`Send it only to ${email}: it works once, within 7 days.`,
        })
      })
    },
  },
  { owner: true },
)

const log = (
  { deps, user }: PageContext,
  event: 'member.removed' | 'invite.created',
  account: AccountRow,
  fields: Readonly<Record<string, number>> = {},
): void =>
  deps.security.record(event, user.origin, {
    accountId: account.id,
    byAccountId: user.account.id,
    fields,
  })

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
    back: { href: pathOf(account), label: shortEmail(account.name) },
    main: html`<div class="card">
      ${parts.secretOnce(props.label, props.link)}
      <p>${props.about}</p>
    </div>`,
  })

export function membersCard({ deps, user }: PageContext, account: AccountRow): Html {
  const members = deps.data.accounts.listMembers(account.id)
  const isActive = account.disabledAt === null
  const button = (action: string, label: string, { id, email }: MemberRow) =>
    parts.buttonForm(user, `${pathOf(account)}/${action}`, label, {
      values: { person: id },
      title: `${label}: ${shortEmail(email)}`,
    })
  return parts.card('Members', [
    parts.table('Members', members, {
      Person: ({ email, isOwner }) =>
        html`<span class="long">${shortEmail(email)}</span>${
          isOwner === 1 && html` <span class="hint">owner of the service</span>`
        }`,
      Role: ({ role }) => roleName(role),
      Password: ({ passwordChangedAt }) =>
        passwordChangedAt === null ? 'none yet' : html`set ${parts.time(passwordChangedAt)}`,
      'Two-factor sign-in': ({ totpEnabledAt }) => (totpEnabledAt === null ? 'off' : 'on'),
      Change: {
        cell: (member) => [
          isActive && button('reset', 'Create a reset link', member),
          members.length > 1 && button('remove-member', 'Remove', member),
        ],
        isHidden: true,
      },
    }),
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
export function accountOf({ deps, params: { id = '' } }: PageContext): AccountRow {
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

const EMAIL_SHOWN_MAX = 60

/** The start and the end of an address that is longer than any real one. */
export const shortEmail = (email: string): string =>
  email.length > EMAIL_SHOWN_MAX ? `${email.slice(0, 30)}…${email.slice(-29)}` : email
