import { expect, test } from 'bun:test'
import {
  type AddressUsage,
  ConnectionLimits,
  type LimitedConnection,
  limitsPerThread,
  type ThreadLimits,
} from './connection-limits.ts'

const MIB = 1024 * 1024

/** A connection without a socket. */
class Client implements LimitedConnection {
  readonly usage: AddressUsage
  readonly #limits: ConnectionLimits<Client>
  bytes = 0
  lastActive: number
  waitsForClient = true
  hasRequest = false
  isUpload = false
  hasUpstream = false

  constructor(limits: ConnectionLimits<Client>, address: string, lastActive = 0) {
    this.#limits = limits
    this.usage = limits.usageOf(address, address === 'proxy')
    this.lastActive = lastActive
    limits.open(this)
  }

  get isOpen(): boolean {
    return this.#limits.connections.has(this)
  }

  /** Sends a request for the control thread. Returns whether it is forwarded. */
  request({ isUpload = false } = {}): boolean {
    this.isUpload = isUpload
    this.resume()
    return this.hasRequest
  }

  resume(): void {
    this.hasUpstream = this.#limits.admit(this) || this.hasUpstream
    this.waitsForClient = !this.hasRequest || this.isUpload
  }

  answered(): void {
    this.waitsForClient = true
    this.#limits.endRequest(this)
  }

  endUpstream(): void {
    if (!this.hasUpstream) return
    this.hasUpstream = false
    this.#limits.closeUpstream(this)
  }

  terminate(): void {
    this.#limits.close(this)
    this.endUpstream()
  }
}

const FEW: ThreadLimits = { connectionsMax: 6, upstreamsMax: 16, bytesMax: 16 * MIB }

function limited(limits: Partial<ThreadLimits> = {}) {
  const closed: string[] = []
  const found = new ConnectionLimits<Client>({ ...FEW, ...limits }, (limit) => closed.push(limit))
  const open = (count: number, address: string) =>
    Array.from({ length: count }, (_, i) => new Client(found, address, i))
  return { limits: found, closed, open }
}

const areOpen = (clients: readonly Client[]) => clients.map(({ isOpen }) => isOpen)

test('above the limit, the connection of the busiest address that was idle longest is closed', () => {
  const { limits, closed, open } = limited()
  const known = open(2, 'known')
  const flood = open(4, 'flood')
  const [first, second] = flood as [Client, Client]
  first.lastActive = 9
  const added = new Client(limits, 'other', 10)
  expect(areOpen(flood)).toEqual([true, false, true, true])
  expect(second.isOpen).toBe(false)
  expect(areOpen([...known, added])).toEqual([true, true, true])
  expect(closed).toEqual(['connections'])
})

test('a connection whose request is being answered is not closed for another one', () => {
  const { limits, open } = limited()
  const busy = open(4, 'busy')
  for (const client of busy) expect(client.request()).toBe(true)
  const [idle] = open(1, 'idle') as [Client]
  const added = [new Client(limits, 'a', 1), new Client(limits, 'b', 2)]
  expect(areOpen([...busy, idle, ...added])).toEqual([true, true, true, true, false, true, true])
})

test('with nothing else to close, the new connection is closed', () => {
  const { open } = limited({ connectionsMax: 2 })
  const busy = [...open(1, 'a'), ...open(1, 'b')]
  for (const client of busy) client.request()
  expect(areOpen([...busy, ...open(1, 'c')])).toEqual([true, true, false])
})

test('an address has a share of the requests; the others of it wait and follow', () => {
  const { open } = limited({ connectionsMax: 100 })
  const clients = open(6, 'many')
  expect(clients.map((client) => client.request())).toEqual([true, true, true, true, false, false])
  expect(open(1, 'other')[0]?.request()).toBe(true)
  clients[0]?.answered()
  const waiting = [...clients.keys()].filter((i) => !clients[i]?.hasRequest)
  expect(waiting).toEqual([0, 5])
})

test('a trusted proxy has no share: its clients have one address', () => {
  const { open } = limited({ connectionsMax: 100 })
  expect(open(10, 'proxy').map((client) => client.request())).not.toContain(false)
})

test('uploads leave room for complete requests, from one address and from many', () => {
  const { open } = limited({ connectionsMax: 100 })
  const upload = (address: string) => open(1, address)[0]?.request({ isUpload: true })
  const one = Array.from({ length: 4 }, () => upload('one'))
  expect(one).toEqual([true, true, false, false])
  expect(open(1, 'one')[0]?.request()).toBe(true)
  const many = Array.from({ length: 20 }, (_, i) => upload(`many ${i}`))
  expect(many.filter(Boolean)).toHaveLength(6)
  expect(open(1, 'other')[0]?.request()).toBe(true)
})

test('an upload that has arrived makes room for the next one', () => {
  const { limits, open } = limited()
  const [first, second, third] = open(3, 'one') as [Client, Client, Client]
  for (const client of [first, second, third]) client.request({ isUpload: true })
  expect(third.hasRequest).toBe(false)
  limits.endUpload(first)
  expect(third.hasRequest).toBe(true)
})

test('a request that waits gets the upstream of the connection that was idle longest', async () => {
  const { limits } = limited({ connectionsMax: 100, upstreamsMax: 2 })
  const [first, second, third] = ['a', 'b', 'c'].map((address) => new Client(limits, address))
  for (const client of [first, second]) client?.request()
  for (const client of [second, first]) client?.answered()
  expect(third?.request()).toBe(false)
  await Promise.resolve()
  expect([first?.hasUpstream, second?.hasUpstream, third?.hasRequest]).toEqual([true, false, true])
})

test('an upstream that is used again at once does not end for a request that waits', async () => {
  const { limits, open } = limited({ connectionsMax: 100, upstreamsMax: 4 })
  const [again, first, second] = open(3, 'a') as [Client, Client, Client]
  const oldest = new Client(limits, 'b')
  for (const client of [oldest, again]) {
    client.request()
    client.answered()
  }
  for (const client of [first, second]) client.request()
  expect(again.request()).toBe(false)
  await Promise.resolve()
  expect([oldest.hasUpstream, again.hasUpstream]).toEqual([false, true])
  new Client(limits, 'c').request()
  const waiting = new Client(limits, 'd')
  expect(waiting.request()).toBe(false)
  first.answered()
  await Promise.resolve()
  expect([again.hasRequest, again.hasUpstream]).toEqual([true, true])
  expect([first.hasUpstream, waiting.hasRequest]).toEqual([false, true])
})

test('a connection to the control thread ends before Bun closes it', () => {
  const { limits, open } = limited()
  const [client] = open(1, 'a') as [Client]
  client.request()
  client.answered()
  limits.check(20_000)
  expect(client.hasUpstream).toBe(true)
  limits.check(21_000)
  expect([client.hasUpstream, client.isOpen]).toEqual([false, true])
})

test('the address with the fewest requests is next', () => {
  const { limits, open } = limited({ connectionsMax: 100, upstreamsMax: 4 })
  const busy = [...open(2, 'a'), ...open(2, 'b')]
  for (const client of busy) client.request()
  const [more] = open(1, 'a') as [Client]
  const other = new Client(limits, 'c')
  expect([more.request(), other.request()]).toEqual([false, false])
  busy[0]?.terminate()
  expect([more.hasRequest, other.hasRequest]).toEqual([false, true])
})

test('stalled uploads end while others wait, and only then', () => {
  const { limits, open, closed } = limited()
  const uploads = open(2, 'one')
  for (const client of uploads) client.request({ isUpload: true })
  limits.check(60_000)
  expect(areOpen(uploads)).toEqual([true, true])
  const [next] = open(1, 'one') as [Client]
  next.lastActive = 60_000
  expect(next.request({ isUpload: true })).toBe(false)
  ;(uploads[1] as Client).lastActive = 59_000
  limits.check(60_000)
  expect([...areOpen(uploads), next.hasRequest]).toEqual([false, true, true])
  expect(closed).toEqual(['requests'])
})

test('the memory of an address is limited, and that of all: the largest of the largest ends', () => {
  const { limits, open, closed } = limited({ connectionsMax: 100 })
  const [first, second] = open(2, 'one') as [Client, Client]
  limits.setBytes(first, 3 * MIB)
  limits.setBytes(second, 2 * MIB)
  expect(areOpen([first, second])).toEqual([true, false])
  const others = Array.from({ length: 5 }, (_, i) => new Client(limits, `other ${i}`))
  const [most] = others as [Client]
  for (const client of others) limits.setBytes(client, client === most ? 4 * MIB : 2 * MIB)
  expect(limits.bytes).toBe(15 * MIB)
  const proxied = open(2, 'proxy')
  limits.setBytes(proxied[0] as Client, MIB)
  limits.setBytes(proxied[1] as Client, MIB)
  expect(areOpen([first, most, ...proxied])).toEqual([true, false, true, true])
  expect(areOpen(others.slice(1))).not.toContain(false)
  expect(limits.bytes).toBe(13 * MIB)
  expect(closed).toEqual(['bytes', 'bytes'])
  for (const client of limits.connections) client.terminate()
  expect(limits.bytes).toBe(0)
})

test.each([128, 256, 400, 1024, 65_536])(
  'of %p descriptors, at least an eighth and 40 remain for the service itself',
  (descriptors) => {
    for (const threads of [1, 2, 4]) {
      const { connectionsMax, upstreamsMax } = limitsPerThread(descriptors, threads)
      const used = threads * (connectionsMax + 3 * upstreamsMax)
      expect(descriptors - used).toBeGreaterThanOrEqual(Math.max(40, descriptors / 8))
      expect(connectionsMax).toBeGreaterThan(upstreamsMax)
    }
  },
)
