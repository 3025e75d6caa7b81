/**
 * Writes the types of the API client from the OpenAPI document: `npm run client:types`. A test
 * fails while the file differs from the document.
 */
import { join } from 'node:path'
import openapiTypes from 'openapi-typescript'
import { testApp } from '../test/support/app.ts'

export const CLIENT_TYPES = join(import.meta.dir, '../src/client/openapi.gen.ts')

interface Operation {
  summary?: string
  description?: string
  parameters: { in: string }[]
  responses: Record<string, { headers?: object }>
}

interface Document {
  paths: Record<string, Record<string, Operation>>
}

/** The types of bodies and queries. The client reports refusals as errors of its own. */
export async function clientTypes(): Promise<string> {
  await using app = await testApp()
  const { body } = await app.call('GET', '/docs/json')
  const { paths } = body as unknown as Document
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    const { parameters, responses } = operation
    delete operation.summary
    delete operation.description
    operation.parameters = parameters.filter((parameter) => parameter.in === 'query')
    operation.responses = Object.fromEntries(
      Object.entries(responses)
        .filter(([status]) => Number(status) < 300)
        .map(([status, { headers: _, ...response }]) => [status, response]),
    )
  }
  const document = { openapi: '3.0.3', info: { title: 'Hopcode', version: '' }, paths }
  return openapiTypes(document as Parameters<typeof openapiTypes>[0], {
    commentHeader: '/** Written by `npm run client:types` from the OpenAPI document. */\n',
  })
}

if (import.meta.main) {
  await Bun.write(CLIENT_TYPES, await clientTypes())
  // The app's threads would keep the process alive.
  process.exit(0)
}
