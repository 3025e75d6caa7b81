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
import type { AccountRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { parseQrOptions } from '../../qr/options.ts'
import { goTo } from '../answers.ts'
import { askForPassword, verifyOwnPassword, WRONG_PASSWORD } from '../auth/confirm-password.ts'
import { signedIn, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'

const PATH = '/app/account/two-factor'
/** Of a recovery code with spaces. */
const CODE_MAX_LENGTH = 40
const WRONG_CODE = 'This code is wrong, too old, or used already.'

/** Turns two-factor sign-in on and off. */
export const twoFactorPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.twoFactor', prefix: PATH })
    .use(signedIn(deps))
    .get('', ({ visitor, query }) => statePage(deps, visitor, { done: query.done }))
    .post('/begin', async ({ visitor, form }) => {
      const action = { path: `${PATH}/begin`, label: 'Set it up', section: 'account' } as const
      const asked = await askForPassword(deps, visitor, form, action)
      return asked ?? begin(deps, visitor)
    })
    .post('/confirm', async ({ visitor, form }) => {
      const code = form.text('code').slice(0, CODE_MAX_LENGTH)
      const action = {
        path: `${PATH}/confirm`,
        label: 'Turn it on',
        section: 'account',
        values: { code },
      } as const
      const asked = await askForPassword(deps, visitor, form, action)
      return asked ?? confirm(deps, visitor, code)
    })
    .post('/disable', async ({ visitor, form }) => {
      const errors = await disable(deps, visitor, {
        current: form.raw('current'),
        code: form.text('code'),
      })
      return errors ? statePage(deps, visitor, { errors }) : goTo(`${PATH}?done=off`)
    })

function getAccount({ accounts }: DashboardDeps, { account }: Visitor): AccountRow {
  const found = accounts.find(account.id)
  if (!found) throw new AppError('sign_in_needed')
  return found
}

/** Stores a new secret, which a code must confirm, and shows it. */
async function begin(deps: DashboardDeps, visitor: Visitor): Promise<Response> {
  const accountId = visitor.account.id
  const secret = newTotpSecret(deps.random)
  const order = { accountId, secret: sealSecret(deps, accountId, secret) }
  if (!(await deps.writer.call('beginTotp', order))) return goTo(PATH)
  return secretPage(deps, visitor, secret)
}

/** Turns two-factor sign-in on if the code is one of the stored secret. */
async function confirm(deps: DashboardDeps, visitor: Visitor, code: string): Promise<Response> {
  const { hasher, random, clock, writer, sessions, security } = deps
  const account = getAccount(deps, visitor)
  const accountId = account.id
  if (!account.totpSecret || hasSecondFactor(account)) return goTo(PATH)
  const secret = openSecret(hasher, accountId, account.totpSecret)
  const now = clock()
  const step = countedCode(deps, visitor, () => findStep(secret, code.replace(/\s/g, ''), now))
  if (step === undefined) {
    const problem = 'This code does not fit. It changes every 30 seconds: is your clock right?'
    return secretPage(deps, visitor, secret, problem)
  }
  const codes = newRecoveryCodes(random)
  const isEnabled = await writer.call('enableTotp', {
    accountId,
    secret: account.totpSecret,
    step,
    recoveryHashes: codes.map((text) => hasher.hash('recovery-code', text)),
    now,
  })
  if (!isEnabled) return goTo(PATH)
  // They were started with the password alone.
  await sessions.endOthers(accountId, visitor.session.id)
  security.record('totp.enabled', visitor.origin, { accountId })
  return codesPage(visitor, codes)
}

/** What a code gives; a wrong one is counted. Throws `too_many_attempts`. */
function countedCode<Result>(
  { throttle, security }: DashboardDeps,
  { session, account, origin }: Visitor,
  judge: () => Result | undefined,
): Result | undefined {
  const attempts = [{ gate: 'session', key: `code ${session.id}` }] as const
  throttle.require(attempts)
  const result = judge()
  if (result !== undefined) throttle.clear(attempts)
  else {
    for (const gate of throttle.count(attempts)) {
      security.record('throttle.engaged', origin, { accountId: account.id, fields: { gate } })
    }
  }
  return result
}

interface Errors {
  current?: string
  code?: string
}

/** What is wrong; undefined when two-factor sign-in is off. */
async function disable(
  deps: DashboardDeps,
  visitor: Visitor,
  sent: { current: string; code: string },
): Promise<Errors | undefined> {
  const { clock, writer, security, recoveryCodes } = deps
  if (!hasSecondFactor(getAccount(deps, visitor))) return undefined
  if (!(await verifyOwnPassword(deps, visitor, sent.current))) return { current: WRONG_PASSWORD }
  const now = clock()
  const account = getAccount(deps, visitor)
  const accountId = account.id
  const factor = countedCode(deps, visitor, () => findFactor(deps, account, sent.code, now))
  if (!factor) return { code: WRONG_CODE }
  const left = recoveryCodes.countUnused(accountId) - 1
  if (!(await writer.call('disableTotp', { accountId, factor, now }))) return { code: WRONG_CODE }
  if ('recoveryHash' in factor) {
    security.record('recovery_code.used', visitor.origin, { accountId, fields: { left } })
  }
  security.record('totp.disabled', visitor.origin, { accountId })
  return undefined
}

interface Shown {
  done?: string | undefined
  errors?: Errors
}

function statePage(deps: DashboardDeps, visitor: Visitor, { done, errors }: Shown): Response {
  const account = getAccount(deps, visitor)
  const isOff = done === 'off' && !hasSecondFactor(account)
  return page(visitor, {
    title: 'Two-factor sign-in',
    current: 'account',
    status: errors ? 422 : 200,
    main: html`
      ${isOff && parts.notice('good', html`<p>Two-factor sign-in is off.</p>`)}
      <div class="card">
        ${hasSecondFactor(account) ? disableForm(deps, visitor, errors) : beginForm(visitor)}
        <p class="hint after"><a href="/app/account">Back to the account</a></p>
      </div>`,
  })
}

const beginForm = (visitor: Visitor): Html => html`
  <p>With two-factor sign-in, a password that was stolen or guessed is not enough: after it, the
    sign-in asks for a code that an app on your phone shows. Any authenticator app will do. API keys
    are not affected.</p>
  ${parts.buttonForm(visitor, {
    action: `${PATH}/begin`,
    label: 'Set up two-factor sign-in',
    look: 'primary',
  })}`

function disableForm(deps: DashboardDeps, visitor: Visitor, errors: Errors = {}): Html {
  const { totpEnabledAt, id } = getAccount(deps, visitor)
  const left = deps.recoveryCodes.countUnused(id)
  return html`
    <p>Two-factor sign-in is <strong>on</strong> since ${parts.time(totpEnabledAt ?? 0)}.
      ${parts.plural(left, 'recovery code')} of ${RECOVERY_CODES} ${left === 1 ? 'is' : 'are'} left.
      For new ones, turn it off and on again.</p>
    <h2>Turn it off</h2>
    ${parts.form({
      action: `${PATH}/disable`,
      csrf: visitor.csrf,
      children: [
        passwordOwner(visitor),
        parts.field({
          name: 'current',
          label: 'Your password',
          type: 'password',
          required: true,
          autocomplete: 'current-password',
          error: errors.current,
        }),
        codeField('The six digits in your app, or a recovery code.', errors.code),
        parts.button('Turn two-factor sign-in off', 'danger'),
      ],
    })}`
}

/** For password managers, which ask whose password it is. */
const passwordOwner = ({ account }: Visitor): Html =>
  html`<input name="username" value="${account.email}" autocomplete="username" hidden>`

const codeField = (hint: string, error: string | undefined): Html =>
  parts.field({
    name: 'code',
    label: 'Code',
    required: true,
    hint,
    error,
    autocomplete: 'one-time-code',
    extra: { spellcheck: 'false', maxlength: CODE_MAX_LENGTH },
  })

async function secretPage(
  deps: DashboardDeps,
  visitor: Visitor,
  secret: Uint8Array,
  problem?: string,
): Promise<Response> {
  const issuer = `Hopcode (${new URL(deps.baseUrl).host})`
  const { url, key } = describeSecret(secret, { issuer, email: visitor.account.email })
  const svg = await deps.images.renderText(url, parseQrOptions({ format: 'svg' }))
  const base64 = Buffer.from(svg).toString('base64')
  const picture = attributes({
    alt: 'QR code of the key below',
    class: 'qr',
    width: 240,
    height: 240,
  })
  const grouped = key.replace(/(.{4})(?=.)/g, '$1 ')
  return page(visitor, {
    title: 'Set up two-factor sign-in',
    current: 'account',
    status: problem ? 422 : 200,
    main: html`<div class="card">
      <p>1. Scan this with your authenticator app.</p>
      <p><img src="data:image/svg+xml;base64,${base64}" ${picture}></p>
      <p>No camera? Type this key into the app:
        <span class="code" id="totp-key">${grouped}</span></p>
      <p>2. Enter the code that the app shows now. Every other session then ends.</p>
      ${parts.form({
        action: `${PATH}/confirm`,
        csrf: visitor.csrf,
        children: [codeField('Six digits.', problem), parts.button('Turn it on')],
      })}
      <p class="hint after"><a href="/app/account">Leave it off</a></p>
    </div>`,
  })
}

function codesPage(visitor: Visitor, codes: readonly string[]): Response {
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
  return page(visitor, {
    title: 'Two-factor sign-in is on',
    current: 'account',
    main: html`<div class="card">
      ${parts.notice('good', html`<p>From now on, signing in asks for a code.</p>`)}
      <p>If you lose your phone, each of these codes signs you in once in its place.</p>
      <div class="secret">
        <label for="secret">Recovery codes</label>
        <div class="copy">
          <textarea ${area}>
${shown.join('\n')}</textarea>
          ${parts.copyButton('secret', 'recovery codes')}
        </div>
        <p class="hint" id="secret-hint">They are shown this once. Copy or print them now, and keep
          them apart from your phone.</p>
      </div>
      <div class="row">${parts.linkButton('I have kept them', '/app/account', 'primary')}</div>
    </div>`,
  })
}
