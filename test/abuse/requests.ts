import { connect, type Socket } from 'node:net'

/** Requests that a well-behaved client never sends. */

const opened = (port: number) =>
  new Promise<Socket>((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () => resolve(socket))
    socket.once('error', reject)
  })

/** Sends the head and most of a body, and then nothing more. The caller destroys the socket. */
export async function stalledBody(
  port: number,
  { path, key, bytes, sent }: { path: string; key: string; bytes: number; sent: number },
): Promise<Socket> {
  const socket = await opened(port)
  socket.on('error', () => {})
  socket.write(
    [
      `POST ${path} HTTP/1.1`,
      'Host: hop.test',
      `X-API-Key: ${key}`,
      'Content-Type: application/json',
      `Content-Length: ${bytes}`,
      '',
      '',
    ].join('\r\n'),
  )
  const piece = Buffer.alloc(64 * 1024, 32)
  for (let left = sent; left > 0 && !socket.destroyed; left -= piece.length) {
    const isTaken = socket.write(piece.subarray(0, Math.min(left, piece.length)))
    if (!isTaken) await Promise.race([drained(socket), Bun.sleep(200)])
  }
  return socket
}

const drained = (socket: Socket) => new Promise<void>((resolve) => socket.once('drain', resolve))

/** Asks for an answer and reads nothing of it. The caller destroys the socket. */
export async function unreadAnswer(port: number, path: string, key: string): Promise<Socket> {
  const socket = await opened(port)
  socket.on('error', () => {})
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: hop.test\r\nX-API-Key: ${key}\r\n\r\n`)
  return socket
}

/** The status of an answer that has come meanwhile; undefined for none. */
export function statusOf(socket: Socket): Promise<number | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => done(undefined), 500)
    const done = (status: number | undefined) => {
      clearTimeout(timer)
      resolve(status)
    }
    socket.once('data', (chunk: Buffer) => {
      done(Number(chunk.toString('latin1').split(' ', 2)[1]))
    })
    socket.once('close', () => done(undefined))
    socket.resume()
  })
}
