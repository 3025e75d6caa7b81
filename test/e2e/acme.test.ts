import { expect } from 'bun:test'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { addDomain, removeDomain } from '../../src/addresses/operations.ts'
import type { Fetch } from '../../src/certificates/acme.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { certificateCommands } from '../../src/cli/certificate.ts'
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts'
import { eventually, START, type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { openTls } from '../support/https.ts'
import {
  acmeApp,
  certificatesOf,
  inTime,
  Pebble,
  untilCertified,
  untilIdle,
} from '../support/pebble.ts'
import { freePort } from '../support/ports.ts'
import { testWith } from '../support/tools.ts'

/** Certificates of an authority: what the service asks for, and what it never does. */

const test = (title: string, run: () => Promise<void>) => testWith('pebble')(title, run, 120_000)

const start = (env: Record<string, string> = {}) => Pebble.start({ httpPort: freePort(), env })

const deps = (app: TestApp) => ({ ...app.administration, baseUrl: 'https://go.example' })

const add = (app: TestApp, host: string) =>
  addDomain(deps(app), operatorOf(deps(app)), { host, for: 'all' })

const events = (app: TestApp, event: string) =>
  app.log.map((line) => JSON.parse(line)).filter((line) => line.event === event)

/** The requests of a service to its authority, some of which a test answers itself. */
function watched(
  pebble: Pebble,
  answer: (request: AcmeRequest) => Response | undefined = () => undefined,
) {
  const requests: (AcmeRequest & { status: number })[] = []
  const fetch: Fetch = async (url, init) => {
    const { payload = '' } = init.body ? JSON.parse(String(init.body)) : {}
    const text = Buffer.from(payload, 'base64url').toString()
    const request = { path: new URL(url).pathname, body: text === '' ? {} : JSON.parse(text) }
    const response = answer(request) ?? (await pebble.fetch(url, init))
    requests.push({ ...request, status: response.status })
    return response
  }
  // A request whose nonce is refused is sent again.
  const orders = () => requests.filter(({ path, status }) => path === ORDER && status !== 400)
  return { fetch, requests, orders }
}

const ORDER = '/order-plz'

interface AcmeRequest {
  path: string
  body: { identifiers?: { value: string }[]; replaces?: string }
}

const problem = (status: number, type: string, headers: Record<string, string> = {}) =>
  Response.json(
    {
      type: `urn:ietf:params:acme:error:${type}`,
      detail: `no: ${'k'.repeat(43)}.${'t'.repeat(43)}`,
    },
    { status, headers: { 'content-type': 'application/problem+json', ...headers } },
  )

test('the first start has a certificate, which it keeps to itself', async () => {
  await using pebble = await start()
  const umask = process.umask(0)
  using _ = { [Symbol.dispose]: () => process.umask(umask) }
  await using app = await acmeApp(pebble, { env: { METRICS_LISTEN: '127.0.0.1:0' } })
  await untilCertified(app, 'go.example')
  const authority = await pebble.root()
  using socket = await openTls(app.tlsUrl, authority)
  expect(socket.socket.getPeerCertificate().subjectaltname).toBe('DNS:go.example')
  expect(socket.socket.authorized).toBe(true)
  const metrics = async () => (await fetch(`${app.operatorsUrl}/-/metrics`)).text()
  // The redirect thread may count it after the client has finished.
  await eventually('the handshake is counted', async () =>
    /hopcode_tls_handshakes_total\{result="ok"\} [1-9]/.test(await metrics()),
  )
  const page = await metrics()
  expect(page).toContain('hopcode_certificate_names{state="active"} 1')
  expect(page).toContain('hopcode_certificate_orders_total{result="issued"} 1')

  const folder = join(app.dataDir, 'certificates')
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  const names = readdirSync(folder)
  expect(names.toSorted()).toEqual([
    expect.stringMatching(/^account-[\da-f]{8}\.json$/),
    'current.pem',
    'state.json',
  ])
  const secrets = names.flatMap((name) => {
    const file = join(folder, name)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    return readFileSync(file, 'utf8').match(/PRIVATE KEY-----(\\n|\n)[\w+/]{40}/g) ?? []
  })
  expect(secrets).toHaveLength(2)
  const shown = [...app.log, page, certificateCommands.showCertificate(app.administration, {})]
  for (const text of shown) expect(text).not.toMatch(/PRIVATE KEY|[\w-]{43}\.[\w-]{43}/)
  expect(readFileSync(join(folder, 'state.json'), 'utf8')).not.toContain('PRIVATE KEY')
})

test('while the authority is down short links are answered, and then there is a certificate', async () => {
  let isDown = true
  await using pebble = await start()
  const fetch: Fetch = async (url, init) => {
    if (isDown) throw new Error('connect ECONNREFUSED')
    return pebble.fetch(url, init)
  }
  await using app = await acmeApp(pebble, { fetch })
  await eventually('it is told', () => events(app, 'certificate.authority_failed').length > 0)
  const call = (path: string, headers = {}) => app.call('GET', path, { headers })
  expect(await call('/NOBODY99')).toMatchObject({ status: 404 })
  const page = await call('/app')
  expect(page.status).toBe(503)
  expect(page.headers.get('retry-after')).toBe('10')
  expect(page.text).toContain('go.example')
  await expect(openTls(app.tlsUrl, '')).rejects.toThrow()
  expect(certificatesOf(app).status().problem).toContain('ECONNREFUSED')
  isDown = false
  app.advance(20_000)
  await untilCertified(app, 'go.example')
  expect((await call('/app')).status).toBe(308)
})

test('domains that are added in a burst become one order, and no connection fails', async () => {
  await using pebble = await start()
  await using app = await acmeApp(pebble, { env: { REDIRECT_THREADS: '2' } })
  await untilCertified(app, 'go.example')
  const authority = await pebble.root()
  let isOver = false
  let failed = 0
  let answered = 0
  const visit = async () => {
    while (!isOver) {
      try {
        using client = await openTls(app.tlsUrl, authority)
        client.socket.write('GET /NOBODY99 HTTP/1.1\r\nHost: go.example\r\n\r\n')
        const [bytes] = await once(client.socket, 'data')
        expect(String(bytes)).toMatch(/^HTTP\/1.1 4(04|29) /)
        answered++
      } catch {
        failed++
      }
    }
  }
  const visitors = Promise.all(Array.from({ length: 16 }, visit))
  const hosts = ['a.example', 'b.example', 'c.example']
  for (const host of hosts) await add(app, host)
  await untilCertified(app, 'go.example', ...hosts)
  isOver = true
  await visitors
  expect(pebble.orders).toBe(2)
  expect(failed).toBe(0)
  expect(answered).toBeGreaterThan(10)
})

test('a domain that the authority cannot reach waits alone, and says why', async () => {
  await using pebble = await start()
  await using app = await acmeApp(pebble)
  await untilCertified(app, 'go.example')
  await pebble.pointTo('bad.example', '127.0.0.9')
  await add(app, 'bad.example')
  await add(app, 'good.example')
  await inTime(app, 'it fails', () => events(app, 'certificate.name_failed').length === 1)
  await untilCertified(app, 'go.example', 'good.example')
  const row = certificatesOf(app)
    .status()
    .names.find(({ name }) => name === 'bad.example')
  expect(row?.error).toContain('http://bad.example/')
  expect((row?.nextAt ?? 0) > 0).toBe(true)
  const shown = certificateCommands.showCertificate(app.administration, {})
  expect(shown).toContain('bad.example  not in the certificate')
  const before = pebble.orders
  app.advance(5 * MINUTE)
  await untilIdle(app)
  expect(pebble.orders).toBe(before)

  await pebble.pointTo('bad.example', '127.0.0.1')
  expect(certificatesOf(app).retry()).toBe(true)
  expect(certificatesOf(app).retry()).toBe(false)
  await untilCertified(app, 'go.example', 'good.example', 'bad.example')
  expect(events(app, 'certificate.name_failed')).toHaveLength(1)
})

test('a restart orders nothing, and a domain that is removed leaves without an order', async () => {
  await using pebble = await start()
  using folder = temporaryFolder()
  const dataDir = folder.path
  const first = await acmeApp(pebble, { dataDir })
  await untilCertified(first, 'go.example')
  await add(first, 'a.example')
  await untilCertified(first, 'go.example', 'a.example')
  await first.stop()
  const folderOf = join(dataDir, 'certificates')
  for (const name of readdirSync(folderOf)) chmodSync(join(folderOf, name), 0o644)
  const api = watched(pebble)
  await using second = await acmeApp(pebble, { dataDir, fetch: api.fetch })
  for (const name of readdirSync(folderOf)) {
    expect(statSync(join(folderOf, name)).mode & 0o777).toBe(0o600)
  }
  await untilCertified(second, 'go.example', 'a.example')
  await removeDomain(deps(second), operatorOf(deps(second)), {
    host: 'a.example',
    movesLinks: false,
  })
  second.advance(2 * MINUTE)
  await untilIdle(second)
  expect(api.orders()).toEqual([])
  expect(pebble.orders).toBe(2)
})

test('a limit of the authority is kept, also after a restart', async () => {
  await using pebble = await start()
  using folder = temporaryFolder()
  const dataDir = folder.path
  let isLimited = true
  const api = watched(pebble, ({ path }) =>
    isLimited && path === ORDER
      ? problem(429, 'rateLimited', { 'retry-after': '3600' })
      : undefined,
  )
  const first = await acmeApp(pebble, { dataDir, fetch: api.fetch })
  await eventually('it is refused', () => events(first, 'certificate.order_refused').length === 1)
  const count = api.requests.length
  first.advance(59 * MINUTE)
  await untilIdle(first)
  expect(api.requests).toHaveLength(count)
  const now = first.now()
  await first.stop()
  await using second = await acmeApp(pebble, { dataDir, fetch: api.fetch })
  second.advance(now - second.now())
  await untilIdle(second)
  expect(api.orders()).toHaveLength(1)
  isLimited = false
  second.advance(2 * MINUTE)
  await untilCertified(second, 'go.example')
  const said = first.log.join('\n')
  expect(said).not.toContain('kkkk')
})

test('a renewal is in the window of the authority and names what it replaces', async () => {
  await using pebble = await start()
  let refusals = 1
  const window = { start: Number.NaN, end: Number.NaN }
  const api = watched(pebble, ({ path, body }) => {
    if (path === ORDER && body.replaces && refusals-- > 0) return problem(409, 'alreadyReplaced')
    if (!/renewal/i.test(path) || Number.isNaN(window.start)) return undefined
    const [from, to] = [window.start, window.end].map((ms) => new Date(ms).toISOString())
    const headers = { 'retry-after': '21600', date: new Date().toUTCString() }
    return Response.json({ suggestedWindow: { start: from, end: to } }, { headers })
  })
  window.start = Date.now() + 3 * DAY
  window.end = window.start + 2 * DAY
  await using app = await acmeApp(pebble, { fetch: api.fetch })
  await untilCertified(app, 'go.example')
  const status = () => certificatesOf(app).status()
  await eventually('it is planned', () => status().renewAt !== undefined)
  const at = status().renewAt ?? 0
  expect(at).toBeGreaterThanOrEqual(window.start)
  expect(at).toBeLessThanOrEqual(window.end)
  /** The time of the authority. */
  const now = () => Date.now() + app.now() - START
  app.advance(at - now() - HOUR)
  await untilIdle(app)
  expect(api.orders()).toHaveLength(1)
  expect(status().renewAt).toBe(at)
  window.start += 30 * DAY
  window.end += 30 * DAY
  const before = status().until
  // Drawn anew for another window only.
  app.advance(7 * HOUR)
  await eventually('it is planned anew', () => (status().renewAt ?? 0) > at)
  expect(api.orders()).toHaveLength(1)
  app.advance((status().renewAt ?? 0) - now() + MINUTE)
  await eventually('it is renewed', () => api.orders().length === 3 && status().until !== before)
  const [, renewed, repeated] = api.orders()
  expect(renewed?.body.replaces).toMatch(/^[\w-]+\.[\w-]+$/)
  expect(repeated?.body.replaces).toBeUndefined()
})

test('half of all nonces are refused, and the order succeeds', async () => {
  await using pebble = await start({ PEBBLE_WFE_NONCEREJECT: '50' })
  await using app = await acmeApp(pebble)
  await untilCertified(app, 'go.example')
  expect(pebble.orders).toBe(1)
})

test('a clock that is wrong causes no order, and is told once', async () => {
  await using pebble = await start()
  const api = watched(pebble)
  await using app = await acmeApp(pebble, { fetch: api.fetch, hasOwnClock: true })
  await untilCertified(app, 'go.example')
  await eventually('it is planned', () => certificatesOf(app).status().renewAt !== undefined)
  // By the clock of this machine, the certificate is due.
  app.stepWall(80 * DAY)
  await untilIdle(app)
  expect(api.orders()).toHaveLength(1)
  expect(events(app, 'certificate.clock_differs').length).toBeGreaterThan(0)
  expect(events(app, 'certificate.clock_differs').length).toBeLessThan(3)
})

const others = [
  { name: 'for other names', host: 'other.example', answer: (pem: string) => pem },
  { name: 'with another key', host: 'go.example', answer: (pem: string) => pem },
  { name: 'that is none', host: 'go.example', answer: () => 'no certificate' },
]
for (const { name, host, answer } of others) {
  test(`a certificate ${name} is not used`, async () => {
    await using pebble = await start()
    await using other = await acmeApp(pebble, { env: { BASE_URL: `https://${host}` } })
    await untilCertified(other, host)
    const { cert = '' } = certificatesOf(other).pair ?? {}
    await other.stop()
    const api = watched(pebble, ({ path }) =>
      path.startsWith('/certZ/') ? new Response(answer(cert)) : undefined,
    )
    await using app = await acmeApp(pebble, { fetch: api.fetch })
    await eventually('it is refused', () => events(app, 'certificate.name_failed').length > 0)
    expect(certificatesOf(app).pair).toBeUndefined()
    expect(api.orders()).toHaveLength(1)
  })
}

test('without room for its state, the service orders nothing and answers', async () => {
  await using pebble = await start()
  using folder = temporaryFolder()
  // As on a full disk, the file cannot be written.
  mkdirSync(join(folder.path, 'certificates/state.json.tmp'), { recursive: true })
  const api = watched(pebble)
  await using app = await acmeApp(pebble, { dataDir: folder.path, fetch: api.fetch })
  await eventually('it is told', () => events(app, 'certificate.authority_failed').length > 0)
  expect(api.orders()).toEqual([])
  expect(await app.call('GET', '/NOBODY99')).toMatchObject({ status: 404 })
})

test('a damaged certificate is told, and replaced', async () => {
  await using pebble = await start()
  using folder = temporaryFolder()
  const dataDir = folder.path
  const first = await acmeApp(pebble, { dataDir })
  await untilCertified(first, 'go.example')
  await first.stop()
  const file = join(dataDir, 'certificates/current.pem')
  truncateSync(file, statSync(file).size / 2)
  await using second = await acmeApp(pebble, { dataDir })
  expect(certificatesOf(second).pair).toBeUndefined()
  expect(events(second, 'certificate.damaged')).toHaveLength(1)
  await untilCertified(second, 'go.example')
})

test('another authority has a state of its own, and its certificate takes the place of the old', async () => {
  await using pebble = await start()
  using folder = temporaryFolder()
  const dataDir = folder.path
  const first = await acmeApp(pebble, { dataDir })
  await untilCertified(first, 'go.example')
  const { pair } = certificatesOf(first)
  expect(pair).toBeDefined()
  await first.stop()
  await using other = await Pebble.start({ httpPort: pebble.httpPort })
  await using second = await acmeApp(other, { dataDir })
  await eventually('the other is served', () => certificatesOf(second).pair?.cert !== pair?.cert)
  expect(other.orders).toBe(1)
  expect(
    readdirSync(join(dataDir, 'certificates')).filter((name) => /^account/.test(name)),
  ).toHaveLength(2)
})

test('a name that no public authority certifies is never sent', async () => {
  const sent: string[] = []
  const fetch: Fetch = async (url, init) => {
    sent.push(`${url} ${init.body ?? ''}`)
    throw new Error('down')
  }
  const env = { BASE_URL: 'https://go.example.org', ACME_EMAIL: 'me@example.org', HTTPS_PORT: '0' }
  await using app = await testApp({ env, fetch })
  await add(app, 'go.internal')
  await eventually('it asks', () => sent.length > 0)
  const rows = certificatesOf(app).status().names
  expect(rows.map(({ name, nextAt }) => [name, nextAt !== undefined])).toEqual([
    ['go.example.org', true],
    ['go.internal', false],
  ])
  expect(rows[1]?.error).toContain('never sent')
  expect(sent.join('\n')).not.toContain('internal')
})
