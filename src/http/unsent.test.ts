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

test('unread responses fill the share of one account: 503 with Retry-After for it alone', async () => {
  await using service = bigService()
  const socket = await service.askUnread(1)
  const refused = await service.ask('GET', '/big', 1)
  expect(refused.status).toBe(503)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await service.ask('GET', '/small', 1)).status).toBe(200)
  const other = await service.ask('GET', '/big', 2)
  expect(other.status).toBe(200)
  expect(await other.json()).toBe(BIG)
  // The result of a write must be sent, whatever its size.
  const done = await service.ask('POST', '/big', 1)
  expect(done.status).toBe(201)
  expect(await done.json()).toBe(BIG)
  socket.destroy()
  await eventually('the bytes are given back', () => service.unsent.bytes === 0)
  expect((await (await service.ask('GET', '/big', 1)).json()) === BIG).toBe(true)
})

test('many accounts cannot hold more than the total', async () => {
  await using service = bigService()
  const sockets: Socket[] = []
  for (let account = 1; account <= 5; account++) sockets.push(await service.askUnread(account))
  expect((await service.ask('GET', '/big', 6)).status).toBe(503)
  expect(() => service.unsent.requireRoom(1)).not.toThrow()
  for (const socket of sockets) socket.destroy()
  await eventually('the bytes are given back', () => service.unsent.bytes === 0)
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
