import { createServer } from 'node:net'

/** Accepts connections and answers nothing. Disposal ends it. */
export async function silentReceiver(): Promise<Disposable & { url: string }> {
  const server = createServer((socket) => socket.on('error', () => {}).resume())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}/`, [Symbol.dispose]: () => void server.close() }
}
