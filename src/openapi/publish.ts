import { swagger } from '@elysiajs/swagger'
import { Elysia } from 'elysia'
import { describedBy } from '../http/operation.ts'
import { document } from './document.ts'

export interface Route {
  method: string
  path: string
  hooks: { detail?: object }
}

const PATH = '/docs/json'
const UNUSED = () => {}

/**
 * The OpenAPI document of those routes that are described, as JSON. The plugin reads it off an app
 * of its own, which serves nobody.
 */
export async function publish(routes: readonly Route[], baseUrl: string): Promise<string> {
  const app = new Elysia()
  for (const { method, path, hooks } of routes) {
    const detail = describedBy(hooks.detail)
    if (detail) app.route(method as 'GET', path, UNUSED, { detail })
  }
  app.use(swagger({ path: '/docs', specPath: PATH, documentation: document(baseUrl) as never }))
  const answer = await app.handle(new Request(`http://localhost${PATH}`))
  return answer.text()
}
