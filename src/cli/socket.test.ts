import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { CommandError } from './errors.ts'
import { callService } from './socket.ts'

test('a service that is killed while it answers is reported as a service that has ended', async () => {
  using folder = temporaryFolder()
  const unix = join(folder.path, 'serving.sock')
  using _server = Bun.listen({
    unix,
    socket: {
      data(socket) {
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"value":')
      },
    },
  })
  const service = { unix, version: '', base_url: 'http://hop.test', address: 'http://hop.test' }
  const call = callService(service, 'listAccounts', {})
  await expect(call).rejects.toThrow(CommandError)
  await expect(call).rejects.toThrow('The service ended before it answered.')
})
