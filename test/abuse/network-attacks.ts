import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { mainThreadSecondsOf } from '../../bench/lib/process-stats.ts'
import { median } from '../../bench/lib/rounds.ts'
import { Conversation } from '../support/conversation.ts'
import { PASSWORD, Visitor } from '../support/dashboard.ts'
import { freshIpv4, ipv6Networks } from './addresses.ts'
import { type Attack, Attacked, p99, structure, timing } from './attacked.ts'
import { timeSignIns } from './passwords.ts'

/** Attacks from many addresses. */

/** The `i`-th /64 of one /56. */
const inOnePrefix = (i: number) => `2001:db8:aa:bb${(i & 255).toString(16).padStart(2, '0')}::1`

/** Sends one request from each address, many on one connection at once, and counts the answers. */
async function flood(port: number, path: string, clients: readonly string[]): Promise<void> {
  const AT_ONCE = 200
  const socket = connect({ host: '127.0.0.1', port })
  let answered = 0
  let next: (() => void) | undefined
  let rest = ''
  socket.on('data', (chunk) => {
    const text = rest + chunk.toString('latin1')
    answered += text.split('HTTP/1.1 ').length - 1
    // An answer's first line may be cut: its beginning is kept, and nothing that was counted.
    rest = /HTTP?\/?1?\.?1?$/.exec(text)?.[0] ?? ''
    next?.()
  })
  const closed = new Promise<never>((_, reject) => {
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the service closed the connection')))
  })
  closed.catch(() => {})
  for (let at = 0; at < clients.length; at += AT_ONCE) {
    const some = clients.slice(at, at + AT_ONCE)
    const wanted = answered + some.length
    const requests = some.map(
      (client) => `GET ${path} HTTP/1.1\r\nHost: hop.test\r\nX-Forwarded-For: ${client}\r\n\r\n`,
    )
    socket.write(requests.join(''))
    while (answered < wanted) {
      const more = new Promise<void>((resolve) => {
        next = resolve
      })
      await Promise.race([more, closed])
    }
  }
  socket.removeAllListeners('close')
  socket.destroy()
}

export const addresses: Attack = {
  name: 'addresses',
  about: '500,000 addresses within a minute, then 400 new visitors of a link',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, { ANONYMOUS_REDIRECTS_PER_MINUTE: '6000' })
    const { port, path, service } = attacked
    const count = isShort ? 4000 : 500_000
    const CONNECTIONS = 8
    const share = count / CONNECTIONS
    const clients = [...ipv6Networks(count)]
    const shares = Array.from({ length: CONNECTIONS }, (_, n) =>
      clients.slice(n * share, (n + 1) * share),
    )
    const start = performance.now()
    await Promise.all(shares.map((some) => flood(port, path, some)))
    const seconds = (performance.now() - start) / 1000
    let refused = 0
    for (const from of freshIpv4(400, 100)) {
      const answer = await service.fetch(path, { headers: { 'x-forwarded-for': from } })
      if (answer.status !== 302) refused++
    }
    return [
      structure('seconds of the flood', Math.round(seconds), 60, 's'),
      structure('new visitors that were refused, of 400', refused, 0),
    ]
  },
}

interface Form {
  cookie: string
  csrf: string
}

async function formOf(attacked: Attacked, path: string): Promise<Form> {
  const browser = new Visitor(attacked.service, { from: '192.0.2.50' })
  const { csrf } = await browser.get(path)
  const { cookie } = browser
  return { cookie, csrf }
}

const post = (attacked: Attacked, path: string, { cookie }: Form, from: string, body: object) =>
  attacked.service.fetch(path, {
    method: 'POST',
    headers: { cookie, 'x-forwarded-for': from, 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams(body as Record<string, string>),
  })

/** Sign-ins that a right password did not open, one after the other while `busy` goes on. */
async function refusedSignIns(
  attacked: Attacked,
  browser: (i: number) => Promise<Visitor> | Visitor,
  times: number,
): Promise<number> {
  let refused = 0
  for (let i = 0; i < times; i++) {
    const visitor = await browser(i)
    const { status } = await visitor.signIn(attacked.victim.email)
    if (status !== 303) refused++
    await Bun.sleep(100)
  }
  return refused
}

export const signIns: Attack = {
  name: 'sign-ins',
  about: 'a sign-in queue that is kept full from one /56, then by one member',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program)
    const { attacker, victim } = attacked
    const known = await attacked.signIn(victim, '203.0.113.9')
    const times = isShort ? 2 : 8
    const alone = await timeSignIns(attacked, (count) => count >= (isShort ? 3 : 30))
    const connections = 140
    const form = await formOf(attacked, '/app/sign-in')
    let isDone = false
    const hold = async (i: number, ask: (from: string) => Promise<Response>) => {
      for (let n = 0; !isDone; n++) {
        const answer = await ask(inOnePrefix(i * 7 + n)).catch(() => undefined)
        await answer?.arrayBuffer()
        await Bun.sleep(answer?.status === 503 ? 20 : 0)
      }
    }
    const anonymous = Array.from({ length: connections }, (_, i) =>
      hold(i, (from) =>
        post(attacked, '/app/sign-in', form, from, {
          csrf: form.csrf,
          email: `nobody${i}@example.com`,
          password: 'wrong guess',
        }),
      ),
    )
    await Bun.sleep(500)
    const elsewhere = (i: number) =>
      new Visitor(attacked.service, { from: `203.${i}.113.${10 + i}` })
    const refusedAnew = await refusedSignIns(attacked, elsewhere, times)
    isDone = true
    await Promise.all(anonymous)

    const member = await attacked.signIn(attacker, '192.0.2.7')
    const { csrf } = await member.get('/app/account')
    const { cookie } = member
    const own: Form = { cookie, csrf }
    isDone = false
    const changes = { csrf, current: PASSWORD, password: PASSWORD }
    const loop = Array.from({ length: 60 }, (_, i) =>
      hold(i, () => post(attacked, '/app/account/security/password', own, '192.0.2.7', changes)),
    )
    await Bun.sleep(500)
    const browserWithoutSession = () => {
      known.cookies.delete('hopcode')
      return known
    }
    const refusedKnown = await refusedSignIns(attacked, browserWithoutSession, times)
    isDone = true
    await Promise.all(loop)
    return [
      structure(`sign-ins from other networks that were refused, of ${times}`, refusedAnew, 0),
      structure(`sign-ins of a known browser that were refused, of ${times}`, refusedKnown, 0),
      timing('a sign-in before the attack, the median', median(alone.times), 500, 'ms'),
    ]
  },
}

export const staticFiles: Attack = {
  name: 'static files',
  about: 'the largest file of the service, read on four connections without a pause',
  async run(program, { isShort }) {
    const ANONYMOUS_READS_PER_MINUTE = isShort ? '20' : '300'
    await using attacked = await Attacked.start(program, { ANONYMOUS_READS_PER_MINUTE })
    let answered = 0
    let bytes = 0
    const observed = await attacked.observe(async () => {
      const until = performance.now() + (isShort ? 1000 : 8000)
      const read = async (_: unknown, i: number) => {
        const headers = { 'x-forwarded-for': `192.0.2.${i}`, 'accept-encoding': 'identity' }
        while (performance.now() < until) {
          const response = await attacked.service.fetch('/docs/bundle.js', { headers })
          if (response.status === 200) answered++
          bytes += (await response.arrayBuffer()).byteLength
        }
      }
      await Promise.all([0, 1, 2, 3].map(read))
    })
    return [
      structure('files that were sent', answered, isShort ? 80 : 1200),
      structure('redirects that failed', observed.failed, 0),
      timing('bytes per second', bytes / 8 / 1024 ** 2, 256, 'MiB'),
      timing('p99 of redirects meanwhile', p99(observed.latencies), 50, 'ms'),
    ]
  },
}

export const signUps: Attack = {
  name: 'sign-ups',
  about: 'accounts from 200 networks /64 of one /48, where anybody can sign up',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, { SIGNUP: 'open' })
    const count = isShort ? 40 : 200
    let created = 0
    for (let i = 0; i < count; i++) {
      const visitor = new Visitor(attacked.service, { from: `2001:db8:aa:${i.toString(16)}::1` })
      const sent = { email: `user${i}@example.com`, password: PASSWORD }
      const { status } = await visitor.post('/app/sign-up', sent)
      if (status < 400) created++
    }
    return [structure(`accounts, of ${count} attempts`, created, 20)]
  },
}

/** A TCP socket of this machine: its local port, and that of its peer. */
interface TcpSocket {
  port: number
  peerPort: number
  inode: string
}

function tcpSockets(): TcpSocket[] {
  const [, ...lines] = readFileSync('/proc/net/tcp', 'latin1').trim().split('\n')
  return lines.map((line) => {
    const [, local = '', peer = '', , , , , , , inode = ''] = line.trim().split(/\s+/)
    const portOf = (address: string) => Number.parseInt(address.split(':')[1] ?? '', 16)
    return { port: portOf(local), peerPort: portOf(peer), inode }
  })
}

/** The TCP sockets of a process. */
function socketsOf(pid: number): TcpSocket[] {
  const folder = `/proc/${pid}/fd`
  const links = readdirSync(folder).map((name) => {
    try {
      return readlinkSync(`${folder}/${name}`)
    } catch {
      return 'closed meanwhile'
    }
  })
  return tcpSockets().filter(({ inode }) => links.includes(`socket:[${inode}]`))
}

export const impostors: Attack = {
  name: 'impostors',
  about: 'a process on the same machine uses the ports of connections between the threads',
  async run(program) {
    await using attacked = await Attacked.start(program)
    const { port, service } = attacked
    const request = 'GET /api/status HTTP/1.1\r\nHost: hop.test\r\n\r\n'
    const remaining = async (visitor: Conversation, count: number) => {
      visitor.send(request)
      const answers = await visitor.answers(count)
      return Number(answers.at(-1)?.headers.get('x-ratelimit-remaining'))
    }
    using visitor = await Conversation.open(service.url)
    const before = await remaining(visitor, 1)
    const sockets = socketsOf(service.pid)
    const listening = sockets.filter(({ peerPort }) => peerPort === 0)
    const controlPort = listening.find((one) => one.port !== port)?.port ?? 0
    const links = sockets.filter(({ peerPort }) => peerPort === controlPort)
    let answered = 0
    for (const { port: localPort } of links) {
      const socket = connect({
        host: '127.0.0.1',
        port: controlPort,
        localAddress: '127.0.0.2',
        localPort,
      })
      socket.on('data', () => answered++)
      socket.end(request.repeat(20))
      await new Promise((resolve) => socket.on('error', () => {}).on('close', resolve))
    }
    const spent = before - (await remaining(visitor, 2)) - 1
    return [
      structure('connections that were not found', links.length > 0 && answered > 0 ? 0 : 1, 0),
      structure('requests of a visitor that the process spent', spent, 0),
    ]
  },
}

export const queries: Attack = {
  name: 'queries',
  about: 'queries of a thousand parameters to a link that forwards them to a URL of two thousand',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program)
    const { attacker, service } = attacked
    const url = `https://example.com/?${'%61&'.repeat(2000)}`
    const code = await service.shorten(attacker.key, url)
    const changed = await service.fetch(`/api/links/${code}`, {
      method: 'PATCH',
      headers: { 'x-api-key': attacker.key, 'content-type': 'application/json' },
      body: JSON.stringify({ forward_query: true }),
    })
    if (changed.status !== 200) throw new Error(`the link cannot be changed: ${changed.status}`)
    const forwardedBytes = async (query: string) => {
      const { headers } = await service.fetch(`/${code}?${query}`)
      return headers.get('location')?.endsWith(query) ? query.length : 0
    }
    const forwarded = await forwardedBytes('%62&'.repeat(1900))
    const path = `/${code}?${'%62&'.repeat(1024)}`
    let asked = 0
    const controlBefore = mainThreadSecondsOf(service.pid)
    const observed = await attacked.observe(async () => {
      const until = performance.now() + (isShort ? 1000 : 8000)
      const ask = async () => {
        while (performance.now() < until) {
          await service.fetch(path)
          asked++
        }
      }
      await Promise.all([ask(), ask(), ask(), ask()])
    })
    const controlMs = ((mainThreadSecondsOf(service.pid) - controlBefore) * 1000) / asked
    const { latencies, failed } = observed
    return [
      structure('bytes that were forwarded of a query of 7,600', forwarded, 4096),
      structure('redirects that failed', failed, 0),
      timing('time of the control thread per request', controlMs, 0.2, 'ms'),
      timing('p99 of redirects meanwhile', p99(latencies), 100, 'ms'),
    ]
  },
}
