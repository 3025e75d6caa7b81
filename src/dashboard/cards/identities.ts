import { OidcError } from '../../accounts/oidc.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { logEvent, type PageContext } from '../auth/guard.ts'
import { beginFlow, oidcText, taskOf } from '../auth/oidc.ts'
import { refuse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'

/** Users of the provider that people have connected: a part of the page Security. */

export const SECURITY_PATH = '/app/account/security'
const PATH = '/app/account/security/identities'

/** The page of the provider is opened by a link, because forms may lead to this host only. */
export async function connectIdentity(context: PageContext): Promise<Response> {
  const { deps, user } = context
  if (!deps.oidc) throw new AppError('page_not_found')
  const { name } = deps.oidc.settings
  const task = taskOf({ id: user.session.id, personId: user.person.id }, 'connect')
  let begun: Awaited<ReturnType<typeof beginFlow>>
  try {
    begun = await beginFlow(deps, { next: undefined, task, network: user.origin.network })
  } catch (error) {
    if (!(error instanceof OidcError)) throw error
    const { reason, message: detail } = error
    logEvent(context, 'session.refused', { reason, detail })
    throw refuse(oidcText(error, name))
  }
  return page(context, {
    title: `Connect ${name}`,
    at: SECURITY_PATH,
    back: { href: SECURITY_PATH, label: 'Security' },
    cookies: [begun.cookie],
    main: html`<div class="card">
      <p>Sign in at ${name} with the user that you want to connect with ${user.person.email}.</p>
      <p>${parts.linkButton(`Continue to ${name}`, begun.url, 'primary')}</p>
    </div>`,
  })
}

export async function disconnectIdentity(context: PageContext): Promise<string> {
  const { deps, user, params } = context
  const personId = user.person.id
  const hasPassword =
    deps.data.accounts.findPerson(personId)?.passwordHash !== null &&
    (deps.passwordSignIn === 'on' || user.person.isOwner)
  const id = Number(params.id)
  if (!Number.isSafeInteger(id)) throw new AppError('page_not_found')
  const command = { id, personId, needsAnother: !hasPassword }
  const done = await deps.data.identities.disconnect(command)
  if (done === 'gone') throw new AppError('page_not_found')
  if (done === 'last') throw refuse('This is your only way to sign in.')
  logEvent(context, 'identity.disconnected')
  return `${SECURITY_PATH}?done=disconnected`
}

/** Absent where there is neither a provider nor an identity. */
export function identitiesCard({ deps, user }: PageContext): Html | false {
  const { oidc } = deps
  const identities = deps.data.identities.list(user.person.id)
  if (!oidc && identities.length === 0) return false
  const connectButton = (label: string) => parts.buttonForm(user, `${PATH}/connect`, label)
  return parts.card('Sign-in with a provider', [
    identities.length === 0
      ? html`<p>Nothing is connected.</p>`
      : parts.table('What is connected', identities, {
          Provider: ({ issuer }) => html`<span class="long">${issuer}</span>`,
          User: ({ email, subject }) => html`<span class="long">${email ?? subject}</span>`,
          Since: ({ createdAt }) => parts.time(createdAt),
          'Last used': ({ lastUsedAt }) => lastUsedAt && parts.time(lastUsedAt),
          Disconnect: {
            cell: ({ id, email }) =>
              parts.buttonForm(user, `${PATH}/${id}/disconnect`, 'Disconnect', {
                look: 'danger',
                title: `Disconnect ${email ?? 'this user'}`,
              }),
            isHidden: true,
          },
        }),
    oidc && connectButton(`Connect ${oidc.settings.name}`),
    html`<p class="hint after">API keys go on working when a user is disabled at the provider.</p>`,
  ])
}
