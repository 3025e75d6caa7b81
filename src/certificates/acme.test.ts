import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createCertificate } from '../../test/support/certificates.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { AcmeClient, AcmeError, type Fetch, withoutSecrets } from './acme.ts'
import { newKeys } from './store.ts'

/** What a client of an authority refuses. With a real one: test/e2e/acme.test.ts. */

const folder = temporaryFolder()
const files = createCertificate(folder.path)
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  tls: { cert: readFileSync(files.certificate, 'utf8'), key: readFileSync(files.key, 'utf8') },
  fetch: ({ url }) => answerTo(new URL(url)),
})
afterAll(async () => {
  await server.stop(true)
  folder[Symbol.dispose]()
})

const MIB = 1024 * 1024
const foreign: string[] = []

function answerTo({ pathname, origin }: URL): Response {
  const urls = {
    newNonce: `${origin}/nonce`,
    newAccount: `${origin}/account`,
    newOrder: `${origin}/order`,
    renewalInfo: `${origin}/renewal`,
  }
  const headers = { 'replay-nonce': 'n', location: `${origin}/account/1` }
  switch (pathname) {
    case '/redirecting':
      return Response.redirect(`${origin}/dir`)
    case '/dir':
      return Response.json(urls)
    case '/foreign-dir':
      return Response.json({ ...urls, newOrder: 'https://evil.example/order' })
    case '/clear-dir':
      return Response.json({ ...urls, newNonce: urls.newNonce.replace('https:', 'http:') })
    case '/malformed-dir':
      return new Response('{"newNonce":')
    case '/other-dir':
      return Response.json({ newNonce: 1 })
    case '/long-dir':
      return new Response(JSON.stringify(urls).padEnd(2 * MIB))
    case '/endless-dir':
      return new Response(
        new ReadableStream({
          async pull(controller) {
            await Bun.sleep(50)
            controller.enqueue(new TextEncoder().encode(' '))
          },
        }),
      )
    case '/order':
      return Response.json(
        {
          status: 'pending',
          authorizations: ['https://evil.example/authz'],
          finalize: urls.newOrder,
        },
        { status: 201, headers: { ...headers, location: 'https://evil.example/order/1' } },
      )
    default:
      return new Response(null, { headers })
  }
}

function client(path: string, { trusts = true, timeoutMs = 5000 } = {}) {
  const tls = trusts ? { ca: readFileSync(files.authority, 'utf8') } : {}
  const ask: Fetch = (url, init) => {
    if (!url.startsWith(server.url.origin.replace('127.0.0.1', 'localhost'))) foreign.push(url)
    return fetch(url, { ...init, tls } as RequestInit)
  }
  return new AcmeClient({
    directory: `https://localhost:${server.port}${path}`,
    keys: newKeys(),
    accountUrl: undefined,
    fetch: ask,
    onDate: () => {},
    timeoutMs,
  })
}

test('a client connects to a directory that it trusts', async () => {
  await client('/dir').connect()
})

const refused = [
  { name: 'that redirects', path: '/redirecting' },
  { name: 'with addresses without TLS', path: '/clear-dir' },
  { name: 'that is malformed', path: '/malformed-dir' },
  { name: 'of something else', path: '/other-dir' },
  { name: 'longer than 1 MiB', path: '/long-dir' },
]
test.each(refused)('a directory $name is refused', async ({ path }) => {
  await expect(client(path).connect()).rejects.toThrow()
})

test('an authority with a certificate that is not trusted is refused', async () => {
  await expect(client('/dir', { trusts: false }).connect()).rejects.toThrow()
})

test('an answer that never ends is given up', async () => {
  await expect(client('/endless-dir', { timeoutMs: 200 }).connect()).rejects.toThrow()
})

test('no request goes to another server, wherever the authority names one', async () => {
  await expect(client('/foreign-dir').createOrder(['go.example'], undefined)).rejects.toThrow(
    'another server',
  )
  const fine = client('/dir')
  const { url, order } = await fine.createOrder(['go.example'], undefined)
  await expect(fine.order(url)).rejects.toThrow('another server')
  await expect(fine.authorization(order.authorizations[0] ?? '')).rejects.toThrow('another server')
  expect(foreign).toEqual([])
})

test('what an authority says is one line without keys and tokens', () => {
  const token = 'A_b-'.repeat(11)
  const said = withoutSecrets(`wrong answer "${token}.${token}"\r\n\u001b[31m${'x '.repeat(300)}`)
  expect(said).not.toContain(token)
  expect(said).not.toMatch(/\p{Cc}/u)
  expect(said.length).toBeLessThanOrEqual(201)
  const error = new AcmeError(400, {
    type: 'urn:ietf:params:acme:error:rejectedIdentifier',
    detail: '',
    subproblems: [{ identifier: { type: 'dns', value: 'a.example' }, detail: token }],
  })
  expect(error.type).toBe('rejectedIdentifier')
  expect([...error.names]).toEqual([['a.example', '…']])
})
