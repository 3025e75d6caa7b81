import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { goodRequest, type Held, send } from '../support/described-requests.ts'
import { ALL, nameOf } from '../support/endpoints.ts'
import { addManager } from '../support/members.ts'
import { describeApi, type Operation } from '../support/openapi.ts'

/** The spec's chapter "States and transitions": what each endpoint makes of a code. */

type State = 'none' | 'reserved' | 'active'

/** The state of a code, after a check that all of its addresses agree. */
async function stateOf(app: TestApp, code: string): Promise<State> {
  const lookup = await app.call('GET', `/api/lookup/${code}`)
  const redirect = await app.call('HEAD', `/${code}`)
  const image = await app.call('GET', `/api/qr-image/${code}`)
  const isActive = lookup.status === 200 && lookup.body.url !== null
  const statuses = { image: image.status, redirect: redirect.status }
  expect(statuses).toEqual({ image: lookup.status, redirect: isActive ? 302 : 404 })
  if (lookup.status === 404) return 'none'
  return isActive ? 'active' : 'reserved'
}

/** A new code in that state. A deleted one was active. */
async function linkIn(app: TestApp, state: State | 'deleted', code: string): Promise<Held> {
  if (state === 'none') return { code, passcode: 'A'.repeat(24) }
  if (state === 'reserved') return app.reserve(code, 'enterprise')
  const link = await app.claim(code, 'https://example.com/old', 'enterprise')
  if (state === 'deleted') await app.call('POST', '/api/delete', { key: 'enterprise', json: link })
  return link
}

const NOT_THERE = [404, 200, 200, 404] as const
/** What an endpoint answers for a code that is none, reserved, active or deleted. */
const BY_STATE: Record<string, readonly number[]> = {
  'POST /api/reserve': [201, 409, 409, 201],
  'POST /api/update': [403, 200, 200, 403],
  'POST /api/delete': [403, 200, 200, 403],
  'DELETE /api/links/{code}': [404, 200, 200, 404],
  'GET /{code}': [404, 404, 302, 404],
  'GET /qr/{code}': [404, 302, 302, 404],
}
const STATE_AFTER: Record<string, State> = {
  'POST /api/reserve': 'reserved',
  'POST /api/update': 'active',
  'POST /api/delete': 'none',
  'DELETE /api/links/{code}': 'none',
}

// spec: States and transitions | reserved
// spec: States and transitions | active
// spec: States and transitions | deleted
// spec: States and transitions | (none) POST /api/reserve
// spec: States and transitions | reserved POST /api/update
// spec: States and transitions | active POST /api/update
// spec: States and transitions | reserved or active POST /api/delete
// spec: States and transitions | deleted POST /api/delete
// spec: States and transitions | active GET /{code}
// spec: What the service does | The destination of a code can be changed
test('every endpoint accepts a code in the states of the spec, and leaves it in the right one', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '100000' } })
  const { operations } = await describeApi(app)
  const key = addManager(app, 'enterprise')
  const names = ALL.map(nameOf).filter((name) => name.includes('{code}') || name in BY_STATE)
  for (const [index, name] of names.entries()) {
    const statuses = BY_STATE[name] ?? NOT_THERE
    for (const [column, state] of (['none', 'reserved', 'active', 'deleted'] as const).entries()) {
      const link = await linkIn(app, state, `STATE${index}X${column}`)
      const before = await stateOf(app, link.code)
      const operation = operations.get(name) as Operation
      const sent = { key, ...goodRequest(operation, link) }
      const answer = await send(app, [name, operation], sent)
      const after = answer.status < 400 ? (STATE_AFTER[name] ?? before) : before
      const at = `${name} of a code that is ${state}`
      expect({ at, status: answer.status, state: await stateOf(app, link.code) }).toEqual({
        at,
        status: statuses[column] as number,
        state: after,
      })
    }
  }
})
