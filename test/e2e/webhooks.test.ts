import { describe, expect, setSystemTime, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import {
  type Body,
  type CallOptions,
  eventually,
  JSON_TYPE,
  type TestApp,
  testApp,
} from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
import { addKey } from '../support/members.ts'
import { describeApi } from '../support/openapi.ts'
import { type Received, Receiver, statuses } from '../support/receiver.ts'

/** Signed webhooks: which events an account gets, and what becomes of them. */

const ALL = ['link.created', 'link.updated', 'link.deleted', 'link.disabled']
const INSIDE = { OUTGOING_HOSTS: '127.0.0.1' }

interface Hook {
  id: number
  secret: string
  path: string
}

async function addHook(app: TestApp, url: string, events = ALL, key = 'free'): Promise<Hook> {
  const { status, body, text } = await app.call('POST', '/api/webhooks', {
    key,
    json: { url, events },
  })
  if (status !== 201) throw new Error(text)
  return { id: Number(body.id), secret: String(body.secret), path: `/api/webhooks/${body.id}` }
}

const hookOf = async (app: TestApp, { id }: Hook, key = 'free'): Promise<Body> => {
  const { body } = await app.call('GET', '/api/webhooks', { key })
  return (body.items as Body[]).find((one) => one.id === id) ?? {}
}

const attemptsOf = async (app: TestApp, { path }: Hook): Promise<Body[]> => {
  const { body } = await app.call('GET', `${path}/deliveries`, { key: 'free' })
  return body.items as Body[]
}

const untilAttempts = (app: TestApp, hook: Hook, count: number) =>
  eventually(`${count} attempts`, async () => (await attemptsOf(app, hook)).length >= count)

/** The library compares the time of the message with that of the machine. */
function verify(app: TestApp, secret: string, { text, headers }: Received, body = text): unknown {
  setSystemTime(app.now())
  try {
    return new Webhook(secret).verify(body, headers)
  } finally {
    setSystemTime()
  }
}

const signaturesOf = ({ headers }: Received) => headers['webhook-signature']?.split(' ') ?? []

describe('the API', () => {
  test('a new webhook has a secret, which is not shown again', async () => {
    await using app = await testApp({ env: INSIDE })
    const json = { url: 'https://example.com/hook', events: ['link.created', 'link.created'] }
    const created = await app.call('POST', '/api/webhooks', { key: 'free', json })
    expect(created.status).toBe(201)
    expect(created.body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const listed = await app.call('GET', '/api/webhooks', { key: 'free' })
    const view = {
      id: created.body.id,
      url: 'https://example.com/hook',
      events: ['link.created'],
      enabled: true,
      failing_since: null,
      disabled_reason: null,
      created_at: new Date(app.now()).toISOString(),
    }
    expect(listed.body).toEqual({ items: [view] })
    const secret = String(created.body.secret)
    const { secret: _, ...rest } = created.body
    expect(rest).toEqual(view)
    expect(listed.text).not.toContain('whsec_')
    const stored = app.administer(({ db }) =>
      JSON.stringify(db.query('SELECT * FROM webhooks').all()),
    )
    expect(stored).not.toContain(secret.slice('whsec_'.length))
  })

  test.each([
    ['https://[::1]/', 'url'],
    ['https://192.0.2.7/', 'url'],
    ['http://example.com/', 'url'],
    ['https://example.com:25/', 'url'],
    ['https://user@example.com/', 'url'],
    ['https://user:word@example.com/', 'url'],
    ['ftp://example.com/', 'url'],
    [`https://example.com/${'a'.repeat(2048)}`, 'url'],
    ['', 'url'],
    [7, 'url'],
  ])('the URL %p is refused', async (url, field) => {
    await using app = await testApp()
    const json = { url, events: ALL }
    const { status, body } = await app.call('POST', '/api/webhooks', { key: 'free', json })
    expect([status, String(body.error)]).toEqual([
      400,
      expect.stringContaining(`Invalid ${field}:`),
    ])
    expect((await app.call('GET', '/api/webhooks', { key: 'free' })).body).toEqual({ items: [] })
  })

  test.each([[[]], [['link.read']], ['link.created'], [['ping']]])(
    'the events %p are refused',
    async (events) => {
      await using app = await testApp()
      const json = { url: 'https://example.com/', events }
      const { status, body } = await app.call('POST', '/api/webhooks', { key: 'free', json })
      expect([status, String(body.error)]).toEqual([
        400,
        expect.stringContaining('Invalid events:'),
      ])
    },
  )

  test('an account has at most five webhooks', async () => {
    await using app = await testApp()
    for (let n = 1; n <= 5; n++) await addHook(app, `https://example.com/${n}`)
    const json = { url: 'https://example.com/6', events: ALL }
    const sixth = await app.call('POST', '/api/webhooks', { key: 'free', json })
    expect([sixth.status, sixth.body.error]).toEqual([422, 'Quota exceeded: 5 webhooks'])
    await addHook(app, 'https://example.com/1', ALL, 'pro')
  })

  test('a webhook of another account is unknown', async () => {
    await using app = await testApp()
    const { path, id } = await addHook(app, 'https://example.com/')
    const calls = [
      ['GET', `${path}/deliveries`],
      ['PATCH', path, { enabled: false }],
      ['DELETE', path],
      ['POST', `${path}/rotate`],
      ['POST', `${path}/test`],
    ] as const
    for (const [method, at, json] of calls) {
      const { status, body } = await app.call(method, at, { key: 'pro', ...(json && { json }) })
      expect([at, status, body.error]).toEqual([at, 404, `Webhook not found: ${id}`])
    }
    expect(await hookOf(app, { id, path, secret: '' })).toMatchObject({ enabled: true })
  })

  test('a webhook can be changed and deleted', async () => {
    await using app = await testApp()
    const hook = await addHook(app, 'https://example.com/')
    const json = { url: 'https://example.org/', events: ['link.hits'], enabled: false }
    const changed = await app.call('PATCH', hook.path, { key: 'free', json })
    expect(changed.body).toMatchObject(json)
    expect(await hookOf(app, hook)).toEqual(changed.body)
    const removed = await app.call('DELETE', hook.path, { key: 'free' })
    expect([removed.status, removed.body]).toEqual([200, { id: hook.id, deleted: true }])
    expect((await app.call('DELETE', hook.path, { key: 'free' })).status).toBe(404)
    expect(problemsOf(app)).toEqual([])
  })
})

test('the endpoints answer as the API describes them', async () => {
  await using app = await testApp({ env: INSIDE })
  using receiver = new Receiver()
  const api = await describeApi(app)
  const hook = await addHook(app, receiver.url)
  const ask = async (method: string, path: string, options: CallOptions) => {
    const answer = await app.call(method, path, options)
    const name = `${method} ${path.replace(/\d+/, '{id}').replace(/\?.*/, '')}`
    expect([name, answer.status, api.faultsOf(name, answer)]).toEqual([name, answer.status, []])
    return answer.status
  }
  app.key('free')
  const reader = addKey(app, 'free@example.com', { name: 'Reader', scope: 'read' })
  const key = 'free'
  const body = { url: receiver.url, events: ALL }
  const large = { raw: ' '.repeat(64 * 1024 + 1), headers: { 'content-type': JSON_TYPE } }
  const { path } = hook
  const calls = [
    ['GET', '/api/webhooks', {}, [401, 200]],
    ['POST', '/api/webhooks', { json: body }, [401, 403, 201]],
    ['POST', '/api/webhooks', { raw: '{}' }, [401, 403, 415]],
    ['POST', '/api/webhooks', large, [401, 403, 413]],
    ['PATCH', path, { json: {} }, [401, 403, 200]],
    ['PATCH', path, { json: { secret: 'x' } }, [401, 403, 400]],
    ['POST', `${path}/rotate`, {}, [401, 403, 200]],
    ['POST', `${path}/test`, {}, [401, 403, 200]],
    ['GET', `${path}/deliveries`, {}, [401, 200]],
    ['GET', `${path}/deliveries?limit=1`, {}, [401, 200]],
    ['GET', `${path}/deliveries?limit=0`, {}, [401, 400]],
    ['DELETE', path, {}, [401, 403, 200]],
    ['DELETE', path, {}, [401, 403, 404]],
  ] as const
  for (const [method, at, options, expected] of calls) {
    const keys = method === 'GET' ? ['nonsense', key] : ['nonsense', reader, key]
    const found = []
    for (const one of keys) found.push(await ask(method, at, { ...options, key: one }))
    expect([method, at, found]).toEqual([method, at, [...expected]])
  }
})

describe('events', () => {
  test('a new link is one signed request, without the passcode', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    const hook = await addHook(app, receiver.url)
    const { code, passcode } = await app.shorten('https://example.com/ünïcode?a=1')
    await receiver.until(1)
    await untilAttempts(app, hook, 1)
    expect(receiver.received).toHaveLength(1)
    const [request] = receiver.received as [Received]
    const at = new Date(app.now()).toISOString()
    const link = {
      code,
      short_url: `http://hop.test/${code}`,
      url: 'https://example.com/ünïcode?a=1',
      title: null,
      tags: [],
      created_at: at,
      hit_count: 0,
    }
    const body = { type: 'link.created', timestamp: at, sequence: 1, data: { links: [link] } }
    expect(verify(app, hook.secret, request)).toEqual(body)
    expect(request.text).not.toContain(passcode)
    expect(request).toMatchObject({ method: 'POST', path: '/hooks' })
    expect(request.headers['content-type']).toBe('application/json')
    const changed = request.text.replace('link.created', 'link.creates')
    expect(() => verify(app, hook.secret, request, changed)).toThrow()
    const [attempt] = await attemptsOf(app, hook)
    expect(attempt).toMatchObject({ event: 'link.created', attempt: 1, status: 200, error: null })
  })

  test('a bulk is events of at most 100 links, and a URL that the account has is none', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    await addHook(app, receiver.url, ALL, 'pro')
    const urls = Array.from({ length: 250 }, (_, n) => `https://example.com/${n}`)
    await app.call('POST', '/api/bulk-shorten', { key: 'pro', json: { urls } })
    await receiver.until(3)
    await app.shorten('https://example.com/7', 'pro')
    await app.shorten('https://example.com/last', 'pro')
    await receiver.until(4)
    const bodies = receiver.bodies('link.created')
    expect(bodies.map(({ data }) => data.links.length)).toEqual([100, 100, 50, 1])
    expect(bodies.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4])
    expect(bodies.flatMap(({ data }) => data.links.map(({ url }) => url))).toEqual([
      ...urls,
      'https://example.com/last',
    ])
  })

  test('a change, a password, a deletion: each with what the link was like', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    await addHook(app, receiver.url)
    const { code, passcode } = await app.claim('SPRING26')
    const key = 'free'
    const path = `/api/links/${code}`
    await app.call('PATCH', path, { key, json: { title: 'Spring', tags: ['b', 'a'] } })
    await app.call('PATCH', path, { key, json: { title: 'Spring' } })
    await app.call('PATCH', path, { key, json: { password: 'a long password' } })
    await app.call('POST', '/api/delete', { key, json: { code, passcode } })
    await receiver.until(5)
    const links = receiver.bodies().map(({ type, data }) => ({ type, ...data.links[0] }))
    const titled = { title: 'Spring', tags: ['a', 'b'] }
    expect(links).toMatchObject([
      { type: 'link.created', url: null },
      { type: 'link.updated', url: 'https://example.com/landing' },
      { type: 'link.updated', url: 'https://example.com/landing', ...titled },
      { type: 'link.updated', url: null, ...titled },
      { type: 'link.deleted', url: null, code, ...titled },
    ])
    expect(JSON.stringify(receiver.received)).not.toContain(passcode)
  })

  test('an account gets its own events, and only those that it has asked for', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    await addHook(app, receiver.url, ['link.deleted'])
    await app.shorten('https://example.com/other', 'pro')
    const { code, passcode } = await app.shorten('https://example.com/1')
    await app.call('POST', '/api/delete', { key: 'free', json: { code, passcode } })
    await receiver.until(1)
    await app.call('POST', '/api/webhooks/1/test', { key: 'free' })
    expect(receiver.bodies().map(({ type }) => type)).toEqual(['link.deleted', 'ping'])
    const [deleted] = receiver.bodies()
    expect(deleted?.data.links).toMatchObject([{ code, url: 'https://example.com/1' }])
  })

  test('hits are one event a minute with the exact counts', async () => {
    await using app = await testApp({ env: { ...INSIDE, HIT_FLUSH_MS: '10' } })
    using receiver = new Receiver()
    const one = await app.shorten('https://example.com/1')
    const two = await app.shorten('https://example.com/2')
    await app.shorten('https://example.com/3')
    await addHook(app, receiver.url, ['link.hits'])
    for (let n = 0; n < 50; n++) await app.call('GET', `/${n % 5 === 0 ? two.code : one.code}`)
    await app.untilCounted()
    app.advance(MINUTE)
    await receiver.until(1)
    const counts = receiver.bodies().map(({ type, data }) => ({
      type,
      links: data.links.map(({ code, hit_count }) => [code, hit_count]),
    }))
    const both = [
      [one.code, 40],
      [two.code, 10],
    ]
    expect(counts).toEqual([{ type: 'link.hits', links: both }])
    await app.call('GET', `/${two.code}`)
    await app.untilCounted()
    app.advance(MINUTE)
    await receiver.until(2)
    const [, second] = receiver.bodies()
    expect(second?.data.links).toMatchObject([{ code: two.code, hit_count: 11 }])
  })
})

describe('attempts', () => {
  test('a failed delivery is tried again with the same id and another time', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    receiver.next.push(...statuses(500, 500))
    const hook = await addHook(app, receiver.url)
    await app.shorten('https://example.com/1')
    await untilAttempts(app, hook, 1)
    expect(await hookOf(app, hook)).toMatchObject({
      failing_since: new Date(app.now()).toISOString(),
    })
    app.advance(6 * SECOND)
    await untilAttempts(app, hook, 2)
    app.advance(6 * MINUTE)
    await untilAttempts(app, hook, 3)
    const headers = receiver.received.map(({ headers }) => headers)
    expect(new Set(headers.map((all) => all['webhook-id'])).size).toBe(1)
    expect(new Set(headers.map((all) => all['webhook-timestamp'])).size).toBe(3)
    const attempts = await attemptsOf(app, hook)
    expect(attempts.map(({ status }) => status)).toEqual([200, 500, 500])
    expect(await hookOf(app, hook)).toMatchObject({ enabled: true, failing_since: null })
    app.advance(2 * DAY)
    await app.call('POST', `${hook.path}/test`, { key: 'free' })
    expect(receiver.bodies('link.created')).toHaveLength(3)
  })

  test('a redirect is a failure, and is not followed', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    using target = new Receiver()
    const hook = await addHook(app, receiver.url)
    receiver.respond = () => Response.redirect(target.url, 302)
    await app.shorten('https://example.com/1')
    await untilAttempts(app, hook, 1)
    expect(await attemptsOf(app, hook)).toMatchObject([{ status: 302 }])
    expect(target.received).toEqual([])
  })

  test('410 disables at once, and what is queued waits until it is enabled', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    receiver.next.push(...statuses(410))
    const hook = await addHook(app, receiver.url)
    const { code } = await app.shorten('https://example.com/1')
    await untilAttempts(app, hook, 1)
    expect(await hookOf(app, hook)).toMatchObject({ enabled: false, disabled_reason: 'gone' })
    expect(app.log.filter((line) => line.includes('webhook.disabled'))).toHaveLength(1)
    await app.shorten('https://example.com/while-disabled')
    app.advance(HOUR)
    await app.call('PATCH', hook.path, { key: 'free', json: { enabled: true } })
    await untilAttempts(app, hook, 2)
    expect(receiver.received).toHaveLength(2)
    expect(receiver.bodies()[1]?.data.links).toMatchObject([{ code }])
  })

  test('the next attempt waits for Retry-After', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    const headers = { 'retry-after': '120' }
    receiver.next.push(() => new Response(null, { status: 429, headers }))
    const hook = await addHook(app, receiver.url)
    await app.shorten('https://example.com/1')
    await untilAttempts(app, hook, 1)
    app.advance(119 * SECOND)
    // What is due is sent before the second one: the host gets one request at a time.
    for (let n = 0; n < 2; n++) await app.call('POST', `${hook.path}/test`, { key: 'free' })
    expect(receiver.bodies('link.created')).toHaveLength(1)
    app.advance(SECOND)
    await eventually('it was sent again', () => receiver.bodies('link.created').length === 2)
  })

  test('after a rotation both secrets sign for 24 hours', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    const hook = await addHook(app, receiver.url)
    const { status, body } = await app.call('POST', `${hook.path}/rotate`, { key: 'free' })
    const old_ends_at = new Date(app.now() + DAY).toISOString()
    expect([status, body]).toEqual([200, { secret: expect.stringMatching(/^whsec_/), old_ends_at }])
    const next = String(body.secret)
    await app.shorten('https://example.com/1')
    await receiver.until(1)
    const [during] = receiver.received as [Received]
    expect(signaturesOf(during)).toHaveLength(2)
    for (const secret of [hook.secret, next]) verify(app, secret, during)
    app.advance(DAY)
    await app.shorten('https://example.com/2')
    await receiver.until(2)
    const [, after] = receiver.received as [Received, Received]
    expect(signaturesOf(after)).toHaveLength(1)
    verify(app, next, after)
    expect(() => verify(app, hook.secret, after)).toThrow()
  })

  test('five days of failures disable, and the log and the API say why', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    receiver.respond = () => new Response(null, { status: 500 })
    const hook = await addHook(app, receiver.url)
    await app.shorten('https://example.com/1')
    await untilAttempts(app, hook, 1)
    app.advance(4 * DAY)
    await untilAttempts(app, hook, 2)
    expect(await hookOf(app, hook)).toMatchObject({ enabled: true })
    app.advance(DAY)
    await untilAttempts(app, hook, 3)
    expect(await hookOf(app, hook)).toMatchObject({ enabled: false, disabled_reason: 'failing' })
    const [line] = app.log.filter((one) => one.includes('webhook.disabled'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ webhook_id: hook.id, reason: 'failing' })
    app.advance(DAY)
    await app.shorten('https://example.com/2')
    expect(receiver.received).toHaveLength(3)
  })

  test('a response without end is cut off', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    const chunk = new Uint8Array(1024)
    let sent = 0
    receiver.respond = () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sent += chunk.length
            controller.enqueue(chunk)
          },
        }),
      )
    const hook = await addHook(app, receiver.url)
    await app.shorten('https://example.com/1')
    await untilAttempts(app, hook, 1)
    expect(await attemptsOf(app, hook)).toMatchObject([{ status: 200 }])
    expect(sent).toBeLessThan(16 * 1024 * 1024)
  })

  test.each(['127.0.0.1', '127.0.0.0/8'])(
    'OUTGOING_HOSTS=%s names inside receivers',
    async (hosts) => {
      await using app = await testApp({ env: { OUTGOING_HOSTS: hosts } })
      using receiver = new Receiver()
      const hook = await addHook(app, receiver.url)
      const { body } = await app.call('POST', `${hook.path}/test`, { key: 'free' })
      expect(body).toEqual({ status: 200, error: null, ms: expect.any(Number) })
      expect(receiver.bodies()).toMatchObject([{ type: 'ping', data: { links: [] } }])
    },
  )

  test('a name of this machine gets no connection', async () => {
    await using app = await testApp()
    using receiver = new Receiver()
    const url = receiver.url.replace('http://127.0.0.1', 'https://localhost')
    const hook = await addHook(app, url)
    const { body } = await app.call('POST', `${hook.path}/test`, { key: 'free' })
    expect(body).toMatchObject({ status: null, error: 'address_not_allowed' })
    expect(await attemptsOf(app, hook)).toMatchObject([
      { event: 'ping', error: 'address_not_allowed' },
    ])
  })

  test('a webhook can be tested six times a minute', async () => {
    await using app = await testApp({ env: INSIDE })
    using receiver = new Receiver()
    const { path } = await addHook(app, receiver.url)
    for (let n = 0; n < 6; n++) {
      expect((await app.call('POST', `${path}/test`, { key: 'free' })).status).toBe(200)
    }
    const refused = await app.call('POST', `${path}/test`, { key: 'free' })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10'])
    expect(receiver.received).toHaveLength(6)
  })
})
