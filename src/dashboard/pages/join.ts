import { Elysia } from 'elysia'
import { PASSWORD_MIN_LENGTH } from '../../accounts/credentials.ts'
import { issueKey } from '../../accounts/keys.ts'
import {
  findOneTimeLink,
  type OneTimeLinkRow,
  type Purpose,
} from '../../accounts/one-time-links.ts'
import type { Requester } from '../../accounts/passwords.ts'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import { AppError } from '../../errors.ts'
import { networkOf } from '../../hot/client-address.ts'
import { html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { anonymously, readStrangersForm, type Visitor } from '../auth/guard.ts'
import {
  type At,
  countRegistration,
  type Door,
  type Errors,
  findAddress,
  judgeJoin,
  PASSWORD_NEEDED,
  proveExisting,
  recordJoin,
  storeJoin,
} from '../auth/join-account.ts'
import { originOf, type RequestContext } from '../auth/origin.ts'
import { askForCode } from '../auth/second-step.ts'
import { beginVisit, strangersForm } from '../auth/session.ts'
import type { DashboardDeps } from '../deps.ts'
import { button, card, field, form, linkButton, notice, shownOnce } from '../ui/components.ts'
import { doorPage, page } from '../ui/layout.ts'

/** The pages that make an account, or give one a new password. */

const TEXTS: Readonly<Record<Door, { title: string; lead: string; button: string }>> = {
  setup: {
    title: 'Set up Hopcode',
    lead:
      'Create the owner account. The owner runs this service and can invite people. An address ' +
      'that has an account already needs its password, and its API keys end.',
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
  const pages = new Elysia({ name: 'dashboard.join', prefix: '/app' }).use(anonymously(deps))
  for (const door of ['setup', 'join', 'reset'] as const) {
    pages
      .get(`/${door}/:token`, ({ request, params }) => {
        const link = requireLink(deps, door, params.token)
        return doorForm(deps, request, { door, token: params.token, link })
      })
      .post(`/${door}/:token`, ({ request, server, set, params }) =>
        enter(deps, { request, server, set }, { door, token: params.token }),
      )
  }
  return pages
    .get('/sign-up', ({ request }) => {
      requireOpen(deps)
      return doorForm(deps, request, { door: 'sign-up' })
    })
    .post('/sign-up', ({ request, server, set }) => {
      requireOpen(deps)
      return enter(deps, { request, server, set }, { door: 'sign-up' })
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

/** Judges what was sent, stores it, and signs the visitor in. */
async function enter(deps: DashboardDeps, context: RequestContext, at: At): Promise<Response> {
  const { request } = context
  const origin = originOf(deps, context)
  const link = at.door === 'sign-up' ? undefined : requireLink(deps, at.door, at.token ?? '')
  const sent = await readStrangersForm(deps, context)
  const current = sent.raw('current')
  const shown = { ...at, link, email: sent.text('email'), asksCurrent: current !== '' }
  const judged = judgeJoin(sent, findAddress(deps, at.door, link))
  if ('errors' in judged) return doorForm(deps, request, { ...shown, ...judged })

  if (at.door === 'sign-up') countRegistration(deps, origin)
  const by: Requester = link
    ? { queue: 'oneTimeLink', key: String(link.id) }
    : { queue: 'anonymous', key: networkOf(origin.address) }
  const proved =
    at.door === 'setup' && link
      ? await proveExisting(deps, { link, origin, email: judged.email, current })
      : { hash: null }
  if ('errors' in proved) return doorForm(deps, request, { ...shown, ...proved })
  const passwordHash = await deps.passwords.hash(judged.password, by)
  const { key, stored } = issueKey(deps)
  const newcomer = { email: judged.email, passwordHash, key: stored, provedHash: proved.hash }
  const joined = await storeJoin(deps, at, newcomer)
  if ('refused' in joined) {
    if (joined.refused === 'link_over') throw new AppError('link_over')
    const errors =
      joined.refused === 'password_needed'
        ? { current: PASSWORD_NEEDED }
        : { email: 'This address has an account already. Sign in with it.' }
    return doorForm(deps, request, { ...shown, errors })
  }
  const { accountId, hasNewKey: isNew } = joined
  recordJoin(deps, origin, { door: at.door, link, accountId, isNew })
  const account = deps.accounts.find(accountId)
  const next = at.door === 'setup' ? '/app/keys?done=owner' : '/app/links'
  // A link in place of the password does not stand for the second factor too.
  if (account && hasSecondFactor(account)) return askForCode(deps, account, next)
  const proof = { accountId, passwordHash }
  const { cookies, visitor } = await beginVisit(deps, { request, origin }, proof)
  if (isNew) return welcome(visitor, cookies, key, at.door)
  return goTo(next, { cookies })
}

/** The first page of a new account shows its key, in this very answer and never again. */
function welcome(visitor: Visitor, cookies: string[], key: string, door: Door): Response {
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
    </div>
    ${door === 'setup' && twoFactorCard}`,
  })
}

/** Offered to the owner, whose account is the key to all others. */
const twoFactorCard = card('Protect your account', [
  html`<p>You run this service: who gets into your account gets into all of it. With two-factor
    sign-in, a stolen password is not enough. You can also set it up later, under Account.</p>`,
  linkButton('Set up two-factor sign-in', '/app/account/two-factor'),
])

interface Shown extends At {
  link?: OneTimeLinkRow | undefined
  email?: string
  /** The form has a field for the password that the account has now. */
  asksCurrent?: boolean
  errors?: Errors
}

function doorForm(deps: DashboardDeps, request: Request, shown: Shown): Response {
  const { csrf, cookies } = strangersForm(deps, request)
  const { door, token, link, email = '', errors = {} } = shown
  const { title, lead, button: label } = TEXTS[door]
  const address = findAddress(deps, door, link)
  const beginsAtPassword = Boolean(address) || (!errors.email && Boolean(errors.password))
  const asksCurrent = shown.asksCurrent || errors.current !== undefined
  const isRefused = Boolean(errors.email || errors.password || errors.current)
  const fields = html`
    ${field({
      ...{ name: 'email', label: 'E-mail address', type: 'email', autocomplete: 'username' },
      ...{ value: address ?? email, error: errors.email, required: true },
      extra: { readonly: Boolean(address), autofocus: !beginsAtPassword && !errors.current },
    })}
    ${
      asksCurrent &&
      field({
        name: 'current',
        label: 'Current password of this account',
        type: 'password',
        required: true,
        hint: html`Its sessions, its API keys and its pending links then end.`,
        error: errors.current,
        autocomplete: 'current-password',
        extra: { autofocus: Boolean(errors.current) },
      })
    }
    ${field({
      ...{ name: 'password', type: 'password', required: true },
      label: asksCurrent ? 'New password' : 'Password',
      hint: html`At least ${PASSWORD_MIN_LENGTH} characters.
        A few words that only you put together are best.`,
      ...{ error: errors.password, autocomplete: 'new-password' },
      extra: { minlength: PASSWORD_MIN_LENGTH, autofocus: beginsAtPassword },
    })}
    ${button(label)}`
  const action = token === undefined ? `/app/${door}` : `/app/${door}/${token}`
  return doorPage({
    ...{ title, cookies, status: isRefused ? 422 : 200 },
    main: html`<p>${lead}</p>
      ${form({ action, csrf, children: fields })}
      <p class="hint after">Have an account? <a href="/app/sign-in">Sign in</a></p>`,
  })
}
