import {
  BAD_KEY_REQUESTS,
  BAD_ORIGINS,
  hasNoExpiry,
  KEY_REQUESTS_DEFAULT,
  KEY_SCOPES,
  keyName,
  ORIGINS_LENGTH_MAX,
  parseKeyRequests,
  parseOrigins,
} from '../../accounts/keys.ts'
import { parseKeyName } from '../../accounts/names.ts'
import * as operations from '../../accounts/operations/keys.ts'
import { planName } from '../../accounts/plans.ts'
import type { KeyLabel, KeyRow, KeyScope } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import type { Usage } from '../../limits/budgets.ts'
import { type PasswordAction, withPassword } from '../auth/confirm-password.ts'
import { asked, type CurrentUser, type PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { admin, signedInPages } from '../page-routes.ts'
import { failAt, htmlResponse, type Result, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { type Form, typed } from '../ui/form.ts'
import { liveRegion } from '../ui/hit-chart.ts'
import { confirmPage, page, wantsFragment } from '../ui/layout.ts'
import { day } from '../ui/local-time.ts'

const PATH = '/app/keys'

/** The account's API keys. */
export const keyPages = signedInPages({
  'GET /app/keys': {
    role: 'admin',
    offers: [
      { label: 'Keys', place: 'navigation', words: 'api limits' },
      { label: 'API keys', section: 'account' },
    ],
    run: (context) =>
      wantsFragment(context.request) ? htmlResponse(limits(context)) : keysPage(context),
  },
  'POST /app/keys/new': admin(createKey, keysPage),
  'POST /app/keys/rotate': admin(rotateKey, keysPage),
  'GET /app/keys/revoke': admin((context) => {
    const key = findKey(context, context.query.key)
    return key && hasNoExpiry(key) ? revokePage(context, key) : PATH
  }),
  'POST /app/keys/revoke': admin((context) => {
    const key = requireKey(context)
    return withPassword(context, REVOKE, async () => {
      // A key that was replaced since the page was shown expires already.
      const endsAt = await operations.revokeKey(asked(context), { keyId: key.id })
      return `${PATH}?done=${endsAt === undefined ? 'ending' : 'revoked'}`
    })
  }),
  'GET /app/keys/end': admin((context) => {
    const key = findKey(context, context.query.key)
    return key ? endPage(context, key) : PATH
  }),
  'POST /app/keys/end': admin((context) => {
    const key = requireKey(context)
    return withPassword(context, END, async () => {
      await operations.endKey(asked(context), key.id)
      return `${PATH}?done=ended`
    })
  }),
})

const CREATE = { label: 'Create the key', fields: ['name', 'scope', 'per_minute', 'origins'] }
const ROTATE = { label: 'Rotate the key', fields: ['key'] }
const REVOKE = { label: 'Revoke it in 24 hours', fields: ['key'] }
const END = { label: 'Revoke the key now', fields: ['key'] }

const listKeys = ({ deps, user }: PageContext): KeyRow[] =>
  deps.data.accounts.listKeys(user.account.id, deps.clock())

const findKey = (context: PageContext, id = ''): KeyRow | undefined =>
  listKeys(context).find((key) => String(key.id) === id)

/** The account's own key that a form names. Throws `page_not_found` for any other. */
function requireKey(context: PageContext): KeyRow {
  const key = findKey(context, context.form.text('key'))
  if (!key) throw new AppError('page_not_found')
  return key
}

/** The form sent twice creates one key, because the name is then taken. */
async function createKey(context: PageContext): Promise<Result> {
  const label = labelIn(context.form)
  return withPassword(context, CREATE, async () => {
    const created = operations.createKey(asked(context), label)
    const secret = await created.catch(failAt({ key_name_taken: 'name' }))
    return keysPage(context, { secret, ...label })
  })
}

function labelIn(form: Form): KeyLabel {
  const name = parseKeyName(form.text('name'))
  if (name === undefined) throw refuseAt('name', 'Enter a name of 1 to 60 characters.')
  // A form that was tampered with creates a key that can do less, not more.
  const scope = KEY_SCOPES.find((one) => one === form.text('scope')) ?? 'read'
  if (scope !== 'create') return { name, scope }
  const perMinute = parseKeyRequests(form.text('per_minute') || String(KEY_REQUESTS_DEFAULT))
  if (perMinute === undefined) throw refuseAt('per_minute', `It ${BAD_KEY_REQUESTS}.`)
  const origins = parseOrigins(form.text('origins'))
  if (!origins) throw refuseAt('origins', `They ${BAD_ORIGINS}.`)
  return { name, scope, perMinute, origins: origins.length > 0 ? origins : null }
}

/** The form sent twice creates one key: the old key can be replaced only once. */
function rotateKey(context: PageContext): Promise<Result> {
  const old = requireKey(context)
  return withPassword(context, ROTATE, async () => {
    const { key: secret } = await operations.rotateKey(asked(context), { keyId: old.id })
    const { name, scope } = old
    return keysPage(context, { secret, name, scope, isReplacement: true })
  })
}

const DONE = {
  owner:
    'You are the owner of this service. The previous API keys of this account no longer work, ' +
    'and its sessions have ended.',
  revoked: 'The key is revoked: it expires in 24 hours.',
  ending: 'The key still expires as planned.',
  ended: 'The key is revoked and no longer works.',
}

/** The new key, only in the response that shows it. */
type NewKey = KeyLabel & { secret: string; isReplacement?: boolean }

function keysPage(context: PageContext, created?: NewKey): Response {
  const { deps, user } = context
  const keys = listKeys(context)
  return page(context, {
    title: 'API keys',
    at: PATH,
    messages: DONE,
    main: html`
      ${created && newKeyCard(deps, created)}
      <p>Use an API key in the <code>X-API-Key</code> header to create and change links from your
        own code. All keys share the limits of your account.
        <a href="/docs">How the API works</a></p>
      ${keys.length > 0 && parts.card('Keys', [keyTable(user, keys, deps.clock()), WHAT_CHANGES])}
      ${!keys.some(hasNoExpiry) && noKey(keys.length > 0)}
      ${newKeyForm(context)}
      ${limitsCard(context)}`,
  })
}

const limitsCard = (context: PageContext): Html =>
  parts.card('Limits', [
    html`<p>Requests of your API keys and this dashboard in the last 60 seconds, and what the
      ${planName(context.user.account.plan)} plan allows. Redirects of your links do not
      count.</p>`,
    html`<div class="columns small" ${liveRegion('limits', PATH)}>${limits(context)}</div>`,
  ])

/** The limits of the plan, and their usage in the last minute. */
function limits({ deps, user: { account } }: PageContext): Html {
  const { read, write } = deps.limiter.usage(account)
  const { bulkMax } = deps.plans[account.plan]
  return html`
    ${meter('Changes', 'write', write)}
    ${meter('Reads', 'read', read)}
    <p><strong>URLs in one bulk</strong><br>${parts.count(bulkMax)} at most</p>`
}

function meter(label: string, name: string, { limit, used }: Usage): Html {
  const id = `meter-${name}`
  if (limit === 0) return html`<p><strong>${label}</strong><br>no limit</p>`
  const all = { id, min: 0, max: limit, value: used, high: Math.ceil(limit * 0.9) }
  const text = `${parts.count(used)} of ${parts.count(limit)} used`
  return html`
    <div class="field">
      <label for="${id}">${label}</label>
      <meter ${attributes(all)}>${text}</meter>
      <p class="hint">${text}${
        used >= limit && html`. <strong>The next request is refused</strong>`
      }</p>
    </div>`
}

const newKeyCard = (
  { baseUrl }: DashboardDeps,
  { secret, scope, isReplacement, ...label }: NewKey,
): Html =>
  parts.card(`Your new key “${keyName(label)}”`, [
    parts.secretOnce('API key', secret),
    isReplacement &&
      html`<p>Replace the old key with it. Both work until the old one expires. Has the old one
        leaked? Copy the new key, then revoke the old one below.</p>`,
    parts.firstRequest(baseUrl, secret, scope),
  ])

function newKeyForm(context: PageContext): Html {
  const name = typed(context, 'name')
  return parts.card(
    'Create a key',
    parts.form(context.user, `${PATH}/new`, [
      parts.field({
        ...name,
        label: 'Name',
        hint: 'The program that uses it, for example “Website”.',
        required: true,
        extra: { maxlength: 60, autofocus: name.error !== undefined },
      }),
      parts.radios({
        name: 'scope',
        label: 'Access',
        value: typed(context, 'scope', 'write').value,
        choices: KEY_SCOPES.map((value) => ({ value, label: CHOICES[value] })),
      }),
      parts.field({
        ...typed(context, 'per_minute', String(KEY_REQUESTS_DEFAULT)),
        label: 'Requests a minute',
        hint: 'Only of a key that creates. They count towards the limits of the account, too.',
        extra: { inputmode: 'numeric', maxlength: 4 },
      }),
      parts.field({
        ...typed(context, 'origins'),
        label: 'Sites whose pages may use the key',
        hint: `Only of a key that creates, for example “https://shop.example”. Separate several
          by commas. Browsers refuse it to the pages of all other sites.`,
        extra: { spellcheck: 'false', maxlength: ORIGINS_LENGTH_MAX },
      }),
      parts.button('Create the key'),
    ]),
  )
}

const maskedKey = ({ prefix, lastFour }: KeyRow): string => `${prefix ?? 'hop_'}…${lastFour}`

const SCOPES: Readonly<Record<KeyScope, string>> = {
  write: 'read and write',
  read: 'read only',
  create: 'create only',
  manage: 'manage',
}

const CHOICES: Readonly<Record<KeyScope, string>> = {
  write:
    'Read and write: list, create and change links. A new destination or a deletion needs the ' +
    'passcode of the link',
  read: 'Read only: list links and their hits',
  create:
    'Create only: shorten URLs and reserve codes. For the source of a web page: everybody who ' +
    'sees it can do this, and nothing else',
  manage:
    'Manage: read and write, and also change the destination of any link and delete any link, ' +
    'without passcodes',
}

const accessOf = ({ scope, perMinute, origins }: KeyRow): string =>
  [
    SCOPES[scope],
    ...(perMinute === null ? [] : [`${parts.plural(perMinute, 'request')} a minute`]),
    ...(origins ?? []),
  ].join(', ')

const keyTable = (user: CurrentUser, keys: readonly KeyRow[], now: number): Html =>
  parts.table('The API keys that work', keys, {
    Key: (key) =>
      html`<strong>${keyName(key)}</strong><br><span class="hint">${maskedKey(key)}<br>
        ${accessOf(key)}</span>`,
    Created: ({ createdAt, createdBy }) =>
      html`${day(createdAt, user)}${
        createdBy && html`<br><span class="hint long">${createdBy}</span>`
      }`,
    'Last used': ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : day(lastUsedAt, user)),
    State: ({ endsAt }) =>
      endsAt === null
        ? html`<strong>active</strong>`
        : html`expires in ${parts.countdown(endsAt, now)}
          <span class="hint">(${parts.time(endsAt)})</span>`,
    'Change it': {
      cell: (key) => actionsOf(user, key),
      isHidden: true,
    },
  })

const WHAT_CHANGES = html`<p class="hint">Rotate creates a new key with the same name. The old key
  works for 24 more hours, so that you can replace it without an interruption. Revoke lets a key
  expire in 24 hours, or immediately.</p>`

function actionsOf(user: CurrentUser, key: KeyRow): Html {
  const described = `${keyName(key)}, ${maskedKey(key)}`
  if (!hasNoExpiry(key)) {
    return html`<a class="button danger" href="${`${PATH}/end?key=${key.id}`}"
      aria-label="Revoke the key ${described} now">Revoke now…</a>`
  }
  return html`<div class="row">
    ${parts.buttonForm(user, `${PATH}/rotate`, 'Rotate', {
      values: { key: key.id },
      title: `Rotate the key ${described}`,
    })}
    <a class="button danger" href="${`${PATH}/revoke?key=${key.id}`}"
      aria-label="Revoke the key ${described}">Revoke…</a></div>`
}

const noKey = (isOneExpiring: boolean): Html =>
  parts.emptyState(isOneExpiring ? 'No active key' : 'No API key', [
    isOneExpiring && html`<p>The keys above expire soon and are not replaced.</p>`,
    html`<p>You need a key to create links from your own code. The dashboard does not use it.</p>`,
  ])

const named = (key: KeyRow): Html => html`The key ${keyName(key)} (${maskedKey(key)})`

const revokePage = (context: PageContext, key: KeyRow): Response =>
  confirmPage(context, {
    title: 'Revoke the key',
    ...confirmationOf(key, REVOKE),
    kind: 'note',
    warning: html`<strong>${named(key)} expires in 24 hours.</strong> Requests with it then get 401,
      and no other key replaces it. Your links and their QR codes keep working.`,
    after: html`<p class="hint after">Has it leaked?
      <a href="${`${PATH}/end?key=${key.id}`}">Revoke it immediately</a> instead.</p>`,
  })

const endPage = (context: PageContext, key: KeyRow): Response =>
  confirmPage(context, {
    title: 'Revoke the key now',
    ...confirmationOf(key, END),
    warning: html`<strong>${named(key)} stops working immediately.</strong> Requests with it get
      401. This cannot be undone.
      ${hasNoExpiry(key) && 'To continue with a new key, rotate it first.'}`,
  })

const confirmationOf = ({ id }: KeyRow, { label }: PasswordAction) => ({
  at: PATH,
  label,
  values: { key: id },
  cancel: { label: 'Keep the key', href: PATH },
})
