import {
  codeAttempts,
  type Factor,
  type FirstStep,
  findFactor,
  findFirstStep,
  hasSecondFactor,
} from '../../accounts/second-factor.ts'
import { signIn } from '../../accounts/sign-in.ts'
import type { AccountId, PersonRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { anonymousForm } from '../auth/csrf.ts'
import type { AnonymousContext } from '../auth/guard.ts'
import { connectPending, isPending, OR, providerLink } from '../auth/oidc.ts'
import {
  askForCode,
  CODE_PAGE,
  DISABLED,
  findSession,
  startSession,
  tryGuess,
} from '../auth/sign-in.ts'
import type { DashboardDeps } from '../deps.ts'
import { safeNext } from '../errors.ts'
import { anonymousPages, signedInPages } from '../page-routes.ts'
import { refuseAt, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { authPage } from '../ui/layout.ts'

const HOME = '/app/links'

/** Sign-in with e-mail address and password, and the code of two-factor sign-in. */
export const signInPages = [
  ...anonymousPages({
    'GET /app': { run: (context) => (isSignedIn(context) ? HOME : '/app/sign-in') },
    'GET /app/sign-in': {
      run: (context) =>
        isSignedIn(context) ? (choices(context).next ?? HOME) : signInPage(context),
    },
    'POST /app/sign-in': { page: signInPage, run: sendPassword },
    'GET /app/sign-in/code': {
      run: (context) => (findStep(context) ? codePage(context) : startAgain()),
    },
    'POST /app/sign-in/code': { page: codePage, run: sendCode },
  }),
  ...signedInPages({
    'POST /app/sign-out': {
      role: 'viewer',
      personal: true,
      run: async ({ deps, user }) => {
        await deps.sessions.end(user.session.id, user.person.id)
        return seeOther('/app/sign-in?done=out', [deps.cookies.end('session')])
      },
    },
  }),
]

const isSignedIn = (context: AnonymousContext): boolean => findSession(context) !== undefined

/** The page to open next, and “Stay signed in”. */
const choices = ({ query, form }: AnonymousContext) => ({
  next: safeNext(form.text('next') || query.next),
  isLong: (form.text('stay') || query.stay) === '1',
})

async function sendPassword(context: AnonymousContext): Promise<Response> {
  const { next, isLong } = choices(context)
  const person = await checkPassword(context)
  if (!person) throw refuseAt('password', 'The e-mail address or the password is wrong.')
  if (!person.hasAccount) throw refuseAt('password', DISABLED)
  const { oidc } = context.deps
  if (oidc && !mayUsePassword(context, person)) {
    throw refuseAt('password', `Sign in with ${oidc.settings.name}.`)
  }
  const step = { person, identityId: 0 }
  if (hasSecondFactor(person)) return askForCode(context.deps, step, { next, isLong })
  const proof = { kind: 'one', passwordHash: person.passwordHash ?? '' } as const
  const { cookies, user } = await startSession(context, { personId: person.id, proof }, isLong)
  const connected = await connectPending(context, user)
  return seeOther(connected.next ?? next ?? HOME, [...cookies, ...connected.cookies])
}

function mayUsePassword(context: AnonymousContext, person: PersonRow): boolean {
  const { oidc, passwordSignIn } = context.deps
  return !oidc || passwordSignIn === 'on' || person.isOwner === 1 || isPending(context, person)
}

async function sendCode(context: AnonymousContext): Promise<Response> {
  const { deps, origin } = context
  const { next, isLong } = choices(context)
  const step = findStep(context)
  if (!step) return startAgain()
  const { person, identityId, provedAt } = step
  // The person may have been disconnected after the password.
  if (identityId === 0 && !mayUsePassword(context, person)) return startAgain()
  const factor = await checkCode(context, person)
  if (!factor) throw refuseAt('code', 'This code is wrong, too old, or used already.')
  const { id: personId, accountId } = person
  const first =
    identityId === 0 ? { passwordHash: person.passwordHash ?? '' } : { identityId, provedAt }
  const proof = { ...first, ...factor }
  const isStaying = isLong && identityId === 0
  const { cookies, user } = await startSession(context, { personId, proof }, isStaying)
  if (factor.kind === 'recovery') {
    const fields = { left: deps.data.secondFactors.countUnusedCodes(personId) }
    deps.security.record('recovery_code.used', origin, { accountId, fields })
  }
  const connected = await connectPending(context, user)
  const ended = [deps.cookies.end('step'), ...connected.cookies]
  return seeOther(connected.next ?? next ?? HOME, [...cookies, ...ended])
}

/** Like `signIn` with what the form has, and logs why a sign-in was refused. */
function checkPassword(context: AnonymousContext): Promise<PersonRow | undefined> {
  const { deps, origin, form, request } = context
  const email = form.text('email')
  const accountId = deps.data.accounts.findByEmail(email)?.accountId
  return loggingRefusal(context, accountId, async (logRefusal) => {
    const person = await signIn(deps, {
      email,
      password: form.raw('password'),
      deviceToken: deps.cookies.findByName('known', request),
      address: origin.address,
      onClosed: (gate) =>
        deps.security.record('throttle.engaged', origin, { accountId, fields: { gate } }),
    })
    if (!person) logRefusal('password')
    else if (!person.hasAccount) logRefusal('disabled')
    return person
  })
}

/** The second factor that was sent; undefined for a wrong one. Throws `too_many_attempts`. */
function checkCode(context: AnonymousContext, person: PersonRow): Promise<Factor | undefined> {
  const { deps, origin, form, request } = context
  const { accountId } = person
  const deviceToken = deps.cookies.findByName('known', request)
  const attempts = codeAttempts(deps.hasher, person, { address: origin.address, deviceToken })
  return loggingRefusal(context, accountId, async (logRefusal) =>
    tryGuess(deps, attempts, { origin, accountId }, () => {
      const factor = findFactor(deps, person, form.text('code'), deps.clock())
      if (!factor) logRefusal('code')
      return factor
    }),
  )
}

async function loggingRefusal<Result>(
  { deps, origin }: AnonymousContext,
  accountId: AccountId | undefined,
  check: (logRefusal: (reason: string) => void) => Promise<Result>,
): Promise<Result> {
  const logRefusal = (reason: string) =>
    deps.security.record('session.refused', origin, { accountId, fields: { reason } })
  try {
    return await check(logRefusal)
  } catch (error) {
    if (error instanceof AppError && error.code === 'too_many_attempts') logRefusal('throttled')
    throw error
  }
}

const findStep = ({ deps, request }: AnonymousContext): FirstStep | undefined =>
  findFirstStep(deps, deps.cookies.findByName('step', request), deps.clock())

const startAgain = (): Response => seeOther('/app/sign-in?done=late')

const DONE = {
  out: 'You are signed out.',
  late: 'More than five minutes have passed, or the password was changed. Sign in again.',
  'signed-up':
    'If this address had no account, it has one now. Sign in with the password that you chose.',
  deleted: 'The account is deleted, and its links are being removed.',
}

const stayBox = (isChecked = false): Html =>
  parts.checkbox({ name: 'stay', label: 'Stay signed in for 30 days', isChecked })

function signInPage(context: AnonymousContext): Response {
  const { deps, request, refusal } = context
  const sender = anonymousForm(deps, request)
  const { next, isLong } = choices(context)
  const email = typed(context, 'email')
  const isForAll = deps.passwordSignIn === 'on'
  const passwordForm = parts.form(sender, '/app/sign-in', [
    next && parts.hiddenFields({ next }),
    parts.emailField({
      ...email,
      required: true,
      autocomplete: 'username',
      extra: { autofocus: !email.value },
    }),
    parts.field({
      ...typed(context, 'password'),
      label: 'Password',
      type: 'password',
      required: true,
      autocomplete: 'current-password',
      extra: { autofocus: Boolean(email.value) },
    }),
    stayBox(isLong),
    parts.button('Sign in', deps.oidc ? 'plain' : 'primary'),
  ])
  return authPage(context, {
    title: 'Sign in',
    ...(refusal && { status: 401 }),
    cookies: sender.cookies,
    messages: DONE,
    main: html`
      ${!deps.data.accounts.hasOwner() && notSetUp(deps)}
      ${providerLink(deps, next)}
      ${deps.oidc && isForAll && OR}
      ${
        isForAll
          ? passwordForm
          : html`<details ${attributes({ open: Boolean(refusal) })}>
        <summary>Sign in with a password</summary>${passwordForm}</details>`
      }
      <p class="hint after">
        ${deps.signUp === 'open' && html`No account yet? <a href="/app/sign-up">Create one</a>. `}
        Forgot your password? Ask the administrator for a reset link.
      </p>`,
  })
}

const notSetUp = ({ baseUrl }: DashboardDeps): Html =>
  parts.notice(
    'note',
    html`<p><strong>This service has no owner yet.</strong> Open the link that its start has printed
      in the terminal or in the log of the container. It begins with
      <code>${baseUrl}/app/setup/</code>, and <code>hopcode account setup-link</code> prints
      another one.</p>`,
  )

/** The second step of a sign-in, if the account has two-factor sign-in. */
function codePage(context: AnonymousContext): Response {
  const { deps, request, refusal } = context
  const sender = anonymousForm(deps, request)
  const { next, isLong } = choices(context)
  const isPassword = findStep(context)?.identityId === 0
  return authPage(context, {
    title: 'Enter your code',
    cookies: sender.cookies,
    ...(refusal && { status: 401 }),
    main: html`
      <p>${isPassword && 'Your password is correct. '}This account has two-factor sign-in: open your
        authenticator app.</p>
      ${parts.form(sender, CODE_PAGE, [
        next && parts.hiddenFields({ next }),
        parts.codeField(context, {
          hint: 'The six digits in your app, or one of your recovery codes.',
          extra: { autofocus: true, autocapitalize: 'characters' },
        }),
        isPassword && stayBox(isLong),
        parts.button('Sign in'),
      ])}
      <p class="hint after">Neither available? Ask the administrator to turn two-factor sign-in off
        for you. <a href="/app/sign-in">Sign in to another account</a></p>`,
  })
}
