import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { eventually } from '../support/app.ts'
import { Service } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { KeepAlive } from './lib/keep-alive.ts'

/** More connections than the process may have file descriptors. */

const HALF_A_REQUEST =
  'POST /api/shorten HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
  'Content-Length: 100\r\n\r\n{"url":'

const limited = (descriptors: number) => ['sh', '-c', `ulimit -n ${descriptors}; exec "$0" "$@"`]

test.skipIf(process.platform !== 'linux').each([
  ['silent connections', 128, ''],
  ['half-sent requests of one address', 256, HALF_A_REQUEST],
] as const)(
  'with its descriptors used up by %s, the service uses no CPU, says so once, and serves new clients of the same address',
  async (_, descriptors, words) => {
    using folder = temporaryFolder()
    await using service = await Service.start({ DATA_DIR: folder.path }, limited(descriptors))
    /** On a connection of its own: an idle one may be closed. */
    const ask = async (path: string) => {
      const client = await KeepAlive.open(service.url)
      const answer = await client.ask('GET', path)
      client.close()
      return answer
    }
    expect((await ask('/-/live')).status).toBe(200)
    const flood = Array.from({ length: descriptors + 100 }, () => openHostile(service, words))
    await eventually('the metrics say so', async () =>
      (await ask('/-/metrics')).body.includes('\nhopcode_descriptors_exhausted 1\n'),
    )
    const page = (await ask('/-/metrics')).body
    expect(page).toContain('\nhopcode_process_open_fds ')
    expect(page).toContain(`\nhopcode_process_max_fds ${descriptors}\n`)
    const before = cpuTicks(service.pid)
    await Bun.sleep(2000)
    // A service that asks for each connection over and over uses 200 of them.
    expect(cpuTicks(service.pid) - before).toBeLessThan(100)
    // Another client is served while the flood keeps every connection that it can.
    const { body } = await ask('/-/metrics')
    const ended = /^hopcode_connections_ended_total (\d+)$/m.exec(body)
    expect(Number(ended?.[1])).toBeGreaterThan(0)
    for (const socket of flood) socket.destroy()
    expect(await service.end('SIGTERM')).toBe(0)
    const lines = (await service.errors).split('\n')
    const said = lines.filter((line) => line.includes('"service.descriptors_exhausted"'))
    expect(said.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'error', limit: descriptors },
    ])
  },
)

/** Of all threads, in hundredths of a second. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return Number(fields[11]) + Number(fields[12])
}

/** A connection that sends these words and then nothing. */
function openHostile(service: Service, words: string): Socket {
  const { hostname, port } = new URL(service.url)
  const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(words))
  socket.on('error', () => {})
  return socket
}
