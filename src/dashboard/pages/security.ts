import { findPasswordProblem, PASSWORD_MIN_LENGTH } from '../../accounts/credentials.ts'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import { LONG_SESSION_MS, type SessionView } from '../../accounts/sessions.ts'
import type { PersonRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import {
  proofField,
  requesterOf,
  requireOwnPassword,
  withPassword,
} from '../auth/confirm-password.ts'
import { type CurrentUser, logEvent, type PageContext, requirePerson } from '../auth/guard.ts'
import { cookieSeconds } from '../auth/sign-in.ts'
import {
  connectIdentity,
  disconnectIdentity,
  identitiesCard,
  SECURITY_PATH,
} from '../cards/identities.ts'
import type { DashboardDeps } from '../deps.ts'
import { signedInPages, viewer } from '../page-routes.ts'
import { FormRefusal, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import { beginForm } from './two-factor.ts'

const PATH = '/app/account'
const actionOf = (label: string) => ({ label, page: SECURITY_PATH })

/** How the person signs in, and where they are signed in. */
export const securityPages = signedInPages({
  [`GET ${SECURITY_PATH}`]: viewer(securityPage, {
    offers: [{ label: 'Security', section: 'account', words: 'password sessions email sign-in' }],
  }),
  [`POST ${SECURITY_PATH}/password`]: viewer(changePassword, securityPage),
  'POST /app/account/security/identities/connect': viewer(
    (context) => withPassword(context, actionOf('Connect'), () => connectIdentity(context)),
    securityPage,
  ),
  'POST /app/account/security/identities/:id/disconnect': viewer(
    (context) => withPassword(context, actionOf('Disconnect'), () => disconnectIdentity(context)),
    securityPage,
  ),
  'POST /app/account/sessions/end': viewer(async ({ deps, user, form }) => {
    const id = Number(form.text('session'))
    if (Number.isSafeInteger(id)) await deps.sessions.end(id, user.person.id)
    return `${SECURITY_PATH}?done=session`
  }),
  'POST /app/account/sessions/end-others': viewer(async ({ deps, user }) => {
    await deps.sessions.endOthers(user.person.id, user.session.id)
    return `${SECURITY_PATH}?done=sessions`
  }),
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
  return seeOther(`${SECURITY_PATH}?done=password`, [cookie])
}

const DONE = {
  password: 'The password is changed, and every other session has ended.',
  connected: 'The user of the provider is connected.',
  identities: 'A person has at most five users of a provider: disconnect one first.',
  disconnected: 'The user of the provider is disconnected, and its sessions have ended.',
  session: 'The session has ended.',
  sessions: 'Every other session has ended.',
}

function securityPage(context: PageContext): Response {
  const { deps, user } = context
  return page(context, {
    title: 'Security',
    at: SECURITY_PATH,
    messages: DONE,
    main: html`
      ${parts.card('Password', [
        html`<p>You sign in as <strong>${user.person.email}</strong>.</p>`,
        passwordForm(context),
      ])}
      ${parts.card('Two-factor sign-in', twoFactor(user, requirePerson(context)))}
      ${identitiesCard(context)}
      ${sessionsCard(deps, user)}`,
  })
}

const twoFactor = (user: CurrentUser, person: PersonRow): Html =>
  hasSecondFactor(person)
    ? html`<p>On: signing in also asks for a code.</p>
        ${parts.linkButton('Turn it off…', `${PATH}/two-factor`)}`
    : html`<p>Off: signing in asks for no code.</p>${beginForm(user, 'plain')}`

const passwordForm = (context: PageContext): Html =>
  parts.form(context.user, `${SECURITY_PATH}/password`, [
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
