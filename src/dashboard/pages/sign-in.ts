import { Elysia } from 'elysia'
import { findStepAccount, hasSecondFactor } from '../../accounts/second-factor.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { type Html, html } from '../../lib/html.ts'
import { anonymousForm } from '../auth/csrf.ts'
import { anonymously, originOf, readAnonymousForm, signedIn } from '../auth/guard.ts'
import { askForCode, CODE_PAGE, checkCode, checkPassword, startSession } from '../auth/sign-in.ts'
import type { DashboardDeps } from '../deps.ts'
import { safeNext } from '../errors.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { authPage } from '../ui/layout.ts'

const HOME = '/app/links'

/** Sign-in with e-mail address and password. */
export const signInPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.signIn', prefix: '/app' })
    .use(anonymously(deps))
    .get('', ({ request }) => seeOther(isSignedIn(deps, request) ? HOME : '/app/sign-in'))
    .get('/sign-in', ({ request, query }) => {
      const next = safeNext(query.next)
      if (isSignedIn(deps, request)) return seeOther(next ?? HOME)
      return signInPage(deps, request, { next, done: query.done })
    })
    .post('/sign-in', async ({ request, set }) => {
      const origin = originOf(deps, { request, set })
      const sent = await readAnonymousForm(deps, request)
      const next = safeNext(sent.text('next'))
      const isLong = sent.text('stay') === '1'
      const email = sent.text('email')
      const account = await checkPassword(deps, origin, {
        email,
        password: sent.raw('password'),
        deviceToken: deps.cookies.find('known', request),
      })
      if (!account || account.disabledAt !== null) {
        const problem = account
          ? 'This account is disabled. Ask the administrator.'
          : 'The e-mail address or the password is wrong.'
        return signInPage(deps, request, { next, isLong, email, problem })
      }
      if (hasSecondFactor(account)) return askForCode(deps, account, { next, isLong })
      const proof = { accountId: account.id, passwordHash: account.passwordHash ?? '' }
      const { cookies } = await startSession(deps, { request, origin, isLong }, proof)
      return seeOther(next ?? HOME, cookies)
    })

export const signOutPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.signOut', prefix: '/app' })
    .use(signedIn(deps))
    .post('/sign-out', async ({ user }) => {
      await deps.sessions.end(user.session.id, user.account.id)
      return seeOther('/app/sign-in?done=out', [deps.cookies.end('session')])
    })

const isSignedIn = ({ cookies, sessions }: DashboardDeps, request: Request): boolean =>
  sessions.find(cookies.find('session', request)) !== undefined

const DONE = {
  out: 'You are signed out.',
  late: 'More than five minutes have passed, or the password was changed. Sign in again.',
  'signed-up':
    'If this address had no account, it has one now. Sign in with the password that you chose.',
  deleted: 'The account is deleted, and its links are being removed.',
}

const stayBox = (isChecked = false): Html =>
  parts.checkbox({ name: 'stay', label: 'Stay signed in for 30 days', isChecked })

interface SignInPageProps {
  next: string | undefined
  /** “Stay signed in” is chosen. */
  isLong?: boolean
  email?: string
  problem?: string
  done?: string | undefined
}

function signInPage(deps: DashboardDeps, request: Request, props: SignInPageProps): Response {
  const sender = anonymousForm(deps, request)
  const { next, isLong, email, problem, done } = props
  return authPage(deps, request, {
    title: 'Sign in',
    status: problem ? 401 : 200,
    cookies: sender.cookies,
    messages: DONE,
    done,
    main: html`
      ${parts.form(sender, '/app/sign-in', [
        next && parts.hiddenFields({ next }),
        parts.emailField({
          value: email,
          required: true,
          autocomplete: 'username',
          extra: { autofocus: !email },
        }),
        parts.field({
          name: 'password',
          label: 'Password',
          type: 'password',
          required: true,
          autocomplete: 'current-password',
          error: problem,
          extra: { autofocus: Boolean(email) },
        }),
        stayBox(isLong),
        parts.button('Sign in'),
      ])}
      <p class="hint after">
        ${deps.signUp === 'open' && html`No account yet? <a href="/app/sign-up">Create one</a>. `}
        Forgot your password? Ask the administrator for a reset link.
      </p>`,
  })
}

/** The second step of a sign-in, if the account has two-factor sign-in. */
export const signInCodePages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.signInCode', prefix: CODE_PAGE })
    .use(anonymously(deps))
    .get('', ({ request, query }) => {
      const props = { next: safeNext(query.next), isLong: query.stay === '1' }
      return findAccount(deps, request) ? codePage(deps, request, props) : startAgain()
    })
    .post('', async ({ request, set }) => {
      const origin = originOf(deps, { request, set })
      const sent = await readAnonymousForm(deps, request)
      const next = safeNext(sent.text('next'))
      const isLong = sent.text('stay') === '1'
      const account = findAccount(deps, request)
      if (!account) return startAgain()
      const factor = checkCode(deps, { account, origin, request, text: sent.text('code') })
      if (!factor) {
        const problem = 'This code is wrong, too old, or used already.'
        return codePage(deps, request, { next, isLong, problem })
      }
      const accountId = account.id
      const proof = { accountId, passwordHash: account.passwordHash ?? '', factor }
      const { cookies } = await startSession(deps, { request, origin, isLong }, proof)
      if ('recoveryHash' in factor) {
        const fields = { left: deps.recoveryCodes.countUnused(accountId) }
        deps.security.record('recovery_code.used', origin, { accountId, fields })
      }
      return seeOther(next ?? HOME, [...cookies, deps.cookies.end('step')])
    })

const findAccount = (deps: DashboardDeps, request: Request): AccountRow | undefined =>
  findStepAccount(deps, deps.cookies.find('step', request), deps.clock())

const startAgain = (): Response => seeOther('/app/sign-in?done=late')

function codePage(
  deps: DashboardDeps,
  request: Request,
  { next, isLong, problem }: Pick<SignInPageProps, 'next' | 'isLong' | 'problem'>,
): Response {
  const sender = anonymousForm(deps, request)
  return authPage(deps, request, {
    title: 'Enter your code',
    cookies: sender.cookies,
    status: problem ? 401 : 200,
    main: html`
      <p>Your password is correct. This account has two-factor sign-in: open your authenticator
        app.</p>
      ${parts.form(sender, CODE_PAGE, [
        next && parts.hiddenFields({ next }),
        parts.codeField({
          hint: 'The six digits in your app, or one of your recovery codes.',
          error: problem,
          extra: { autofocus: true, autocapitalize: 'characters' },
        }),
        stayBox(isLong),
        parts.button('Sign in'),
      ])}
      <p class="hint after">Neither available? Ask the administrator to turn two-factor sign-in off
        for you. <a href="/app/sign-in">Sign in to another account</a></p>`,
  })
}
