import { Elysia } from 'elysia'
import {
  codeAttempts,
  type Factor,
  findFactor,
  findStepAccount,
} from '../../accounts/second-factor.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { readStrangersForm } from '../auth/guard.ts'
import { type ClientOrigin, originOf } from '../auth/origin.ts'
import { SECOND_STEP } from '../auth/second-step.ts'
import { beginVisit, strangersForm } from '../auth/session.ts'
import type { DashboardDeps } from '../deps.ts'
import { safeNext } from '../errors.ts'
import { button, field, form } from '../ui/components.ts'
import { doorPage } from '../ui/layout.ts'

/** The second page of a sign-in, where two-factor sign-in is on. */
export const signInCodePages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.signInCode', prefix: SECOND_STEP })
    .get('', ({ request, query }) => {
      const next = safeNext(query.next)
      return findAccount(deps, request) ? codePage(deps, request, { next }) : startAgain()
    })
    .post('', async ({ request, server, set }) => {
      const origin = originOf(deps, { request, server, set })
      const sent = await readStrangersForm(deps, { request, server })
      const next = safeNext(sent.text('next'))
      const account = findAccount(deps, request)
      if (!account) return startAgain()
      const factor = judgeCode(deps, { account, origin, request, text: sent.text('code') })
      if (!factor) {
        const problem = 'This code is wrong, too old, or used already.'
        return codePage(deps, request, { next, problem })
      }
      const proof = { accountId: account.id, passwordHash: account.passwordHash ?? '', factor }
      const { cookies } = await beginVisit(deps, { request, origin }, proof)
      if ('recoveryHash' in factor) recordRecovery(deps, origin, account)
      return goTo(next ?? '/app/links', { cookies: [...cookies, deps.cookies.end('step')] })
    })

const findAccount = (deps: DashboardDeps, request: Request): AccountRow | undefined =>
  findStepAccount(deps, deps.cookies.find('step', request), deps.clock())

const startAgain = (): Response => goTo('/app/sign-in?done=late')

interface Judged {
  account: AccountRow
  origin: ClientOrigin
  request: Request
  text: string
}

/**
 * The factor that was sent; undefined if it is none. Throws `too_many_attempts`. Nothing is
 * awaited between the throttle's answer and its count, so that no guess slips through beside
 * another.
 */
function judgeCode(
  deps: DashboardDeps,
  { account, origin, request, text }: Judged,
): Factor | undefined {
  const { throttle, security, hasher, cookies, clock } = deps
  const accountId = account.id
  const refused = (reason: string) =>
    security.record('session.refused', origin, { accountId, fields: { reason } })
  const deviceToken = cookies.find('known', request)
  const attempts = codeAttempts(hasher, account, { address: origin.address, deviceToken })
  try {
    throttle.require(attempts)
  } catch (error) {
    if (error instanceof AppError) refused('throttled')
    throw error
  }
  const factor = findFactor(deps, account, text, clock())
  if (factor) {
    throttle.clear(attempts)
    return factor
  }
  refused('code')
  for (const gate of throttle.count(attempts)) {
    security.record('throttle.engaged', origin, { accountId, fields: { gate } })
  }
  return undefined
}

function recordRecovery(
  { security, recoveryCodes }: DashboardDeps,
  origin: ClientOrigin,
  { id: accountId }: AccountRow,
): void {
  const fields = { left: recoveryCodes.countUnused(accountId) }
  security.record('recovery_code.used', origin, { accountId, fields })
}

interface Shown {
  next: string | undefined
  problem?: string
}

function codePage(deps: DashboardDeps, request: Request, { next, problem }: Shown): Response {
  const { csrf, cookies } = strangersForm(deps, request)
  return doorPage({
    title: 'Enter your code',
    cookies,
    status: problem ? 401 : 200,
    main: html`
      <p>Your password is right. Two-factor sign-in is on for this account: open your authenticator
        app.</p>
      ${form({
        action: SECOND_STEP,
        csrf,
        children: html`
          ${next ? html`<input type="hidden" name="next" value="${next}">` : ''}
          ${field({
            name: 'code',
            label: 'Code',
            required: true,
            hint: 'The six digits in your app, or one of your recovery codes.',
            autocomplete: 'one-time-code',
            error: problem,
            extra: {
              autofocus: true,
              autocapitalize: 'characters',
              spellcheck: 'false',
              maxlength: 40,
            },
          })}
          ${button('Sign in')}`,
      })}
      <p class="hint after">Neither at hand? The operator of this service can turn two-factor
        sign-in off for you. <a href="/app/sign-in">Sign in to another account</a></p>`,
  })
}
