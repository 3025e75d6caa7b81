import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { command, Service } from '../support/binary.ts'
import { joinFrom, newFolders, refusal, rowsOf, run } from '../support/cluster.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** How hosts return to their cluster, and a cluster to PostgreSQL. */

const postgres = shared(() => PostgresServer.start())
const testCommands = testWith('postgres')

testCommands(
  'a host that joins its cluster again gets a new database, keeps its id, and counts its hits',
  async () => {
    using folders = await newFolders(await postgres())
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
)

testCommands(
  'after the loss of PostgreSQL, the hosts continue with an empty database and lose no hit',
  async () => {
    using folders = await newFolders(await postgres())
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
    // The killed hosts may not have applied the last entries.
    const { entry, hosts } = await rowsOf(first)
    const applied = hosts.find(({ this_host }) => this_host)?.applied ?? entry
    const server = await postgres()
    const empty = { CLUSTER_URL: server.url(await server.createDatabase()) }
    const [newFirst, newSecond] = [folders.settings('a', empty), folders.settings('b', empty)]
    const at = Number(/at entry (\d+)\./.exec(await run('cluster init', newFirst))?.[1])
    expect([at >= applied, at <= entry]).toEqual([true, true])
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
)

testCommands(
  'after PostgreSQL has lost entries, the status gives advice that works, and a copy with them is refused',
  async () => {
    using folders = await newFolders(await postgres())
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
)
