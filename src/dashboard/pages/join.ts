import { findPasswordProblem, PASSWORD_MIN_LENGTH, parseEmail } from '../../accounts/credentials.ts'
import { issueKey } from '../../accounts/keys.ts'
import {
  findOneTimeLink,
  isFor,
  type OneTimeLinkRow,
  oneTimePath,
  type Purpose,
} from '../../accounts/one-time-links.ts'
import { joinAccount, signUp, useLink } from '../../accounts/operations/registration.ts'
import type { Requester } from '../../accounts/passwords.ts'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import { AppError, REFUSALS } from '../../errors.ts'
import { networkOf } from '../../hot/client-address.ts'
import { type Html, html } from '../../lib/html.ts'
import { anonymousForm } from '../auth/csrf.ts'
import type { AnonymousContext, CurrentUser } from '../auth/guard.ts'
import { providerLink } from '../auth/oidc.ts'
import { askForCode, countRegistration, findSession, startSession } from '../auth/sign-in.ts'
import type { DashboardDeps } from '../deps.ts'
import { anonymousPages } from '../page-routes.ts'
import { FormRefusal, failAt, refuse, refuseAt, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf, type Form, typed } from '../ui/form.ts'
import { authPage, page } from '../ui/layout.ts'

/** The pages that create an account or reset its password. */

type JoinFlow = Purpose | 'sign-up'

const TEXTS: Readonly<Record<JoinFlow, { title: string; lead: string; button: string }>> = {
  setup: {
    title: 'Set up Hopcode',
    lead: 'Create the owner account. The owner runs this service and can invite people.',
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

export const joinPages = anonymousPages({
  ...flowPages('setup'),
  ...flowPages('invite'),
  ...flowPages('reset'),
  ...flowPages('sign-up'),
})

function pathOf(flow: JoinFlow, token: string): string {
  return flow === 'sign-up' ? '/app/sign-up' : oneTimePath(flow, token)
}

function flowPages(flow: JoinFlow) {
  const path = pathOf(flow, ':token')
  const show = (context: AnonymousContext) => joinPage(context, flow)
  return {
    [`GET ${path}`]: { run: show },
    [`POST ${path}`]: { page: show, run: (context: AnonymousContext) => join(context, flow) },
  }
}

/** Members may have to sign in with the provider. */
const takesPassword = ({ passwordSignIn }: DashboardDeps, flow: JoinFlow): boolean =>
  flow !== 'invite' || passwordSignIn === 'on'

/** The link that the path names; undefined for sign-up. Throws if the page is not open. */
function linkOf(
  { deps, params: { token = '' } }: AnonymousContext,
  flow: JoinFlow,
): OneTimeLinkRow | undefined {
  const { hasher, data, clock, signUp } = deps
  if (flow === 'sign-up') {
    if (signUp !== 'open') throw new AppError('page_not_found')
    return undefined
  }
  const link = findOneTimeLink({ hasher, data }, flow, token, clock())
  if (!link) throw new AppError('link_over')
  return link
}

/** Answers alike, and takes as long, whether or not the address has an account already. */
async function sendSignUp(
  context: AnonymousContext,
  email: string,
  password: string,
): Promise<Response> {
  const { deps, origin } = context
  countRegistration(context)
  const by: Requester = { queue: 'anonymous', key: networkOf(origin.address) }
  const passwordHash = await deps.passwords.hash(password, by)
  await signUp({ ...deps, origin }, { email, passwordHash })
  return seeOther('/app/sign-in?done=signed-up')
}

/** Validates the form, stores the account or its password, and signs in. */
async function join(context: AnonymousContext, flow: JoinFlow): Promise<Response> {
  const { deps, form, origin } = context
  const link = linkOf(context, flow)
  const session = link?.accountId ? findSession(context) : undefined
  if (link && session) {
    await joinAccount({ ...deps, origin }, link, session)
    return seeOther('/app/links')
  }
  if (!takesPassword(deps, flow)) throw refuse('Sign in with the provider.')
  const { email, password } = parseJoin(form, findAddress(context, flow, link))
  if (flow === 'sign-up' || !link) return sendSignUp(context, email, password)
  const provedHash = flow === 'setup' ? await proveExisting(context, link, email) : null
  const by: Requester = { queue: 'oneTimeLink', key: String(link.id) }
  const passwordHash = await deps.passwords.hash(password, by)
  const { key, stored } = issueKey(deps, undefined, email)
  const command = { email, passwordHash, key: stored, tokenHash: link.hash, provedHash }
  const { personId, hasNewKey: isNew } = await useLink({ ...deps, origin }, link, {
    ...command,
    now: deps.clock(),
  }).catch(failAt({ email_taken: 'email', password_needed: 'current' }))
  const person = deps.data.accounts.findPerson(personId)
  const next = flow === 'setup' ? '/app/keys?done=owner' : '/app/links'
  // A one-time link replaces the password, not the second factor.
  if (person && hasSecondFactor(person))
    return askForCode(deps, { person, identityId: 0 }, { next })
  const proof = { kind: 'one', passwordHash } as const
  const { cookies, user } = await startSession(context, { personId, proof })
  if (!isNew) return seeOther(next, cookies)
  const main = [firstLinkCard(user), keyCard(deps, key), flow === 'setup' && twoFactorCard]
  return page({ user }, { title: 'Welcome', cookies, main })
}

/** The address that the link's person or the link itself determines. */
function findAddress(
  { deps }: AnonymousContext,
  flow: JoinFlow,
  link: OneTimeLinkRow | undefined,
): string | undefined {
  const person =
    flow === 'reset' && link?.personId ? deps.data.accounts.findPerson(link.personId) : undefined
  return person?.email ?? link?.email ?? undefined
}

/** `address`, if given, takes precedence over the one in the form. Throws `FormRefusal`. */
function parseJoin(sent: Form, address: string | undefined): { email: string; password: string } {
  const email = address ?? parseEmail(sent.text('email'))
  const password = sent.raw('password')
  const problem = findPasswordProblem(password, email)
  if (email !== undefined && !problem) return { email, password }
  throw new FormRefusal({
    ...(email === undefined && { email: 'Enter an address like name@example.com.' }),
    ...(problem && { password: problem }),
  })
}

/**
 * Setting up the owner with the address of an existing account needs that account's password:
 * otherwise anybody could register the address first and become the owner. Returns the stored hash
 * that `current` was verified against; null if nobody with a password has the address. Throws
 * `FormRefusal`.
 */
async function proveExisting(
  { deps, origin, form }: AnonymousContext,
  link: OneTimeLinkRow,
  email: string,
): Promise<string | null> {
  const { data, passwords, throttle, security } = deps
  const current = form.raw('current')
  const person = data.accounts.findByEmail(email)
  const hash = person?.passwordHash ?? null
  if (hash === null) return null
  if (current === '') throw refuseAt('current', REFUSALS.password_needed.message())
  const attempts = [{ gate: 'session', key: `setup ${link.id}` }] as const
  const by = { queue: 'oneTimeLink', key: String(link.id) } as const
  const hooks = throttle.hooks(attempts, (gate) =>
    security.record('throttle.engaged', origin, { accountId: person?.accountId, fields: { gate } }),
  )
  const isRight = await passwords.verify(current, hash, by, hooks)
  if (!isRight) throw refuseAt('current', 'This is not the password of that account.')
  return hash
}

const firstLinkCard = (user: CurrentUser): Html =>
  parts.card('Create your first link', [
    html`<p>Your account is ready, and you are signed in. Paste a long address: you get a short one
      and its QR code.</p>`,
    parts.form(user, '/app/links', [
      parts.urlField({
        name: 'url',
        label: 'Long URL',
        required: true,
        extra: { autofocus: true, placeholder: 'https://example.com/a/long/address' },
      }),
      html`<div class="row">
        ${parts.button('Shorten')}
        ${parts.linkButton('Import links of another service', '/app/links/import')}
      </div>`,
    ]),
  ])

/** For a new account: the only response that shows its key. */
const keyCard = ({ baseUrl }: DashboardDeps, key: string): Html =>
  parts.card('For programs: your API key', [
    html`<p>Programs send this key in the <code>X-API-Key</code> header. It is shown once, and you
      can create another one on the page <a href="/app/keys">Keys</a> at any time.
      <a href="/docs">How the API works</a></p>`,
    parts.secretOnce('API key', key),
    html`<details><summary>Try it in a terminal</summary>${parts.firstRequest(
      baseUrl,
      key,
    )}</details>`,
  ])

/** For the owner, whose account gives access to all others. */
const twoFactorCard = parts.card('Protect your account', [
  html`<p>Your account can manage the whole service. With two-factor sign-in, a stolen password is
    not enough. You can also set it up later, under Account.</p>`,
  parts.linkButton('Set up two-factor sign-in', '/app/account/two-factor'),
])

function joinPage(context: AnonymousContext, flow: JoinFlow): Response {
  const { deps, request, params } = context
  const sender = anonymousForm(deps, request)
  const link = linkOf(context, flow)
  const session = findSession(context)
  if (link?.accountId && session) return joinAccountPage(context, link, session.email)
  const { title, lead, button: label } = TEXTS[flow]
  const withForm = takesPassword(deps, flow)
  const address = findAddress(context, flow, link)
  const path = pathOf(flow, params.token ?? '')
  const signIn = link?.accountId ? `/app/sign-in?next=${encodeURIComponent(path)}` : '/app/sign-in'
  return authPage(context, {
    title,
    cookies: sender.cookies,
    main: html`<p>${link?.accountId ? html`${invitationText(context, link)} ` : ''}${
      withForm ? lead : 'Sign in to create your account.'
    }</p>
      ${flow === 'invite' && providerLink(deps, path)}
      ${withForm && parts.form(sender, path, [joinFields(context, address), parts.button(label)])}
      <p class="hint after">Have an account? <a href="${signIn}">Sign in</a></p>`,
  })
}

/** Names the sender, too: another account may have the same name. */
function invitationText({ deps }: AnonymousContext, { accountId, personId }: OneTimeLinkRow): Html {
  const name = accountId ? deps.data.accounts.findById(accountId)?.name : undefined
  const sender = personId ? deps.data.accounts.findPerson(personId)?.email : 'The operator'
  return html`${sender} invites you to join <strong>${name}</strong>.`
}

/** The invitation of a person who is signed in. */
function joinAccountPage(
  context: AnonymousContext,
  link: OneTimeLinkRow,
  signedInAs: string,
): Response {
  const { email } = link
  const { deps, request, params } = context
  const sender = anonymousForm(deps, request)
  const path = pathOf('invite', params.token ?? '')
  return authPage(context, {
    title: 'Join an account',
    cookies: sender.cookies,
    main: isFor(email, signedInAs)
      ? html`<p>You are signed in as ${signedInAs}. ${invitationText(context, link)}
          You keep your other accounts.</p>
        ${parts.buttonForm(sender, path, 'Join', { look: 'primary' })}`
      : html`<p>This invitation is for ${email}. You are signed in as ${signedInAs}.</p>
        <p class="hint after"><a href="/app">Go to your links</a></p>`,
  })
}

/** `address`: fixed by the link, so that it cannot be changed. */
function joinFields(context: AnonymousContext, address: string | undefined): Html[] {
  const { form, refusal } = context
  const email = typed(context, 'email')
  const currentError = errorOf(refusal, 'current')
  const passwordError = errorOf(refusal, 'password')
  // Also after another error, if the form had this field filled in.
  const asksCurrent = currentError !== undefined || form.raw('current') !== ''
  const startsAtPassword = Boolean(address) || (!email.error && Boolean(passwordError))
  const current = parts.field({
    name: 'current',
    label: 'Current password of this account',
    type: 'password',
    required: true,
    hint: 'Its sessions, its API keys and its pending links then end.',
    error: currentError,
    autocomplete: 'current-password',
    extra: { autofocus: Boolean(currentError) },
  })
  return [
    parts.emailField({
      autocomplete: 'username',
      ...email,
      value: address ?? email.value,
      required: true,
      extra: { readonly: Boolean(address), autofocus: !startsAtPassword && !currentError },
    }),
    ...(asksCurrent ? [current] : []),
    parts.newPassword({
      label: asksCurrent ? 'New password' : 'Password',
      hint: `At least ${PASSWORD_MIN_LENGTH} characters. A few unrelated words are best.`,
      error: passwordError,
      extra: { autofocus: startsAtPassword },
    }),
  ]
}
