import { Connection, type ConnectionContext } from './connection.ts'

/** Accepts connections on a port that several threads of this process may share. */
export function listenForClients(
  { hostname, port }: { hostname: string; port: number },
  context: ConnectionContext,
): Bun.TCPSocketListener<Connection> {
  const options = {
    hostname,
    port,
    // The control thread has made sure that no other process listens there.
    reusePort: true,
    // A client that ends its half of the connection still reads.
    allowHalfOpen: true,
    socket: {
      open: (socket) => {
        const connection = new Connection(socket, context)
        socket.data = connection
        // A client that is gone already has no address.
        if (!connection.peer) socket.terminate()
        else context.limits.open(connection)
      },
      data: (socket, bytes) => socket.data.receive(bytes),
      drain: (socket) => socket.data.drain(),
      end: (socket) => socket.data.receiveEnd(),
      close: (socket) => socket.data.close(),
      error: (socket, error) => socket.data.fail(error),
    },
  } satisfies Bun.TCPSocketListenOptions<Connection> & { reusePort: boolean }
  return Bun.listen(options)
}
