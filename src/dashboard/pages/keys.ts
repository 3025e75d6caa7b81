import { Elysia } from 'elysia'
import { issueKey, KEY_OVERLAP_MS } from '../../accounts/keys.ts'
import type { SecurityEvent } from '../../accounts/security-log.ts'
import type { KeyRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { askForPassword } from '../auth/confirm-password.ts'
import { type CurrentUser, signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'

const PATH = '/app/keys'
/** Working keys of an account: this page is for people, not for programs that create keys. */
const KEYS_MAX = 10

/** The account's API keys. At most one of them has no end: it has replaced the others. */
export const keyPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.keys', prefix: PATH })
    .use(signedIn(deps))
    .get('', ({ user, query }) => keysPage(deps, user, { done: query.done }))
    .post('/new', async ({ user, form }) => {
      const replaces = /^\d{1,15}$/.exec(form.text('replaces'))?.[0] ?? ''
      const label = replaces === '' ? 'Create a key' : 'Rotate the key'
      const action = { path: `${PATH}/new`, label, values: { replaces } } as const
      const asked = await askForPassword(deps, user, form, action)
      return asked ?? keysPage(deps, user, await createKey(deps, user, replaces))
    })
    .get('/revoke', ({ user }) => {
      const key = listKeys(deps, user).find(isLasting)
      return key ? revokePage(user, key) : seeOther(PATH)
    })
    .post('/revoke', async ({ user, form }) => {
      const key = requireKey(deps, user, form)
      const values = { key: String(key.id) }
      const action = { path: `${PATH}/revoke`, label: 'Revoke it in 24 hours', values } as const
      const asked = await askForPassword(deps, user, form, action)
      if (asked) return asked
      // The key was replaced since the page was shown: it already has an end.
      if (!isLasting(key)) return seeOther(`${PATH}?done=ending`)
      const endsAt = deps.clock() + KEY_OVERLAP_MS
      await deps.writer.call('revokeKeys', { accountId: user.account.id, endsAt })
      log(deps, user, 'key.revoked', key.id)
      return seeOther(`${PATH}?done=revoked`)
    })
    .get('/end', ({ user, query }) => {
      const keys = listKeys(deps, user)
      const key = keys.find(({ id }) => String(id) === query.key)
      return key ? endPage(user, key, keys.find(isLasting)) : seeOther(PATH)
    })
    .post('/end', async ({ user, form }) => {
      const { id: keyId } = requireKey(deps, user, form)
      const values = { key: String(keyId) }
      const action = { path: `${PATH}/end`, label: 'End the key now', values } as const
      const asked = await askForPassword(deps, user, form, action)
      if (asked) return asked
      const command = { accountId: user.account.id, keyId, now: deps.clock() }
      if (await deps.writer.call('expireKey', command)) log(deps, user, 'key.ended', keyId)
      return seeOther(`${PATH}?done=ended`)
    })

const log = (
  { security }: DashboardDeps,
  { account, origin }: CurrentUser,
  event: SecurityEvent,
  keyId?: number,
): void => security.record(event, origin, { accountId: account.id, fields: { key_id: keyId } })

const listKeys = ({ accounts, clock }: DashboardDeps, { account }: CurrentUser): KeyRow[] =>
  accounts.listKeys(account.id, clock())

const isLasting = ({ endsAt }: KeyRow): boolean => endsAt === null

/** The account's own key that a form names. Throws `page_not_found` for any other. */
function requireKey(deps: DashboardDeps, user: CurrentUser, form: Form): KeyRow {
  const key = listKeys(deps, user).find(({ id }) => String(id) === form.text('key'))
  if (!key) throw new AppError('page_not_found')
  return key
}

interface KeysPageProps {
  /** The new key, only in this response. */
  secret?: string
  problem?: string
  done?: string | undefined
}

/**
 * `replaces`: the id of the active key that the page showed, empty for none. A form that is sent
 * twice therefore creates one key, and cannot replace the key of the first response.
 */
async function createKey(
  deps: DashboardDeps,
  user: CurrentUser,
  replaces: string,
): Promise<KeysPageProps> {
  if (listKeys(deps, user).length >= KEYS_MAX) {
    return { problem: `${KEYS_MAX} keys of this account still work. End old ones first.` }
  }
  const { key, stored } = issueKey(deps)
  const now = deps.clock()
  const isCreated = await deps.writer.call('rotateKey', {
    accountId: user.account.id,
    next: stored,
    now,
    endsAt: now + KEY_OVERLAP_MS,
    replaces: replaces === '' ? undefined : Number(replaces),
  })
  if (isCreated) {
    log(deps, user, replaces === '' ? 'key.created' : 'key.rotated')
    return { secret: key }
  }
  return {
    problem:
      'Nothing was changed: the keys have changed since this page was shown. A form that is sent ' +
      'twice creates one key. Check the list, and create a new key if you need one.',
  }
}

const DONE = {
  owner:
    'You are the owner of this service. The previous API keys and sessions of this account have ' +
    'ended.',
  revoked: 'The key is revoked: it expires in 24 hours.',
  ending: 'The key still expires as planned.',
  ended: 'The key has ended and no longer works.',
}

function keysPage(deps: DashboardDeps, user: CurrentUser, props: KeysPageProps): Response {
  const { secret, problem, done } = props
  const keys = listKeys(deps, user)
  const lasting = keys.find(isLasting)
  return page(user, {
    title: 'Keys',
    current: 'keys',
    status: problem ? 422 : 200,
    main: html`
      ${parts.flash(DONE, done)}
      ${parts.errorNotice(problem)}
      ${secret && newKeyCard(secret, keys)}
      <p>Use an API key in the <code>X-API-Key</code> header to create and change links from your
        own code. <a href="/docs">How the API works</a></p>
      ${keys.length > 0 && parts.card('API keys', keyTable(keys, deps.clock()))}
      ${lasting ? changeCards(user, lasting) : noKey(user, keys.length > 0)}`,
  })
}

const newKeyCard = (secret: string, keys: readonly KeyRow[]): Html =>
  parts.card('Your new key', [
    parts.secretOnce('API key', secret),
    !keys.every(isLasting) &&
      html`<p>Replace the old key with it. Both work until the old one expires. Has the old one
        leaked? Copy the new key, then choose <strong>End now</strong> below.</p>`,
  ])

const nameOf = ({ prefix, lastFour }: KeyRow): string => `${prefix ?? 'hop_'}…${lastFour}`

function keyTable(keys: readonly KeyRow[], now: number): Html {
  const rows = keys.map((key) => [
    html`<span class="code">${nameOf(key)}</span>`,
    parts.time(key.createdAt),
    key.lastUsedAt === null ? 'never' : parts.time(key.lastUsedAt),
    key.endsAt === null
      ? html`<strong>active</strong>`
      : html`expires in ${parts.countdown(key.endsAt, now)}
        <span class="hint">(${parts.time(key.endsAt)})</span>`,
    html`<a class="button danger" href="${`${PATH}/end?key=${key.id}`}"
      aria-label="End the key ${nameOf(key)} now">End now…</a>`,
  ])
  const columns = ['Key', 'Created', 'Last used', 'State', { label: 'End it', isHidden: true }]
  return parts.table({ caption: 'The API keys that work', columns, rows })
}

const changeCards = (user: CurrentUser, lasting: KeyRow): Html => html`
  <div class="cards">
    ${parts.card('Rotate', [
      html`<p>Creates a new key. The active key works for 24 more hours, so that you can replace it
        without an interruption.</p>`,
      parts.buttonForm(user, `${PATH}/new`, 'Rotate the key', {
        look: 'primary',
        values: { replaces: lasting.id },
      }),
    ])}
    ${parts.card('Revoke', [
      html`<p>The key expires in 24 hours and is not replaced. Your links keep working.</p>`,
      parts.linkButton('Revoke the key…', `${PATH}/revoke`, 'danger'),
    ])}
  </div>`

const noKey = (user: CurrentUser, isOneEnding: boolean): Html =>
  parts.emptyState(isOneEnding ? 'No active key' : 'No API key', [
    isOneEnding && html`<p>The key above expires soon and is not replaced.</p>`,
    html`<p>You need a key to create links from your own code. The dashboard does not use it.</p>`,
    parts.buttonForm(user, `${PATH}/new`, 'Create a key', {
      look: 'primary',
      values: { replaces: '' },
    }),
  ])

const revokePage = (user: CurrentUser, key: KeyRow): Response =>
  page(user, {
    title: 'Revoke the key',
    current: 'keys',
    main: html`<div class="card">
      ${parts.notice(
        'note',
        html`<p><strong>The key <span class="code">${nameOf(key)}</span> expires in 24
          hours.</strong> Requests with it then get 401, and no other key replaces it. Your links
          and their QR codes keep working.</p>`,
      )}
      ${confirmRow(user, key, { path: 'revoke', label: 'Revoke it in 24 hours' })}
      <p class="hint after">Has it leaked?
        <a href="${`${PATH}/end?key=${key.id}`}">End it immediately</a> instead.</p>
    </div>`,
  })

function endPage(user: CurrentUser, key: KeyRow, lasting: KeyRow | undefined): Response {
  const after = isLasting(key)
    ? 'No other key replaces it. To continue with a new one, rotate it first.'
    : lasting && `The key ${nameOf(lasting)} keeps working.`
  return page(user, {
    title: 'End a key now',
    current: 'keys',
    main: html`<div class="card">
      ${parts.notice(
        'bad',
        html`<p><strong>The key <span class="code">${nameOf(key)}</span> stops working
          immediately.</strong> Requests with it get 401. This cannot be undone. ${after}</p>`,
      )}
      ${confirmRow(user, key, { path: 'end', label: 'End the key now' })}
    </div>`,
  })
}

const confirmRow = (
  user: CurrentUser,
  key: KeyRow,
  { path, label }: { path: string; label: string },
): Html => html`
  <div class="row">
    ${parts.buttonForm(user, `${PATH}/${path}`, label, { look: 'danger', values: { key: key.id } })}
    ${parts.linkButton('Keep the key', PATH)}
  </div>`
