import { expect } from 'bun:test'
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { command, Service } from '../support/binary.ts'
import { TestCluster, type TestHost } from '../support/cluster.ts'
import { openBeside } from '../support/database.ts'
import { temporaryFolder } from '../support/folder.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** Hosts whose data differ, and data folders that were copied. */

const testCluster = testWith('postgres')
const start = async (hosts: number) => TestCluster.start({ hosts, postgres: await server() })
/** Declared before the server, so that the end of the file closes it first. */
const threeHosts = shared(async () => {
  const cluster = await start(3)
  await createLinks(cluster)
  return cluster
})
const server = shared(() => PostgresServer.start())

const TEST_MS = 180_000

const ready = async (host: TestHost) => (await host.fetch('/-/ready')).status

const stops = (host: TestHost, reason: string) =>
  eventually(`the host is not ready: ${reason}`, async () => {
    const answer = await host.fetch('/-/ready')
    const { reason: found = '' } = (await answer.json()) as { reason?: string }
    return answer.status === 503 && found.includes(reason)
  })

const isReady = (host: TestHost) =>
  eventually('the host is ready', async () => (await ready(host)) === 200)

const DIFFERS = 'differ from those of most hosts'
const NO_MAJORITY = 'no majority'

const shorten = (host: TestHost, key: string, url: string) =>
  host.service.post('/api/shorten', key, { url })

interface Status {
  ok: boolean
  hosts: { id: string; problem: string | null; digest: { entry: number; hash: string } | null }[]
}

const statusOf = async (host: TestHost): Promise<Status> =>
  JSON.parse((await command(['cluster', 'status', '--json'], host.settings)).out)

async function run(args: string, host: TestHost): Promise<string> {
  const { code, out, err } = await command(args.split(' '), host.settings)
  expect([args, code, err]).toEqual([args, 0, expect.anything()])
  return out
}

async function refusal(args: string, host: TestHost): Promise<string> {
  const { code, out, err } = await command(args.split(' '), host.settings)
  expect([args, code, out]).toEqual([args, 1, ''])
  return err
}

/** Changes of one row by hand. The link has the id 2, and hits. */
const CHANGES = [
  ['a deleted link', 'DELETE FROM links WHERE id = 2'],
  ['the destination of a link', `UPDATE links SET url = 'https://evil.example/' WHERE id = 2`],
  ['a number of hits', 'UPDATE hits SET count = count + 5 WHERE link_id = 2'],
  ['the hash of a passcode', 'UPDATE links SET passcode_hash = zeroblob(32) WHERE id = 2'],
  ['a plan', `UPDATE accounts SET plan = 'pro' WHERE id = 1`],
] as const

function change(host: TestHost, sql: string): void {
  using db = openBeside(host.dataDir)
  expect(db.query(sql).run().changes).toBe(1)
}

/** Links with the ids 1 and 2; the second one has a hit. Returns its code. */
async function createLinks(cluster: TestCluster): Promise<string> {
  const [first, key] = [cluster.host(0), cluster.key]
  expect((await shorten(first, key, 'https://example.com/1')).status).toBe(201)
  const code = await first.service.shorten(key, 'https://example.com/2')
  expect((await first.fetch(`/${code}`)).status).toBe(302)
  await cluster.rest()
  return code
}

testCluster.each([...CHANGES])(
  '%s, changed by hand on one of three hosts, stops that host alone, until it has joined again',
  async (_, sql) => {
    const cluster = await threeHosts()
    using folder = temporaryFolder()
    const [first, damaged, third] = cluster.hosts as [TestHost, TestHost, TestHost]
    await damaged.stop()
    change(damaged, sql)
    await damaged.start()
    await stops(damaged, DIFFERS)
    // A restart does not hide it.
    await damaged.stop()
    await damaged.start()
    await stops(damaged, DIFFERS)
    const { ok, hosts } = await statusOf(first)
    expect([ok, hosts.map(({ problem }) => problem !== null)]).toEqual([
      false,
      [false, true, false],
    ])
    const [one, two, three] = hosts.map(({ digest }) => digest)
    expect(one).toEqual(three as never)
    expect([two?.entry, two?.hash === one?.hash]).toEqual([one?.entry, false])
    for (const host of [first, third]) {
      expect(await ready(host)).toBe(200)
      const url = `https://example.com/${crypto.randomUUID()}`
      expect((await shorten(host, cluster.key, url)).status).toBe(201)
    }
    const [copy, wrong] = [join(folder.path, 'copy'), join(folder.path, 'wrong')]
    await run(`backup --for-join ${wrong}`, damaged)
    await run(`backup --for-join ${copy}`, first)
    await damaged.stop()
    // Some changes break a rule for every database, which is checked first.
    expect(await refusal(`cluster join ${wrong}`, damaged)).toMatch(/differ from|is not restored/)
    await run(`cluster join ${copy}`, damaged)
    await damaged.start()
    await cluster.rest()
    expect(await cluster.difference()).toBeUndefined()
    expect((await statusOf(first)).ok).toBe(true)
  },
  TEST_MS,
)

testCluster(
  'a host with wrong data that is the first to compare stops, and the majority does not',
  async () => {
    await using cluster = await start(3)
    await createLinks(cluster)
    const [damaged, ...others] = cluster.hosts as [TestHost, TestHost, TestHost]
    await damaged.stop()
    change(damaged, CHANGES[1][1])
    for (const host of others) host.pause()
    const digests = async () =>
      (await statusOf(damaged)).hosts.map(({ digest }) => digest?.entry ?? 0)
    const before = Math.max(...(await digests()))
    await damaged.start()
    await eventually('the host has a digest', async () => ((await digests())[0] ?? 0) > before)
    for (const host of others) host.resume()
    await stops(damaged, DIFFERS)
    for (const host of others) {
      await isReady(host)
      expect((await shorten(host, cluster.key, `https://example.com/${host.id}`)).status).toBe(201)
    }
  },
  TEST_MS,
)

testCluster(
  'of two hosts that differ, neither is trusted until a third one decides, or one is removed',
  async () => {
    await using cluster = await start(3)
    const code = await createLinks(cluster)
    const [first, damaged, third] = cluster.hosts as [TestHost, TestHost, TestHost]
    const damage = async () => {
      change(damaged, CHANGES[1][1])
      await damaged.start()
    }
    await third.stop()
    await damaged.stop()
    await damage()
    for (const host of [first, damaged]) {
      await stops(host, NO_MAJORITY)
      expect((await host.fetch(`/${code}`)).status).toBe(302)
      expect((await shorten(host, cluster.key, 'https://example.com/no')).status).toBe(500)
    }
    await first.stop()
    await first.start()
    await stops(first, NO_MAJORITY)
    const copy = join(first.dataDir, 'copy')
    await run(`backup --for-join ${copy}`, first)
    expect(await refusal(`cluster join ${copy}`, third)).toContain(NO_MAJORITY)
    await third.start()
    await stops(damaged, DIFFERS)
    await isReady(first)
    await isReady(third)

    await third.stop()
    await damaged.stop()
    await run(`cluster leave --host ${third.id} --force`, first)
    await run(`cluster join ${copy}`, damaged)
    await damage()
    await stops(first, NO_MAJORITY)
    await stops(damaged, NO_MAJORITY)
    await damaged.stop()
    await run(`cluster leave --host ${damaged.id} --force`, first)
    await isReady(first)
    expect((await shorten(first, cluster.key, 'https://example.com/yes')).status).toBe(201)
  },
  TEST_MS,
)

testCluster(
  'a copied data folder does not start beside its host, and a killed host starts again',
  async () => {
    await using cluster = await start(2)
    const code = await createLinks(cluster)
    const host = cluster.host(0)
    const copy = join(cluster.host(1).dataDir, 'copied')
    mkdirSync(copy)
    cpSync(host.dataDir, copy, { recursive: true, filter: (path) => !path.includes('serving') })
    const refused = await Service.start({ ...host.settings, DATA_DIR: copy }).then(
      async (twin) => {
        await twin.end('SIGKILL')
        return 'it started'
      },
      (error: Error) => error.message,
    )
    expect(refused).toContain('Another service runs with the host.id of this data folder')
    rmSync(copy, { recursive: true })
    await host.kill()
    await host.start()
    await cluster.rest()
    expect((await host.fetch(`/${code}`)).status).toBe(302)
    await cluster.rest()
    expect(await cluster.host(1).service.hitCount(code)).toBe(2)
  },
  TEST_MS,
)
