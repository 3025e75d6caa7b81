import { findPasswordProblem, PASSWORD_MIN_LENGTH } from '../../accounts/credentials.ts'
import { closeAccount, renameAccount } from '../../accounts/operations/accounts.ts'
import { planName } from '../../accounts/plans.ts'
import { roleName } from '../../accounts/roles.ts'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import { LONG_SESSION_MS, type SessionView } from '../../accounts/sessions.ts'
import type { AccountRow, PersonRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { findTimeZone } from '../../hits/range.ts'
import { type Html, html } from '../../lib/html.ts'
import {
  proofField,
  requesterOf,
  requireOwnPassword,
  withPassword,
} from '../auth/confirm-password.ts'
import { isTheme } from '../auth/cookies.ts'
import {
  asked,
  authorOf,
  type CurrentUser,
  logEvent,
  type PageContext,
  requireAccount,
  requirePerson,
} from '../auth/guard.ts'
import { cookieSeconds } from '../auth/sign-in.ts'
import { connectIdentity, disconnectIdentity, identitiesCard } from '../cards/identities.ts'
import type { DashboardDeps } from '../deps.ts'
import { safeNext } from '../errors.ts'
import { admin, signedInPages, viewer } from '../page-routes.ts'
import { atField, FormRefusal, isHtmx, noContent, refuse, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf, typed } from '../ui/form.ts'
import { confirmPage, page } from '../ui/layout.ts'
import { domainChoices } from '../ui/link-parts.ts'
import { zoneForm } from '../ui/local-time.ts'

const PATH = '/app/account'
/** The response waits for the deletion of this many links; more are deleted in the background. */
const LINKS_AWAITED_MAX = 2000

/** The account's password, sessions and deletion. */
export const accountPages = signedInPages({
  'GET /app/account': viewer(accountPage, {
    offers: [{ label: 'Account', words: 'password time zone sessions email' }],
  }),
  'POST /app/account/password': viewer(changePassword, accountPage),
  'POST /app/account/identities/connect': viewer(
    (context) => withPassword(context, { label: 'Connect' }, () => connectIdentity(context)),
    accountPage,
  ),
  'POST /app/account/identities/:id/disconnect': viewer(
    (context) => withPassword(context, { label: 'Disconnect' }, () => disconnectIdentity(context)),
    accountPage,
  ),
  'POST /app/account/sessions/end': viewer(async ({ deps, user, form }) => {
    const id = Number(form.text('session'))
    if (Number.isSafeInteger(id)) await deps.sessions.end(id, user.person.id)
    return `${PATH}?done=session`
  }),
  'POST /app/account/sessions/end-others': viewer(async ({ deps, user }) => {
    await deps.sessions.endOthers(user.person.id, user.session.id)
    return `${PATH}?done=sessions`
  }),
  'POST /app/account/name': admin(rename, accountPage),
  'POST /app/account/time-zone': admin(async (context) => {
    const { deps, form } = context
    const timeZone = findTimeZone(form.text('zone'))
    if (!timeZone) throw refuse('There is no such time zone.')
    await deps.data.accounts.setTimeZone({ author: authorOf(context), timeZone })
    return `${PATH}?done=zone`
  }),
  'POST /app/account/domain': admin(async (context) => {
    const { deps, form } = context
    const domainId = deps.addresses.idOf(form.text('domain'))
    if (!(await deps.data.domains.setDefault({ author: authorOf(context), domainId }))) {
      throw refuse('The account may not use this domain.')
    }
    return `${PATH}?done=domain`
  }),
  'GET /app/account/delete': admin(deletePage),
  'POST /app/account/delete': admin(deleteAccount, deletePage),
  /** The choice of colors in the account menu. It is a cookie, so it belongs to this browser. */
  'POST /app/theme': {
    role: 'viewer',
    personal: true,
    run: ({ deps, form, request }) => {
      const theme = form.text('theme')
      const cookie = isTheme(theme) ? deps.cookies.theme(theme) : deps.cookies.end('theme')
      if (isHtmx(request)) return noContent([cookie])
      return seeOther(safeNext(form.text('next')) ?? PATH, [cookie])
    },
  },
})

/**
 * Changes the password, ends every other session, and gives this one a new token, so that copies of
 * its cookie stop working.
 */
async function changePassword(context: PageContext): Promise<Response> {
  const { deps, user, form } = context
  const { person, session } = user
  const next = form.raw('password')
  const password = findPasswordProblem(next, person.email)
  if (password) throw new FormRefusal({ password })
  await requireOwnPassword(context)
  const passwordHash = await deps.passwords.hash(next, requesterOf(user))
  const { token, hash: tokenHash } = deps.sessions.newToken()
  const isChanged = await deps.data.accounts.changePassword({
    personId: person.id,
    keep: session.id,
    passwordHash,
    tokenHash,
    now: deps.clock(),
  })
  if (!isChanged) throw new AppError('sign_in_needed')
  logEvent(context, 'password.changed')
  const cookie = deps.cookies.session(token, cookieSeconds(session, deps.clock()))
  return seeOther(`${PATH}?done=password`, [cookie])
}

async function rename(context: PageContext): Promise<string> {
  await atField('name', () => renameAccount(asked(context), context.form.text('name')))
  return `${PATH}?done=name`
}

async function deleteAccount(context: PageContext): Promise<Response> {
  const { deps, user } = context
  await requireOwnPassword(context)
  const { linkCount } = requireAccount(context)
  await closeAccount(asked(context))
  const finished = deps.deletion.finish(user.account.id)
  if (linkCount <= LINKS_AWAITED_MAX) await finished
  return seeOther('/app/sign-in?done=deleted', [deps.cookies.end('session')])
}

const DONE = {
  password: 'The password is changed, and every other session has ended.',
  connected: 'The user of the provider is connected.',
  identities: 'A person has at most five users of a provider: disconnect one first.',
  disconnected: 'The user of the provider is disconnected, and its sessions have ended.',
  session: 'The session has ended.',
  sessions: 'Every other session has ended.',
  name: 'The account has the new name.',
  zone: 'The time zone is set.',
  domain: 'New links have this domain.',
}

/** Absent for an account that may use no domain beside the primary one. */
function domainCard({ deps, user }: PageContext): Html | false {
  const { domains } = deps.data
  const hosts = domains.listFor(user.account.id).map(({ host }) => host)
  return (
    hosts.length > 0 &&
    parts.card(
      'Domain of new links',
      parts.form(user, `${PATH}/domain`, [
        parts.select({
          name: 'domain',
          label: 'Domain',
          value: deps.addresses.namedHost(domains.defaultOf(user.account.id)) ?? '',
          choices: domainChoices(deps, hosts),
        }),
        html`<p class="hint">Also for links of the API. Links that
          exist keep theirs.</p>`,
        parts.button('Save', 'plain'),
      ]),
    )
  )
}

function accountPage(context: PageContext): Response {
  const { deps, user } = context
  const account = requireAccount(context)
  const mayChange = (what: string) => user.may('POST', `${PATH}/${what}`)
  return page(context, {
    title: 'Account',
    messages: DONE,
    main: html`
      <div class="columns cards">
        ${parts.card('You', accountFacts(context, account))}
        ${parts.card('Password', passwordForm(context))}
      </div>
      ${mayChange('name') && parts.card('Name of the account', nameForm(context, account))}
      ${mayChange('time-zone') && parts.card('Time zone', zoneForm(user, user.zone))}
      ${mayChange('domain') && domainCard(context)}
      <div id="security">
        ${parts.card('Two-factor sign-in', twoFactor(requirePerson(context)))}
        ${identitiesCard(context)}
        ${sessionsCard(deps, user)}
      </div>
      ${parts.card('Members', [
        html`<p>${parts.plural(
          deps.data.accounts.listMembers(account.id).length,
          'person',
          'people',
        )}
          can use the links and keys of ${account.name}.</p>`,
        parts.linkButton('Members and invitations', `${PATH}/members`),
      ])}
      ${parts.offer(
        user,
        '/app/qr',
        parts.card('QR codes', [
          html`<p>Your logo and named options for QR codes.</p>`,
          parts.linkButton('Logo and presets', '/app/qr'),
        ]),
      )}
      ${parts.offer(
        user,
        `${PATH}/delete`,
        parts.card('Delete the account', [
          html`<p>Deletes its API keys, its sessions and all of its links permanently.</p>`,
          parts.linkButton('Delete the account…', `${PATH}/delete`, 'danger'),
        ]),
      )}`,
  })
}

function accountFacts({ deps: { plans }, user }: PageContext, account: AccountRow): Html {
  const limits = plans[account.plan]
  const budget = (n: number) => (n === 0 ? 'no limit' : parts.count(n))
  return parts.facts([
    ['E-mail address', user.person.email],
    ['Role', roleName(user.role)],
    ['Plan', planName(account.plan)],
    ['Changes a minute', budget(limits.write)],
    ['Reads a minute', budget(limits.read)],
    ['URLs in one bulk', parts.count(limits.bulkMax)],
    ...parts.storedFacts(account, limits),
    ['Since', parts.time(account.createdAt)],
  ])
}

const nameForm = (context: PageContext, { name }: AccountRow): Html =>
  parts.form(context.user, `${PATH}/name`, [
    parts.field({
      ...typed(context, 'name', name),
      label: 'Name',
      autocomplete: 'organization',
      required: true,
      hint: 'Members see it, and those you invite.',
    }),
    parts.button('Save', 'plain'),
  ])

const twoFactor = (person: PersonRow): Html =>
  hasSecondFactor(person)
    ? html`<p>On: signing in also asks for a code.</p>
        ${parts.linkButton('Turn it off…', `${PATH}/two-factor`)}`
    : html`<p>Off: signing in asks for no code.</p>
        ${parts.linkButton('Set it up…', `${PATH}/two-factor`)}`

const passwordForm = (context: PageContext): Html =>
  parts.form(context.user, `${PATH}/password`, [
    proofField(context, { label: 'Current password' }),
    parts.newPassword({
      label: 'New password',
      hint: `At least ${PASSWORD_MIN_LENGTH} characters. Every other session ends.`,
      error: errorOf(context.refusal, 'password'),
    }),
    parts.button('Change the password'),
  ])

const stayingUntil = ({ createdAt }: SessionView): Html => html`<br>
  <span class="hint">stays signed in until ${parts.time(createdAt + LONG_SESSION_MS)}</span>`

function sessionsCard(deps: DashboardDeps, user: CurrentUser): Html {
  const sessions = deps.sessions.list(user.person.id)
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

function deletePage(context: PageContext): Response {
  const { deps } = context
  const { id, linkCount } = requireAccount(context)
  const frame = { title: 'Delete the account', back: { href: PATH, label: 'Account' } }
  if (deps.data.accounts.isLastOwner(id)) {
    const reason = 'This account is the only owner of the service: it cannot be deleted.'
    return page(context, { ...frame, main: parts.notice('note', html`<p>${reason}</p>`) })
  }
  const links = parts.plural(linkCount, 'link')
  const loss =
    linkCount === 0
      ? 'The account has no links.'
      : `${links} of the account stop working, also their printed QR codes.`
  return confirmPage(context, {
    ...frame,
    warning: html`<strong>${loss}</strong> Anybody can then claim its codes. This cannot be
      undone.`,
    fields: proofField(context),
    label: linkCount === 0 ? 'Delete the account' : `Delete the account and ${links}`,
  })
}
