import { expect, test } from 'bun:test'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { rawRequest } from '../support/conversation.ts'
import { openBeside } from '../support/database.ts'
import { addOneTimeLink } from '../support/members.ts'

/** What the log says of requests, and what it never says. */

type Line = Record<string, unknown>

const requestLines = (app: TestApp): Line[] =>
  app.log.map((line) => JSON.parse(line) as Line).filter(({ event }) => event === 'request')

/** Lines come after their answers. */
async function awaitLines(app: TestApp, count: number): Promise<Line[]> {
  await eventually(`${count} request lines`, () => requestLines(app).length >= count)
  return requestLines(app)
}

test('no request is logged unless asked for', async () => {
  await using app = await testApp()
  await app.claim('SPRING26')
  await app.call('GET', '/SPRING26')
  await app.call('GET', '/api/lookup/SPRING26')
  await app.call('GET', '/api/list')
  await app.call('GET', '/-/live')
  expect(requestLines(app)).toEqual([])
})

test('LOG_REQUESTS=api gives a line for each request but redirects', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'api' } })
  const from = '203.0.113.77'
  const reserved = await app.call('POST', '/api/reserve', {
    key: 'free',
    json: { code: 'SPRING26' },
    from,
  })
  await app.call('GET', '/SPRING26', { from })
  await app.call('GET', '/api/lookup/NOBODY99', { from: '2001:db8:abcd:12::1' })
  const [first, second, ...more] = await awaitLines(app, 2)
  expect(more).toEqual([])
  expect(first).toEqual({
    time: expect.any(String),
    level: 'info',
    event: 'request',
    method: 'POST',
    route: '/api/reserve',
    status: 201,
    ms: expect.any(Number),
    request_id: reserved.headers.get('x-request-id'),
    account_id: 1,
    client: '203.0.113.0/24',
  })
  expect(second).toMatchObject({
    route: '/api/lookup/:code',
    status: 404,
    client: '2001:db8:abcd::/48',
  })
  expect(second).not.toHaveProperty('account_id')
})

test('LOG_REQUESTS=all gives a line for each redirect too, and counts it like any other', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'all' } })
  await app.claim('SPRING26', 'https://example.com/?secret=destination')
  await awaitLines(app, 2)
  app.log.length = 0
  const found = await app.call('GET', '/spring26', { from: '203.0.113.77' })
  await app.call('GET', '/NOBODY99')
  const [first, second, ...more] = await awaitLines(app, 2)
  expect(more).toEqual([])
  expect(found.status).toBe(302)
  expect(first).toMatchObject({
    method: 'GET',
    route: '/:code',
    status: 302,
    code: 'spring26',
    request_id: found.headers.get('x-request-id'),
    client: '203.0.113.0/24',
  })
  expect(second).toMatchObject({ route: '/:code', status: 404, code: 'NOBODY99' })
  expect(app.log.join('\n')).not.toContain('destination')
  expect((await app.call('GET', '/api/lookup/SPRING26')).body.hit_count).toBe(1)
})

test('keys, passcodes, bodies, queries, destinations and whole addresses are in no line, failures included', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'all' } })
  const url = 'https://example.com/private-destination'
  const { code, passcode } = await app.claim('SPRING26', url)
  const key = app.key('free')
  const from = '203.0.113.77'
  const json = { code, passcode, url }
  await app.call('GET', '/api/list?search=private-query', { key, from })
  await app.call('GET', `/api/lookup/${code}?k=private-query`, { key, from })
  await app.call('POST', '/api/update', {
    key,
    json: { ...json, passcode: 'WRONG-PASSCODE' },
    from,
  })
  await app.call('POST', '/api/update', { key, raw: `{"passcode":"${passcode}`, json, from })
  using db = openBeside(app.dataDir)
  db.run('ALTER TABLE links RENAME TO elsewhere')
  const failures = [
    await app.call('POST', '/api/update', { key, json, from }),
    await app.call('POST', '/api/shorten', { key, json: { url: `${url}/2` }, from }),
    await app.call('GET', `/api/list?search=private-query`, { key, from }),
    await app.call('GET', '/UNKNOWN9?k=private-query', { key, from }),
  ]
  db.run('ALTER TABLE elsewhere RENAME TO links')
  db.run('ALTER TABLE api_keys RENAME TO elsewhere')
  failures.push(await app.call('GET', '/api/list', { key, from }))
  db.run('ALTER TABLE elsewhere RENAME TO api_keys')
  expect(failures.filter(({ status }) => status === 500).length).toBeGreaterThan(2)
  await awaitLines(app, 11)
  const said = app.log.join('\n')
  expect(said).toContain('request.failed')
  const secrets = [key, passcode, 'WRONG-PASSCODE', 'private-', from, 'free@example.com']
  for (const secret of secrets) expect([secret, said.includes(secret)]).toEqual([secret, false])
})

test('a failure on the page of a one-time link is logged without the secret of the link', async () => {
  await using app = await testApp()
  app.key('free')
  const email = 'free@example.com'
  const purposes = ['setup', 'invite', 'reset'] as const
  const paths = purposes.map((purpose) => addOneTimeLink(app, { purpose, email }))
  using db = openBeside(app.dataDir)
  db.run('ALTER TABLE one_time_links RENAME TO elsewhere')
  for (const path of paths) expect((await app.call('GET', path)).status).toBe(500)
  db.run('ALTER TABLE elsewhere RENAME TO one_time_links')
  const failed = app.log.filter((line) => line.includes('request.failed'))
  expect(failed.map((line) => JSON.parse(line).path)).toEqual([
    '/app/setup/…',
    '/app/join/…',
    '/app/reset/…',
  ])
  for (const path of paths) expect(app.log.join()).not.toContain(path.split('/').at(-1) as string)
})

test('what a caller sends cannot forge a line', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'all' } })
  const forged = '%0A{"event":"forged"}%0D%0A'
  await app.call('GET', `/${forged}`)
  await app.call('GET', `/api/lookup/${forged}`)
  await app.call('GET', `/api/qr/AAAAAA/${forged}`)
  await app.call('GET', '/AAAAAA', {
    headers: { 'x-request-id': 'forged', 'user-agent': 'forged' },
  })
  await rawRequest(app.url, ['GET /\u0001\u001b[2J\u009bforged HTTP/1.1'])
  await awaitLines(app, 4)
  for (const line of app.log) {
    expect(JSON.parse(line).event).not.toBe('forged')
    expect(line).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
    expect(JSON.parse(line).request_id).not.toBe('forged')
  }
})
