import { expect, test } from 'bun:test'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { TcpProxy } from './tcp-proxy.ts'

/** Sends back what it receives. */
async function echoServer() {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.dispose]: () => void server.close(),
  }
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return socket
}

const ask = (socket: Socket, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    socket.once('data', (bytes) => resolve(bytes.toString()))
    socket.once('close', () => reject(new Error('closed')))
    socket.write(text)
  })

test('a proxy passes bytes, holds them back while it stalls, and cuts connections', async () => {
  using server = await echoServer()
  await using proxy = await TcpProxy.start(server.port)
  const socket = await open(proxy.port)
  socket.on('error', () => {})
  expect(await ask(socket, 'first')).toBe('first')

  proxy.stall('down')
  const held = ask(socket, 'held')
  const first = await Promise.race([held, Bun.sleep(50).then(() => 'nothing yet')])
  expect(first).toBe('nothing yet')
  proxy.restore()
  expect(await held).toBe('held')

  const closed = new Promise((resolve) => socket.once('close', resolve))
  proxy.cut()
  await closed
  const next = await open(proxy.port)
  expect(await ask(next, 'next')).toBe('next')
  next.destroy()
})

test('a disconnected proxy resets new connections until it is restored', async () => {
  using server = await echoServer()
  await using proxy = await TcpProxy.start(server.port)
  proxy.disconnect()
  const refused = open(proxy.port).then((socket) => {
    socket.on('error', () => {})
    return ask(socket, 'lost')
  })
  expect(await refused.catch(() => 'reset')).toBe('reset')
  proxy.restore()
  const socket = await open(proxy.port)
  expect(await ask(socket, 'again')).toBe('again')
  socket.destroy()
})
