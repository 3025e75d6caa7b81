/**
 * Writes the types of the API client from the OpenAPI document: `npm run client:types`. A test
 * fails while the file differs from the document.
 */
import { join } from 'node:path'
import openapiTypes from 'openapi-typescript'
import { testApp } from '../test/support/app.ts'

export const CLIENT_TYPES = join(import.meta.dir, '../src/client/openapi.gen.ts')

interface Schema {
  $ref?: string
  type?: string | undefined
  description?: string
  format?: string
  example?: unknown
  nullable?: boolean
  enum?: unknown[] | undefined
  /** The values of `enum` as a type. The generator would repeat an `enum` in a comment. */
  values?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  /** False, or the schema of further properties. */
  additionalProperties?: Schema | false
}

interface Operation {
  operationId: string
  parameters: { in: string; name: string; description: string; schema: Schema }[]
}

interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Schemas }
}

/** By name. A query is named after its operation: `listLinks_query`. */
type Schemas = Record<string, Schema>

/** Queries that callers write. For the others, methods of the client have parameters. */
const QUERIES = ['listLinks', 'listOwnLinks', 'history', 'hits', 'visits', 'qr']
/** Bodies are parameters of methods too, and the client reports refusals as errors of its own. */
const LEFT_OUT = /Body$|^(Error|Failure|Unavailable)$/

/** The types of requests and results. */
export async function clientTypes(): Promise<string> {
  await using app = await testApp()
  const { body } = await app.call('GET', '/docs/json')
  const { paths, components } = body as unknown as Document
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  const models = Object.entries(components.schemas).filter(([name]) => !LEFT_OUT.test(name))
  const queries = operations
    .filter(({ operationId }) => QUERIES.includes(operationId))
    .map((one) => [`${one.operationId}_query`, queryOf(one)] as const)
  const schemas: Schemas = mapValues(Object.fromEntries([...models, ...queries]), shown)
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

function queryOf({ parameters }: Operation): Schema {
  const query = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, description, schema: { type, enum: values } }) => {
      const schema: Schema = { type, enum: values, description }
      return [name, schema] as const
    })
  return { properties: Object.fromEntries(query) }
}

/** What types and comments show: no limits, and no format that a name or an example shows. */
function shown(schema: Schema): Schema {
  if (schema.$ref) return schema
  const { type, description, format, example, nullable, properties, items } = schema
  const { additionalProperties } = schema
  const isPlain = example !== undefined || [undefined, 'uri', 'int64'].includes(format)
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
    ...(additionalProperties && { additionalProperties: shown(additionalProperties) }),
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
