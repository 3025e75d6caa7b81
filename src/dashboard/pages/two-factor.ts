import { Elysia } from 'elysia'
import {
  describeSecret,
  findFactor,
  findStep,
  hasSecondFactor,
  newRecoveryCodes,
  newTotpSecret,
  openSecret,
  RECOVERY_CODES,
  sealSecret,
  showRecoveryCode,
} from '../../accounts/second-factor.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { parseQrOptions } from '../../qr/options.ts'
import { verifyOwnPassword, WRONG_PASSWORD, withPassword } from '../auth/confirm-password.ts'
import { type CurrentUser, requireAccount, signedIn } from '../auth/guard.ts'
import { tryGuess } from '../auth/sign-in.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'

const PATH = '/app/account/two-factor'
const WRONG_CODE = 'This code is wrong, too old, or used already.'

/** Turns two-factor sign-in on and off. */
export const twoFactorPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.twoFactor', prefix: PATH })
    .use(signedIn(deps))
    .get('', ({ user, query }) => statePage(deps, user, { done: query.done }))
    .post('/begin', ({ user, form }) => {
      const action = { path: `${PATH}/begin`, label: 'Set it up' } as const
      return withPassword(deps, user, form, action, () => begin(deps, user))
    })
    .post('/confirm', ({ user, form }) => {
      const code = form.text('code').slice(0, parts.CODE_LENGTH_MAX)
      const action = { path: `${PATH}/confirm`, label: 'Turn it on', values: { code } } as const
      return withPassword(deps, user, form, action, () => confirm(deps, user, code))
    })
    .post('/disable', async ({ user, form }) => {
      const errors = await disable(deps, user, {
        current: form.raw('current'),
        code: form.text('code'),
      })
      return errors ? statePage(deps, user, { errors }) : seeOther(`${PATH}?done=off`)
    })

/** Stores a new secret, which a code must confirm, and shows it. */
async function begin(deps: DashboardDeps, user: CurrentUser): Promise<Response> {
  const accountId = user.account.id
  const secret = newTotpSecret(deps.random)
  const command = { accountId, secret: sealSecret(deps, accountId, secret) }
  if (!(await deps.writer.call('beginTotp', command))) return seeOther(PATH)
  return secretPage(deps, user, secret)
}

/** Turns two-factor sign-in on if the code matches the stored secret. */
async function confirm(deps: DashboardDeps, user: CurrentUser, code: string): Promise<Response> {
  const { hasher, random, clock, writer, sessions, security } = deps
  const account = requireAccount(deps, user)
  const accountId = account.id
  if (!account.totpSecret || hasSecondFactor(account)) return seeOther(PATH)
  const secret = openSecret(hasher, accountId, account.totpSecret)
  const now = clock()
  const step = tryCode(deps, user, () => findStep(secret, code.replace(/\s/g, ''), now))
  if (step === undefined) {
    const problem = 'This code is wrong. It changes every 30 seconds: is your clock right?'
    return secretPage(deps, user, secret, problem)
  }
  const codes = newRecoveryCodes(random)
  const isEnabled = await writer.call('enableTotp', {
    accountId,
    secret: account.totpSecret,
    step,
    recoveryHashes: codes.map((text) => hasher.hash('recovery-code', text)),
    now,
  })
  if (!isEnabled) return seeOther(PATH)
  // The other sessions were started without a second factor.
  await sessions.endOthers(accountId, user.session.id)
  security.record('totp.enabled', user.origin, { accountId })
  return codesPage(user, codes)
}

/** See `tryGuess`. */
function tryCode<Result>(
  deps: DashboardDeps,
  { session, account, origin }: CurrentUser,
  check: () => Result | undefined,
): Result | undefined {
  const attempts = [{ gate: 'session', key: `code ${session.id}` }] as const
  return tryGuess(deps, attempts, { origin, accountId: account.id }, check)
}

interface DisableErrors {
  current?: string
  code?: string
}

/** Turns two-factor sign-in off. Returns the problem; undefined if it is off. */
async function disable(
  deps: DashboardDeps,
  user: CurrentUser,
  sent: { current: string; code: string },
): Promise<DisableErrors | undefined> {
  const { clock, writer, security, recoveryCodes } = deps
  if (!hasSecondFactor(requireAccount(deps, user))) return undefined
  if (!(await verifyOwnPassword(deps, user, sent.current))) return { current: WRONG_PASSWORD }
  const now = clock()
  const account = requireAccount(deps, user)
  const accountId = account.id
  const factor = tryCode(deps, user, () => findFactor(deps, account, sent.code, now))
  if (!factor) return { code: WRONG_CODE }
  const left = recoveryCodes.countUnused(accountId) - 1
  if (!(await writer.call('disableTotp', { accountId, factor, now }))) return { code: WRONG_CODE }
  if ('recoveryHash' in factor) {
    security.record('recovery_code.used', user.origin, { accountId, fields: { left } })
  }
  security.record('totp.disabled', user.origin, { accountId })
  return undefined
}

interface StatePageProps {
  done?: string | undefined
  errors?: DisableErrors
}

function statePage(
  deps: DashboardDeps,
  user: CurrentUser,
  { done, errors }: StatePageProps,
): Response {
  const isOn = hasSecondFactor(requireAccount(deps, user))
  return page(user, {
    title: 'Two-factor sign-in',
    current: 'account',
    back: { href: '/app/account', label: 'Account' },
    messages: isOn ? {} : { off: 'Two-factor sign-in is off.' },
    done,
    isRefused: errors !== undefined,
    main: html`<div class="card">
      ${isOn ? disableForm(deps, user, errors) : beginForm(user)}
    </div>`,
  })
}

const beginForm = (user: CurrentUser): Html => html`
  <p>With two-factor sign-in, a stolen or guessed password is not enough: signing in also asks for a
    code from an app on your phone. Any authenticator app works. API keys are not affected.</p>
  ${parts.buttonForm(user, `${PATH}/begin`, 'Set up two-factor sign-in', { look: 'primary' })}`

function disableForm(deps: DashboardDeps, user: CurrentUser, errors: DisableErrors = {}): Html {
  const { totpEnabledAt, id } = requireAccount(deps, user)
  const left = deps.recoveryCodes.countUnused(id)
  return html`
    <p>Two-factor sign-in has been <strong>on</strong> since ${parts.time(totpEnabledAt ?? 0)}.
      ${parts.plural(left, 'recovery code')} of ${RECOVERY_CODES} ${left === 1 ? 'is' : 'are'} left.
      To get new ones, turn it off and on again.</p>
    <h2>Turn it off</h2>
    ${parts.form(user, `${PATH}/disable`, [
      parts.currentPassword(user, { error: errors.current }),
      parts.codeField({
        hint: 'The six digits in your app, or a recovery code.',
        error: errors.code,
      }),
      parts.button('Turn two-factor sign-in off', 'danger'),
    ])}`
}

async function secretPage(
  deps: DashboardDeps,
  user: CurrentUser,
  secret: Uint8Array,
  problem?: string,
): Promise<Response> {
  const issuer = `Hopcode (${new URL(deps.baseUrl).host})`
  const { url, key } = describeSecret(secret, { issuer, email: user.account.email })
  const svg = await deps.images.renderText(url, parseQrOptions({ format: 'svg' }))
  const base64 = Buffer.from(svg).toString('base64')
  const picture = attributes({
    alt: 'QR code of the key below',
    class: 'qr',
    width: 240,
    height: 240,
  })
  const grouped = key.replace(/(.{4})(?=.)/g, '$1 ')
  return page(user, {
    title: 'Set up two-factor sign-in',
    current: 'account',
    isRefused: problem !== undefined,
    main: html`<div class="card">
      <p>1. Scan this with your authenticator app.</p>
      <p><img src="data:image/svg+xml;base64,${base64}" ${picture}></p>
      <p>No camera? Type this key into the app:
        <span class="code" id="totp-key">${grouped}</span></p>
      <p>2. Enter the code that the app shows. Every other session then ends.</p>
      ${parts.form(user, `${PATH}/confirm`, [
        parts.codeField({ hint: 'Six digits.', error: problem }),
        parts.button('Turn it on'),
      ])}
      <p class="hint after"><a href="/app/account">Leave it off</a></p>
    </div>`,
  })
}

function codesPage(user: CurrentUser, codes: readonly string[]): Response {
  const shown = codes.map(showRecoveryCode)
  const area = attributes({
    id: 'secret',
    class: 'code',
    readonly: true,
    rows: shown.length,
    cols: 12,
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-describedby': 'secret-hint',
  })
  return page(user, {
    title: 'Two-factor sign-in is on',
    current: 'account',
    main: html`<div class="card">
      ${parts.notice('good', html`<p>From now on, signing in asks for a code.</p>`)}
      <p>If you lose your phone, you can sign in with these codes. Each works once.</p>
      <div class="secret">
        <label for="secret">Recovery codes</label>
        <div class="copy">
          <textarea ${area}>
${shown.join('\n')}</textarea>
          ${parts.copyButton('secret', 'recovery codes')}
        </div>
        <p class="hint" id="secret-hint">Copy or print them now. You won’t see them again. Keep
          them apart from your phone.</p>
      </div>
      <div class="row">${parts.linkButton('I have saved them', '/app/account', 'primary')}</div>
    </div>`,
  })
}
