import { Elysia } from 'elysia'
import { signIn } from '../../accounts/sign-in.ts'
import { html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { button, field, form, notice } from '../components.ts'
import type { DashboardDeps } from '../deps.ts'
import { safeNext } from '../errors.ts'
import { readStrangersForm, signedIn } from '../guard.ts'
import { doorPage } from '../layout.ts'
import { addressOf, beginVisit, strangersForm } from '../visit.ts'

const HOME = '/app/links'

export const signInPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.signIn', prefix: '/app' })
    .get('', ({ request }) => goTo(isSignedIn(deps, request) ? HOME : '/app/sign-in'))
    .get('/sign-in', ({ request, query }) => {
      const next = safeNext(query.next)
      if (isSignedIn(deps, request)) return goTo(next ?? HOME)
      return signInPage(deps, request, { next, done: query.done })
    })
    .post('/sign-in', async ({ request, server }) => {
      const sent = await readStrangersForm(deps, { request, server })
      const next = safeNext(sent.text('next'))
      const email = sent.text('email')
      const address = addressOf(deps, { request, server })
      const account = await signIn(deps, {
        ...{ email, password: sent.raw('password'), address },
        known: deps.cookies.find('known', request),
      })
      if (!account || account.disabledAt !== null) {
        const problem = account
          ? 'This account is disabled. Ask who runs the service.'
          : 'The e-mail address or the password is wrong.'
        return signInPage(deps, request, { next, email, problem, status: 401 })
      }
      const proof = { accountId: account.id, passwordHash: account.passwordHash ?? '' }
      const { cookies } = await beginVisit(deps, { request, address }, proof)
      return goTo(next ?? HOME, { cookies })
    })

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
