import type { Requester } from '../../accounts/passwords.ts'
import { AppError } from '../../errors.ts'
import { MINUTE } from '../../lib/clock.ts'
import { html, type Value } from '../../lib/html.ts'
import { FormRefusal, pathWithoutQuery, type Result, refuse, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page, sectionOf } from '../ui/layout.ts'
import type { CurrentUser, PageContext } from './guard.ts'
import { proveLink } from './oidc.ts'
import { countAttempts } from './sign-in.ts'

/** An action does not ask for a password that was entered in the session within this time. */
const PROOF_LIFE_MS = 10 * MINUTE

/** The password queue of a signed-in person. */
export const requesterOf = ({ person }: CurrentUser): Requester => ({
  queue: 'trusted',
  key: String(person.id),
})

/**
 * Refuses the form unless its field `current` is the person's password. A session has five
 * attempts, then one a minute. Correct passwords count too: verifying them takes the same time. A
 * person without a password has confirmed with the provider before.
 */
export async function requireOwnPassword(context: PageContext): Promise<void> {
  const { deps, user, form } = context
  const { data, passwords, throttle } = deps
  const { account, person, session, origin } = user
  const hash = data.accounts.findPerson(person.id)?.passwordHash
  if (hash === null) {
    if (isProved(context)) return
    throw refuse('Confirm first that it is you.')
  }
  const attempts = [{ gate: 'session', key: String(session.id) }] as const
  throttle.require(attempts)
  const isRight = await passwords.verify(form.raw('current'), hash, requesterOf(user), {
    before: () => throttle.require(attempts),
    after: () => countAttempts(deps, attempts, { origin, accountId: account.id }),
  })
  if (!isRight) throw refuseAt('current', 'This is not your password.')
}

/** Whether the person has proved in this session who they are, a short time ago. */
function isProved({ deps, user }: PageContext): boolean {
  const sinceMs = deps.clock() - user.session.provedAt
  // Negative if the clock was set back, which proves nothing.
  return sinceMs >= 0 && sinceMs < PROOF_LIFE_MS
}

const hasPassword = ({ deps, user }: PageContext): boolean =>
  deps.data.accounts.findPerson(user.person.id)?.passwordHash !== null

/** The field for `requireOwnPassword`. A person without a password confirms with the provider. */
export function proofField(context: PageContext, props: parts.FieldOverrides = {}): Value {
  if (hasPassword(context)) return parts.currentPassword(context, props)
  return !isProved(context) && proveLink(context.deps, pathWithoutQuery(context.request))
}

export interface PasswordAction {
  /** The button's label, for example `Rotate the key`. */
  label: string
  /** The fields of the form that are sent again. */
  fields?: readonly string[]
  /** The page that has the form, if it is not the first one of its section. */
  page?: string
}

const pageOf = ({ request }: PageContext, { page }: PasswordAction): string =>
  page ?? `/app/${sectionOf(request)}`

/**
 * Runs an action that a stolen cookie must not permit: if the password was entered in this session
 * within the last ten minutes, or comes with this form. Otherwise answers with a page that asks for
 * it. That page sends the original form again with the password added: it works without scripts,
 * and no URL contains a secret.
 */
export async function withPassword(
  context: PageContext,
  action: PasswordAction,
  run: () => Result | Promise<Result>,
): Promise<Result> {
  const { deps, user, form } = context
  const { session, person } = user
  if (isProved(context)) return run()
  if (!hasPassword(context)) return provePage(context, pageOf(context, action))
  if (form.raw('current') === '') return passwordPage(context, action)
  try {
    await requireOwnPassword(context)
  } catch (error) {
    if (!(error instanceof FormRefusal)) throw error
    return passwordPage({ ...context, refusal: error }, action)
  }
  const proof = { id: session.id, personId: person.id, provedAt: deps.clock() }
  // The session may have ended while the password was verified.
  if (!(await deps.data.sessions.prove(proof))) throw new AppError('sign_in_needed')
  return run()
}

/** Characters of a field that is sent again: those of the origins of a key. */
const FIELD_LENGTH_MAX = 1000

/** The form is to be sent again: the provider sends back no form. */
function provePage(context: PageContext, next: string): Response {
  return page(context, {
    title: 'Confirm that it is you',
    status: 403,
    main: html`<div class="card">
      <p>Nothing has been changed yet. Confirm, and then send the form again. You will not be asked
        again for ten minutes.</p>
      ${proveLink(context.deps, next)}
      <p class="hint after"><a href="${next}">Cancel</a></p>
    </div>`,
  })
}

function passwordPage(context: PageContext, action: PasswordAction): Response {
  const { label, fields = [] } = action
  const { user, form, request, refusal } = context
  const values = fields.map((name) => [name, form.text(name).slice(0, FIELD_LENGTH_MAX)])
  return page(context, {
    title: 'Confirm your password',
    ...(!refusal && { status: 403 }),
    main: html`<div class="card">
      <p>Nothing has been changed yet. Enter your password to continue. You will not be asked again
        for ten minutes.</p>
      ${parts.form(user, pathWithoutQuery(request), [
        parts.hiddenFields(Object.fromEntries(values)),
        parts.currentPassword(context, { extra: { autofocus: true } }),
        parts.button(label),
      ])}
      <p class="hint after"><a href="${pageOf(context, action)}">Cancel</a></p>
    </div>`,
  })
}
