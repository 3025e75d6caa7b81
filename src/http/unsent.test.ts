import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { Elysia } from 'elysia'
import { eventually } from '../../test/support/app.ts'
import { AppError } from '../errors.ts'
import { ClientAddress } from '../hot/client-address.ts'
import { countUnsent, longJson, UnsentResponses } from './unsent.ts'

const MIB = 1024 * 1024
/** More than the kernel's buffers of a connection take. */
const BIG = 'x'.repeat(12 * MIB)

/** A service whose `/big` gives 12 MiB to the account that the header `account` names. */
function bigService() {
  const unsent = new UnsentResponses()
  const app = new Elysia()
    .onError(({ error, set }) => {
      if (!(error instanceof AppError)) throw error
      Object.assign(set.headers, error.headers)
      set.status = error.status
      return { error: error.message }
    })
    .use(countUnsent({ unsent, address: new ClientAddress([]) }))
    .derive(({ request }) => ({ account: { id: Number(request.headers.get('account')) } }))
    .get('/big', () => longJson(BIG))
    .post('/big', () => longJson(BIG, 201))
    .get('/small', () => longJson('x'))
    .listen({ hostname: '127.0.0.1', port: 0 })
  const { port } = app.server ?? {}
  const ask = (method: string, path: string, account: number) =>
    fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { account: String(account) } })
  /** Asks for `/big` and does not read on. */
  const askUnread = async (account: number): Promise<Socket> => {
    const before = unsent.bytes
    const socket = connect(port ?? 0, '127.0.0.1')
    socket.once('data', () => socket.pause())
    socket.write(`GET /big HTTP/1.1\r\nHost: x\r\naccount: ${account}\r\n\r\n`)
    await eventually('the response is counted', () => unsent.bytes > before)
    return socket
  }
  const stop = async () => {
    await app.stop(true)
  }
  return { unsent, ask, askUnread, [Symbol.asyncDispose]: stop }
}

test('unread responses of few accounts refuse nobody: the oldest of the largest is closed', async () => {
  await using service = bigService()
  const sockets: Socket[] = []
  for (const account of [1, 1, 2, 3, 1]) sockets.push(await service.askUnread(account))
  const [oldest] = sockets as [Socket]
  const closed = new Promise((resolve) => oldest.on('error', () => {}).once('close', resolve))
  const [get, small, post] = await Promise.all([
    service.ask('GET', '/big', 4),
    service.ask('GET', '/small', 5),
    service.ask('POST', '/big', 6),
  ])
  expect([get.status, small.status, post.status]).toEqual([200, 200, 201])
  expect(await get.json()).toBe(BIG)
  expect(await post.json()).toBe(BIG)
  oldest.resume()
  await closed
  expect(service.unsent.bytes).toBeLessThanOrEqual(64 * MIB)
  for (const socket of sockets) socket.destroy()
  await eventually('the bytes are given back', () => service.unsent.bytes === 0)
})

test('a generated body whose client does not read is closed for one that does, and its source ends', async () => {
  const unsent = new UnsentResponses()
  let ended = 0
  async function* endless() {
    try {
      for (;;) yield 'x'.repeat(1000)
    } finally {
      ended++
    }
  }
  const bodies: ReadableStream<Uint8Array>[] = []
  for (let n = 0; n < 33; n++) bodies.push(await unsent.generate(1, endless()))
  expect(unsent.bytes).toBe(64 * MIB)
  await expect(new Response(bodies[0]).bytes()).rejects.toThrow('Too much data')
  const own = await unsent.generate(2, endless())
  const reader = own.getReader()
  expect((await reader.read()).value).toHaveLength(1000)
  expect(ended).toBe(2)
  await reader.cancel()
  expect(ended).toBe(3)
})

test('a response to HEAD is not held', async () => {
  await using service = bigService()
  for (let n = 0; n < 3; n++) {
    const { status, headers } = await service.ask('HEAD', '/big', 1)
    expect({ status, type: headers.get('content-type') }).toEqual({
      status: 200,
      type: 'application/json;charset=utf-8',
    })
  }
  await eventually('the bytes are given back', () => service.unsent.bytes === 0)
})
