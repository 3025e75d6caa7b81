import { swagger } from '@elysiajs/swagger'
import { Elysia } from 'elysia'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { REFUSALS } from '../errors.ts'
import {
  describedBy,
  EVERY_HEADER,
  headerRefs,
  type NamedSchemas,
  schemaOf,
  TAGS,
} from '../http/operation.ts'
import { VERSION } from '../lib/version.ts'
import { introduction } from './introduction.ts'

export interface Route {
  method: string
  path: string
  hooks: { detail?: object }
}

const PATH = '/docs/json'
const UNUSED = () => {}

/**
 * The OpenAPI document, as JSON. The operations are described at their routes; a route without a
 * description is left out. The plugin reads them from an app of its own, which serves no requests.
 */
export async function publish(routes: readonly Route[], config: Config): Promise<string> {
  const app = new Elysia()
  const named: NamedSchemas = {}
  for (const { method, path, hooks } of routes) {
    const detail = describedBy(hooks.detail, path, named)
    if (detail) app.route(method as 'GET', path, UNUSED, { detail })
  }
  app.use(
    swagger({ path: '/docs', specPath: PATH, documentation: document(config, named) as never }),
  )
  const answer = await app.handle(new Request(`http://localhost${PATH}`))
  return answer.text()
}

const Refusal = z.object({ error: z.string() })
const Failure = Refusal.extend({
  request_id: z.string().meta({ description: 'Include it when you report the failure.' }),
})
const Unavailable = Failure.extend({
  status: z.literal('degraded').optional(),
  database: z.literal('error').optional(),
})
const ErrorView = Refusal.meta({ id: 'Error' })
const FailureView = Failure.meta({ id: 'Failure' })
const UnavailableView = Unavailable.meta({ id: 'Unavailable' })

const text = { type: 'string' as const }
const count = { type: 'integer' as const, format: 'int64', minimum: 0 }

const headers = {
  'X-RateLimit-Limit': {
    description: 'The budget that the request was charged to.',
    schema: count,
  },
  'X-RateLimit-Remaining': { description: 'Requests left in the window.', schema: count },
  'X-RateLimit-Reset': {
    description: 'Unix seconds at which the oldest request counted leaves the window.',
    schema: count,
  },
  'X-Request-Id': { description: 'Identifies the request, also in the log.', schema: text },
  'Cache-Control': {
    description: '`no-store` unless caches may store the response.',
    schema: text,
  },
  'Retry-After': { description: 'Seconds to wait.', schema: { ...count, minimum: 1 } },
}

const responsesOf = (named: NamedSchemas) => {
  const refusal = (
    description: string,
    view: z.ZodType = ErrorView,
    more: readonly string[] = [],
  ) => ({
    description,
    headers: headerRefs([...EVERY_HEADER, ...more]),
    content: { 'application/json': { schema: schemaOf(view, 'output', named) } },
  })
  return {
    400: refusal('A value is missing or malformed.'),
    401: refusal(REFUSALS.invalid_api_key.message()),
    403: refusal(
      'The access of the API key does not include this, the passcode is wrong, or the code is ' +
        "unknown or another account's.",
    ),
    404: refusal('The code does not exist, or has no destination to follow.'),
    409: refusal('The code is in use.'),
    410: refusal('The link has expired, or the operator has disabled it.'),
    413: refusal('The request body is too large: over 64 KiB, or too large for a batch.'),
    415: refusal('The content type is not the one of the body above.'),
    422: refusal(REFUSALS.url_blocked.message()),
    429: refusal('The budget of the last 60 seconds is spent.', ErrorView, ['Retry-After']),
    500: refusal(REFUSALS.internal.message(), FailureView),
    503: refusal(
      'Planned maintenance, too much data in transit, or a failing database.',
      UnavailableView,
      ['Retry-After'],
    ),
  }
}

const document = (config: Config, named: NamedSchemas) => ({
  openapi: '3.0.3',
  info: {
    title: 'Hopcode',
    description: introduction(config.baseUrl, config.plans),
    version: VERSION,
    license: { name: 'MIT' },
  },
  // Generated clients use the first one; the page selects the second one, which is its own origin.
  servers: [{ url: config.baseUrl }, { url: '/' }],
  tags: TAGS.map((name) => ({ name })),
  components: {
    securitySchemes: {
      apiKey: {
        type: 'apiKey' as const,
        name: 'X-API-Key',
        in: 'header',
        description:
          "One of the account's keys. `Authorization: Bearer` can carry it, too. A key has the " +
          'access `read`, `write`, `create` (only `shorten`, `bulkShorten` and `reserve`; also ' +
          'from pages of the origins that it lists) or `manage` (also new destinations and ' +
          'deletions without passcodes). Everything else is 403. On public endpoints a key only ' +
          'decides whose budget is used, and one for creation not even that.',
      },
    },
    headers,
    responses: responsesOf(named),
    schemas: named,
  },
})
