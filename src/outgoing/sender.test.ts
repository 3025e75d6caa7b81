import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { eventually } from '../../test/support/app.ts'
import { createCertificate } from '../../test/support/certificates.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { OwnAddress } from '../blocklist/own-address.ts'
import { AllowedHosts } from './addresses.ts'
import { type OutgoingRequest, type Resolver, Sender } from './sender.ts'

/** Requests to real servers on the loopback interface, to which a resolver of the test leads. */

const LOOPBACK: Resolver = async () => ['127.0.0.1']

function sender(options: Partial<ConstructorParameters<typeof Sender>[0]> = {}) {
  const hosts = new AllowedHosts(['127.0.0.0/8'])
  const made = new Sender({ hosts, resolve: LOOPBACK, ...options })
  return Object.assign(made, { [Symbol.dispose]: () => made.close() })
}

type Server = ReturnType<typeof createServer>

async function listening(server: Server, open: Set<Socket>, host = '127.0.0.1') {
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    [Symbol.dispose]() {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}

/** A server that calls `answer` for each request. `host`: the address at which it listens. */
async function httpServer(answer: (socket: Socket, request: string) => void, host?: string) {
  const open = new Set<Socket>()
  const requests: string[] = []
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => {})
    socket.once('data', (bytes) => {
      requests.push(bytes.toString())
      answer(socket, bytes.toString())
    })
  })
  return { ...(await listening(server, open, host)), open, requests }
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const ok = (socket: Socket) => void socket.end(OK)

const get = (url: string, more: Partial<OutgoingRequest> = {}): OutgoingRequest => ({
  method: 'GET',
  url: new URL(url),
  timeoutMs: 20_000,
  maxBytes: 4096,
  ...more,
})

test('a request is sent as it is given, and its response has status, Location and Retry-After', async () => {
  using server = await httpServer((socket) => {
    socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n')
    socket.end('HTTP/1.1 302 Found\r\nlocation: /caf\u00e9\r\nRetry-After:  120\r\n\r\nbody')
  })
  using one = sender()
  const url = `http://shop.test:${server.port}/a%20b?c=d`
  const body = '{"é":1}'
  const headers = { 'Content-Type': 'application/json' }
  const result = await one.send(get(url, { method: 'POST', body, headers }))
  expect(result).toMatchObject({
    ok: true,
    status: 302,
    headers: { location: '/café', retryAfter: '120' },
  })
  const [head = '', sent] = (server.requests[0] ?? '').split('\r\n\r\n')
  const [start, ...lines] = head.split('\r\n')
  expect(start).toBe('POST /a%20b?c=d HTTP/1.1')
  expect(lines).toContain(`Host: shop.test:${server.port}`)
  expect(lines).toContain('Content-Type: application/json')
  expect(lines).toContain('Content-Length: 8')
  expect(sent).toBe(body)
  // The redirect was not followed.
  expect(server.requests).toHaveLength(1)
})

test.each([
  '127.0.0.1',
  '10.0.0.5',
  '169.254.169.254',
  '::1',
  'fd00::1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '64:ff9b::a00:5',
  '100.64.0.1',
  '8.8.8.8 127.0.0.1',
  '127.0.0.1 2606:4700:4700::1111',
])('a name with the addresses %s is refused, and nothing is connected to', async (all) => {
  using server = await httpServer(ok)
  const resolve = async () => all.split(' ')
  using one = sender({ hosts: new AllowedHosts([]), resolve })
  const request = get(`http://name.test:${server.port}/`, { allowsHttp: true })
  expect(await one.send(request)).toMatchObject({ ok: false, error: 'address_not_allowed' })
  expect(server.open.size + server.requests.length).toBe(0)
})

test.each([
  'http://1.1.1.1/',
  'https://[2606:4700:4700::1111]/',
  'https://user@public.test/',
  'https://:secret@public.test/',
  'https://public.test:25/',
  'https://public.test:80/',
  'http://public.test/',
  'http://public.test:8080/',
  'ftp://public.test/',
])('%s is refused', async (url) => {
  using one = sender({ resolve: async () => ['1.1.1.1'] })
  expect(await one.send(get(url))).toMatchObject({ ok: false, error: 'address_not_allowed' })
})

test('a receiver is allowed by its name, any port and http included; public only refuses it', async () => {
  using server = await httpServer(ok)
  using one = sender({ hosts: new AllowedHosts(['n8n.internal']) })
  const url = `http://n8n.internal:${server.port}/`
  expect(await one.send(get(url))).toMatchObject({ ok: true, status: 200 })
  expect(await one.send(get(url, { isPublicOnly: true }))).toMatchObject({
    error: 'address_not_allowed',
  })
  expect(await one.send(get(`http://other.internal:${server.port}/`))).toMatchObject({
    error: 'address_not_allowed',
  })
  expect(server.requests).toHaveLength(1)
})

test('the ports of the service itself are refused, also where the operator has allowed all', async () => {
  using server = await httpServer(ok)
  const own = new OwnAddress({ host: '0.0.0.0', ports: () => [server.port] })
  using one = sender({ own })
  for (const host of ['name.test', '127.0.0.1', '127.1.2.3']) {
    const result = await one.send(get(`http://${host}:${server.port}/`))
    expect(result).toMatchObject({ error: 'address_not_allowed' })
  }
  expect(server.requests).toHaveLength(0)
})

test('the connection goes to the address that was checked, whatever the name leads to later', async () => {
  using first = await httpServer(ok)
  const answers = [['127.0.0.1'], ['127.0.0.2'], ['10.0.0.1']]
  let asked = 0
  using one = sender({ resolve: async () => answers[asked++] ?? [] })
  expect(await one.send(get(`http://rebinding.test:${first.port}/`))).toMatchObject({ status: 200 })
  expect([asked, first.requests.length]).toEqual([1, 1])
})

test('a response to HEAD has its status, even with the body that it must not have', async () => {
  using server = await httpServer(ok)
  using one = sender()
  const request = get(`http://shop.test:${server.port}/`, { method: 'HEAD' })
  expect(await one.send(request)).toMatchObject({ ok: true, status: 200 })
})

test('the proxies of the environment are not followed', async () => {
  using server = await httpServer(ok)
  using proxy = await httpServer(ok)
  const code = `
    import { AllowedHosts } from '${import.meta.dir}/addresses.ts'
    import { Sender } from '${import.meta.dir}/sender.ts'
    const hosts = new AllowedHosts(['127.0.0.0/8'])
    const sender = new Sender({ hosts, resolve: async () => ['127.0.0.1'] })
    for (const protocol of ['http', 'https']) {
      const url = new URL(protocol + '://shop.test:${server.port}/')
      await sender.send({ method: 'GET', url, timeoutMs: 20_000, maxBytes: 4096 })
    }`
  // Bun reads them when it starts.
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy', 'ALL_PROXY']
  const variables = names.map((name) => [name, `http://127.0.0.1:${proxy.port}`])
  const env = { ...process.env, NO_PROXY: '', no_proxy: '', ...Object.fromEntries(variables) }
  await using child = Bun.spawn([process.execPath, '-e', code], { env })
  expect(await child.exited).toBe(0)
  const [plain = '', tls = ''] = server.requests
  expect(plain).toContain(`Host: shop.test:${server.port}`)
  // A TLS handshake, which this server cannot answer.
  expect(tls.charCodeAt(0)).toBe(0x16)
  expect(proxy.requests).toEqual([])
})

test('TLS verifies the name of the URL, and not the address that it connects to', async () => {
  using folder = temporaryFolder()
  const files = createCertificate(folder.path, ['DNS:shop.test'])
  const [cert, key, ca] = [files.certificate, files.key, files.authority].map((file) =>
    readFileSync(file, 'utf8'),
  ) as [string, string, string]
  const seen: unknown[] = []
  const open = new Set<Socket>()
  const server = createTlsServer({ cert, key }, (socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      seen.push(socket.servername, /Host: (.*)\r/.exec(bytes.toString())?.[1])
      socket.end(OK)
    })
  })
  using at = await listening(server, open)
  using trusting = sender({ ca })
  const url = `https://shop.test:${at.port}/`
  expect(await trusting.send(get(url))).toMatchObject({ ok: true, status: 200 })
  expect(seen).toEqual(['shop.test', `shop.test:${at.port}`])
  const other = get(`https://other.test:${at.port}/`)
  expect(await trusting.send(other)).toMatchObject({ error: 'bad_certificate' })
  const literal = get(`https://127.0.0.1:${at.port}/`)
  expect(await trusting.send(literal)).toMatchObject({ error: 'bad_certificate' })
  using doubting = sender()
  expect(await doubting.send(get(url))).toMatchObject({ error: 'bad_certificate' })
  expect(seen).toHaveLength(2)
})

test('a server that refuses, a name that does not exist, and one without an answer', async () => {
  using server = await httpServer(ok)
  const { port } = server
  server[Symbol.dispose]()
  using one = sender()
  expect(await one.send(get(`http://gone.test:${port}/`))).toMatchObject({ error: 'refused' })
  const failing =
    (message: string): Resolver =>
    () =>
      Promise.reject(new Error(message))
  using none = sender({ resolve: failing('no_such_name') })
  expect(await none.send(get('https://none.test/'))).toMatchObject({ error: 'no_such_name' })
  using silent = sender({ resolve: failing('EAI_AGAIN') })
  expect(await silent.send(get('https://none.test/'))).toMatchObject({ error: 'connection_failed' })
})

test('the next address of a name is tried where the first refuses', async () => {
  using server = await httpServer(ok, '127.0.0.1')
  using one = sender({ resolve: async () => ['127.0.0.9', '127.0.0.1'] })
  const result = await one.send(get(`http://two.test:${server.port}/`))
  expect(result).toMatchObject({ ok: true, status: 200 })
})

const endless = (start: string, piece: string) => (socket: Socket) => {
  socket.write(start)
  const timer = setInterval(() => socket.write(piece), 1)
  socket.on('close', () => clearInterval(timer))
}

test.each<[string, (socket: Socket) => void, string | number]>([
  ['hangs', () => {}, 'timeout'],
  ['sends its head byte by byte', endless('HTTP/1.1 200 OK\r\n', 'a'), 'timeout'],
  ['sends its body byte by byte', endless('HTTP/1.1 200 OK\r\n\r\n', 'a'), 'timeout'],
  [
    'sends headers without end',
    endless('HTTP/1.1 200 OK\r\n', `a: ${'b'.repeat(9000)}\r\n`),
    'connection_failed',
  ],
  [
    'sends responses 1xx without end',
    endless('', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1000)),
    'connection_failed',
  ],
  ['sends a body without end', endless('HTTP/1.1 200 OK\r\n\r\n', 'c'.repeat(9000)), 200],
  [
    'speaks something else',
    (socket) => void socket.end('220 mail ESMTP\r\n\r\n'),
    'connection_failed',
  ],
  ['closes in its head', (socket) => void socket.end('HTTP/1.1 200 OK\r\n'), 'connection_failed'],
  ['keeps the connection', (socket) => void socket.write(OK), 200],
  [
    'sends chunks',
    (socket) =>
      void socket.write(
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      ),
    200,
  ],
  [
    'breaks HTTP in its body',
    (socket) => void socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno'),
    200,
  ],
  [
    'is careless about its headers',
    (socket) =>
      void socket.write(
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\nA: \x01\r\n\r\n0\r\n\r\n',
      ),
    200,
  ],
])('a server that %s is left, and its connection closed', async (_, answer, expected) => {
  using server = await httpServer(answer)
  using one = sender()
  const isLate = expected === 'timeout'
  const timeoutMs = isLate ? 300 : 20_000
  const result = await one.send(get(`http://slow.test:${server.port}/`, { timeoutMs }))
  const found: string | number = result.ok ? result.status : result.error
  expect(found).toBe(expected)
  await eventually('the connection is closed', () => server.open.size === 0)
})

test('at most 16 requests run at a time, and one for each host; the others wait', async () => {
  const held: Socket[] = []
  const hostsOf = (requests: readonly string[]) =>
    requests.flatMap((text) => /Host: (host-\d+)/.exec(text)?.[1] ?? [])
  using server = await httpServer((socket, text) => {
    if (hostsOf([text]).length === 0) ok(socket)
    else held.push(socket)
  })
  using one = sender()
  using other = sender()
  // The server has accepted earlier connections by then.
  const mark = () => other.send(get(`http://mark.test:${server.port}/`))
  const urls = Array.from({ length: 40 }, (_, n) => `http://host-${n >> 1}.test:${server.port}/`)
  const results = urls.map((url) => one.send(get(url)))
  await eventually('16 requests arrive', () => held.length === 16)
  await mark()
  const first = hostsOf(server.requests)
  expect([first.length, new Set(first).size]).toEqual([16, 16])
  for (let answered = 0; answered < urls.length; answered++) {
    await eventually('a request waits for its answer', () => held.length > 0)
    const running = hostsOf(server.requests).slice(answered)
    expect([running.length <= 16, new Set(running).size]).toEqual([true, running.length])
    ok(held.shift() as Socket)
  }
  expect((await Promise.all(results)).filter((result) => !result.ok)).toEqual([])
})

test('a request that gets no slot in its time is never sent, and takes none from others', async () => {
  const held: Socket[] = []
  using server = await httpServer((socket) => void held.push(socket))
  using one = sender()
  const url = (path: string) => `http://slow.test:${server.port}/${path}`
  const first = one.send(get(url('first')))
  await eventually('the request arrives', () => held.length === 1)
  const late = await one.send(get(url('late'), { slotMs: 1 }))
  expect(late).toEqual({ ok: false, error: 'timeout', ms: 0 })
  const last = one.send(get(url('last'), { slotMs: 20_000 }))
  ok(held.shift() as Socket)
  await eventually('the last request arrives', () => held.length === 1)
  ok(held.shift() as Socket)
  expect([(await first).ok, (await last).ok]).toEqual([true, true])
  expect(server.requests.map((text) => text.split(' ')[1])).toEqual(['/first', '/last'])
})

test('a closed sender closes its connections and gives no result that could be recorded', async () => {
  using server = await httpServer(() => {})
  const one = sender()
  let hasResult = false
  void one.send(get(`http://slow.test:${server.port}/`)).then(() => {
    hasResult = true
  })
  await eventually('the request arrives', () => server.requests.length === 1)
  one.close()
  await eventually('the connection is closed', () => server.open.size === 0)
  expect(hasResult).toBe(false)
})
