import { expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addDomain } from '../../src/addresses/operations.ts'
import { operatorOf } from '../../src/cli/administration.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { eventually, type TestApp } from '../support/app.ts'
import { command } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolder } from '../support/folder.ts'
import {
  callTls,
  httpsApp,
  type OwnCertificate,
  openTls,
  ownCertificate,
  servedSerial,
} from '../support/https.ts'
import { openQuickWorker } from '../support/reused-worker.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** https with files of the operator, and what the port without TLS answers. */

const HSTS = 'strict-transport-security'
const KEY = 'X-API-Key: hop_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'

test('over TLS, redirects, the API and pages answer as without, with HSTS', async () => {
  using own = ownCertificate()
  await using app = await httpsApp(own)
  const code = await shortenTls(app, own)
  const hit = await callTls(app, own, `/${code}`)
  expect(hit.status).toBe(302)
  expect(hit.headers.get('location')).toBe('https://example.com/')
  for (const path of [`/${code}`, '/app/sign-in', '/api/status', '/NOBODY99']) {
    const { headers } = await callTls(app, own, path)
    expect(headers.get(HSTS)).toBe('max-age=31536000')
  }
  const page = await callTls(app, own, '/app/sign-in')
  expect(page.status).toBe(200)
  expect(page.headers.get('set-cookie')).toContain('__Host-')
})

/** A new code of https://example.com/. */
async function shortenTls(app: TestApp, own: OwnCertificate): Promise<string> {
  const { body } = await callTls(app, own, '/api/shorten', {
    method: 'POST',
    headers: { 'x-api-key': app.key('free'), 'content-type': 'application/json' },
    body: JSON.stringify({ url: 'https://example.com/' }),
  })
  return (body as { code: string }).code
}

/** A request without TLS, as bytes. */
async function ask(app: TestApp, bytes: string | Uint8Array) {
  using client = await Conversation.open(app.url)
  client.send(bytes)
  const { answers } = await client.closed()
  return answers
}

const request = (line: string, ...headers: string[]) =>
  `${[`${line} HTTP/1.1`, 'Host: go.example', ...headers].join('\r\n')}\r\n\r\n`
const NAVIGATION = 'Sec-Fetch-Dest: document'

const withLine = <Row extends { bytes: string | Uint8Array }>(row: Row) => ({
  ...row,
  line: JSON.stringify(Buffer.from(row.bytes).toString('latin1').slice(0, 60)),
})

const plain = shared(async () => {
  const own = ownCertificate()
  const app = await httpsApp(own)
  const code = await shortenTls(app, own)
  const administration = { ...app.administration, baseUrl: 'https://go.example' }
  await addDomain(administration, operatorOf(administration), { host: 'go2.example', for: 'all' })
  return {
    app,
    own,
    code,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]()
      own[Symbol.dispose]()
    },
  }
})

const redirected: { bytes: string; to: string }[] = [
  { bytes: request('GET /app?next=%2Fx'), to: 'https://go.example/app?next=%2Fx' },
  { bytes: request('GET /'), to: 'https://go.example/' },
  { bytes: request('HEAD /docs'), to: 'https://go.example/docs' },
  {
    bytes: request('POST /app/sign-in', 'Content-Length: 3'),
    to: 'https://go.example/app/sign-in',
  },
  { bytes: request('GET /api/status'), to: 'https://go.example/api/status' },
  { bytes: request('GET /a/b'), to: 'https://go.example/a/b' },
  {
    bytes: request('GET /.well-known/assetlinks.json'),
    to: 'https://go.example/.well-known/assetlinks.json',
  },
  { bytes: request('GET /NOBODY99', NAVIGATION), to: 'https://go.example/NOBODY99' },
  { bytes: request('GET //evil.example/x'), to: 'https://go.example//evil.example/x' },
  { bytes: request('GET /\\evil.example'), to: 'https://go.example/\\evil.example' },
  { bytes: request('GET /app%0d%0aSet-Cookie:a'), to: 'https://go.example/app%0d%0aSet-Cookie:a' },
  {
    bytes: request('GET /app', 'X-Forwarded-Host: evil.example'),
    to: 'https://go.example/app',
  },
  {
    bytes: request('GET http://evil.example/app'),
    to: 'https://go.example/app',
  },
  {
    bytes: 'GET /app HTTP/1.1\r\nHost: evil.example\r\n\r\n',
    to: 'https://go.example/app',
  },
  {
    bytes: 'GET /app HTTP/1.1\r\nHost: go2.example:8080\r\n\r\n',
    to: 'https://go2.example/app',
  },
  {
    bytes: 'GET /app HTTP/1.1\r\nHost: go.example\r\nHost: evil.example\r\n\r\n',
    to: 'https://go.example/app',
  },
]
test.each(redirected.map(withLine))(
  'without TLS, $line is redirected to $to',
  async ({ bytes, to }) => {
    const { app } = await plain()
    const [answer, ...others] = await ask(app, bytes)
    expect(answer?.status).toBe(308)
    expect(answer?.headers.get('location')).toBe(to)
    expect(answer?.headers.get(HSTS)).toBeNull()
    expect(answer?.headers.get('cache-control')).toBe('no-store')
    expect(others).toEqual([])
  },
)

const CHALLENGE = '/.well-known/acme-challenge'
const refused: { bytes: string | Uint8Array; status: number }[] = [
  { bytes: request('GET /api/status', KEY), status: 403 },
  { bytes: request('GET /api/status', KEY.toLowerCase()), status: 403 },
  { bytes: request('GET /api/status', 'Authorization: Bearer hop_abc'), status: 403 },
  { bytes: request('POST /api/shorten', KEY, 'Content-Length: 9999999'), status: 403 },
  { bytes: request('GET /NOBODY99', KEY), status: 403 },
  { bytes: request('GET /yourls-api.php?signature=hop_abc&action=version'), status: 403 },
  { bytes: request('POST /yourls-api.php', 'Content-Length: 9'), status: 403 },
  { bytes: request(`GET ${CHALLENGE}/unknown`), status: 404 },
  { bytes: request(`GET ${CHALLENGE}/`), status: 404 },
  { bytes: request(`GET ${CHALLENGE}/..`), status: 404 },
  { bytes: request(`GET ${CHALLENGE}/../../etc/passwd`), status: 404 },
  { bytes: request(`GET ${CHALLENGE}/%2e%2e/%2e%2e/etc/passwd`), status: 404 },
  { bytes: request(`GET ${CHALLENGE}/a/b`), status: 404 },
  { bytes: request(`GET ${CHALLENGE}/__proto__`), status: 404 },
  { bytes: request(`GET ${CHALLENGE}/constructor`), status: 404 },
  { bytes: request(`POST ${CHALLENGE}/unknown`, 'Content-Length: 0'), status: 405 },
  { bytes: request('GET /app', 'X: a\r\n\tfolded'), status: 308 },
  { bytes: 'get /app HTTP/1.1\r\n\r\n', status: 400 },
  { bytes: request('CONNECT evil.example:443'), status: 400 },
  { bytes: Uint8Array.of(22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 13, 10, 13, 10), status: 400 },
]
test.each(refused.map(withLine))(
  'without TLS, $line is answered with $status',
  async ({ bytes, status }) => {
    const { app } = await plain()
    const [answer, ...others] = await ask(app, bytes)
    expect(answer?.status).toBe(status)
    expect(answer?.headers.get(HSTS)).toBeNull()
    expect(others).toEqual([])
  },
)

test('without TLS, short links and probes are answered on kept connections, and nothing else', async () => {
  const { app, code } = await plain()
  using client = await Conversation.open(app.url)
  const probe = request('GET /-/live')
  client.send(request(`GET /${code}`) + request('GET /NOBODY99') + probe + probe)
  client.send(request(`GET /${code}`) + request('GET /app') + request(`GET /${code}`))
  const { answers } = await client.closed()
  expect(answers.map(({ status }) => status)).toEqual([302, 404, 200, 200, 302, 308])
  for (const { headers } of answers) expect(headers.get(HSTS)).toBeNull()
  expect(answers[0]?.headers.get('location')).toBe('https://example.com/')
})

test('without domains too, what is sent behind a probe does not reach the control thread', async () => {
  using own = ownCertificate()
  await using app = await httpsApp(own)
  const answers = await ask(app, request('GET /-/live') + request('GET /app/sign-in'))
  expect(answers.map(({ status }) => status)).toEqual([200, 308])
})

test('a body behind a probe does not reach the control thread', async () => {
  const { app } = await plain()
  const smuggled = request('GET /app/sign-in')
  const length = `Content-Length: ${smuggled.length}`
  const answers = await ask(app, request('POST /-/ready', length) + smuggled)
  expect(answers.map(({ status }) => status)).toEqual([308])
  const chunked = await ask(
    app,
    `${request('GET /-/ready', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  )
  expect(chunked.map(({ status }) => status)).toEqual([308])
})

test('both ports are recognized as the address of the service itself', async () => {
  const { app, own } = await plain()
  for (const url of [`${app.url}/x`, `${app.tlsUrl}/x`]) {
    const { status } = await callTls(app, own, '/api/shorten', {
      method: 'POST',
      headers: { 'x-api-key': app.key('free'), 'content-type': 'application/json' },
      body: JSON.stringify({ url }),
    })
    expect(status).toBe(422)
  }
})

test('a pair of files that is replaced is served from then on, and connections stay open', async () => {
  using own = ownCertificate()
  await using app = await httpsApp(own, { env: { REDIRECT_THREADS: '2' } })
  const first = await servedSerial(app, own)
  using kept = await openTls(app.tlsUrl, own.authority)
  own.replace()
  expect(await servedSerial(app, own)).toBe(first)
  app.advance(30 * SECOND)
  await eventually('the new one is served', () =>
    app.log.some((line) => line.includes('certificate.active')),
  )
  for (let i = 0; i < 10; i++) expect(await servedSerial(app, own)).not.toBe(first)
  const answer = Promise.withResolvers<string>()
  kept.socket.on('data', (bytes) => answer.resolve(String(bytes)))
  kept.socket.write(request('GET /NOBODY99'))
  expect(await answer.promise).toStartWith('HTTP/1.1 404')
})

test('a key that does not fit leaves the old pair, and says why once', async () => {
  using own = ownCertificate()
  await using app = await httpsApp(own)
  const first = await servedSerial(app, own)
  own.replace(['key'])
  app.advance(30 * SECOND)
  const refusals = () => app.log.filter((line) => line.includes('certificate.files_refused'))
  await eventually('it is refused', () => refusals().length > 0)
  expect(await servedSerial(app, own)).toBe(first)
  expect(app.administration.certificates?.status().problem).toContain('TLS_KEY_FILE')
  app.advance(2 * MINUTE)
  await app.administration.certificates?.check()
  expect(refusals()).toHaveLength(1)
  own.replace()
  app.advance(30 * SECOND)
  await eventually(
    'a pair that fits is served',
    async () => (await servedSerial(app, own)) !== first,
  )
  expect(app.administration.certificates?.status().problem).toBeUndefined()
})

test('a redirect thread that ends comes back with the certificate', async () => {
  using own = ownCertificate()
  const workers: Worker[] = []
  await using app = await httpsApp(own, {
    env: { REDIRECT_THREADS: '1' },
    openWorker: (url) => {
      const isRedirect = url.pathname.endsWith('/redirect.ts')
      const worker = isRedirect ? new Worker(url) : openQuickWorker(url)
      if (isRedirect) workers.push(worker)
      return worker
    },
  })
  const first = await servedSerial(app, own)
  own.replace()
  app.advance(30 * SECOND)
  await eventually('the new one is served', async () => (await servedSerial(app, own)) !== first)
  const port = app.tlsUrl
  workers[0]?.terminate()
  await eventually('it is back', async () => {
    const serial = await servedSerial(app, own).catch(() => first)
    return workers.length === 2 && serial !== first
  })
  expect(app.tlsUrl).toBe(port)
})

const EMPTY = { ACME_EMAIL: '', PORT: '0', HTTPS_PORT: '0', BASE_URL: 'https://go.example' }
test('a start with files that cannot be used ends with one sentence that names the path', async () => {
  using own = ownCertificate()
  using other = ownCertificate()
  using folder = temporaryFolder()
  const text = join(folder.path, 'text.pem')
  writeFileSync(text, 'no certificate')
  const { certificate, key } = own.files
  const cases = [
    { cert: '/absent.pem', key, names: 'TLS_CERT_FILE /absent.pem' },
    { cert: certificate, key: '/absent.pem', names: 'TLS_KEY_FILE /absent.pem' },
    { cert: certificate, key: other.files.key, names: `TLS_KEY_FILE ${other.files.key}` },
    { cert: text, key, names: `TLS_CERT_FILE ${text}` },
    { cert: certificate, key: text, names: `TLS_KEY_FILE ${text}` },
  ]
  for (const { cert, key: keyFile, names } of cases) {
    const env = {
      ...EMPTY,
      DATA_DIR: join(folder.path, 'data'),
      TLS_CERT_FILE: cert,
      TLS_KEY_FILE: keyFile,
    }
    const { code, err, out } = await command(['serve'], env)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toStartWith(`hopcode: Bad setting: `)
    expect(err).toContain(names)
    expect(err.trim().split('\n')).toHaveLength(1)
  }
}, 60_000)

testWith('root')(
  'a port that the user may not open is refused with what helps',
  async () => {
    using own = ownCertificate()
    using folder = temporaryFolder()
    const { certificate, key } = own.files
    for (const path of [own.folder, folder.path]) chmodSync(path, 0o755)
    for (const path of [certificate, key]) chmodSync(path, 0o644)
    const data = join(folder.path, 'data')
    const env = {
      BASE_URL: 'https://go.example',
      DATA_DIR: data,
      TLS_CERT_FILE: certificate,
      TLS_KEY_FILE: key,
      HTTPS_PORT: '443',
      PORT: '80',
      HOST: '127.0.0.1',
    }
    const user = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all']
    chmodSync(folder.path, 0o777)
    const { code, err } = await command(['serve'], env, user)
    expect(code).toBe(1)
    expect(err).toContain('CAP_NET_BIND_SERVICE')
    expect(err.trim().split('\n')).toHaveLength(1)
  },
  60_000,
)
