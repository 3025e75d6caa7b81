import { Elysia } from 'elysia'
import {
  findKeyByName,
  hasNoExpiry,
  issueKey,
  KEY_OVERLAP_MS,
  KEYS_MAX,
  type KeyLabel,
  keyName,
  parseKeyName,
} from '../../accounts/keys.ts'
import type { SecurityEvent } from '../../accounts/security-log.ts'
import type { KeyRow, KeyScope } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { type PasswordAction, withPassword } from '../auth/confirm-password.ts'
import { type CurrentUser, signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { confirmPage } from '../ui/confirm.ts'
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
    .post('/revoke', ({ user, form }) => {
      const key = requireKey(deps, user, form)
      return withPassword(deps, user, form, actionOn(key, 'revoke'), async () => {
        const now = deps.clock()
        const command = { ...commandOn(user, key, now), endsAt: now + KEY_OVERLAP_MS }
        // A key that was replaced since the page was shown expires already.
        if (!(await deps.writer.call('revokeKey', command))) return seeOther(`${PATH}?done=ending`)
        log(deps, user, 'key.revoked', key.id)
        return seeOther(`${PATH}?done=revoked`)
      })
    })
    .get('/end', ({ user, query }) => {
      const key = findKey(deps, user, query.key)
      return key ? endPage(user, key) : seeOther(PATH)
    })
    .post('/end', ({ user, form }) => {
      const key = requireKey(deps, user, form)
      return withPassword(deps, user, form, actionOn(key, 'end'), async () => {
        const isEnded = await deps.writer.call('expireKey', commandOn(user, key, deps.clock()))
        if (isEnded) log(deps, user, 'key.ended', key.id)
        return seeOther(`${PATH}?done=ended`)
      })
    })

const LABELS = {
  rotate: 'Rotate the key',
  revoke: 'Revoke it in 24 hours',
  end: 'Revoke the key now',
} as const

/** The form that does something with a key. */
const actionOn = ({ id }: KeyRow, name: keyof typeof LABELS): PasswordAction => ({
  path: `${PATH}/${name}`,
  label: LABELS[name],
  values: { key: String(id) },
})

const commandOn = ({ account }: CurrentUser, { id: keyId }: KeyRow, now: number) => ({
  accountId: account.id,
  keyId,
  now,
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
  const label = { name, scope }
  const action = { path: `${PATH}/new`, label: 'Create the key', values: label } as const
  return withPassword(deps, user, form, action, async () => {
    const { key: secret, stored } = issueKey(deps, label)
    const command = { accountId: user.account.id, key: stored, now: deps.clock() }
    const result = await deps.writer.call('createKey', command)
    if ('refused' in result) {
      const problem = PROBLEMS[result.refused]
      return result.refused === 'name_taken' ? refuse(problem) : keysPage(deps, user, { problem })
    }
    log(deps, user, 'key.created', result.keyId)
    return keysPage(deps, user, { created: { secret, ...label } })
  })
}

/** A form that was tampered with creates a key that can do less, not more. */
const scopeOf = (text: string): KeyScope => (text === 'write' ? 'write' : 'read')

/** The form sent twice creates one key: the old key can be replaced only once. */
function rotateKey(deps: DashboardDeps, user: CurrentUser, form: Form): Promise<Response> {
  const old = requireKey(deps, user, form)
  return withPassword(deps, user, form, actionOn(old, 'rotate'), async () => {
    const { key: secret, stored } = issueKey(deps, old)
    const now = deps.clock()
    const result = await deps.writer.call('rotateKey', {
      ...commandOn(user, old, now),
      next: stored,
      endsAt: now + KEY_OVERLAP_MS,
    })
    if ('refused' in result) return keysPage(deps, user, { problem: PROBLEMS[result.refused] })
    log(deps, user, 'key.rotated', result.keyId)
    const { name, scope } = old
    return keysPage(deps, user, { created: { secret, name, scope, isReplacement: true } })
  })
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
    messages: DONE,
    done,
    error: problem,
    isRefused: nameError !== undefined,
    main: html`
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
    parts.form(user, `${PATH}/new`, [
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
    ]),
  )

const maskedKey = ({ prefix, lastFour }: KeyRow): string => `${prefix ?? 'hop_'}…${lastFour}`

const SCOPES: Readonly<Record<KeyScope, string>> = { write: 'read and write', read: 'read only' }

const keyCard = (user: CurrentUser, keys: readonly KeyRow[], now: number): Html =>
  parts.card('API keys', [keyTable(user, keys, now), WHAT_CHANGES])

const keyTable = (user: CurrentUser, keys: readonly KeyRow[], now: number): Html =>
  parts.table('The API keys that work', keys, {
    Key: (key) =>
      html`<strong>${keyName(key)}</strong><br><span class="code">${maskedKey(key)}</span>`,
    Access: ({ scope }) => SCOPES[scope],
    Created: ({ createdAt }) => parts.time(createdAt),
    'Last used': ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : parts.time(lastUsedAt)),
    State: ({ endsAt }) =>
      endsAt === null
        ? html`<strong>active</strong>`
        : html`expires in ${parts.countdown(endsAt, now)}
          <span class="hint">(${parts.time(endsAt)})</span>`,
    'Change it': {
      cell: (key) => (hasNoExpiry(key) ? renewableActions(user, key) : endLink(key)),
      isHidden: true,
    },
  })

const WHAT_CHANGES = html`<p class="hint">Rotate creates a new key with the same name. The old key
  works for 24 more hours, so that you can replace it without an interruption. Revoke lets a key
  expire in 24 hours, or immediately.</p>`

const renewableActions = (user: CurrentUser, key: KeyRow): Html => html`<div class="row">
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

/** The key in a warning. */
const named = (key: KeyRow): Html =>
  html`The key ${keyName(key)} <span class="code">(${maskedKey(key)})</span>`

const revokePage = (user: CurrentUser, key: KeyRow): Response =>
  confirmPage(user, {
    title: 'Revoke the key',
    ...confirmationOf(key, 'revoke'),
    kind: 'note',
    warning: html`<strong>${named(key)} expires in 24 hours.</strong> Requests with it then get 401,
      and no other key replaces it. Your links and their QR codes keep working.`,
    after: html`<p class="hint after">Has it leaked?
      <a href="${`${PATH}/end?key=${key.id}`}">Revoke it immediately</a> instead.</p>`,
  })

const endPage = (user: CurrentUser, key: KeyRow): Response =>
  confirmPage(user, {
    title: 'Revoke the key now',
    ...confirmationOf(key, 'end'),
    warning: html`<strong>${named(key)} stops working immediately.</strong> Requests with it get
      401. This cannot be undone.
      ${hasNoExpiry(key) && 'To continue with a new key, rotate it first.'}`,
  })

const confirmationOf = (key: KeyRow, name: 'revoke' | 'end') => {
  const { path, label, values } = actionOn(key, name)
  const cancel = { label: 'Keep the key', href: PATH }
  return { current: 'keys', action: path, label, values, cancel } as const
}
