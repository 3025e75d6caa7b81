import { Elysia } from 'elysia'
import { parseEmail } from '../../accounts/email.ts'
import { issueKey } from '../../accounts/keys.ts'
import type { OneTimeLinkRow, Purpose } from '../../accounts/one-time-link-store.ts'
import { findOneTimeLink } from '../../accounts/one-time-links.ts'
import { judgePassword, PASSWORD_MIN_LENGTH } from '../../accounts/passwords.ts'
import type { AccountId } from '../../accounts/store.ts'
import type { Joined } from '../../accounts/writes-store.ts'
import { AppError } from '../../errors.ts'
import { html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { button, field, form, linkButton, notice, shownOnce } from '../components.ts'
import type { DashboardDeps } from '../deps.ts'
import type { Form } from '../form.ts'
import { readStrangersForm } from '../guard.ts'
import { doorPage, page } from '../layout.ts'
import { type Arrival, addressOf, beginVisit, strangersForm } from '../visit.ts'

/** The pages that make an account, or give one a new password. */

type Door = 'setup' | 'join' | 'reset' | 'sign-up'

const TEXTS: Readonly<Record<Door, { title: string; lead: string; button: string }>> = {
  setup: {
    title: 'Set up Hopcode',
    lead: 'Make the account of the owner: it sees to the service and invites others.',
    button: 'Make the account',
  },
  join: {
    title: 'Join Hopcode',
    lead: 'Choose a password, and the account is yours.',
    button: 'Make the account',
  },
  reset: {
    title: 'Set a new password',
    lead: 'Whoever is signed in to this account now will be signed out.',
    button: 'Set the password',
  },
  'sign-up': {
    title: 'Make an account',
    lead: 'It begins on the Free plan.',
    button: 'Make the account',
  },
}

const PURPOSES = { setup: 'setup', join: 'invite', reset: 'reset' } as const satisfies Record<
  Exclude<Door, 'sign-up'>,
  Purpose
>

export const joinPages = (deps: DashboardDeps) => {
  const pages = new Elysia({ name: 'dashboard.join', prefix: '/app' })
  for (const door of ['setup', 'join', 'reset'] as const) {
    pages
      .get(`/${door}/:token`, ({ request, params }) => {
        const link = requireLink(deps, door, params.token)
        return doorForm(deps, request, { door, token: params.token, link })
      })
      .post(`/${door}/:token`, ({ request, server, params }) =>
        enter(deps, { request, server }, { door, token: params.token }),
      )
  }
  return pages
    .get('/sign-up', ({ request }) => {
      requireOpen(deps)
      return doorForm(deps, request, { door: 'sign-up' })
    })
    .post('/sign-up', ({ request, server }) => {
      requireOpen(deps)
      return enter(deps, { request, server }, { door: 'sign-up' })
    })
}

function requireLink(
  { hasher, oneTimeLinks: links, clock }: DashboardDeps,
  door: Exclude<Door, 'sign-up'>,
  token: string,
): OneTimeLinkRow {
  const link = findOneTimeLink({ hasher, links }, PURPOSES[door], token, clock())
  if (!link) throw new AppError('link_over')
  return link
}

function requireOpen({ signUp }: DashboardDeps): void {
  if (signUp !== 'open') throw new AppError('page_not_found')
}

interface At {
  door: Door
  token?: string
}

/** Judges what was sent, stores it, and signs the visitor in. */
async function enter(deps: DashboardDeps, arrival: Arrival, at: At): Promise<Response> {
  const { request } = arrival
  const link = at.door === 'sign-up' ? undefined : requireLink(deps, at.door, at.token ?? '')
  const sent = await readStrangersForm(deps, arrival)
  const shown = { ...at, link, email: sent.text('email') }
  const judged = judge(at.door, link, sent)
  if ('errors' in judged) return doorForm(deps, request, { ...shown, ...judged })

  const address = addressOf(deps, arrival)
  const registration = { gate: 'registration', key: address } as const
  if (at.door === 'sign-up') {
    deps.throttle.require([registration])
    // At once, so that of many sent together none slips through.
    deps.throttle.count([registration])
  }
  const passwordHash = await deps.passwords.hash(judged.password)
  const { key, stored } = issueKey(deps)
  const joined = await store(deps, at, { email: judged.email, passwordHash, key: stored })
  if ('refused' in joined) {
    if (joined.refused === 'link_over') throw new AppError('link_over')
    const errors = { email: 'This address has an account already. Sign in with it.' }
    return doorForm(deps, request, { ...shown, errors })
  }
  const proof = { accountId: joined.accountId, passwordHash }
  return welcome(deps, { request, address }, proof, joined.hasNewKey ? key : undefined)
}

interface Errors {
  email?: string | undefined
  password?: string | undefined
}

type Judged = { email: string; password: string } | { errors: Errors }

function judge(door: Door, link: OneTimeLinkRow | undefined, sent: Form): Judged {
  const isNamed = door === 'reset' || Boolean(link?.email)
  const email = isNamed ? (link?.email ?? '') : parseEmail(sent.text('email'))
  const password = sent.raw('password')
  const errors: Errors = {
    email: email === undefined ? 'Write an address like name@example.com.' : undefined,
    password: judgePassword(password),
  }
  if (email === undefined || errors.password) return { errors }
  return { email, password }
}

type NewcomersKey = ReturnType<typeof issueKey>['stored']

async function store(
  { writer, hasher, clock }: DashboardDeps,
  { door, token = '' }: At,
  newcomer: { email: string; passwordHash: string; key: NewcomersKey },
): Promise<Joined> {
  const now = clock()
  const tokenHash = hasher.hash('one-time-link', token)
  if (door === 'setup') return writer.call('setUpOwner', { ...newcomer, tokenHash, now })
  if (door === 'join') return writer.call('acceptInvite', { ...newcomer, tokenHash, now })
  if (door === 'reset') {
    const { passwordHash } = newcomer
    return writer.call('resetPassword', { tokenHash, passwordHash, now })
  }
  const accountId = await writer.call('createAccount', { ...newcomer, plan: 'free', now })
  return accountId === undefined ? { refused: 'email_taken' } : { accountId, hasNewKey: true }
}

/** The first page of a new account shows its key, in this very answer and never again. */
async function welcome(
  deps: DashboardDeps,
  from: { request: Request; address: string },
  proof: { accountId: AccountId; passwordHash: string },
  key: string | undefined,
): Promise<Response> {
  const { visitor, cookies } = await beginVisit(deps, from, proof)
  if (key === undefined) return goTo('/app/links', { cookies })
  return page(visitor, {
    ...{ title: 'Welcome', cookies },
    main: html`<div class="card">
      ${notice('good', html`<p>Your account is ready, and you are signed in.</p>`)}
      <p>Programs make links in your name with this API key, in the header <code>X-API-Key</code>.
        A lost key is replaced on the page <a href="/app/keys">Keys</a>.</p>
      ${shownOnce('API key', key)}
      <div class="row">
        ${linkButton('Make the first link', '/app/links', 'primary')}
        ${linkButton('How the API works', '/docs')}
      </div>
    </div>`,
  })
}

interface Shown extends At {
  link?: OneTimeLinkRow | undefined
  email?: string
  errors?: Errors
}

function doorForm(deps: DashboardDeps, request: Request, shown: Shown): Response {
  const { csrf, cookies } = strangersForm(deps, request)
  const { door, token, link, email = '', errors = {} } = shown
  const { title, lead, button: label } = TEXTS[door]
  const account = door === 'reset' && link?.accountId ? deps.accounts.find(link.accountId) : null
  const address = account?.email ?? link?.email
  const beginsAtPassword = Boolean(address) || (!errors.email && Boolean(errors.password))
  const fields = html`
    ${field({
      ...{ name: 'email', label: 'E-mail address', type: 'email', autocomplete: 'username' },
      ...{ value: address ?? email, error: errors.email, required: true },
      extra: { readonly: Boolean(address), autofocus: !beginsAtPassword },
    })}
    ${field({
      ...{ name: 'password', label: 'Password', type: 'password', required: true },
      hint: html`At least ${PASSWORD_MIN_LENGTH} characters.
        A few words that only you put together are best.`,
      ...{ error: errors.password, autocomplete: 'new-password' },
      extra: { minlength: PASSWORD_MIN_LENGTH, autofocus: beginsAtPassword },
    })}
    ${button(label)}`
  const action = token === undefined ? `/app/${door}` : `/app/${door}/${token}`
  return doorPage({
    ...{ title, cookies, status: errors.email || errors.password ? 422 : 200 },
    main: html`<p>${lead}</p>
      ${form({ action, csrf, children: fields })}
      <p class="hint after">Have an account? <a href="/app/sign-in">Sign in</a></p>`,
  })
}
