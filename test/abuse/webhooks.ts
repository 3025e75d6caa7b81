import { readdirSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { type Attack, Attacked, type Member, p99, structure, timing } from './attacked.ts'

/** Attacks by the receivers of webhooks, and by those who name them. */

/** Of the receivers of the attacker. */
const NAMES = ['hang.test', 'flood.test', 'redirect.test']
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n'
const MEBIBYTE = 'x'.repeat(1024 * 1024)

/** A server on this machine, with what it does with a connection. */
async function listener(accept: (socket: Socket) => void) {
  const state = { connections: 0, port: 0 }
  const server: Server = createServer((socket) => {
    state.connections++
    socket.on('error', () => {}).resume()
    accept(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  state.port = (server.address() as { port: number }).port
  const close = () => void server.close()
  return Object.assign(state, { [Symbol.dispose]: close })
}

const endless = (socket: Socket): void => {
  socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`)
  const chunk = `${MEBIBYTE.length.toString(16)}\r\n${MEBIBYTE}\r\n`
  const fill = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.on('drain', fill)
  fill()
}

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

async function addWebhook(attacked: Attacked, { key }: Member, url: string): Promise<number> {
  const json = { url, events: ['link.created'] }
  const { status } = await attacked.service.post('/api/webhooks', key, json)
  return status
}

/** Names and addresses of this machine and its network, each with the port of a trap. */
const insideUrls = (port: number): string[] => [
  `https://localhost:${port}/`,
  `https://localhost.:${port}/`,
  `https://127.0.0.1:${port}/`,
  `https://[::1]:${port}/`,
  `https://[::ffff:127.0.0.1]:${port}/`,
  `https://2130706433:${port}/`,
  `https://0x7f.1:${port}/`,
  `http://localhost:${port}/`,
]

export const webhooks: Attack = {
  name: 'webhooks',
  about: 'receivers that hang, redirect inside, never end their answer, or are inside themselves',
  async run(program, { isShort }) {
    using trap = await listener(() => {})
    using hanging = await listener(() => {})
    using flood = await listener(endless)
    using redirecting = await listener((socket) => {
      const location = `Location: http://127.0.0.1:${trap.port}/`
      socket.end(`HTTP/1.1 302 Found\r\n${location}\r\nContent-Length: 0\r\n\r\n`)
    })
    const named = [hanging, flood, redirecting].map(
      ({ port }, at) => `http://${NAMES[at]}:${port}/`,
    )
    // The receivers of the attacker are "outside" by their names, which lead to this machine.
    const line = `127.0.0.1 ${NAMES.join(' ')}`
    const prepare =
      `HOSTS=$(mktemp); cat /etc/hosts > "$HOSTS"; echo "${line}" >> "$HOSTS"; ` +
      'mount --bind "$HOSTS" /etc/hosts; exec "$0" "$@"'
    const settings = { OUTGOING_HOSTS: NAMES.join(), ANONYMOUS_READS_PER_MINUTE: '0' }
    const wrap = ['unshare', '--mount', 'sh', '-c', prepare]
    await using attacked = await Attacked.start(program, settings, wrap)
    const { attacker, victim, service } = attacked
    const quiet = await attacked.observe(() => Bun.sleep(isShort ? 300 : 5000))
    const before = descriptorsOf(service.pid)
    let descriptorsMost = before
    for (const url of named) await addWebhook(attacked, attacker, url)
    for (const url of insideUrls(trap.port)) await addWebhook(attacked, victim, url)
    const [visits, api] = await attacked.observeBoth(async () => {
      const until = performance.now() + (isShort ? 3000 : 20_000)
      for (let n = 0; performance.now() < until; n++) {
        for (const { key } of [attacker, victim])
          await service.shorten(key, `https://a.example/${n}`)
        descriptorsMost = Math.max(descriptorsMost, descriptorsOf(service.pid))
        await Bun.sleep(100)
      }
    })
    const attempts = await attemptsOf(attacked, [attacker, victim])
    const errors = new Set(attempts.map(({ error, status }) => error ?? String(status)))
    const ratio = p99(visits.latencies) / p99(quiet.latencies)
    return [
      structure('connections inside', trap.connections, 0),
      structure('attempts inside that were not refused', notRefused(attempts), 0),
      structure('receivers that were not tried', 3 - triedOf(hanging, flood, redirecting), 0),
      structure(
        'redirects and 200 not seen',
        ['302', '200'].filter((one) => !errors.has(one)).length,
        0,
      ),
      structure('timeouts not seen', isShort || errors.has('timeout') ? 0 : 1, 0),
      structure('memory', visits.residentMost - visits.residentBefore, 100, 'MiB'),
      structure('more descriptors', descriptorsMost - before, 64),
      structure('redirects that failed', visits.failed, 0),
      structure('API calls that failed', api.failed, 0),
      timing('p99 of redirects, beside a quiet service', ratio, 1.1, 'x'),
    ]
  },
}

const triedOf = (...all: { connections: number }[]): number =>
  all.filter(({ connections }) => connections > 0).length

interface Attempt {
  url: string
  status: number | null
  error: string | null
}

const notRefused = (attempts: readonly Attempt[]): number =>
  attempts.filter(
    ({ url, error }) =>
      !NAMES.some((name) => url.includes(name)) &&
      !/^(address_not_allowed|no_such_name)$/.test(error ?? ''),
  ).length

async function attemptsOf(attacked: Attacked, members: readonly Member[]): Promise<Attempt[]> {
  const read = async <Item>(path: string, member: Member): Promise<Item[]> =>
    ((await (await attacked.get(path, member)).json()) as { items: Item[] }).items
  const found: Attempt[] = []
  for (const member of members) {
    for (const { id, url } of await read<{ id: number; url: string }>('/api/webhooks', member)) {
      const items = await read<Omit<Attempt, 'url'>>(`/api/webhooks/${id}/deliveries`, member)
      found.push(...items.map((one) => ({ ...one, url })))
    }
  }
  return found
}
