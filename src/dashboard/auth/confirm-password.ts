import type { Requester } from '../../accounts/passwords.ts'
import { AppError } from '../../errors.ts'
import { MINUTE } from '../../lib/clock.ts'
import { html } from '../../lib/html.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { page, type Section } from '../ui/layout.ts'
import type { Visitor } from './guard.ts'

/** How long a password that was entered in a session holds for actions that ask for it again. */
const PROOF_LIFE_MS = 10 * MINUTE

export const WRONG_PASSWORD = 'This is not your password.'

/** The queue in which the password of a session's account waits. */
export const requesterOf = ({ account }: Visitor): Requester => ({
  queue: 'trusted',
  key: String(account.id),
})

/**
 * Whether `password` is the account's. Five attempts in a session, then one a minute: a right one
 * counts too, because it takes the time of a wrong one.
 */
export async function verifyOwnPassword(
  { accounts, passwords, throttle, security }: DashboardDeps,
  visitor: Visitor,
  password: string,
): Promise<boolean> {
  const { account, session, origin } = visitor
  const attempts = [{ gate: 'session', key: String(session.id) }] as const
  const count = () => {
    for (const gate of throttle.count(attempts)) {
      security.record('throttle.engaged', origin, { accountId: account.id, fields: { gate } })
    }
  }
  throttle.require(attempts)
  const hash = accounts.find(account.id)?.passwordHash
  return passwords.verify(password, hash, requesterOf(visitor), {
    before: () => throttle.require(attempts),
    after: count,
  })
}

interface GuardedAction {
  /** The path that the form was sent to, and is sent to again with the password. */
  path: string
  /** What the button says, for example `Rotate the key`. */
  label: string
  section: Section
  /** The fields of the form, which are sent again. */
  values?: Readonly<Record<string, string>>
}

/**
 * Asks for the password before an action that a stolen cookie must not be enough for. Gives the
 * page to answer with, or undefined if the password was entered in this session within the last
 * ten minutes, or came with this form. The page sends the action's own form again, with the
 * password beside its fields: it works without a script, and no address holds a secret.
 */
export async function askForPassword(
  deps: DashboardDeps,
  visitor: Visitor,
  form: Form,
  action: GuardedAction,
): Promise<Response | undefined> {
  const { session, account } = visitor
  const sinceMs = deps.clock() - session.provedAt
  // A clock that was set back proves nothing.
  if (sinceMs >= 0 && sinceMs < PROOF_LIFE_MS) return undefined
  const password = form.raw('current')
  if (password === '') return confirmPage(visitor, action)
  if (!(await verifyOwnPassword(deps, visitor, password))) {
    return confirmPage(visitor, action, WRONG_PASSWORD)
  }
  const proof = { id: session.id, accountId: account.id, provedAt: deps.clock() }
  // The session may have ended while the password was verified.
  if (!(await deps.writer.call('proveSession', proof))) throw new AppError('sign_in_needed')
  return undefined
}

function confirmPage(visitor: Visitor, action: GuardedAction, error?: string): Response {
  const { path, label, section, values = {} } = action
  const hidden = Object.entries(values).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  const { email } = visitor.account
  return page(visitor, {
    title: 'Confirm your password',
    current: section,
    status: error ? 422 : 403,
    main: html`<div class="card">
      <p>Nothing has been changed yet. Enter your password to go on; it is then not asked for again
        for ten minutes.</p>
      ${parts.form({
        action: path,
        csrf: visitor.csrf,
        children: [
          hidden,
          html`<input name="username" value="${email}" autocomplete="username" hidden>`,
          parts.field({
            name: 'current',
            label: 'Your password',
            type: 'password',
            required: true,
            autocomplete: 'current-password',
            error,
            extra: { autofocus: true },
          }),
          parts.button(label),
        ],
      })}
      <p class="hint after"><a href="${`/app/${section}`}">Change nothing</a></p>
    </div>`,
  })
}
