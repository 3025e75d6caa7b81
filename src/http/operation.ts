import type { DocumentDecoration } from 'elysia'
import { z } from 'zod'
import { assert } from '../lib/assert.ts'

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

/** The chapters of the description, in its order. */
export const TAGS = ['Links', 'QR codes', 'Redirects', 'Webhooks', 'Status'] as const

interface Description {
  /**
   * Unique among operations, and no reserved word of a language: generated clients use it as the
   * name of the function. Published names stay.
   */
  id: string
  summary: string
  description?: string
  /** Default: links. */
  tag?: (typeof TAGS)[number]
  /** No API key is required. */
  isPublic?: boolean
  body?: z.ZodType
  /** A body of text lines instead of `body`. */
  lines?: Lines
  query?: z.ZodObject
  answers: Record<number, Answer>
  /** Statuses of refusals in addition to those that follow from the above and the path. */
  refusals?: readonly number[]
}

interface Lines {
  contentType: string
  /** The model of the JSON of a line. */
  line: z.ZodType
  example: string
}

export interface JsonSchema {
  [keyword: string]: unknown
  type?: string
  format?: string
  enum?: unknown[]
  nullable?: boolean
  pattern?: string
  default?: unknown
  maximum?: number
  properties?: Record<string, JsonSchema>
  required?: string[]
  anyOf?: JsonSchema[]
}

/**
 * `components.schemas` of a document: the models that have an `id`, by it. The id of an operation
 * is none: generators would write two types of the same name.
 */
export type NamedSchemas = Record<string, JsonSchema>

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

const ID_PARAMETER = {
  name: 'id',
  in: 'path',
  required: true,
  schema: { type: 'integer', minimum: 1, format: 'int64' },
}

interface Described {
  describe?: (path: string, named: NamedSchemas) => DocumentDecoration
}

/** The options of a route that has a description. */
export const described = (about: Description) => ({ detail: operation(about) })

/**
 * A route's `detail`, from which `describedBy` builds its OpenAPI 3.0 operation when the document
 * is requested.
 */
export function operation(about: Description): DocumentDecoration {
  const describe = (path: string, named: NamedSchemas) => operationOf(about, path, named)
  return { describe } as DocumentDecoration
}

/**
 * The operation of a route with this `detail`; undefined for a route without a description. Adds
 * the schemas that it refers to.
 */
export function describedBy(
  detail: object | undefined,
  path: string,
  named: NamedSchemas,
): DocumentDecoration | undefined {
  return (detail as Described | undefined)?.describe?.(path, named)
}

function operationOf(about: Description, path: string, named: NamedSchemas): DocumentDecoration {
  const hasCode = path.includes(':code')
  const hasId = path.includes(':id')
  const content = bodyOf(about, named)
  const refusals = [
    ...(content || about.query ? [400] : []),
    ...(about.isPublic ? [] : [401]),
    ...(content ? [403, 413, 415] : []),
    ...(hasCode || hasId ? [404] : []),
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
      ...(hasId ? [ID_PARAMETER] : []),
      ...(about.query ? queryParameters(about.query) : []),
    ],
    ...(content && { requestBody: { required: true, content } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(about.answers).map(([status, answer]) => [status, answerOf(answer, named)]),
      ),
      ...Object.fromEntries(
        refusals.map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
  } as DocumentDecoration
}

function bodyOf({ body, lines }: Description, named: NamedSchemas) {
  if (body) return json(schemaOf(body, 'input', named))
  if (!lines) return undefined
  schemaOf(lines.line, 'input', named)
  // Generated clients send a text as it is, and an object as JSON.
  return { [lines.contentType]: { schema: { type: 'string', example: lines.example } } }
}

/** The schema of a model. Adds those of models with an `id`, to which it then refers. */
export function schemaOf(
  model: z.ZodType,
  io: 'input' | 'output',
  named: NamedSchemas,
): JsonSchema {
  const { definitions, ...schema } = z.toJSONSchema(model, {
    target: 'openapi-3.0',
    io,
    unrepresentable: 'any',
  })
  Object.assign(named, forDocument(definitions ?? {}))
  return forDocument(schema)
}

const forDocument = (schema: object): JsonSchema => {
  const text = JSON.stringify(schema).replaceAll('"#/definitions/', '"#/components/schemas/')
  return JSON.parse(text, (_, value) => (isObject(value) ? simplified(value) : value))
}

const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const INT32_MAX = 2 ** 31 - 1

/** Rewrites `schema` into forms that generators of clients understand. Changes its argument. */
function simplified(schema: JsonSchema): JsonSchema {
  if (schema.enum?.every((value) => value === null)) delete schema.enum
  if (schema.type === 'integer') {
    // Query parameters: their models accept texts.
    delete schema.pattern
    if (typeof schema.default === 'string') schema.default = Number(schema.default)
    // Clients use 32 bits unless a format says otherwise.
    if ((schema.maximum ?? Infinity) > INT32_MAX) schema.format = 'int64'
  }
  const options = schema.anyOf
  return options?.every(({ type }) => type === 'object') ? oneObject(options) : schema
}

/** An object with the properties of all `options`, of which those of each are required. */
function oneObject(options: readonly JsonSchema[]): JsonSchema {
  const names = new Set(options.flatMap(({ properties = {} }) => Object.keys(properties)))
  const forms = (name: string) =>
    options.map(({ properties }) => properties?.[name]).filter((form) => form !== undefined)
  return {
    type: 'object',
    properties: Object.fromEntries([...names].map((name) => [name, oneValue(forms(name))])),
    required: [...names].filter((name) =>
      options.every(({ required }) => required?.includes(name)),
    ),
    additionalProperties: false,
  }
}

/** A value of one of these schemas, all of which have the same type. */
function oneValue(forms: readonly JsonSchema[]): JsonSchema {
  const { enum: _, ...schema }: JsonSchema = Object.assign({}, ...forms)
  assert(
    forms.every(({ type }) => type === schema.type),
    'a property has the same type in all forms',
  )
  const values = forms.every((form) => form.enum) && new Set(forms.flatMap((form) => form.enum))
  // All values of a boolean are no restriction.
  if (values && !(schema.type === 'boolean' && values.size === 2)) schema.enum = [...values]
  return schema
}

/** Headers of the document's components, by name. */
export const headerRefs = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** Headers of every response of the API that HTTP does not define. */
export const OWN_HEADERS = [...RATE_HEADERS, 'X-Request-Id'] as const

export const EVERY_HEADER = [...OWN_HEADERS, 'Cache-Control'] as const

function answerOf({ description, view, binary, headers = {} }: Answer, named: NamedSchemas) {
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
        ...(view && json(schemaOf(view, 'output', named))),
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
  const { properties = {}, required = [] } = schemaOf(query, 'input', {})
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description ? { description } : {}),
    schema,
  }))
}
