import { Elysia } from 'elysia'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import { type SignIn, signIn } from '../../accounts/sign-in.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { anonymously, readStrangersForm, signedIn } from '../auth/guard.ts'
import { type ClientOrigin, originOf } from '../auth/origin.ts'
import { askForCode } from '../auth/second-step.ts'
import { beginVisit, strangersForm } from '../auth/session.ts'
import type { DashboardDeps } from '../deps.ts'
import { safeNext } from '../errors.ts'
import { button, field, form, notice } from '../ui/components.ts'
import { doorPage } from '../ui/layout.ts'

const HOME = '/app/links'

export const signInPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.signIn', prefix: '/app' })
    .use(anonymously(deps))
    .get('', ({ request }) => goTo(isSignedIn(deps, request) ? HOME : '/app/sign-in'))
    .get('/sign-in', ({ request, query }) => {
      const next = safeNext(query.next)
      if (isSignedIn(deps, request)) return goTo(next ?? HOME)
      return signInPage(deps, request, { next, done: query.done })
    })
    .post('/sign-in', async ({ request, server, set }) => {
      const origin = originOf(deps, { request, server, set })
      const sent = await readStrangersForm(deps, { request, server })
      const next = safeNext(sent.text('next'))
      const email = sent.text('email')
      const account = await judgeSignIn(deps, origin, {
        email,
        password: sent.raw('password'),
        deviceToken: deps.cookies.find('known', request),
      })
      if (!account || account.disabledAt !== null) {
        const problem = account
          ? 'This account is disabled. Ask who runs the service.'
          : 'The e-mail address or the password is wrong.'
        return signInPage(deps, request, { next, email, problem, status: 401 })
      }
      if (hasSecondFactor(account)) return askForCode(deps, account, next)
      const proof = { accountId: account.id, passwordHash: account.passwordHash ?? '' }
      const { cookies } = await beginVisit(deps, { request, origin }, proof)
      return goTo(next ?? HOME, { cookies })
    })

/** As `signIn`, and says in the log why somebody is refused. */
async function judgeSignIn(
  deps: DashboardDeps,
  origin: ClientOrigin,
  sent: Pick<SignIn, 'email' | 'password' | 'deviceToken'>,
): Promise<AccountRow | undefined> {
  const { security, accounts } = deps
  const accountId = accounts.findByEmail(sent.email)?.id
  const refused = (reason: string) =>
    security.record('session.refused', origin, { accountId, fields: { reason } })
  try {
    const account = await signIn(deps, {
      ...sent,
      address: origin.address,
      onClosed: (gate) =>
        security.record('throttle.engaged', origin, { accountId, fields: { gate } }),
    })
    if (!account) refused('password')
    else if (account.disabledAt !== null) refused('disabled')
    return account
  } catch (error) {
    if (error instanceof AppError && error.code === 'too_many_attempts') refused('throttled')
    throw error
  }
}

export const signOutPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.signOut', prefix: '/app' })
    .use(signedIn(deps))
    .post('/sign-out', async ({ account, session }) => {
      await deps.sessions.end(session.id, account.id)
      return goTo('/app/sign-in?done=out', { cookies: [deps.cookies.end('session')] })
    })

const isSignedIn = ({ cookies, sessions }: DashboardDeps, request: Request): boolean =>
  sessions.find(cookies.find('session', request)) !== undefined

const DONE: Readonly<Record<string, string>> = {
  out: 'You are signed out.',
  late: 'More than five minutes have passed, or the password was changed. Sign in again.',
  deleted: 'The account is deleted. Its links are being taken away.',
}

interface Shown {
  next: string | undefined
  email?: string
  problem?: string
  done?: string | undefined
  status?: number
}

function signInPage(deps: DashboardDeps, request: Request, shown: Shown): Response {
  const { csrf, cookies } = strangersForm(deps, request)
  const { next, email, problem, done = '', status = 200 } = shown
  const good = Object.hasOwn(DONE, done) ? DONE[done] : undefined
  const fields = html`
    ${next ? html`<input type="hidden" name="next" value="${next}">` : ''}
    ${field({
      ...{ name: 'email', label: 'E-mail address', type: 'email', value: email, required: true },
      ...{ autocomplete: 'username', extra: { autofocus: !email } },
    })}
    ${field({
      ...{ name: 'password', label: 'Password', type: 'password', required: true },
      ...{ autocomplete: 'current-password', error: problem, extra: { autofocus: !!email } },
    })}
    ${button('Sign in')}`
  return doorPage({
    ...{ title: 'Sign in', status, cookies },
    main: html`
      ${good && notice('good', html`<p>${good}</p>`)}
      ${form({ action: '/app/sign-in', csrf, children: fields })}
      <p class="hint after">
        ${deps.signUp === 'open' && html`No account yet? <a href="/app/sign-up">Make one</a>. `}
        Forgotten the password? Whoever runs the service can give you a link that sets a new one.
      </p>`,
  })
}
