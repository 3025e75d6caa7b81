import { Elysia } from 'elysia'
import { issueKey, KEY_OVERLAP_MS } from '../../accounts/keys.ts'
import type { SecurityEvent } from '../../accounts/security-log.ts'
import type { KeyRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { goTo } from '../answers.ts'
import { askForPassword } from '../auth/confirm-password.ts'
import { signedIn, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'

/** Keys that work at once: a page for a person, not for a program that makes them in a loop. */
const KEYS_MAX = 10

/** The account's API keys. At most one of them does not end: the others were replaced by it. */
export const keyPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.keys', prefix: '/app/keys' })
    .use(signedIn(deps))
    .get('', ({ visitor, query }) => keysPage(deps, visitor, { done: query.done }))
    .post('/new', async ({ visitor, form }) => {
      const replaces = /^\d{1,15}$/.exec(form.text('replaces'))?.[0] ?? ''
      const label = replaces === '' ? 'Create a key' : 'Rotate the key'
      const asked = await ask(deps, visitor, form, { path: 'new', label, values: { replaces } })
      if (asked) return asked
      const made = await makeKey(deps, visitor, replaces)
      return keysPage(deps, visitor, made)
    })
    .get('/revoke', ({ visitor }) => {
      const key = listKeys(deps, visitor).find(isLasting)
      return key ? revokePage(visitor, key) : goTo('/app/keys')
    })
    .post('/revoke', async ({ visitor, form }) => {
      const key = keyOf(deps, visitor, form)
      const values = { key: String(key.id) }
      const label = 'Revoke it in 24 hours'
      const asked = await ask(deps, visitor, form, { path: 'revoke', label, values })
      if (asked) return asked
      // One that was replaced since ends by itself, and the one in its place is not meant.
      if (!isLasting(key)) return goTo('/app/keys?done=ending')
      const endsAt = deps.clock() + KEY_OVERLAP_MS
      await deps.writer.call('revokeKeys', { accountId: visitor.account.id, endsAt })
      record(deps, visitor, 'key.revoked', key.id)
      return goTo('/app/keys?done=revoked')
    })
    .get('/end', ({ visitor, query }) => {
      const keys = listKeys(deps, visitor)
      const key = keys.find(({ id }) => String(id) === query.key)
      return key ? endPage(visitor, key, keys.find(isLasting)) : goTo('/app/keys')
    })
    .post('/end', async ({ visitor, form }) => {
      const { id: keyId } = keyOf(deps, visitor, form)
      const values = { key: String(keyId) }
      const label = 'End the key now'
      const asked = await ask(deps, visitor, form, { path: 'end', label, values })
      if (asked) return asked
      const order = { accountId: visitor.account.id, keyId, now: deps.clock() }
      if (await deps.writer.call('expireKey', order)) record(deps, visitor, 'key.ended', keyId)
      return goTo('/app/keys?done=ended')
    })

/** Asks for the password before a key changes hands. */
const ask = (
  deps: DashboardDeps,
  visitor: Visitor,
  form: Form,
  action: { path: string; label: string; values: Readonly<Record<string, string>> },
): Promise<Response | undefined> => {
  const { label, values } = action
  const path = `/app/keys/${action.path}`
  return askForPassword(deps, visitor, form, { path, label, values, section: 'keys' })
}

const record = (
  { security }: DashboardDeps,
  { account, origin }: Visitor,
  event: SecurityEvent,
  keyId?: number,
): void => security.record(event, origin, { accountId: account.id, fields: { key_id: keyId } })

const listKeys = ({ accounts, clock }: DashboardDeps, { account }: Visitor): KeyRow[] =>
  accounts.listKeys(account.id, clock())

const isLasting = ({ endsAt }: KeyRow): boolean => endsAt === null

/** The visitor's own key that a form names. Throws `page_not_found` for any other. */
function keyOf(deps: DashboardDeps, visitor: Visitor, form: Form): KeyRow {
  const key = listKeys(deps, visitor).find(({ id }) => String(id) === form.text('key'))
  if (!key) throw new AppError('page_not_found')
  return key
}

interface Shown {
  /** The new key, in this one answer. */
  secret?: string
  problem?: string
  done?: string | undefined
}

/**
 * `replaces`: the id of the key that the visitor saw in force, empty for none, so that a form sent
 * twice makes one key and the first answer's key is not replaced unseen.
 */
async function makeKey(deps: DashboardDeps, visitor: Visitor, replaces: string): Promise<Shown> {
  if (listKeys(deps, visitor).length >= KEYS_MAX) {
    return { problem: `${KEYS_MAX} keys of this account still work. End old ones first.` }
  }
  const { key, stored } = issueKey(deps)
  const now = deps.clock()
  const isMade = await deps.writer.call('rotateKey', {
    ...{ accountId: visitor.account.id, next: stored, now, endsAt: now + KEY_OVERLAP_MS },
    replaces: replaces === '' ? undefined : Number(replaces),
  })
  if (isMade) record(deps, visitor, replaces === '' ? 'key.created' : 'key.rotated')
  return isMade
    ? { secret: key }
    : {
        problem:
          'Nothing was changed: the keys are no longer those that this page had shown. A form ' +
          'that is sent twice makes one key. Look at the list, and make a new key if you need one.',
      }
}

const DONE: Readonly<Record<string, string>> = {
  owner:
    'You are the owner of this service. The API keys and the sessions that this account had ' +
    'before have ended.',
  revoked: 'The key is revoked: it stops in 24 hours.',
  ending: 'The key stops as it was going to.',
  ended: 'The key has ended: from now on it is refused.',
}

function keysPage(deps: DashboardDeps, visitor: Visitor, shown: Shown): Response {
  const keys = listKeys(deps, visitor)
  const { secret, problem, done = '' } = shown
  const good = Object.hasOwn(DONE, done) ? DONE[done] : undefined
  const lasting = keys.find(isLasting)
  return page(visitor, {
    ...{ title: 'Keys', current: 'keys', status: problem ? 422 : 200 },
    main: html`
      ${good && parts.notice('good', html`<p>${good}</p>`)}
      ${problem && parts.notice('bad', html`<p>${problem}</p>`)}
      ${secret && newKey(secret, keys)}
      <p>Programs make and change links in your name with an API key, in the header
        <code>X-API-Key</code>. <a href="/docs">How the API works</a></p>
      ${keys.length > 0 && parts.card('API keys', keyTable(keys, deps.clock()))}
      ${lasting ? changeCards(visitor, lasting) : noKey(visitor, keys.length > 0)}`,
  })
}

function newKey(secret: string, keys: readonly KeyRow[]): Html {
  const old = keys.some((key) => !isLasting(key))
  return parts.card('Your new key', [
    parts.shownOnce('API key', secret),
    old &&
      html`<p>Put it where the old key stands now. Until the old one ends, both work.
        Has the old one leaked? Copy the new key, then choose <strong>End now</strong> below.</p>`,
  ])
}

const nameOf = ({ prefix, lastFour }: KeyRow): string => `${prefix ?? 'hop_'}…${lastFour}`

function keyTable(keys: readonly KeyRow[], now: number): Html {
  const rows = keys.map((key) => [
    html`<span class="code">${nameOf(key)}</span>`,
    parts.time(key.createdAt),
    key.lastUsedAt === null ? 'never' : parts.time(key.lastUsedAt),
    key.endsAt === null
      ? html`<strong>in force</strong>`
      : html`ends in ${parts.countdown(key.endsAt, now)}
        <span class="hint">(${parts.time(key.endsAt)})</span>`,
    html`<a class="button danger" href="${`/app/keys/end?key=${key.id}`}"
      aria-label="${`End the key ${nameOf(key)} now`}">End now…</a>`,
  ])
  const columns = [
    ...[{ label: 'Key' }, { label: 'Made' }, { label: 'Last used' }, { label: 'State' }],
    { label: 'End it', isHidden: true },
  ]
  return parts.table({ caption: 'The API keys that work', columns, rows })
}

function changeCards(visitor: Visitor, lasting: KeyRow): Html {
  return html`<div class="cards">
    ${parts.card('Rotate', [
      html`<p>Makes a new key. The key in force works 24 hours more, so that nothing stops while you
        put the new one in its place.</p>`,
      parts.buttonForm(visitor, {
        ...{ action: '/app/keys/new', label: 'Rotate the key', look: 'primary' },
        values: { replaces: lasting.id },
      }),
    ])}
    ${parts.card('Revoke', [
      html`<p>Ends the key in 24 hours, and makes no other. Your links go on.</p>`,
      parts.linkButton('Revoke the key…', '/app/keys/revoke', 'danger'),
    ])}
  </div>`
}

const noKey = (visitor: Visitor, isOneEnding: boolean): Html =>
  parts.emptyState(isOneEnding ? 'No key that lasts' : 'No API key', [
    isOneEnding
      ? html`<p>The key above ends soon, and no other takes its place. Programs need one; the
          dashboard does not.</p>`
      : html`<p>Programs need a key to make links in your name. The dashboard does not.</p>`,
    parts.buttonForm(visitor, {
      ...{ action: '/app/keys/new', label: 'Make a key', look: 'primary' },
      values: { replaces: '' },
    }),
  ])

function revokePage(visitor: Visitor, key: KeyRow): Response {
  return page(visitor, {
    ...{ title: 'Revoke the key', current: 'keys' },
    main: html`<div class="card">
      ${parts.notice(
        'note',
        html`<p><strong>In 24 hours the key <span class="code">${nameOf(key)}</span> stops.</strong>
          Every program that uses it is then refused with 401, and no other key takes its place.
          Your links and their QR codes go on.</p>`,
      )}
      <div class="row">
        ${parts.buttonForm(visitor, {
          ...{ action: '/app/keys/revoke', label: 'Revoke it in 24 hours', look: 'danger' },
          values: { key: key.id },
        })}
        ${parts.linkButton('Keep the key', '/app/keys')}
      </div>
      <p class="hint after">Has it leaked?
        <a href="${`/app/keys/end?key=${key.id}`}">End it at once</a> instead.</p>
    </div>`,
  })
}

function endPage(visitor: Visitor, key: KeyRow, lasting: KeyRow | undefined): Response {
  const after = isLasting(key)
    ? 'No other key takes its place: to go on with a new one, rotate it first.'
    : lasting && `The key ${nameOf(lasting)} goes on.`
  return page(visitor, {
    ...{ title: 'End a key now', current: 'keys' },
    main: html`<div class="card">
      ${parts.notice(
        'bad',
        html`<p><strong>At this moment the key <span class="code">${nameOf(key)}</span>
          stops.</strong> Every program that still uses it is refused with 401. There is no way
          back. ${after}</p>`,
      )}
      <div class="row">
        ${parts.buttonForm(visitor, {
          ...{ action: '/app/keys/end', label: 'End the key now', look: 'danger' },
          values: { key: key.id },
        })}
        ${parts.linkButton('Keep the key', '/app/keys')}
      </div>
    </div>`,
  })
}
