import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { makeAccount, Service, UNLIMITED } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolderInMemory } from '../support/folder.ts'
import { openTls, ownCertificate } from '../support/https.ts'
import { freePort } from '../support/ports.ts'
import { type Attack, type Figure, highest, observe, p99, structure, timing } from './attacked.ts'

/** Attacks on the port for https, beside visitors of short links. */

const KIB = 1024
/** Handshakes end after 10 to 12 s. */
const LATEST_MS = 13_000
const FLOOD_PER_SECOND = 200

interface Target {
  service: Service
  tlsPort: number
  ca: string
  path: string
}

/** Opens connections that send `bytes` and nothing more; `count` of them from each address. */
async function stall(
  { tlsPort }: Target,
  { count, addresses, bytes }: { count: number; addresses: number; bytes: Uint8Array },
) {
  const state = { open: 0, sockets: [] as Socket[] }
  for (let i = 0; i < count; i++) {
    const localAddress = `127.0.1.${1 + (i % addresses)}`
    const socket = connect({ host: '127.0.0.1', port: tlsPort, localAddress })
    socket.on('error', () => {})
    socket.once('connect', () => {
      state.open++
      if (bytes.length > 0) socket.write(bytes)
    })
    socket.once('close', () => state.open--)
    state.sockets.push(socket)
    if (i % 100 === 99) await Bun.sleep(5)
  }
  return state
}

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

async function stalled(target: Target, count: number, addresses: number): Promise<Figure[]> {
  const { service, path } = target
  const before = descriptorsOf(service.pid)
  let left = 0
  const probe = { request: `GET ${path} HTTP/1.1\r\nHost: go.example\r\n\r\n`, status: 302 }
  const attack = async () => {
    const half = Math.ceil(count / 2)
    const silent = await stall(target, { count: half, addresses, bytes: new Uint8Array() })
    const slow = await stall(target, { count: half, addresses, bytes: Uint8Array.of(22, 3, 1) })
    // Some go on with a byte a second.
    const timer = setInterval(() => {
      for (const socket of slow.sockets.slice(0, 50)) socket.write(Uint8Array.of(1))
    }, 1000)
    await Bun.sleep(LATEST_MS)
    clearInterval(timer)
    left = silent.open + slow.open
    for (const socket of [...silent.sockets, ...slow.sockets]) socket.destroy()
  }
  const seen = await observe(service, { attack, probe })
  const each = ((seen.residentMost - seen.residentBefore) * KIB) / count
  const of = `${count} stalled handshakes of ${addresses} addresses`
  await Bun.sleep(200)
  return [
    structure(`${of}: open after 13 s`, left, 0),
    structure(`${of}: descriptors beside those of before`, descriptorsOf(service.pid) - before, 8),
    structure(`${of}: redirects that failed`, seen.failed, 0),
    timing(`${of}: memory each`, each, 12, 'KiB'),
    timing(`${of}: p99 of redirects`, p99(seen.latencies), 50, 'ms'),
  ]
}

/** Handshakes at a rate, each with a key exchange of its own. */
async function flood(target: Target, seconds: number): Promise<Figure[]> {
  const { service, path, tlsPort, ca } = target
  let done = 0
  let failed = 0
  const probe = { request: `GET ${path} HTTP/1.1\r\nHost: go.example\r\n\r\n`, status: 302 }
  const attack = async () => {
    const all: Promise<void>[] = []
    const handshake = async () => {
      try {
        using _ = await openTls(`https://127.0.0.1:${tlsPort}`, ca)
        done++
      } catch {
        failed++
      }
    }
    for (let i = 0; i < seconds * 20; i++) {
      for (let j = 0; j < FLOOD_PER_SECOND / 20; j++) all.push(handshake())
      await Bun.sleep(50)
    }
    await Promise.all(all)
  }
  const seen = await observe(service, { attack, probe })
  return [
    structure('flood of handshakes: redirects that failed', seen.failed, 0),
    structure('flood of handshakes: handshakes that failed', failed, 0),
    structure('flood of handshakes: handshakes left out', seconds * FLOOD_PER_SECOND - done, 0),
    timing('flood of handshakes: slowest redirect', highest(seen.latencies), 50, 'ms'),
  ]
}

/** Bytes for the other port. */
async function wrongPort({ tlsPort, service, path }: Target): Promise<Figure[]> {
  using clear = await Conversation.open(`http://127.0.0.1:${tlsPort}`)
  clear.send(`GET ${path} HTTP/1.1\r\nHost: go.example\r\n\r\n`)
  const { answers, rest } = await clear.closed()
  using hello = await Conversation.open(service.url)
  hello.send(Uint8Array.of(22, 3, 1, 0, 4, 1, 0, 0, 0, 13, 10, 13, 10))
  const told = await hello.closed()
  return [
    structure(
      'bytes in answer to plain text on the port for https',
      answers.length + rest.length,
      0,
    ),
    structure('status of a handshake on the port without TLS', told.answers[0]?.status ?? 0, 400),
  ]
}

/** A handshake in the middle of a connection of TLS 1.2, which the service must refuse. */
async function renegotiation({ tlsPort }: Target): Promise<Figure[]> {
  const client = Bun.spawn(['openssl', 's_client', '-tls1_2', '-connect', `127.0.0.1:${tlsPort}`], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  await Bun.sleep(1000)
  client.stdin.write('R\n')
  await client.stdin.flush()
  await Bun.sleep(1000)
  await client.stdin.end()
  const [text] = await Promise.all([new Response(client.stderr).text(), client.exited])
  const isRefused = /no renegotiation|unexpected message|unexpected eof|write:errno/i.test(text)
  return [structure('renegotiations that were accepted', isRefused ? 0 : 1, 0)]
}

export const tls: Attack = {
  name: 'tls',
  about: 'stalled handshakes, floods of whole ones, renegotiation, and bytes for the other port',
  async run(program, { isShort }) {
    using own = ownCertificate()
    using folder = temporaryFolderInMemory()
    const data = { ...UNLIMITED, DATA_DIR: folder.path, LOG_LEVEL: 'warn' }
    const key = await makeAccount(data, 'enterprise', program)
    const path = await (async () => {
      await using service = await Service.start(data, [], program)
      const code = await service.shorten(key, 'https://example.com/followed')
      await service.end('SIGTERM')
      return `/${code}`
    })()
    const tlsPort = freePort()
    const env = {
      ...data,
      BASE_URL: 'https://go.example',
      HTTPS_PORT: String(tlsPort),
      TLS_CERT_FILE: own.files.certificate,
      TLS_KEY_FILE: own.files.key,
    }
    await using service = await Service.start(env, [], program)
    const target = { service, tlsPort, ca: own.authority, path }
    const count = isShort ? 200 : 5000
    return [
      ...(await stalled(target, count, 1)),
      ...(isShort ? [] : await stalled(target, count, 50)),
      ...(await flood(target, isShort ? 1 : 10)),
      ...(await wrongPort(target)),
      ...(await renegotiation(target)),
    ]
  },
}
