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
import { parseQrOptions } from '../../draw/options.ts'
import { type Html, html } from '../../lib/html.ts'
import { proofField, requireOwnPassword, withPassword } from '../auth/confirm-password.ts'
import { type CurrentUser, logEvent, type PageContext, requirePerson } from '../auth/guard.ts'
import { tryGuess } from '../auth/sign-in.ts'
import { SECURITY_PATH } from '../cards/identities.ts'
import { signedInPages, viewer } from '../page-routes.ts'
import { refuseAt, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'

const PATH = '/app/account/two-factor'

/** Turns two-factor sign-in on and off. */
export const twoFactorPages = signedInPages({
  'GET /app/account/two-factor': viewer(statePage, {
    offers: [{ label: 'Two-factor sign-in', words: 'security 2fa' }],
  }),
  'POST /app/account/two-factor/begin': viewer((context) =>
    withPassword(context, { label: 'Set it up', page: SECURITY_PATH }, () => begin(context)),
  ),
  'POST /app/account/two-factor/confirm': viewer((context) =>
    withPassword(context, { label: 'Turn it on', fields: ['code'], page: SECURITY_PATH }, () =>
      confirm(context),
    ),
  ),
  'POST /app/account/two-factor/disable': viewer(disable, statePage),
})

/** Stores a new secret, which a code must confirm, and shows it. */
async function begin(context: PageContext): Promise<Response> {
  const { deps, user } = context
  const personId = user.person.id
  const secret = newTotpSecret(deps.random)
  const command = { personId, secret: sealSecret(deps, personId, secret) }
  if (!(await deps.data.secondFactors.begin(command))) return seeOther(PATH)
  return secretPage(context, secret)
}

/** Turns two-factor sign-in on if the code matches the stored secret. */
async function confirm(context: PageContext): Promise<Response> {
  const { hasher, random, clock, data, sessions } = context.deps
  const person = requirePerson(context)
  const personId = person.id
  if (!person.totpSecret || hasSecondFactor(person)) return seeOther(PATH)
  const code = context.form.text('code').replace(/\s/g, '')
  const secret = openSecret(hasher, personId, person.totpSecret)
  const now = clock()
  const step = tryCode(context, () => findStep(secret, code, now))
  if (step === undefined) {
    const problem = 'This code is wrong. It changes every 30 seconds: is your clock right?'
    return secretPage({ ...context, refusal: refuseAt('code', problem) }, secret)
  }
  const codes = newRecoveryCodes(random)
  const isEnabled = await data.secondFactors.enable({
    personId,
    secret: person.totpSecret,
    step,
    recoveryHashes: codes.map((text) => hasher.hash('recovery-code', text)),
    now,
  })
  if (!isEnabled) return seeOther(PATH)
  // The other sessions were started without a second factor.
  await sessions.endOthers(personId, context.user.session.id)
  logEvent(context, 'totp.enabled')
  return codesPage(context, codes)
}

/** See `tryGuess`. */
function tryCode<Result>(
  { deps, user: { session, account, origin } }: PageContext,
  check: () => Result | undefined,
): Result | undefined {
  const attempts = [{ gate: 'session', key: `code ${session.id}` }] as const
  return tryGuess(deps, attempts, { origin, accountId: account.id }, check)
}

/** Turns two-factor sign-in off. */
async function disable(context: PageContext): Promise<string> {
  const { deps, form } = context
  const { clock, data } = deps
  const done = `${PATH}?done=off`
  if (!hasSecondFactor(requirePerson(context))) return done
  await requireOwnPassword(context)
  const now = clock()
  const person = requirePerson(context)
  const personId = person.id
  const factor = tryCode(context, () => findFactor(deps, person, form.text('code'), now))
  const left = data.secondFactors.countUnusedCodes(personId) - 1
  if (!factor || !(await data.secondFactors.disable({ personId, factor, now }))) {
    throw refuseAt('code', 'This code is wrong, too old, or used already.')
  }
  if ('recoveryHash' in factor) logEvent(context, 'recovery_code.used', { left })
  logEvent(context, 'totp.disabled')
  return done
}

function statePage(context: PageContext): Response {
  const isOn = hasSecondFactor(requirePerson(context))
  return page(context, {
    title: 'Two-factor sign-in',
    at: SECURITY_PATH,
    back: { href: SECURITY_PATH, label: 'Security' },
    messages: isOn ? {} : { off: 'Two-factor sign-in is off.' },
    main: html`<div class="card">
      ${isOn ? disableForm(context) : beginForm(context.user, 'primary')}
    </div>`,
  })
}

/** Says what two-factor sign-in is, and begins its set-up. */
export const beginForm = (user: CurrentUser, look: 'primary' | 'plain'): Html => html`
  <p>With two-factor sign-in, a stolen or guessed password is not enough: signing in also asks for a
    code from an app on your phone. Any authenticator app works. API keys are not affected.</p>
  ${parts.buttonForm(user, `${PATH}/begin`, 'Set up two-factor sign-in', { look })}`

function disableForm(context: PageContext): Html {
  const { deps, user } = context
  const { totpEnabledAt, id } = requirePerson(context)
  const left = deps.data.secondFactors.countUnusedCodes(id)
  return html`
    <p>Two-factor sign-in has been <strong>on</strong> since ${parts.time(totpEnabledAt ?? 0)}.
      ${parts.plural(left, 'recovery code')} of ${RECOVERY_CODES} ${left === 1 ? 'is' : 'are'} left.
      To get new ones, turn it off and on again.</p>
    <h2>Turn it off</h2>
    ${parts.form(user, `${PATH}/disable`, [
      proofField(context),
      parts.codeField(context, { hint: 'The six digits in your app, or a recovery code.' }),
      parts.button('Turn two-factor sign-in off', 'danger'),
    ])}`
}

async function secretPage(context: PageContext, secret: Uint8Array): Promise<Response> {
  const { deps, user } = context
  const issuer = `Hopcode (${new URL(deps.baseUrl).host})`
  const { url, key } = describeSecret(secret, { issuer, email: user.person.email })
  const svg = await deps.images.renderText(url, parseQrOptions({ format: 'svg' }), user.account.id)
  const base64 = Buffer.from(svg).toString('base64')
  const grouped = key.replace(/(.{4})(?=.)/g, '$1 ')
  return page(context, {
    title: 'Set up two-factor sign-in',
    at: SECURITY_PATH,
    main: html`<div class="card">
      <p>1. Scan this with your authenticator app.</p>
      <p><img src="data:image/svg+xml;base64,${base64}" alt="QR code of the key below" class="qr"
        width="240" height="240"></p>
      <p>No camera? Type this key into the app:
        <span class="code" id="totp-key">${grouped}</span></p>
      <p>2. Enter the code that the app shows. Every other session then ends.</p>
      ${parts.form(user, `${PATH}/confirm`, [
        parts.codeField(context, { hint: 'Six digits.' }),
        parts.button('Turn it on'),
      ])}
      <p class="hint after"><a href="${SECURITY_PATH}">Leave it off</a></p>
    </div>`,
  })
}

function codesPage(context: PageContext, codes: readonly string[]): Response {
  const shown = codes.map(showRecoveryCode)
  return page(context, {
    title: 'Two-factor sign-in is on',
    at: SECURITY_PATH,
    main: html`<div class="card">
      ${parts.notice('good', html`<p>From now on, signing in asks for a code.</p>`)}
      <p>If you lose your phone, you can sign in with these codes. Each works once.</p>
      <div class="secret">
        <label for="secret">Recovery codes</label>
        <div class="copy">
          <textarea id="secret" class="code" readonly rows="${shown.length}" cols="12"
            autocomplete="off" spellcheck="false" aria-describedby="secret-hint">
${shown.join('\n')}</textarea>
          ${parts.copyButton('secret', 'recovery codes')}
          <button type="button" class="button plain" hidden data-needs-script data-save="secret"
            data-name="hopcode-recovery-codes.txt">Download</button>
        </div>
        <p class="hint" id="secret-hint">Copy or print them now. You won’t see them again. Keep
          them apart from your phone.</p>
      </div>
      <div class="row">${parts.linkButton('I have saved them', SECURITY_PATH, 'primary')}</div>
    </div>`,
  })
}
