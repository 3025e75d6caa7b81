import { expect, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HOSTS_LOCK } from '../../src/cluster/schema.ts'
import { eventually } from '../support/app.ts'
import { command, Service, type Settings } from '../support/binary.ts'
import { joinFrom, newFolders, refusal, rowsOf, run } from '../support/cluster.ts'
import { temporaryFolder } from '../support/folder.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** The commands of operators, on hosts of a cluster and on folders that become hosts. */

const postgres = shared(() => PostgresServer.start())
const testCommands = testWith('postgres')

testCommands(
  'commands change every host: with the service, without it, and on a host that was off meanwhile',
  async () => {
    using folders = await newFolders(await postgres())
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
      'b@example.com already has an account',
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
)

testCommands(
  'HOST_NAME names hosts of machines with the same name, also from a later start on',
  async () => {
    using folders = await newFolders(await postgres())
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
    expect((await command(['cluster', 'status'], first)).out).toMatch(/^oslo .*http:\/\/oslo:/m)
  },
)

testCommands(
  'commands end with one line if PostgreSQL accepts connections and then does not answer',
  async () => {
    using folders = await newFolders(await postgres())
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
)

testCommands(
  'a host leaves with all changes, and works alone with them; the last one to leave can begin anew',
  async () => {
    using folders = await newFolders(await postgres())
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
)

testCommands(
  'neither a refused start nor one without CLUSTER_URL is in the way of a join, nor a killed join',
  async () => {
    using folders = await newFolders(await postgres())
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
)

testCommands('a host with another BASE_URL does not join', async () => {
  using folders = await newFolders(await postgres())
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
})

/** Starts commands in a transaction that makes them wait, and returns their results. */
async function whileLocked(
  lock: string,
  url: string | undefined,
  commands: [args: string, env: Settings][],
) {
  const database = new URL(url ?? '').pathname.slice(1)
  const server = await postgres()
  let ended = 0
  const results: ReturnType<typeof command>[] = []
  await server.run(async (sql) => {
    await sql.begin(async (tx) => {
      await tx.unsafe(lock)
      for (const [args, env] of commands) {
        results.push(command(args.split(' '), env).finally(() => ended++))
      }
      await eventually('all wait or have ended', () =>
        server.run(async (other) => {
          const [row] = await other`SELECT count(*) AS waiting FROM pg_stat_activity
            WHERE datname = ${database} AND wait_event_type = 'Lock'`
          return Number(row.waiting) + ended === commands.length
        }),
      )
    })
  }, database)
  return Promise.all(results)
}

testCommands(
  'of two hosts that create a cluster at once, one does, and the other is refused',
  async () => {
    using folders = await newFolders(await postgres())
    const [first, second] = [folders.settings('a'), folders.settings('b')]
    // The tables exist already.
    await run('cluster init', first)
    await run('cluster leave', first)
    const results = await whileLocked('SELECT FROM hopcode.cluster FOR UPDATE', first.CLUSTER_URL, [
      ['cluster init', first],
      ['cluster init', second],
    ])
    expect(results.map(({ code }) => code).sort()).toEqual([0, 1])
    const { err } = results.find(({ code }) => code === 1) ?? { err: '' }
    expect(err).toContain('has a host already')
    expect((await rowsOf(first)).hosts).toHaveLength(1)
  },
)

testCommands(
  'a join is refused if the entries that it needs are deleted while it registers the host',
  async () => {
    using folders = await newFolders(await postgres())
    const [first, second] = [folders.settings('a'), folders.settings('b')]
    await run('cluster init', first)
    const copy = join(folders.folder.path, 'copy')
    await run(`backup --for-join ${copy}`, first)
    await run('account create --email a@example.com --plan free', first)
    // As a host does that deletes old entries.
    const deletes = `SELECT pg_advisory_xact_lock(${HOSTS_LOCK}); DELETE FROM hopcode.log`
    const [joined] = await whileLocked(deletes, first.CLUSTER_URL, [
      [`cluster join ${copy}`, second],
    ])
    expect([joined?.code, joined?.err]).toEqual([1, expect.stringContaining('is too old')])
    expect((await rowsOf(first)).hosts).toHaveLength(1)
  },
)

testCommands('a host that was in contact a moment ago is removed only with --force', async () => {
  using folders = await newFolders(await postgres())
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
})

test('without PostgreSQL and with a damaged database, the status is one line', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'hopcode.db'), 'not a database')
  const away = { DATA_DIR: folder.path, CLUSTER_URL: 'postgres://u:secret@127.0.0.1:1/none' }
  expect(await refusal('cluster status', away)).toContain('PostgreSQL at 127.0.0.1:1')
})

testCommands(
  'commands on a cluster refuse what would lose or split data, in one line',
  async () => {
    using folders = await newFolders(await postgres())
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
)
