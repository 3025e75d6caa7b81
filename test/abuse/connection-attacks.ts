import { connect, type Socket } from 'node:net'
import { Conversation } from '../support/conversation.ts'
import { freePort } from '../support/ports.ts'
import { type Attack, Attacked, type Figure, highest, structure, timing } from './attacked.ts'

/** Attacks with connections: more than there are file descriptors, or ones that are never read. */

const MIB = 1024 * 1024
/** Far longer than any answer takes, and shorter than a service waits that has no descriptor. */
const LATE_MS = 2000

const limited = (descriptors: number) => ['sh', '-c', `ulimit -n ${descriptors}; exec "$0" "$@"`]

/** An address of this machine, the same for the same `i` of `count`. */
const clientIp = (i: number, count: number) => `127.0.1.${1 + (i % count)}`

/** Connects from the address, and sends the bytes. The caller destroys the socket. */
export function sender(port: number, localAddress: string, bytes: string): Socket {
  const socket = connect({ host: '127.0.0.1', port, localAddress }, () => socket.write(bytes))
  socket.on('error', () => {})
  return socket
}

interface Client {
  /** Milliseconds until each answer; `LATE_MS` if there was none. */
  times: number[]
  end(): Promise<void>
}

/**
 * A new visitor after the other, each on a new connection. Like a browser, a visitor whose
 * connection is closed without an answer opens another one.
 */
function visitors(url: string, path: string): Client {
  const times: number[] = []
  let isEnded = false
  const ask = async () => {
    using client = await Conversation.open(url)
    client.send(`GET ${path} HTTP/1.1\r\nHost: hop.test\r\n\r\n`)
    return (await client.answers(1)).length === 1
  }
  const visit = async () => {
    const start = performance.now()
    const late = Bun.sleep(LATE_MS).then(() => LATE_MS)
    for (let ms = 0; ms === 0; ) {
      const taken = ask().then((isAnswered) => (isAnswered ? performance.now() - start : 0))
      ms = await Promise.race([taken.catch(() => 0), late])
      if (ms > 0) times.push(ms)
      else await Bun.sleep(1)
    }
  }
  const work = (async () => {
    while (!isEnded) {
      await visit()
      await Bun.sleep(10)
    }
  })()
  return {
    times,
    end: async () => {
      isEnded = true
      await work
    },
  }
}

const late = (times: readonly number[]) => times.filter((ms) => ms >= LATE_MS).length

export const idle: Attack = {
  name: 'idle connections',
  about: '600 idle connections from 200 addresses, with 400 file descriptors',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, {}, limited(400))
    const { port, path, service } = attacked
    const client = visitors(service.url, path)
    const sockets: Socket[] = []
    for (let i = 0; i < 600; i++) {
      sockets.push(sender(port, clientIp(i, 200), ''))
      if (i % 50 === 0) await Bun.sleep(10)
    }
    await Bun.sleep(isShort ? 3000 : 8000)
    await client.end()
    for (const socket of sockets) socket.destroy()
    return [
      structure('new visitors without an answer for 2 s', late(client.times), 0),
      timing('slowest redirect of a new visitor', highest(client.times), 100, 'ms'),
    ]
  },
}

const HEAD = 'POST /api/shorten HTTP/1.1\r\nHost: hop.test\r\nContent-Type: application/json\r\n'
const HALF_SENT = [
  `${HEAD}Content-Length: 100\r\n\r\n{"url":`,
  `${HEAD}Transfer-Encoding: chunked\r\n\r\n7\r\n{"url":\r\n`,
]

export const halfSent: Attack = {
  name: 'half-sent',
  about: 'requests whose body stops, with 1,024 file descriptors, from one address and from 200',
  async run(program, { isShort }) {
    const figures: Figure[] = []
    const attempts = isShort ? 1500 : 3000
    for (const addresses of [1, 200]) {
      await using attacked = await Attacked.start(program, {}, limited(1024))
      const { port, path, service } = attacked
      const redirects = visitors(service.url, path)
      const calls = visitors(service.url, '/api/status')
      const sockets: Socket[] = []
      for (let i = 0; i < attempts; i++) {
        const bytes = HALF_SENT[i % 2] as string
        sockets.push(sender(port, clientIp(i, addresses), bytes))
        if (i % 3 === 0) await Bun.sleep(isShort ? 4 : 14)
      }
      await Promise.all([redirects.end(), calls.end()])
      for (const socket of sockets) socket.destroy()
      const after = visitors(service.url, '/api/status')
      await Bun.sleep(LATE_MS)
      await after.end()
      const from = addresses === 1 ? 'one address' : `${addresses} addresses`
      figures.push(
        structure(`redirects without an answer for 2 s, ${from}`, late(redirects.times), 0),
        structure(`API requests without an answer for 2 s, ${from}`, late(calls.times), 0),
        structure(`the same once the attack is over, ${from}`, late(after.times), 0),
        timing(`slowest redirect, ${from}`, highest(redirects.times), 100, 'ms'),
      )
    }
    return figures
  },
}

export const unread: Attack = {
  name: 'unread redirects',
  about: '64 pipelined redirects to a long URL on 900 connections of 10 addresses, never read',
  async run(program, { isShort }) {
    const METRICS_LISTEN = `127.0.0.1:${freePort()}`
    await using attacked = await Attacked.start(program, { METRICS_LISTEN })
    const { port, service, victim } = attacked
    const url = `https://example.com/${'a'.repeat(8130)}`
    const code = await service.shorten(victim.key, url)
    const request = `GET /${code} HTTP/1.1\r\nHost: hop.test\r\n\r\n`
    const sockets: Socket[] = []
    let held = 0
    const observed = await attacked.observe(async () => {
      for (let i = 0; i < (isShort ? 300 : 900); i++) {
        // More than the kernel's buffers hold.
        const socket = sender(port, clientIp(i, 10), request.repeat(1024))
        sockets.push(socket.pause())
        if (i % 10 === 0) await Bun.sleep(10)
      }
      await Bun.sleep(2000)
      const page = await (await fetch(`http://${METRICS_LISTEN}/-/metrics`)).text()
      held = Number(/^hopcode_unsent_response_bytes (\d+)$/m.exec(page)?.[1])
    })
    for (const socket of sockets) socket.destroy()
    const grown = observed.residentMost - observed.residentBefore
    return [
      structure('redirects that failed', observed.failed, 0),
      structure('metrics that show no unsent bytes', held > 0 ? 0 : 1, 0),
      structure('unsent bytes in the metrics', Math.round(held / MIB), 64, 'MiB'),
      timing('memory growth', grown, 128, 'MiB'),
    ]
  },
}

const DECLARED = [
  'POST /app/sign-in HTTP/1.1',
  'Host: hop.test',
  'Content-Type: application/x-www-form-urlencoded',
  'Sec-Fetch-Site: same-origin',
  'Content-Length: 16384',
  '',
  '',
].join('\r\n')

export const unsentBodies: Attack = {
  name: 'unsent bodies',
  about: '256 requests from each of four /24 networks declare a body of 16 KiB and send none',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program)
    const { port, service, victim } = attacked
    const sockets = new Map<number, Socket>()
    const open = (i: number) => {
      const from = `127.0.${1 + (i % 4)}.${1 + (Math.floor(i / 4) % 64)}`
      sockets.set(i, sender(port, from, DECLARED))
    }
    for (let i = 0; i < 1024; i++) open(i)
    let refused = 0
    const rounds = isShort ? 20 : 160
    for (let round = 0; round < rounds; round++) {
      const body = JSON.stringify({ url: `https://victim.example/${round}` })
      // Its own limit may refuse it with 429.
      if ((await attacked.post('/api/shorten', victim, body)).status === 503) refused++
      const form = new URLSearchParams({ email: 'a@example.com', password: 'eleven silent bees' })
      const headers = { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': '192.0.2.9' }
      const { status } = await service.fetch('/app/sign-in', {
        method: 'POST',
        headers,
        body: form,
      })
      if (status === 503) refused++
      // What was closed comes back.
      for (const [i, socket] of sockets) if (socket.destroyed) open(i)
      await Bun.sleep(100)
    }
    for (const socket of sockets.values()) socket.destroy()
    return [structure(`requests that were refused, of ${2 * rounds}`, refused, 0)]
  },
}
