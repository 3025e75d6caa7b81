import { Elysia } from 'elysia'
import { PASSWORD_MIN_LENGTH } from '../../accounts/credentials.ts'
import { issueKey } from '../../accounts/keys.ts'
import {
  findOneTimeLink,
  LINK_PAGES,
  type OneTimeLinkRow,
  oneTimePath,
  type Purpose,
} from '../../accounts/one-time-links.ts'
import type { Requester } from '../../accounts/passwords.ts'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import { AppError } from '../../errors.ts'
import { networkOf } from '../../hot/client-address.ts'
import { type Html, html } from '../../lib/html.ts'
import { anonymousForm } from '../auth/csrf.ts'
import {
  anonymously,
  type ClientOrigin,
  type CurrentUser,
  originOf,
  type RequestContext,
  readAnonymousForm,
} from '../auth/guard.ts'
import {
  countRegistration,
  findAddress,
  type JoinErrors,
  type JoinFlow,
  type JoinRequest,
  logJoin,
  PASSWORD_NEEDED,
  parseJoin,
  proveExisting,
  storeJoin,
  storeSignUp,
} from '../auth/join.ts'
import { askForCode, startSession } from '../auth/sign-in.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { firstRequest } from '../ui/first-request.ts'
import type { Form } from '../ui/form.ts'
import { authPage, page } from '../ui/layout.ts'

const TEXTS: Readonly<Record<JoinFlow, { title: string; lead: string; button: string }>> = {
  setup: {
    title: 'Set up Hopcode',
    lead:
      'Create the owner account. The owner runs this service and can invite people. If the ' +
      'address has an account, you need its password, and its API keys stop working.',
    button: 'Create account',
  },
  invite: {
    title: 'Join Hopcode',
    lead: 'Choose a password to create your account.',
    button: 'Create account',
  },
  reset: {
    title: 'Set a new password',
    lead: 'All current sessions of this account will be signed out.',
    button: 'Set password',
  },
  'sign-up': {
    title: 'Create an account',
    lead: 'New accounts have the Free plan.',
    button: 'Create account',
  },
}

/** The pages that create an account or reset its password. */
export const joinPages = (deps: DashboardDeps) => {
  const pages = new Elysia({ name: 'dashboard.join', prefix: '/app' }).use(anonymously(deps))
  for (const flow of ['setup', 'invite', 'reset'] as const) {
    const path = `/${LINK_PAGES[flow]}/:token` as const
    pages
      .get(path, ({ request, params: { token } }) => {
        const link = requireLink(deps, flow, token)
        return joinPage(deps, request, { flow, token, link })
      })
      .post(path, ({ request, set, params: { token } }) =>
        join(deps, { request, set }, { flow, token }),
      )
  }
  return pages
    .get('/sign-up', ({ request }) => {
      requireOpen(deps)
      return joinPage(deps, request, { flow: 'sign-up' })
    })
    .post('/sign-up', ({ request, set }) => {
      requireOpen(deps)
      return join(deps, { request, set }, { flow: 'sign-up' })
    })
}

function requireLink(
  { hasher, oneTimeLinks: links, clock }: DashboardDeps,
  purpose: Purpose,
  token: string,
): OneTimeLinkRow {
  const link = findOneTimeLink({ hasher, links }, purpose, token, clock())
  if (!link) throw new AppError('link_over')
  return link
}

function requireOpen({ signUp }: DashboardDeps): void {
  if (signUp !== 'open') throw new AppError('page_not_found')
}

/** Answers alike, and takes as long, whether or not the address has an account already. */
async function signUp(
  deps: DashboardDeps,
  origin: ClientOrigin,
  { email, password }: { email: string; password: string },
): Promise<Response> {
  countRegistration(deps, origin)
  const by: Requester = { queue: 'anonymous', key: networkOf(origin.address) }
  const passwordHash = await deps.passwords.hash(password, by)
  const accountId = await storeSignUp(deps, { email, passwordHash })
  if (accountId !== undefined) {
    logJoin(deps, origin, { flow: 'sign-up', link: undefined, accountId, isNew: true })
  }
  return seeOther('/app/sign-in?done=signed-up')
}

/** Validates the form, stores the account or its password, and signs in. */
async function join(
  deps: DashboardDeps,
  context: RequestContext,
  at: JoinRequest,
): Promise<Response> {
  const { request } = context
  const { flow } = at
  const origin = originOf(deps, context)
  const link = at.flow === 'sign-up' ? undefined : requireLink(deps, at.flow, at.token)
  const sent = await readAnonymousForm(deps, context.request)
  const again = (errors: JoinErrors) => joinPage(deps, request, { ...at, link, sent, errors })
  const parsed = parseJoin(sent, findAddress(deps, flow, link))
  if ('errors' in parsed) return again(parsed.errors)
  const { email, password } = parsed

  if (at.flow === 'sign-up' || !link) return signUp(deps, origin, { email, password })
  const proved =
    flow === 'setup'
      ? await proveExisting(deps, { link, origin, email, current: sent.raw('current') })
      : { hash: null }
  if ('errors' in proved) return again(proved.errors)
  const by: Requester = { queue: 'oneTimeLink', key: String(link.id) }
  const passwordHash = await deps.passwords.hash(password, by)
  const { key, stored } = issueKey(deps)
  const newcomer = { email, passwordHash, key: stored, provedHash: proved.hash }
  const joined = await storeJoin(deps, at, newcomer)
  if ('refused' in joined) {
    if (joined.refused === 'link_over') throw new AppError('link_over')
    if (joined.refused === 'password_needed') return again({ current: PASSWORD_NEEDED })
    return again({ email: 'This address already has an account. Sign in with it.' })
  }
  const { accountId, hasNewKey: isNew } = joined
  logJoin(deps, origin, { flow, link, accountId, isNew })
  const account = deps.accounts.find(accountId)
  const next = flow === 'setup' ? '/app/keys?done=owner' : '/app/links'
  // A one-time link replaces the password, not the second factor.
  if (account && hasSecondFactor(account)) return askForCode(deps, account, { next })
  const proof = { accountId, passwordHash }
  const { cookies, user } = await startSession(deps, { request, origin }, proof)
  if (!isNew) return seeOther(next, cookies)
  return welcomePage(user, { cookies, key, flow, baseUrl: deps.baseUrl })
}

interface WelcomeProps {
  cookies: string[]
  key: string
  flow: JoinFlow
  baseUrl: string
}

/** The first page of a new account: the only response that shows its key. */
const welcomePage = (user: CurrentUser, { cookies, key, flow, baseUrl }: WelcomeProps): Response =>
  page(user, {
    title: 'Welcome',
    cookies,
    main: html`<div class="card">
      ${parts.notice('good', html`<p>Your account is ready, and you are signed in.</p>`)}
      <p>Use this key in the <code>X-API-Key</code> header to create links from your own code. You
        can replace it on the <a href="/app/keys">Keys</a> page.</p>
      ${parts.secretOnce('API key', key)}
      ${firstRequest(baseUrl, key)}
      <div class="row">
        ${parts.linkButton('Create your first link', '/app/links', 'primary')}
        ${parts.linkButton('How the API works', '/docs')}
      </div>
    </div>
    ${flow === 'setup' && twoFactorCard}`,
  })

/** For the owner, whose account gives access to all others. */
const twoFactorCard = parts.card('Protect your account', [
  html`<p>Your account can manage the whole service. With two-factor sign-in, a stolen password is
    not enough. You can also set it up later, under Account.</p>`,
  parts.linkButton('Set up two-factor sign-in', '/app/account/two-factor'),
])

type JoinPageProps = JoinRequest & {
  link?: OneTimeLinkRow | undefined
  /** The refused form. */
  sent?: Form
  errors?: JoinErrors
}

function joinPage(deps: DashboardDeps, request: Request, props: JoinPageProps): Response {
  const sender = anonymousForm(deps, request)
  const { flow, link, errors = {} } = props
  const { title, lead, button: label } = TEXTS[flow]
  const path = props.flow === 'sign-up' ? '/app/sign-up' : oneTimePath(props.flow, props.token)
  return authPage(deps, request, {
    title,
    cookies: sender.cookies,
    isRefused: Boolean(errors.email || errors.password || errors.current),
    main: html`<p>${lead}</p>
      ${parts.form(sender, path, [
        joinFields(props, findAddress(deps, flow, link)),
        parts.button(label),
      ])}
      <p class="hint after">Have an account? <a href="/app/sign-in">Sign in</a></p>`,
  })
}

/** `address`: fixed by the link, so that it cannot be changed. */
function joinFields({ sent, errors = {} }: JoinPageProps, address?: string): Html[] {
  // Also after another error, if the form had this field filled in.
  const asksCurrent = errors.current !== undefined || Boolean(sent?.raw('current'))
  const startsAtPassword = Boolean(address) || (!errors.email && Boolean(errors.password))
  const current = parts.field({
    name: 'current',
    label: 'Current password of this account',
    type: 'password',
    required: true,
    hint: 'Its sessions, its API keys and its pending links then end.',
    error: errors.current,
    autocomplete: 'current-password',
    extra: { autofocus: Boolean(errors.current) },
  })
  return [
    parts.emailField({
      autocomplete: 'username',
      value: address ?? sent?.text('email'),
      error: errors.email,
      required: true,
      extra: { readonly: Boolean(address), autofocus: !startsAtPassword && !errors.current },
    }),
    ...(asksCurrent ? [current] : []),
    parts.newPassword({
      label: asksCurrent ? 'New password' : 'Password',
      hint: `At least ${PASSWORD_MIN_LENGTH} characters. A few unrelated words are best.`,
      error: errors.password,
      extra: { autofocus: startsAtPassword },
    }),
  ]
}
