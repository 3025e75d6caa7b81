import { Elysia } from 'elysia'
import { z } from 'zod'
import { parseWith, type RequestBodies, readBody } from '../http/body.ts'
import { type GuardDeps, requireKey } from '../http/guard.ts'
import { operation } from '../http/operation.ts'
import { isoTime } from '../lib/clock.ts'
import { CountField, strictBody, TimeField, wholeNumber } from '../links/schema.ts'
import { LINK_EVENTS } from './events.ts'
import {
  BAD_EVENTS,
  BAD_URL,
  changeWebhook,
  createWebhook,
  removeWebhook,
  requireWebhook,
  rotateSecret,
  testWebhook,
  type WebhookDeps,
} from './operations.ts'
import { ATTEMPTS_KEPT, type Webhook } from './store.ts'

type Deps = WebhookDeps & GuardDeps & { bodies: RequestBodies }

const Url = z.string(BAD_URL).meta({ format: 'uri', example: 'https://example.com/hopcode' })
const Events = z
  .array(z.enum(LINK_EVENTS, BAD_EVENTS), BAD_EVENTS)
  .min(1, BAD_EVENTS)
  .max(LINK_EVENTS.length, BAD_EVENTS)
  .transform((names) => [...new Set(names)])
const Enabled = z.boolean('Invalid enabled: must be true or false')

const WebhookBody = strictBody({ url: Url, events: Events }, BAD_URL).meta({ id: 'WebhookBody' })
const WebhookChangeBody = strictBody(
  { url: Url.optional(), events: Events.optional(), enabled: Enabled.optional() },
  'Invalid body: must be an object',
).meta({ id: 'WebhookChangeBody' })

const DISABLED =
  '`gone` (410), `failing` (for five days) or `operator`; null if it is none of these.'
const WebhookView = z
  .object({
    id: CountField,
    url: z.string(),
    events: z.array(z.enum(LINK_EVENTS)),
    enabled: z.boolean(),
    failing_since: TimeField.nullable().meta({
      description: 'The first failure without a success.',
    }),
    disabled_reason: z.string().nullable().meta({ description: DISABLED }),
    created_at: TimeField,
  })
  .meta({ id: 'Webhook' })
const Secret = z
  .string()
  .regex(/^whsec_/)
  .meta({ description: 'Shown this once.' })
const WebhookWithSecretView = WebhookView.extend({ secret: Secret }).meta({
  id: 'WebhookWithSecret',
})
const WebhooksView = z.object({ items: z.array(WebhookView) }).meta({ id: 'Webhooks' })
const RotatedView = z
  .object({ secret: Secret, old_ends_at: TimeField })
  .meta({ id: 'RotatedSecret' })
const TestView = z
  .object({ status: CountField.nullable(), error: z.string().nullable(), ms: CountField })
  .meta({ id: 'WebhookAttempt' })
const DeliveriesView = z
  .object({
    items: z.array(
      z.object({
        event: z.string(),
        sequence: CountField,
        attempt: CountField,
        ...TestView.shape,
        at: TimeField,
      }),
    ),
  })
  .meta({ id: 'WebhookDeliveries' })
const RemovedView = z
  .object({ id: CountField, deleted: z.literal(true) })
  .meta({ id: 'DeletedWebhook' })

const LIMIT = `Invalid limit: must be a whole number from 1 to ${ATTEMPTS_KEPT}`
const DeliveriesQuery = z.object({
  limit: wholeNumber(LIMIT, {
    minimum: 1,
    maximum: ATTEMPTS_KEPT,
    default: ATTEMPTS_KEPT,
    description: 'Maximum number of attempts.',
  }),
})

const viewOf = (webhook: Webhook): z.infer<typeof WebhookView> => ({
  id: webhook.id,
  url: webhook.url,
  events: webhook.events,
  enabled: webhook.enabled,
  failing_since: webhook.failingSince === null ? null : isoTime(webhook.failingSince),
  disabled_reason: webhook.disabledReason,
  created_at: isoTime(webhook.createdAt),
})

export const webhookRoutes = (deps: Deps) =>
  new Elysia({ name: 'webhooks' })
    .use(readRoutes(deps))
    .use(changeRoutes(deps))
    .use(useRoutes(deps))

const readRoutes = (deps: Deps) =>
  new Elysia({ name: 'webhooks.read', prefix: '/api/webhooks' })
    .use(requireKey(deps, 'read'))
    .get('', ({ account }) => ({ items: deps.data.webhooks.listOf(account.id).map(viewOf) }), {
      detail: operation({
        id: 'listWebhooks',
        summary: 'The webhooks of the account',
        description: 'Their secrets are shown once, when they are created.',
        tag: 'Webhooks',
        answers: {
          200: { description: 'The webhooks, without their secrets.', view: WebhooksView },
        },
      }),
    })
    .get(
      '/:id/deliveries',
      ({ account, params, query }) => {
        const { id } = requireWebhook(deps, account, params.id)
        const { limit } = parseWith(DeliveriesQuery, query)
        const items = deps.data.webhooks.listAttempts(id, limit)
        return {
          items: items.map(({ type, at, ...one }) => ({ event: type, ...one, at: isoTime(at) })),
        }
      },
      {
        detail: operation({
          id: 'listWebhookDeliveries',
          summary: 'The last attempts to deliver events to a webhook',
          description: 'Newest first. No response body is kept.',
          tag: 'Webhooks',
          query: DeliveriesQuery,
          answers: { 200: { description: 'The attempts.', view: DeliveriesView } },
        }),
      },
    )

const changeRoutes = (deps: Deps) =>
  new Elysia({ name: 'webhooks.change', prefix: '/api/webhooks' })
    .use(requireKey(deps, 'change'))
    .post(
      '',
      async ({ request, account, status }) => {
        const body = await readBody(deps.bodies, request, WebhookBody, account.id)
        const { webhook, secret } = await createWebhook(deps, account, body)
        return status(201, { ...viewOf(webhook), secret })
      },
      {
        detail: operation({
          id: 'createWebhook',
          summary: 'Send events to a URL',
          description:
            'Requests are signed as Standard Webhooks describes it, with the secret, which is ' +
            'returned once. An account has at most 5 webhooks.',
          tag: 'Webhooks',
          body: WebhookBody,
          answers: {
            201: { description: 'The webhook with its secret.', view: WebhookWithSecretView },
          },
          refusals: [422],
        }),
      },
    )
    .patch(
      '/:id',
      async ({ request, account, params: { id } }) => {
        const body = await readBody(deps.bodies, request, WebhookChangeBody, account.id)
        return viewOf(await changeWebhook(deps, account, { id, ...body }))
      },
      {
        detail: operation({
          id: 'patchWebhook',
          summary: 'Change, enable or disable a webhook',
          description: 'What is queued stays, also while it is disabled.',
          tag: 'Webhooks',
          body: WebhookChangeBody,
          answers: { 200: { description: 'The changed webhook.', view: WebhookView } },
        }),
      },
    )

const useRoutes = (deps: Deps) =>
  new Elysia({ name: 'webhooks.use', prefix: '/api/webhooks' })
    .use(requireKey(deps, 'change'))
    .delete(
      '/:id',
      async ({ account, params }) => {
        const id = await removeWebhook(deps, account, params.id)
        return { id, deleted: true as const }
      },
      {
        detail: operation({
          id: 'deleteWebhook',
          summary: 'Delete a webhook',
          description: 'What is queued for it is not sent.',
          tag: 'Webhooks',
          answers: { 200: { description: 'The webhook is gone.', view: RemovedView } },
          refusals: [403],
        }),
      },
    )
    .post(
      '/:id/rotate',
      async ({ account, params }) => {
        const { secret, oldEndsAt } = await rotateSecret(deps, account, params.id)
        return { secret, old_ends_at: isoTime(oldEndsAt) }
      },
      {
        detail: operation({
          id: 'rotateWebhookSecret',
          summary: 'A new secret',
          description: 'For 24 hours, requests are signed with the old one too.',
          tag: 'Webhooks',
          answers: { 200: { description: 'The new secret.', view: RotatedView } },
          refusals: [403],
        }),
      },
    )
    .post('/:id/test', ({ account, params }) => testWebhook(deps, account, params.id), {
      detail: operation({
        id: 'testWebhook',
        summary: 'Send one `ping`',
        description: 'Returns its status, or the reason why there is none. 6 a minute.',
        tag: 'Webhooks',
        answers: { 200: { description: 'The result.', view: TestView } },
        refusals: [403],
      }),
    })
