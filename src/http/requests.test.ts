import { expect, test } from 'bun:test'
import { Elysia, redirect } from 'elysia'
import { ClientAddress } from '../hot/client-address.ts'
import { createLog } from '../lib/log.ts'
import { markShortLink } from './context.ts'
import { observeRequests, RequestTally } from './requests.ts'

const silent = createLog({ level: 'silent' })

test('every response is counted with its status, except redirects, which are counted elsewhere', async () => {
  const tally = new RequestTally()
  const address = new ClientAddress([])
  const app = new Elysia()
    .use(observeRequests({ tally, monotonic: () => 0, address, log: silent, logs: 'none' }))
    .onError({ as: 'global' }, ({ path, set }) => {
      set.status = path === '/page' ? 403 : 404
      return path === '/page' ? new Response('<p>no', { status: 403 }) : { error: 'no' }
    })
    .get('/value', () => ({ is: 'fine' }))
    .post('/value/:name', ({ status }) => status(201, { is: 'new' }))
    .get('/raw', () => new Response('no', { status: 418 }))
    .get('/away', () => redirect('/value'))
    .get('/moved', ({ set }) => {
      set.status = 302
      set.headers.location = '/value'
      return ''
    })
    .get('/page', () => {
      throw new Error('no')
    })
    .get('/:code', ({ request }) => {
      markShortLink(request)
      return redirect('/value')
    })
  await app.handle(new Request('http://hop.test/SPRING26'))
  const asked = ['/value', '/raw', '/away', '/moved', '/page', '/nothing/here']
  const sent = [await app.handle(new Request('http://hop.test/value/secret', { method: 'POST' }))]
  for (const path of asked) sent.push(await app.handle(new Request(`http://hop.test${path}`)))
  // Elysia reports a response in a later tick.
  while ([...tally.counts()].length < sent.length) await new Promise(setImmediate)
  const counted = [...tally.counts()].map(({ route, method, status }) => [route, method, status])
  expect(counted.sort()).toEqual(
    [
      ['/value/:name', 'POST', 201],
      ['/value', 'GET', 200],
      ['/raw', 'GET', 418],
      ['/away', 'GET', 302],
      ['/moved', 'GET', 302],
      ['/page', 'GET', 403],
      ['unmatched', 'GET', 404],
    ].sort(),
  )
  expect(sent.map(({ status }) => status).sort()).toEqual(
    counted.map(([, , status]) => status as number).sort(),
  )
})

test('a line in the log has no request id where the answer has none', async () => {
  const lines: Record<string, unknown>[] = []
  const log = createLog({
    level: 'info',
    human: false,
    write: (line) => lines.push(JSON.parse(line)),
  })
  const address = new ClientAddress([])
  const tally = new RequestTally()
  const app = new Elysia()
    .use(observeRequests({ tally, monotonic: () => 0, address, log, logs: 'api' }))
    .get('/-/live', () => ({ status: 'live' }))
  await app.handle(new Request('http://hop.test/-/live'))
  while (lines.length < 1) await new Promise(setImmediate)
  expect(lines[0]).toMatchObject({ event: 'request', route: '/-/live', status: 200 })
  expect(lines[0]).not.toHaveProperty('request_id')
})

test('unknown methods share one name', () => {
  const tally = new RequestTally()
  for (const method of ['BREW', 'PROPFIND', 'x'.repeat(100)]) tally.add('unmatched', method, 405, 0)
  expect([...tally.counts()]).toEqual([
    { route: 'unmatched', method: 'other', status: 405, count: 3 },
  ])
  expect([...tally.times()]).toHaveLength(1)
})
