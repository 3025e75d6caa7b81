import { expect, test } from 'bun:test'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { command, Service, type Settings, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** The commands of operators, on hosts of a cluster and on folders that become hosts. */

const postgres = shared(() => PostgresServer.start())
const testCommands = testWith('postgres')
const TEST_MS = 60_000

/** Data folders whose settings lead to one cluster of their own. */
async function newFolders() {
  const server = await postgres()
  const clusterUrl = server.url(await server.createDatabase())
  const folder = temporaryFolder()
  const settings = (name: string, more: Settings = {}): Settings =>
    Object.assign(
      unlimited(join(folder.path, name)),
      { BASE_URL: 'http://hop.test', CLUSTER_URL: clusterUrl },
      more,
    )
  return { folder, settings, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

/** Runs a command that must succeed. Returns what it prints. */
async function run(args: string, env: Settings): Promise<string> {
  const { code, out, err } = await command(args.split(' '), env)
  expect([args, code, err]).toEqual([args, 0, err])
  return out
}

async function refusal(args: string, env: Settings): Promise<string> {
  const { code, out, err } = await command(args.split(' '), env)
  expect([args, code, out]).toEqual([args, 1, ''])
  // One line, without credentials.
  expect(err.trim().split('\n')).toHaveLength(1)
  expect(err).not.toContain('postgres://')
  return err
}

/** The second host is a copy of the first. */
async function joinFrom(from: Settings, to: Settings): Promise<void> {
  const file = join(from.DATA_DIR ?? '', 'for-join.hopcode')
  await run(`backup --for-join ${file}`, from)
  await run(`cluster join ${file}`, to)
  rmSync(file)
}

const rowsOf = async (env: Settings) =>
  JSON.parse((await command(['cluster', 'status', '--json'], env)).out) as {
    ok: boolean
    entry: number
    hosts: { id: string; name: string; live: boolean; applied: number; this_host: boolean }[]
  }

testCommands(
  'commands change every host: with the service, without it, and on a host that was off meanwhile',
  async () => {
    using folders = await newFolders()
    const [first, second] = [folders.settings('a'), folders.settings('b')]
    expect(await run('cluster init', first)).toContain('first one of a new cluster')
    // Without a service on the folder, the command applies the log itself.
    const created = await run('account create --email a@example.com --plan free --json', first)
    const key = JSON.parse(created).api_key
    await joinFrom(first, second)
    await using service = await Service.start(second)
    expect((await service.fetch('/api/list', { headers: { 'x-api-key': key } })).status).toBe(200)
    await run('account set-plan --email a@example.com --plan pro', first)
    expect(await run('account list', second)).toContain('a@example.com  pro')
    // With a service, the command waits until it has applied the change.
    await run('account create --email b@example.com --plan free', second)
    await run('maintenance on --until 30m', second)
    expect((await service.fetch('/api/status')).status).toBe(503)
    await run('maintenance off', second)
    expect(await refusal('account create --email b@example.com --plan free', first)).toContain(
      'b@example.com has an account already',
    )
    const rotated = await run('key rotate --email a@example.com --now --json', first)
    await eventually('the old key is refused', async () => {
      return (await service.fetch('/api/list', { headers: { 'x-api-key': key } })).status === 401
    })
    const headers = { 'x-api-key': JSON.parse(rotated).api_key }
    expect((await service.fetch('/api/list', { headers })).status).toBe(200)
    const code = await service.shorten(headers['x-api-key'], 'https://example.com/')
    await run(`link disable ${code} --reason Phishing`, first)
    await eventually('the link answers 410', async () => {
      return (await service.fetch(`/${code}`)).status === 410
    })
    expect(await run('account setup-link', first)).toContain('http://hop.test/app/setup/')
    const { entry, hosts } = await rowsOf(second)
    expect(hosts.map(({ live, this_host }) => [live, this_host])).toEqual([
      [false, false],
      [true, true],
    ])
    await eventually('the running host has applied all', async () => {
      return ((await rowsOf(second)).hosts[1]?.applied ?? 0) >= entry
    })
  },
  TEST_MS,
)

testCommands(
  'HOST_NAME names hosts of machines with the same name, also from a later start on',
  async () => {
    using folders = await newFolders()
    const first = folders.settings('a', { HOST_NAME: 'berlin' })
    const second = folders.settings('b', { HOST_NAME: 'boston' })
    await run('cluster init', first)
    await joinFrom(first, second)
    const names = async () => (await rowsOf(first)).hosts.map(({ name }) => name)
    expect(await names()).toEqual(['berlin', 'boston'])
    {
      await using _service = await Service.start(folders.settings('b', { HOST_NAME: 'oslo' }))
      await eventually('its first report has its name', async () => {
        return (await names()).join() === 'berlin,oslo'
      })
    }
    expect((await command(['cluster', 'status'], first)).out).toContain('http://boston:3000')
  },
  TEST_MS,
)

testCommands(
  'commands end with one line if PostgreSQL accepts connections and then does not answer',
  async () => {
    using folders = await newFolders()
    const first = folders.settings('a')
    await run('cluster init', first)
    const server = await postgres()
    const database = new URL(first.CLUSTER_URL ?? '').pathname.slice(1)
    const locked = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    const lock = server.run(
      (sql) =>
        sql.begin(async (tx) => {
          await tx`LOCK TABLE hopcode.cluster, hopcode.hosts`
          locked.resolve()
          await end.promise
        }),
      database,
    )
    await locked.promise
    const refused = ['cluster status', 'account setup-link', 'cluster leave --host b'].map(
      async (args) => expect(await refusal(args, first)).toMatch(/no answer|does not answer/),
    )
    await Promise.all(refused)
    end.resolve()
    await lock
    await run('account setup-link', first)
  },
  TEST_MS,
)

testCommands(
  'a host leaves with all changes, and works alone with them; the last one to leave can begin anew',
  async () => {
    using folders = await newFolders()
    const [first, second] = [folders.settings('a'), folders.settings('b')]
    await run('cluster init', first)
    await joinFrom(first, second)
    await run('account create --email a@example.com --plan free', first)
    expect(await run('cluster leave', second)).toContain('up to entry 1.')
    const alone = folders.settings('b', { CLUSTER_URL: '' })
    expect(await run('account list', alone)).toContain('a@example.com')
    await run('account set-plan --email a@example.com --plan pro', alone)
    expect(await run('account list', first)).toContain('a@example.com  free')
    expect((await rowsOf(first)).hosts).toHaveLength(1)
    expect(existsSync(join(second.DATA_DIR ?? '', 'host.id'))).toBe(false)
    await run('cluster leave', first)
    await run('cluster init', second)
    // A folder of the former cluster must not apply the log of the new one.
    const third = folders.settings('c')
    await joinFrom(second, third)
    await run('cluster leave', second)
    const [lost] = (await rowsOf(second)).hosts
    await run(`cluster leave --host ${lost?.id}`, second)
    await run('cluster init', first)
    expect(await refusal('account set-plan --email a@example.com --plan pro', third)).toContain(
      'CLUSTER_URL is the database of another cluster',
    )
    expect(await refusal('cluster leave', third)).toContain('with an empty CLUSTER_URL')
    expect(await run('cluster leave', folders.settings('c', { CLUSTER_URL: '' }))).toContain(
      'up to entry 0.',
    )
    expect(await rowsOf(first)).toMatchObject({ entry: 0, hosts: [{ this_host: true }] })
  },
  TEST_MS,
)

testCommands(
  'a host that joins its cluster again gets a new database, keeps its id, and counts its hits',
  async () => {
    using folders = await newFolders()
    // Hits stay in the journal, as if the host had stopped applying.
    const first = folders.settings('a')
    const second = folders.settings('b', { HIT_FLUSH_MS: '60000' })
    await run('cluster init', first)
    const created = await run('account create --email a@example.com --plan free --json', first)
    await joinFrom(first, second)
    const { id } = (await rowsOf(second)).hosts[1] ?? {}
    let code = ''
    {
      await using service = await Service.start(second)
      code = await service.shorten(JSON.parse(created).api_key, 'https://example.com/')
      for (let i = 0; i < 5; i++) await service.fetch(`/${code}`)
      await service.end('SIGKILL')
    }
    await run('account list', first)
    await run('account set-plan --email a@example.com --plan pro', first)
    await joinFrom(first, second)
    expect((await rowsOf(second)).hosts.map((host) => host.id)).toContain(id ?? '')
    await using service = await Service.start(second)
    expect(await service.hitCount(code)).toBe(5)
    expect(await run('account list', second)).toContain('pro')
    expect(readdirSync(second.DATA_DIR ?? '').join()).toContain('before-restore-')
  },
  TEST_MS,
)

testCommands(
  'after the loss of PostgreSQL, the hosts continue with an empty database and lose no hit',
  async () => {
    using folders = await newFolders()
    // Hits stay in the journals, as during an outage of PostgreSQL.
    const old = { HIT_FLUSH_MS: '60000' }
    const [first, second] = [folders.settings('a', old), folders.settings('b', old)]
    await run('cluster init', first)
    const created = await run('account create --email a@example.com --plan free --json', first)
    const key = JSON.parse(created).api_key
    await joinFrom(first, second)
    let code = ''
    {
      await using one = await Service.start(first)
      await using two = await Service.start(second)
      code = await one.shorten(key, 'https://example.com/')
      await eventually('the link redirects', async () => {
        return (await two.fetch(`/${code}`)).status === 302
      })
      for (let i = 0; i < 3; i++) await one.fetch(`/${code}`)
      for (let i = 0; i < 4; i++) await two.fetch(`/${code}`)
      await Promise.all([one.end('SIGKILL'), two.end('SIGKILL')])
    }
    const { entry } = await rowsOf(first)
    const server = await postgres()
    const empty = { CLUSTER_URL: server.url(await server.createDatabase()) }
    const [newFirst, newSecond] = [folders.settings('a', empty), folders.settings('b', empty)]
    expect(await run('cluster init', newFirst)).toContain(`at entry ${entry}.`)
    {
      await using one = await Service.start(newFirst)
      await one.shorten(key, 'https://example.com/meanwhile')
    }
    expect(await refusal('cluster init', newSecond)).toContain('has a host already')
    await joinFrom(newFirst, newSecond)
    await using one = await Service.start(newFirst)
    await using two = await Service.start(newSecond)
    for (const host of [one, two]) {
      await eventually('all hits are counted once', async () => (await host.hitCount(code)) === 8)
    }
    expect(await rowsOf(newFirst)).toMatchObject({
      ok: true,
      hosts: [{ live: true }, { live: true }],
    })
  },
  TEST_MS,
)

testCommands(
  'neither a refused start nor one without CLUSTER_URL is in the way of a join, nor a killed join',
  async () => {
    using folders = await newFolders()
    const [first, second] = [folders.settings('a'), folders.settings('b')]
    await run('cluster init', first)
    await run('account create --email a@example.com --plan free', first)
    expect(await refusal('serve', second)).toContain('belongs to no cluster yet')
    await joinFrom(first, second)
    const files = () => readdirSync(second.DATA_DIR ?? '').sort()
    const ofOneJoin = files()
    // As after a join that was killed before its last line.
    await joinFrom(first, second)
    expect(files()).toEqual(ofOneJoin)
    const third = folders.settings('c', { CLUSTER_URL: '' })
    {
      await using service = await Service.start(third)
      expect(await service.end('SIGTERM')).toBe(0)
    }
    await joinFrom(first, folders.settings('c'))
    expect(readdirSync(third.DATA_DIR ?? '').join()).not.toContain('restore')
    expect((await rowsOf(first)).hosts).toHaveLength(3)
  },
  TEST_MS,
)

testCommands(
  'after PostgreSQL has lost entries, the status gives advice that works, and a copy with them is refused',
  async () => {
    using folders = await newFolders()
    const [first, second] = [folders.settings('a'), folders.settings('b')]
    await run('cluster init', first)
    await joinFrom(first, second)
    const { id } = (await rowsOf(first)).hosts[1] ?? {}
    await using _service = await Service.start(first)
    for (const plan of ['free', 'pro']) {
      await run(`account create --email ${plan}@example.com --plan ${plan}`, first)
    }
    await eventually('PostgreSQL knows that the host has applied all', async () => {
      const { entry, hosts } = await rowsOf(first)
      return hosts[0]?.applied === entry
    })
    const copy = join(folders.folder.path, 'copy')
    await run(`backup --for-join ${copy}`, first)
    await (await postgres()).run(
      async (sql) => {
        await sql`UPDATE hopcode.cluster SET seq = seq - 1`
        await sql`DELETE FROM hopcode.log WHERE seq > (SELECT seq FROM hopcode.cluster)`
      },
      new URL(first.CLUSTER_URL ?? '').pathname.slice(1),
    )
    const status = async () => (await command(['cluster', 'status'], first)).out
    expect(await status()).toMatch(/1 ahead[\s\S]*PostgreSQL has lost them\. .*cluster join/)
    expect(await refusal(`cluster join ${copy}`, folders.settings('c'))).toContain(
      'has entries that the log lacks',
    )
    // Now all hosts have the lost entry.
    await run(`cluster leave --host ${id}`, first)
    expect(await status()).toContain('“PostgreSQL is lost for good”')
    expect(await status()).not.toContain('cluster join')
    const empty = (await postgres()).url(await (await postgres()).createDatabase())
    const elsewhere = folders.settings('a', { CLUSTER_URL: empty })
    expect(await refusal('cluster status', elsewhere)).not.toContain('..')
  },
  TEST_MS,
)

testCommands(
  'a host with another BASE_URL does not join',
  async () => {
    using folders = await newFolders()
    const first = folders.settings('a')
    await run('cluster init', first)
    const copy = join(folders.folder.path, 'copy')
    await run(`backup --for-join ${copy}`, first)
    const other = folders.settings('b', { BASE_URL: 'http://other.test' })
    expect(await refusal(`cluster join ${copy}`, other)).toContain(
      'BASE_URL is http://other.test here and http://hop.test on the host of the copy',
    )
    expect((await rowsOf(first)).hosts).toHaveLength(1)
    await run(`cluster join ${copy}`, folders.settings('b'))
  },
  TEST_MS,
)

testCommands(
  'a host that was in contact a moment ago is removed only with --force',
  async () => {
    using folders = await newFolders()
    const [first, second] = [folders.settings('a'), folders.settings('b')]
    await run('cluster init', first)
    await joinFrom(first, second)
    await using service = await Service.start(second)
    const { id } = (await rowsOf(second)).hosts[1] ?? {}
    process.kill(service.pid, 'SIGSTOP')
    await eventually('the paused host is silent', async () => {
      return (await rowsOf(first)).hosts[1]?.live === false
    })
    expect(await refusal(`cluster leave --host ${id}`, first)).toContain('add --force')
    expect((await rowsOf(first)).hosts).toHaveLength(2)
    await run(`cluster leave --host ${id} --force`, first)
    expect((await rowsOf(first)).hosts).toHaveLength(1)
  },
  TEST_MS,
)

test('without PostgreSQL and with a damaged database, the status is one line', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'hopcode.db'), 'not a database')
  const away = { DATA_DIR: folder.path, CLUSTER_URL: 'postgres://u:secret@127.0.0.1:1/none' }
  expect(await refusal('cluster status', away)).toContain('PostgreSQL at 127.0.0.1:1')
})

testCommands(
  'commands on a cluster refuse what would lose or split data, in one line',
  async () => {
    using folders = await newFolders()
    const [first, second] = [folders.settings('a'), folders.settings('b')]
    const [ordinary, forJoin] = ['o', 'j'].map((name) => join(folders.folder.path, name))
    expect(await refusal('cluster status', first)).toContain('run "hopcode cluster init"')
    await run('cluster init', first)
    await run('account create --email a@example.com --plan free', first)
    await run(`backup ${ordinary}`, first)
    await run(`backup --for-join ${forJoin}`, first)
    const withoutUrl = folders.settings('a', { CLUSTER_URL: '' })
    const away = folders.settings('a', { CLUSTER_URL: 'postgres://u:secret@127.0.0.1:1/none' })
    const single = folders.settings('single', { CLUSTER_URL: '' })
    await run(`restore ${ordinary}`, single)
    await using service = await Service.start(first)
    const lost = 'account set-plan --email a@example.com --plan pro'
    const cases: [string, Settings, string][] = [
      ['cluster leave', first, 'is served by process'],
      [`cluster join ${forJoin}`, first, 'is served by process'],
      ['cluster init', second, 'This cluster has a host already'],
      [`cluster join ${ordinary}`, second, 'was not made for joining'],
      [`restore ${forJoin}`, second, 'is for a further host of a cluster'],
      [`cluster join ${forJoin}`, folders.settings('single'), 'do not belong to this cluster'],
      [`backup --for-join ${forJoin}2`, single, 'belongs to no cluster'],
      ['cluster status', away, 'This host has applied entry '],
      ['cluster status', single, 'CLUSTER_URL is missing'],
      ['cluster leave --host nobody', first, 'No host has the id or name nobody'],
      ['serve', folders.settings('single'), 'belongs to no cluster yet'],
    ]
    for (const [args, env, says] of cases) {
      const err = await refusal(args, env)
      expect([args, err]).toEqual([args, expect.stringContaining(says)])
      expect(err).not.toContain('secret')
    }
    await service.end('SIGTERM')
    // While the service runs, its settings count.
    expect(await refusal(lost, withoutUrl)).toContain('belongs to a cluster: set CLUSTER_URL')
    expect(await refusal(lost, away)).toContain('PostgreSQL')
    expect(await refusal(`restore ${ordinary}`, first)).toContain('belongs to a cluster')
    expect(await refusal('serve', withoutUrl)).toContain('belongs to a cluster: set CLUSTER_URL')
    expect(await run('account list', first)).toContain('a@example.com  free')
  },
  TEST_MS,
)
