import { findPasswordProblem, PASSWORD_MIN_LENGTH, parseEmail } from '../../accounts/credentials.ts'
import { issueKey } from '../../accounts/keys.ts'
import { BAD_NAME, nameOfHost, parseAccountName } from '../../accounts/names.ts'
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
import { readableHost } from '../../addresses/shown-host.ts'
import { AppError, REFUSALS } from '../../errors.ts'
import { networkOf } from '../../hot/client-address.ts'
import { type Html, html } from '../../lib/html.ts'
import { anonymousForm } from '../auth/csrf.ts'
import type { AnonymousContext, CurrentUser } from '../auth/guard.ts'
import { OR, providerLink } from '../auth/oidc.ts'
import { askForCode, countRegistration, findSession, startSession } from '../auth/sign-in.ts'
import type { DashboardDeps } from '../deps.ts'
import { anonymousPages } from '../page-routes.ts'
import { FormRefusal, failAt, refuse, refuseAt, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf, typed } from '../ui/form.ts'
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
  { email, password, accountName }: ReturnType<typeof parseJoin>,
): Promise<Response> {
  const { deps, origin } = context
  countRegistration(context)
  const by: Requester = { queue: 'anonymous', key: networkOf(origin.address) }
  const passwordHash = await deps.passwords.hash(password, by)
  await signUp({ ...deps, origin }, { email, passwordHash, accountName })
  return seeOther('/app/sign-in?done=signed-up')
}

/** Whether the page creates an account, and asks for its name. */
const createsAccount = (flow: JoinFlow, link: OneTimeLinkRow | undefined): boolean =>
  flow !== 'reset' && !link?.accountId

/** The name of the owner’s account if nobody types one: “Acme” for `go.acme.example`. */
function usualName({ baseUrl }: DashboardDeps, email = ''): string | undefined {
  const hosts = [new URL(baseUrl).hostname, email.replace(/.*@/, '')]
  return hosts.map((host) => nameOfHost(readableHost(host))).find(Boolean)
}

/** Validates the form, stores the account or its password, and signs in. */
async function join(context: AnonymousContext, flow: JoinFlow): Promise<Response> {
  const { deps, origin } = context
  const link = linkOf(context, flow)
  const session = link?.accountId ? findSession(context) : undefined
  if (link && session) {
    await joinAccount({ ...deps, origin }, link, session)
    return seeOther('/app/links')
  }
  if (!takesPassword(deps, flow)) throw refuse('Sign in with the provider.')
  const sent = parseJoin(context, flow, link)
  if (flow === 'sign-up' || !link) return sendSignUp(context, sent)
  const { email, password, accountName } = sent
  const provedHash = flow === 'setup' ? await proveExisting(context, link, email) : null
  const by: Requester = { queue: 'oneTimeLink', key: String(link.id) }
  const passwordHash = await deps.passwords.hash(password, by)
  const { key, stored } = issueKey(deps, undefined, email)
  const command = { email, passwordHash, accountName, key: stored, tokenHash: link.hash }
  const { personId, hasNewKey: isNew } = await useLink({ ...deps, origin }, link, {
    ...command,
    provedHash,
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

/** The address of the link takes precedence over the one in the form. Throws `FormRefusal`. */
function parseJoin(context: AnonymousContext, flow: JoinFlow, link: OneTimeLinkRow | undefined) {
  const { deps, form } = context
  const email = findAddress(context, flow, link) ?? parseEmail(form.text('email'))
  const password = form.raw('password')
  const problem = findPasswordProblem(password, email)
  const name = createsAccount(flow, link) ? form.text('account') : ''
  const usual = flow === 'setup' ? usualName(deps, email) : undefined
  const accountName = name === '' ? usual : parseAccountName(name, email ?? '')
  const isNamed = name === '' || accountName !== undefined
  if (email !== undefined && !problem && isNamed) return { email, password, accountName }
  throw new FormRefusal({
    ...(email === undefined && { email: 'Enter an address like name@example.com.' }),
    ...(problem && { password: problem }),
    ...(!isNamed && { account: `The name ${BAD_NAME}.` }),
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
  const invited = link?.accountId ? invitationOf(context, link) : undefined
  const { title, lead, button: label } = invited ?? TEXTS[flow]
  const withForm = takesPassword(deps, flow)
  const address = findAddress(context, flow, link)
  const path = pathOf(flow, params.token ?? '')
  const signIn = invited ? `/app/sign-in?next=${encodeURIComponent(path)}` : '/app/sign-in'
  const provider = flow === 'invite' && providerLink(deps, path)
  const account = createsAccount(flow, link) && accountField(context, flow)
  const fields = joinFields(context, address, account)
  const button = parts.button(label, provider ? 'plain' : 'primary')
  return authPage(context, {
    title,
    cookies: sender.cookies,
    main: html`<p>${invited?.text} ${withForm ? lead : 'Sign in to create your account.'}</p>
      ${provider}
      ${provider && withForm && OR}
      ${withForm && parts.form(sender, path, [fields, button])}
      <p class="hint after">Have an account? <a href="${signIn}">Sign in</a></p>`,
  })
}

/** Names the sender, too: another account may have the same name. At first it is an address. */
function invitationOf({ deps }: AnonymousContext, { accountId, personId }: OneTimeLinkRow) {
  const name = (accountId && deps.data.accounts.findById(accountId)?.name) || ''
  const sender = personId ? deps.data.accounts.findPerson(personId)?.email : 'The operator'
  const owner = name === sender ? 'their account' : html`the account of <strong>${name}</strong>`
  const isNamed = !name.includes('@')
  return {
    title: isNamed ? `Join ${name}` : 'Join an account',
    text: html`${sender} invites you to join ${isNamed ? html`<strong>${name}</strong>` : owner}.`,
    lead: 'Choose a password to sign in with.',
    button: 'Join',
  }
}

function accountField(context: AnonymousContext, flow: JoinFlow): Html {
  const name = flow === 'setup' ? usualName(context.deps) : undefined
  const usual = flow === 'setup' ? 'the domain of your e-mail address' : 'your e-mail address'
  return parts.field({
    ...typed(context, 'account', name),
    label: 'Name of the account',
    autocomplete: 'organization',
    hint: html`Those whom you invite see it.${name === undefined && ` Empty: ${usual}.`}`,
  })
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
  const { title, text } = invitationOf(context, link)
  return authPage(context, {
    title,
    cookies: sender.cookies,
    main: isFor(email, signedInAs)
      ? html`<p>You are signed in as ${signedInAs}. ${text}
          You keep your other accounts.</p>
        ${parts.buttonForm(sender, path, 'Join', { look: 'primary' })}`
      : html`<p>This invitation is for ${email}. You are signed in as ${signedInAs}.</p>
        <p class="hint after"><a href="/app">Go to your links</a></p>`,
  })
}

/**
 * `address`: fixed by the link, so that it cannot be changed. `account`: the field for a new one;
 * an account that exists keeps its name.
 */
function joinFields(
  context: AnonymousContext,
  address: string | undefined,
  account: Html | false,
): Html[] {
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
    ...(account && !asksCurrent ? [account] : []),
  ]
}
