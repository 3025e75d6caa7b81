import { type Html, html, type Value } from '../../lib/html.ts'
import { LINK_EVENTS, type LinkEventType } from '../../webhooks/events.ts'
import * as operations from '../../webhooks/operations.ts'
import { type Attempt, isDelivered, type Webhook } from '../../webhooks/store.ts'
import { withPassword } from '../auth/confirm-password.ts'
import type { PageContext } from '../auth/guard.ts'
import { admin, signedInPages } from '../page-routes.ts'
import { atField, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf, typed } from '../ui/form.ts'
import { confirmPage, page } from '../ui/layout.ts'

const PATH = '/app/account/webhooks'
/** Attempts that the page shows of each webhook. */
const SHOWN_MAX = 10

/** Where the events of an account are sent. */
export const webhookPages = signedInPages({
  [`GET ${PATH}`]: admin(webhooksPage, {
    offers: [{ label: 'Webhooks', section: 'account', words: 'events notify http' }],
  }),
  [`POST ${PATH}/new`]: admin(addWebhook, webhooksPage),
  [`POST ${PATH}/test`]: admin(async (context) => {
    const { status } = await operations.testWebhook(...of(context))
    return `${PATH}?done=${isDelivered(status) ? 'tested' : 'failed'}`
  }, webhooksPage),
  [`POST ${PATH}/rotate`]: admin(async (context) => {
    const { secret } = await operations.rotateSecret(...of(context))
    return webhooksPage(context, { secret, isReplacement: true })
  }, webhooksPage),
  [`POST ${PATH}/switch`]: admin(async (context) => {
    const [deps, account, id] = of(context)
    const enabled = context.form.text('enabled') === '1'
    await operations.changeWebhook(deps, account, { id, enabled })
    return `${PATH}?done=${enabled ? 'enabled' : 'disabled'}`
  }, webhooksPage),
  [`GET ${PATH}/delete`]: admin(deletePage),
  [`POST ${PATH}/delete`]: admin(async (context) => {
    await operations.removeWebhook(...of(context))
    return `${PATH}?done=deleted`
  }, webhooksPage),
})

/** What the operations take for the webhook of a form. */
const of = ({ deps, user, form }: PageContext) => [deps, user.account, form.text('id')] as const

const isEvent = (text: string): text is LinkEventType => LINK_EVENTS.some((name) => name === text)

async function addWebhook(context: PageContext) {
  const { deps, user, form } = context
  const events = form.all('events').filter(isEvent)
  if (events.length === 0) throw refuseAt('events', 'Choose at least one.')
  const label = { label: 'Add the webhook', fields: ['url', 'events'] }
  return withPassword(context, label, async () => {
    const input = { url: form.text('url'), events }
    const created = atField('url', () => operations.createWebhook(deps, user.account, input))
    return webhooksPage(context, { secret: (await created).secret })
  })
}

const DONE = {
  tested: 'The test was delivered.',
  failed: 'The test was not delivered. The list of its deliveries says why.',
  enabled: 'The webhook is enabled.',
  disabled: 'The webhook is disabled.',
  deleted: 'The webhook is deleted.',
}

function webhooksPage(
  context: PageContext,
  created?: { secret: string; isReplacement?: boolean },
): Response {
  const { deps, user } = context
  const webhooks = deps.data.webhooks.listOf(user.account.id)
  return page(context, {
    title: 'Webhooks',
    at: PATH,
    messages: DONE,
    main: html`
      ${
        created &&
        parts.card(created.isReplacement ? 'New secret' : 'The webhook is added', [
          parts.secretOnce('Secret', created.secret),
          created.isReplacement &&
            html`<p>For 24 hours, the old secret signs too: replace it until then.</p>`,
        ])
      }
      <p>Your own systems get a signed request when links change. Its headers are those of
        <a href="https://www.standardwebhooks.com/">Standard Webhooks</a>, whose libraries verify
        the signature in many languages.</p>
      ${webhooks.map((webhook) => webhookCard(context, webhook))}
      ${newForm(context)}`,
  })
}

const NAMES: Readonly<Record<LinkEventType, string>> = {
  'link.created': 'A link is created',
  'link.updated': 'A link is changed',
  'link.deleted': 'A link is deleted',
  'link.disabled': 'The owner of the service disables a link',
  'link.hits': 'Links were followed (once a minute)',
  'link.dead': 'The destination of a link does not answer any more',
  'link.alive': 'It answers again',
}

function newForm(context: PageContext): Html {
  const chosen = context.form.all('events')
  const error = errorOf(context.refusal, 'events')
  return parts.card(
    'Add a webhook',
    parts.form(context.user, `${PATH}/new`, [
      parts.urlField({
        ...typed(context, 'url'),
        label: 'URL',
        required: true,
        hint: 'It begins with https:// and a name.',
        extra: { maxlength: 2048 },
      }),
      html`<fieldset ${error && html`aria-describedby="events-error"`}>
        <legend>Send a request when</legend>
        ${LINK_EVENTS.map(
          (name) => html`<p class="check"><label><input type="checkbox" name="events"
            value="${name}" ${(chosen.length === 0 || chosen.includes(name)) && html`checked`}>
            ${NAMES[name]} <span class="hint">${name}</span></label></p>`,
        )}
        ${error && html`<p class="error" id="events-error">${error}</p>`}
      </fieldset>`,
      parts.button('Add the webhook'),
    ]),
  )
}

function webhookCard({ deps, user }: PageContext, webhook: Webhook): Html {
  const { id, url, events, enabled } = webhook
  const attempts = deps.data.webhooks.listAttempts(id, SHOWN_MAX)
  const action = (path: string, label: string, values = {}) =>
    parts.buttonForm(user, `${PATH}/${path}`, label, {
      values: { id, ...values },
      title: `${label}: ${url}`,
    })
  return parts.card(new URL(url).host, [
    parts.facts([
      ['URL', html`<span class="long">${url}</span>`],
      ['Events', events.join(', ')],
      ['State', stateOf(webhook)],
      ['Waiting', parts.plural(deps.data.webhooks.countQueued(id), 'delivery', 'deliveries')],
    ]),
    html`<div class="row">
      ${action('test', 'Send a test')}
      ${action('rotate', 'New secret')}
      ${action('switch', enabled ? 'Disable' : 'Enable', { enabled: enabled ? 0 : 1 })}
      <a class="button danger" href="${`${PATH}/delete?id=${id}`}"
        aria-label="Delete the webhook ${url}">Delete…</a>
    </div>`,
    attempts.length > 0 &&
      parts.table(`The last deliveries to ${url}`, attempts, {
        Time: ({ at }) => parts.time(at),
        Event: ({ type, sequence }) => (type === 'ping' ? 'test' : `${type}, number ${sequence}`),
        Result: resultOf,
      }),
  ])
}

function stateOf({ enabled, disabledReason, failingSince }: Webhook): Value {
  if (enabled) {
    return failingSince === null ? 'active' : html`failing since ${parts.time(failingSince)}`
  }
  const reason = {
    gone: 'the receiver has answered that it is gone (410)',
    failing: 'no delivery has succeeded for five days',
    operator: 'by the owner of the service',
  }[disabledReason ?? 'gone']
  return html`<strong>disabled</strong>${disabledReason && html`: ${reason}`}`
}

const ERRORS: Readonly<Record<string, string>> = {
  address_not_allowed: 'no connection: the name has an address that is not public',
  timeout: 'no answer in time',
  no_such_name: 'the name does not exist',
  refused: 'the receiver has refused the connection',
  bad_certificate: 'the certificate of the receiver is not valid',
  connection_failed: 'the connection has failed',
  internal: 'the service could not prepare the request',
}

function resultOf({ status, error, ms, attempt }: Attempt): Value {
  const text = status === null ? (ERRORS[error ?? ''] ?? error) : `answered ${status}`
  const result = isDelivered(status) ? `delivered (${text})` : `not delivered: ${text}`
  return `${result}, ${parts.count(ms)} ms${attempt > 1 ? `, attempt ${attempt}` : ''}`
}

function deletePage(context: PageContext): Response {
  const { deps, user, query } = context
  const { id, url } = operations.requireWebhook(deps, user.account, query.id ?? '')
  return confirmPage(context, {
    title: 'Delete the webhook',
    at: PATH,
    warning: html`<strong>${url} gets no more requests.</strong> What waits is not sent. This cannot
      be undone.`,
    label: 'Delete it',
    values: { id },
    cancel: { label: 'Keep it', href: PATH },
  })
}
