/**
 * Writes the types of the API client from the OpenAPI document: `npm run client:types`. A test
 * fails while the file differs from the document.
 */
import { join } from 'node:path'
import openapiTypes from 'openapi-typescript'
import { testApp } from '../test/support/app.ts'

export const CLIENT_TYPES = join(import.meta.dir, '../src/client/openapi.gen.ts')

interface Schema {
  type?: string
  description?: string
  format?: string
  example?: unknown
  nullable?: boolean
  enum?: unknown[]
  /** The values of `enum` as a type. The generator would repeat an `enum` in a comment. */
  values?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
}

type Content = Record<string, { schema: Schema }>

interface Operation {
  operationId: string
  parameters: { in: string; name: string; description: string; schema: Schema }[]
  requestBody?: { content: Content }
  responses: Record<string, { content?: Content }>
}

/** By operation and use: `shorten_201`, `list_query`. */
type Schemas = Record<string, Schema>

/** Requests that callers write. For the others, methods of the client have parameters. */
const REQUESTS = /^((list|hits|visits|qr)_query|(patchLink|importLinks)_body)$/

/** The link of `getLink_200`. */
const REPEATED = 'patchLink_200'

/** The types of requests and results. The client reports refusals as errors of its own. */
export async function clientTypes(): Promise<string> {
  await using app = await testApp()
  const { body } = await app.call('GET', '/docs/json')
  const { paths } = body as unknown as { paths: Record<string, Record<string, Operation>> }
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  const schemas: Schemas = Object.assign({}, ...operations.map(schemasOf))
  const document = { openapi: '3.0.3', info: { title: '', version: '' }, components: { schemas } }
  const text = await openapiTypes(
    document as never,
    { transform: ({ values }: Schema) => values } as never,
  )
  const [, types = ''] = /^ {2}schemas: (\{.*?^ {2}\});$/ms.exec(text) ?? []
  const schemasOnly = types.replaceAll('components["schemas"]', 'Schemas').replace(/^ {2}/gm, '')
  return [
    '/** Written by `npm run client:types` from the OpenAPI document. */\n',
    `export interface Schemas ${schemasOnly}`,
    '',
  ].join('\n')
}

function schemasOf({ operationId, parameters, requestBody, responses }: Operation): Schemas {
  const query = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, description, schema: { type, enum: values } }) => {
      return [name, { type, enum: values, description }]
    })
  const used: [string, Schema | undefined][] = [
    ['query', { properties: Object.fromEntries(query) }],
    ['body', jsonOf(requestBody)],
    ...Object.entries(responses).map(([status, answer]) => [status, jsonOf(answer)] as never),
  ]
  const schemas: Schemas = {}
  for (const [use, schema] of used) {
    const name = `${operationId}_${use}`
    const isUsed = Number(use) < 300 ? name !== REPEATED : REQUESTS.test(name)
    if (schema && isUsed) schemas[name] = shown(schema)
  }
  return schemas
}

function jsonOf({ content = {} }: { content?: Content } = {}): Schema | undefined {
  const { schema } = content['application/json'] ?? content['application/x-ndjson'] ?? {}
  return schema?.properties && schema
}

/** What types and comments show: no limits, and no format that a name or an example shows. */
function shown(schema: Schema): Schema {
  const { type, description, format, example, nullable, properties, items, anyOf } = schema
  const isPlain = format === undefined || format === 'uri' || example !== undefined
  const values = [...(schema.enum ?? []), ...(nullable ? [null] : [])]
  const parts: Schema = {
    ...(schema.enum && {
      values: [...new Set(values.map((value) => JSON.stringify(value)))].join(' | '),
    }),
    ...(properties && {
      properties: mapValues(properties, shown),
      required: schema.required ?? [],
    }),
    ...(items && { items: shown(items) }),
    ...(anyOf && { anyOf: anyOf.map(shown) }),
  }
  const about = { type, description, format: isPlain ? undefined : format, example, nullable }
  return { ...parts, ...(JSON.parse(JSON.stringify(about)) as Schema) }
}

const mapValues = <From, To>(
  values: Record<string, From>,
  map: (value: From, key: string) => To,
): Record<string, To> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value, key)]))

if (import.meta.main) {
  await Bun.write(CLIENT_TYPES, await clientTypes())
  // The app's threads would keep the process alive.
  process.exit(0)
}
