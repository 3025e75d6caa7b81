import type { DocumentDecoration } from 'elysia'
import { z } from 'zod'

/** Builds the OpenAPI description of a route from the models that the route itself uses. */

interface Answer {
  description: string
  /** The JSON body's model. */
  view?: z.ZodType
  /** Content types of bodies that are not JSON. */
  binary?: readonly string[]
  /** Headers in addition to those of every response, with their descriptions. */
  headers?: Readonly<Record<string, string>>
}

interface Description {
  /** Unique among operations. Generated clients use it as the name of the function. */
  id: string
  summary: string
  description?: string
  /** Default: links. */
  tag?: 'Links' | 'QR codes' | 'Redirects' | 'Status'
  /** No API key is required. */
  isPublic?: boolean
  body?: z.ZodType
  /** Default: JSON. For another one, `body` describes an item. */
  bodyType?: string
  query?: z.ZodObject
  answers: Record<number, Answer>
  /** Statuses of refusals in addition to those that follow from the above and the path. */
  refusals?: readonly number[]
}

type JsonSchema = Record<string, unknown>

const RATE_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']

/**
 * Repeated in each operation: in addition to a reference, the plugin would add its own parameter.
 */
const CODE_PARAMETER = {
  name: 'code',
  in: 'path',
  required: true,
  description: 'A code, in any letter case.',
  schema: { type: 'string', pattern: '^[A-Za-z0-9]{6,20}$', example: 'SPRING26' },
}

interface Described {
  describe?: (path: string) => DocumentDecoration
}

/**
 * A route's `detail`, from which `describedBy` builds its OpenAPI 3.0 operation when the document
 * is requested.
 */
export function operation(about: Description): DocumentDecoration {
  const describe = (path: string) => operationOf(about, path)
  return { describe } as DocumentDecoration
}

/** The operation of a route with this `detail`; undefined for a route without a description. */
export function describedBy(
  detail: object | undefined,
  path: string,
): DocumentDecoration | undefined {
  return (detail as Described | undefined)?.describe?.(path)
}

function operationOf(about: Description, path: string): DocumentDecoration {
  const hasCode = path.includes(':code')
  const refusals = [
    ...(about.body || about.query ? [400] : []),
    ...(about.isPublic ? [] : [401]),
    ...(about.body ? [403, 413, 415] : []),
    ...(hasCode ? [404] : []),
    429,
    500,
    // Only the API stops for maintenance.
    ...(path.startsWith('/api/') ? [503] : []),
    ...(about.refusals ?? []),
  ].sort((a, b) => a - b)
  return {
    operationId: about.id,
    summary: about.summary,
    ...(about.description && { description: about.description }),
    tags: [about.tag ?? 'Links'],
    security: about.isPublic ? [] : [{ apiKey: [] }],
    parameters: [
      ...(hasCode ? [CODE_PARAMETER] : []),
      ...(about.query ? queryParameters(about.query) : []),
    ],
    ...(about.body && {
      requestBody: {
        required: true,
        content: { [about.bodyType ?? JSON_TYPE]: { schema: schemaOf(about.body, 'input') } },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(about.answers).map(([status, answer]) => [status, answerOf(answer)]),
      ),
      ...Object.fromEntries(
        refusals.map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
  } as DocumentDecoration
}

/** Without `$schema`, which OpenAPI does not allow. */
export function schemaOf(model: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const options = { target: 'openapi-3.0', io, unrepresentable: 'any' } as const
  const { $schema: _, ...schema } = z.toJSONSchema(model, options) as JsonSchema
  return schema
}

/** Headers of the document's components, by name. */
export const headerRefs = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

export const EVERY_HEADER = [...RATE_HEADERS, 'X-Request-Id'] as const

function answerOf({ description, view, binary, headers = {} }: Answer) {
  return {
    description,
    headers: {
      ...headerRefs(EVERY_HEADER),
      ...Object.fromEntries(
        Object.entries(headers).map(([name, about]) => [
          name,
          { description: about, schema: { type: 'string' } },
        ]),
      ),
    },
    ...((view || binary) && {
      content: {
        ...(view && json(schemaOf(view, 'output'))),
        ...Object.fromEntries(
          (binary ?? []).map((type) => [type, { schema: { type: 'string', format: 'binary' } }]),
        ),
      },
    }),
  }
}

const JSON_TYPE = 'application/json'
const json = (schema: JsonSchema) => ({ [JSON_TYPE]: { schema } })

function queryParameters(query: z.ZodObject) {
  const { properties = {}, required = [] } = schemaOf(query, 'input') as {
    properties?: Record<string, JsonSchema>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description ? { description } : {}),
    schema,
  }))
}
