import type { NameStatus } from '../../certificates/status.ts'
import { type Html, html } from '../../lib/html.ts'
import type { PageContext } from '../auth/guard.ts'
import * as parts from '../ui/components.ts'

const PATH = '/app/service'
export const RETRY_PATH = `${PATH}/certificate/retry`

export const CERTIFICATE_MESSAGES = {
  tried: 'It is tried now. Open this page again in a minute.',
  'tried-before': 'It was tried less than a minute ago.',
}

/** Tries now what has failed. Returns where the browser goes. */
export function retryCertificate({ deps, user }: PageContext): string {
  const isTried = deps.certificates?.retry() === true
  if (isTried) deps.log.info('certificate.retried', { account_id: user.account.id })
  return `${PATH}?done=${isTried ? 'tried' : 'tried-before'}`
}

/** The certificate of a service with https; empty for another one. */
export function certificateCard({ deps, user }: PageContext): Html | undefined {
  const status = deps.certificates?.status()
  if (!status) return undefined
  const { names, until, renewAt, problem } = status
  const isWaiting = names.some(({ isActive }) => !isActive)
  return parts.card('HTTPS', [
    problem !== undefined && parts.notice('bad', html`<p>${problem}</p>`),
    parts.facts([
      ['Expires', until === undefined ? 'no certificate yet' : parts.time(until)],
      renewAt !== undefined && ['Renewed', parts.time(renewAt)],
    ]),
    parts.table('Hosts of the service', names, {
      Host: ({ name }) => html`<code>${name}</code>`,
      State: stateOf,
    }),
    (isWaiting || problem !== undefined) && parts.buttonForm(user, RETRY_PATH, 'Try now'),
  ])
}

const stateOf = ({ isActive, error, nextAt }: NameStatus): Html => html`
  ${isActive ? 'in the certificate' : 'not in the certificate'}${
    nextAt !== undefined && html`, next attempt ${parts.time(nextAt)}`
  }${error !== undefined && html`<br><span class="hint">${error}</span>`}`
