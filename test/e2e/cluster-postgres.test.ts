import { expect, test } from 'bun:test'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requirePostgres } from '../../src/cluster/schema.ts'
import { eventually } from '../support/app.ts'
import { command, Service } from '../support/binary.ts'
import { newFolders, refusal, run } from '../support/cluster.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** What operators meet between a host and PostgreSQL. */

const postgres = shared(() => PostgresServer.start())
const testPostgres = testWith('postgres')

test('a PostgreSQL before 15 is refused', () => {
  expect(() => requirePostgres(140_019)).toThrow('PostgreSQL 14 is too old')
  expect(() => requirePostgres(96_024)).toThrow('PostgreSQL 9 is too old')
  for (const version of [150_000, 180_001]) requirePostgres(version)
})

const UNREACHABLE = [
  { url: 'postgres://a:b@no-such-host.invalid/hopcode', reason: 'ENOTFOUND' },
  { url: 'postgres://a:b@127.0.0.1:1/hopcode', reason: 'ECONNREFUSED' },
  { url: 'postgres://a:b@[::1]:1/hopcode', reason: 'ECONNREFUSED' },
]

testPostgres('a command says why PostgreSQL cannot be reached', async () => {
  using folders = await newFolders(await postgres())
  for (const { url, reason } of UNREACHABLE) {
    const settings = folders.settings('a', { CLUSTER_URL: url })
    expect(await refusal('cluster init', settings)).toContain(reason)
  }
})

testPostgres('the status has the address that HOST and PORT give at each start', async () => {
  using folders = await newFolders(await postgres())
  const settings = folders.settings('a', { HOST_NAME: 'host-a' })
  await run('cluster init', { ...settings, PORT: '1234' })
  // The exit code is 1 while the host is off.
  const status = async () => (await command(['cluster', 'status'], settings)).out
  expect(await status()).toContain('http://host-a:1234')
  await using service = await Service.start(settings)
  const { port } = new URL(service.url)
  await eventually('the address is that of the service', async () => {
    return (await status()).includes(`http://host-a:${port} `)
  })
})

const GUIDE = join(import.meta.dir, '../../docs/operations/cluster.md')

/** PgBouncer with the setting of the guide. */
async function pooler(server: PostgresServer, mode: string) {
  const [setting = ''] = /^ignore_startup_parameters = .*$/m.exec(readFileSync(GUIDE, 'utf8')) ?? []
  const folder = temporaryFolder()
  const port = freePort()
  const { username, password } = new URL(server.url())
  const file = (name: string, text: string) => {
    const path = join(folder.path, name)
    writeFileSync(path, text)
    chmodSync(path, 0o644)
    return path
  }
  chmodSync(folder.path, 0o755)
  const users = file('users', `"${username}" "${password}"\n`)
  const lines = [
    `[databases]\n* = host=127.0.0.1 port=${server.port}`,
    `[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    `auth_type = scram-sha-256\nauth_file = ${users}\npool_mode = ${mode}\n${setting}\n`,
  ]
  const words = [
    'runuser',
    '-u',
    'nobody',
    '--',
    'pgbouncer',
    file('pgbouncer.ini', lines.join('\n')),
  ]
  const child = Bun.spawn(words, { stdio: ['ignore', 'ignore', 'ignore'] })
  await eventually('PgBouncer answers', async () => {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).catch(
      () => undefined,
    )
    socket?.end()
    return socket !== undefined
  })
  const dispose = async () => {
    child.kill()
    await child.exited
    folder[Symbol.dispose]()
  }
  return { port, [Symbol.asyncDispose]: dispose }
}

testWith(
  'postgres',
  'pgbouncer',
  'root',
)('a host works behind PgBouncer in session mode with the setting of the guide', async () => {
  const server = await postgres()
  await using pgbouncer = await pooler(server, 'session')
  using folders = await newFolders(server)
  const direct = folders.settings('a')
  const url = new URL(direct.CLUSTER_URL ?? '')
  url.port = String(pgbouncer.port)
  const settings = { ...direct, CLUSTER_URL: url.href }
  await run('cluster init', settings)
  const created = await run('account create --email a@example.com --plan free --json', settings)
  await using service = await Service.start(settings)
  const key = JSON.parse(created).api_key
  const code = await service.shorten(key, 'https://example.com/')
  expect((await service.fetch(`/${code}`)).status).toBe(302)
  expect(await run('cluster status', settings)).toContain('No problems.')
})
