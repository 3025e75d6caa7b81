import { createServer, type Socket } from 'node:net'

/** Receives requests of the service. Disposal ends it. */
export interface Receiver extends Disposable {
  port: number
}

/** Accepts connections and answers nothing. */
export const silentReceiver = (): Promise<Receiver> => listen(() => {})

const EMPTY = 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'

/** Answers each request after `delayMs` with 204. `onRequest`: called for each. */
export const slowReceiver = (delayMs: number, onRequest: () => void): Promise<Receiver> =>
  listen((socket) =>
    socket.once('data', () => {
      onRequest()
      setTimeout(() => socket.end(EMPTY), delayMs)
    }),
  )

/** All addresses of this machine, 127.0.0.0/8 among them. */
async function listen(onConnection: (socket: Socket) => void): Promise<Receiver> {
  const server = createServer((socket) => {
    onConnection(socket.on('error', () => {}))
    socket.resume()
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  const { port } = server.address() as { port: number }
  return { port, [Symbol.dispose]: () => void server.close() }
}
