import { Elysia } from 'elysia'
import {
  findKeyByName,
  hasNoExpiry,
  issueKey,
  KEY_OVERLAP_MS,
  type KeyLabel,
  keyName,
  parseKeyName,
} from '../../accounts/keys.ts'
import type { SecurityEvent } from '../../accounts/security-log.ts'
import type { KeyRow, KeyScope } from '../../accounts/store.ts'
import { KEYS_MAX } from '../../accounts/writes.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { askForPassword } from '../auth/confirm-password.ts'
import { type CurrentUser, signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { firstRequest } from '../ui/first-request.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'

const PATH = '/app/keys'

/** The account's API keys. */
export const keyPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.keys', prefix: PATH })
    .use(signedIn(deps))
    .get('', ({ user, query }) => keysPage(deps, user, { done: query.done }))
    .post('/new', ({ user, form }) => createKey(deps, user, form))
    .post('/rotate', ({ user, form }) => rotateKey(deps, user, form))
    .get('/revoke', ({ user, query }) => {
      const key = findKey(deps, user, query.key)
      return key && hasNoExpiry(key) ? revokePage(user, key) : seeOther(PATH)
    })
    .post('/revoke', async ({ user, form }) => {
      const { id: keyId } = requireKey(deps, user, form)
      const values = { key: String(keyId) }
      const action = { path: `${PATH}/revoke`, label: 'Revoke it in 24 hours', values } as const
      const asked = await askForPassword(deps, user, form, action)
      if (asked) return asked
      const now = deps.clock()
      const command = { accountId: user.account.id, keyId, endsAt: now + KEY_OVERLAP_MS, now }
      // A key that was replaced since the page was shown expires already.
      if (!(await deps.writer.call('revokeKey', command))) return seeOther(`${PATH}?done=ending`)
      log(deps, user, 'key.revoked', keyId)
      return seeOther(`${PATH}?done=revoked`)
    })
    .get('/end', ({ user, query }) => {
      const key = findKey(deps, user, query.key)
      return key ? endPage(user, key) : seeOther(PATH)
    })
    .post('/end', async ({ user, form }) => {
      const { id: keyId } = requireKey(deps, user, form)
      const values = { key: String(keyId) }
      const action = { path: `${PATH}/end`, label: 'Revoke the key now', values } as const
      const asked = await askForPassword(deps, user, form, action)
      if (asked) return asked
      const command = { accountId: user.account.id, keyId, now: deps.clock() }
      if (await deps.writer.call('expireKey', command)) log(deps, user, 'key.ended', keyId)
      return seeOther(`${PATH}?done=ended`)
    })

/** Without the name of the key, which may be an e-mail address. */
const log = (
  { security }: DashboardDeps,
  { account, origin }: CurrentUser,
  event: SecurityEvent,
  keyId: number,
): void => security.record(event, origin, { accountId: account.id, fields: { key_id: keyId } })

const listKeys = ({ accounts, clock }: DashboardDeps, { account }: CurrentUser): KeyRow[] =>
  accounts.listKeys(account.id, clock())

const findKey = (deps: DashboardDeps, user: CurrentUser, id = ''): KeyRow | undefined =>
  listKeys(deps, user).find((key) => String(key.id) === id)

/** The account's own key that a form names. Throws `page_not_found` for any other. */
function requireKey(deps: DashboardDeps, user: CurrentUser, form: Form): KeyRow {
  const key = findKey(deps, user, form.text('key'))
  if (!key) throw new AppError('page_not_found')
  return key
}

/** The form sent twice creates one key, because the name is then taken. */
async function createKey(deps: DashboardDeps, user: CurrentUser, form: Form): Promise<Response> {
  const draft = { name: form.text('name'), scope: form.text('scope') }
  const name = parseKeyName(draft.name)
  const refuse = (nameError: string) => keysPage(deps, user, { draft, nameError })
  if (name === undefined) return refuse('Enter a name of 1 to 60 characters.')
  if (findKeyByName(listKeys(deps, user), name)) return refuse(PROBLEMS.name_taken)
  const scope = scopeOf(draft.scope)
  const values = { name, scope }
  const action = { path: `${PATH}/new`, label: 'Create the key', values } as const
  const asked = await askForPassword(deps, user, form, action)
  if (asked) return asked
  const { key: secret, stored } = issueKey(deps, values)
  const command = { accountId: user.account.id, key: stored, now: deps.clock() }
  const result = await deps.writer.call('createKey', command)
  if ('refused' in result) {
    const problem = PROBLEMS[result.refused]
    return result.refused === 'name_taken' ? refuse(problem) : keysPage(deps, user, { problem })
  }
  log(deps, user, 'key.created', result.keyId)
  return keysPage(deps, user, { created: { secret, ...values } })
}

/** A form that was tampered with creates a key that can do less, not more. */
const scopeOf = (text: string): KeyScope => (text === 'write' ? 'write' : 'read')

/** The form sent twice creates one key: the old key can be replaced only once. */
async function rotateKey(deps: DashboardDeps, user: CurrentUser, form: Form): Promise<Response> {
  const old = requireKey(deps, user, form)
  const values = { key: String(old.id) }
  const action = { path: `${PATH}/rotate`, label: 'Rotate the key', values } as const
  const asked = await askForPassword(deps, user, form, action)
  if (asked) return asked
  const { key: secret, stored } = issueKey(deps, old)
  const now = deps.clock()
  const result = await deps.writer.call('rotateKey', {
    accountId: user.account.id,
    keyId: old.id,
    next: stored,
    endsAt: now + KEY_OVERLAP_MS,
    now,
  })
  if ('refused' in result) return keysPage(deps, user, { problem: PROBLEMS[result.refused] })
  log(deps, user, 'key.rotated', result.keyId)
  const { name, scope } = old
  return keysPage(deps, user, { created: { secret, name, scope, isReplacement: true } })
}

const PROBLEMS = {
  name_taken: 'One of your keys has this name already. Choose another.',
  too_many: `An account can have ${KEYS_MAX} keys, and as many that expire. Revoke old ones first.`,
  gone:
    'Nothing was changed: this key was rotated or revoked since the page was shown. A form that ' +
    'is sent twice creates one key.',
}

interface KeysPageProps {
  /** The new key, only in this response. */
  created?: KeyLabel & { secret: string; isReplacement?: boolean }
  problem?: string
  draft?: { name: string; scope: string }
  nameError?: string
  done?: string | undefined
}

const DONE = {
  owner:
    'You are the owner of this service. The previous API keys of this account no longer work, ' +
    'and its sessions have ended.',
  revoked: 'The key is revoked: it expires in 24 hours.',
  ending: 'The key still expires as planned.',
  ended: 'The key is revoked and no longer works.',
}

function keysPage(deps: DashboardDeps, user: CurrentUser, props: KeysPageProps): Response {
  const { created, problem, nameError, done } = props
  const keys = listKeys(deps, user)
  return page(user, {
    title: 'Keys',
    current: 'keys',
    status: problem || nameError ? 422 : 200,
    main: html`
      ${parts.flash(DONE, done)}
      ${parts.errorNotice(problem)}
      ${created && newKeyCard(deps, created)}
      <p>Use an API key in the <code>X-API-Key</code> header to create and change links from your
        own code. All keys share the limits of your account.
        <a href="/docs">How the API works</a></p>
      ${keys.length > 0 && keyCard(user, keys, deps.clock())}
      ${!keys.some(hasNoExpiry) && noKey(keys.length > 0)}
      ${newKeyForm(user, props)}`,
  })
}

const newKeyCard = (
  { baseUrl }: DashboardDeps,
  { secret, scope, isReplacement, ...label }: NonNullable<KeysPageProps['created']>,
): Html =>
  parts.card(`Your new key “${keyName(label)}”`, [
    parts.secretOnce('API key', secret),
    isReplacement &&
      html`<p>Replace the old key with it. Both work until the old one expires. Has the old one
        leaked? Copy the new key, then choose <strong>Revoke now</strong> below.</p>`,
    firstRequest(baseUrl, secret, scope),
  ])

const newKeyForm = (user: CurrentUser, { draft, nameError }: KeysPageProps): Html =>
  parts.card(
    'Create a key',
    parts.form({
      action: `${PATH}/new`,
      csrf: user.csrf,
      children: [
        parts.field({
          name: 'name',
          label: 'Name',
          value: draft?.name,
          hint: 'The program that uses it, for example “Website”.',
          error: nameError,
          required: true,
          autocomplete: 'off',
          extra: { maxlength: 60, autofocus: Boolean(nameError) },
        }),
        parts.radios({
          name: 'scope',
          legend: 'Access',
          value: draft?.scope === 'read' ? 'read' : 'write',
          choices: [
            { value: 'write', label: 'Read and write: create, change and delete links' },
            { value: 'read', label: 'Read only: list links and their hits' },
          ],
        }),
        parts.button('Create the key'),
      ],
    }),
  )

const maskedKey = ({ prefix, lastFour }: KeyRow): string => `${prefix ?? 'hop_'}…${lastFour}`

const SCOPES: Readonly<Record<KeyScope, string>> = { write: 'read and write', read: 'read only' }

const keyCard = (user: CurrentUser, keys: readonly KeyRow[], now: number): Html =>
  parts.card('API keys', [keyTable(user, keys, now), WHAT_CHANGES])

function keyTable(user: CurrentUser, keys: readonly KeyRow[], now: number): Html {
  const rows = keys.map((key) => [
    html`<strong>${keyName(key)}</strong><br><span class="code">${maskedKey(key)}</span>`,
    SCOPES[key.scope],
    parts.time(key.createdAt),
    key.lastUsedAt === null ? 'never' : parts.time(key.lastUsedAt),
    key.endsAt === null
      ? html`<strong>active</strong>`
      : html`expires in ${parts.countdown(key.endsAt, now)}
        <span class="hint">(${parts.time(key.endsAt)})</span>`,
    hasNoExpiry(key) ? renewableActions(user, key) : endLink(key),
  ])
  const columns = [
    'Key',
    'Access',
    'Created',
    'Last used',
    'State',
    { label: 'Change it', isHidden: true },
  ]
  return parts.table({ caption: 'The API keys that work', columns, rows })
}

const WHAT_CHANGES = html`<p class="hint">Rotate creates a new key with the same name. The old key
  works for 24 more hours, so that you can replace it without an interruption. Revoke lets a key
  expire in 24 hours, or immediately.</p>`

const renewableActions = (user: CurrentUser, key: KeyRow): Html => html`<div class="actions">
  ${parts.buttonForm(user, `${PATH}/rotate`, 'Rotate', {
    values: { key: key.id },
    title: `Rotate the key ${describe(key)}`,
  })}
  <a class="button danger" href="${`${PATH}/revoke?key=${key.id}`}"
    aria-label="Revoke the key ${describe(key)}">Revoke…</a></div>`

const endLink = (key: KeyRow): Html => html`
  <a class="button danger" href="${`${PATH}/end?key=${key.id}`}"
    aria-label="Revoke the key ${describe(key)} now">Revoke now…</a>`

const describe = (key: KeyRow): string => `${keyName(key)}, ${maskedKey(key)}`

const noKey = (isOneExpiring: boolean): Html =>
  parts.emptyState(isOneExpiring ? 'No active key' : 'No API key', [
    isOneExpiring && html`<p>The keys above expire soon and are not replaced.</p>`,
    html`<p>You need a key to create links from your own code. The dashboard does not use it.</p>`,
  ])

const revokePage = (user: CurrentUser, key: KeyRow): Response =>
  page(user, {
    title: 'Revoke the key',
    current: 'keys',
    main: html`<div class="card">
      ${parts.notice(
        'note',
        html`<p><strong>The key ${keyName(key)} <span class="code">(${maskedKey(key)})</span>
          expires in 24 hours.</strong> Requests with it then get 401, and no other key replaces it.
          Your links and their QR codes keep working.</p>`,
      )}
      ${confirmRow(user, key, { path: 'revoke', label: 'Revoke it in 24 hours' })}
      <p class="hint after">Has it leaked?
        <a href="${`${PATH}/end?key=${key.id}`}">Revoke it immediately</a> instead.</p>
    </div>`,
  })

const endPage = (user: CurrentUser, key: KeyRow): Response =>
  page(user, {
    title: 'Revoke the key now',
    current: 'keys',
    main: html`<div class="card">
      ${parts.notice(
        'bad',
        html`<p><strong>The key ${keyName(key)} <span class="code">(${maskedKey(key)})</span> stops
          working immediately.</strong> Requests with it get 401. This cannot be undone.
          ${hasNoExpiry(key) && 'To continue with a new key, rotate it first.'}</p>`,
      )}
      ${confirmRow(user, key, { path: 'end', label: 'Revoke the key now' })}
    </div>`,
  })

const confirmRow = (
  user: CurrentUser,
  key: KeyRow,
  { path, label }: { path: string; label: string },
): Html => html`
  <div class="row">
    ${parts.buttonForm(user, `${PATH}/${path}`, label, { look: 'danger', values: { key: key.id } })}
    ${parts.linkButton('Keep the key', PATH)}
  </div>`
