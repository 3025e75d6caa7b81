import { expect } from 'bun:test'
import { STATEMENT_MS } from '../../src/cluster/connection.ts'
import { eventually } from '../support/app.ts'
import { binary, command } from '../support/binary.ts'
import { TestCluster, type TestHost } from '../support/cluster.ts'
import { freePort } from '../support/ports.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** What hosts do without PostgreSQL, and with a log or a database that does not fit. */

const testCluster = testWith('postgres')
const server = shared(() => PostgresServer.start())
/** Servers that a test stops are its own. */
const start = async (hosts: number) => TestCluster.start({ hosts, postgres: await server() })

const RECOVERY_MS = 5000

const ready = async (host: TestHost) => (await host.fetch('/-/ready')).status

const notReady = (host: TestHost) =>
  eventually('the host is not ready', async () => (await ready(host)) === 503)

/** What the cluster knows of a host’s problem. */
async function problemOf({ postgres, database }: TestCluster, host: TestHost): Promise<string> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT problem FROM hopcode.hosts WHERE id = ${host.id}`,
    database,
  )
  return row.problem ?? ''
}

/** Adds an entry to the log as a host does. */
async function appendEntry(
  { postgres, database }: TestCluster,
  { version, calls }: { version: number; calls: unknown[] },
): Promise<number> {
  const bytes = Buffer.from(JSON.stringify(calls))
  const [row] = await postgres.run(
    (sql) => sql`
      WITH new AS (SELECT ${bytes}::bytea AS calls), head AS (
        UPDATE hopcode.cluster SET seq = seq + 1, chain = sha256(chain || new.calls) FROM new
        RETURNING cluster.seq, cluster.chain, new.calls
      )
      INSERT INTO hopcode.log (seq, host, batch, version, chain, calls)
      SELECT seq, 'another', seq::text, ${version}, chain, calls FROM head
      RETURNING seq, pg_notify('hopcode_log', seq::text)`,
    database,
  )
  return Number(row.seq)
}

testCluster(
  'a host whose connections died without an error subscribes to changes again',
  async () => {
    await using cluster = await start(1)
    const { postgres, database } = cluster
    const host = cluster.host(0)
    const subscriptions = async () => {
      const [row] = await postgres.run(
        (sql) => sql`SELECT count(*) AS count FROM pg_stat_activity
        WHERE datname = ${database} AND query ILIKE 'LISTEN "hopcode_applied"%'`,
      )
      return Number(row.count)
    }
    await eventually('the host has subscribed', async () => (await subscriptions()) === 1)
    host.proxy.abandon()
    // For the server, the old connection still exists.
    await eventually('the host has subscribed again', async () => (await subscriptions()) === 2)
    await cluster.ready()
  },
)

testCluster(
  'without PostgreSQL redirects and reads go on, changes fail, and hosts recover by themselves',
  async () => {
    await using cluster = await TestCluster.start()
    const { hosts, key, postgres } = cluster
    const code = await cluster.host(0).service.shorten(key, 'https://example.com/kept')
    await cluster.rest()
    await postgres.stop()
    for (const host of hosts) {
      const answer = await host.service.post('/api/shorten', key, { url: 'https://example.com/no' })
      const { error, request_id } = (await answer.json()) as Record<string, string>
      expect([answer.status, error]).toEqual([500, 'Internal server error'])
      expect(request_id).toBe(answer.headers.get('x-request-id') as string)
    }
    for (const host of hosts) await notReady(host)
    for (const host of hosts) {
      expect((await host.fetch(`/${code}`)).status).toBe(302)
      expect((await host.fetch(`/api/lookup/${code}`)).status).toBe(200)
      const list = await host.fetch('/api/list', { headers: { 'x-api-key': key } })
      expect(list.status).toBe(200)
    }
    await postgres.restart()
    const before = performance.now()
    await cluster.ready()
    for (const [at, host] of hosts.entries()) {
      const url = `https://example.com/again/${at}`
      expect((await host.service.post('/api/shorten', key, { url })).status).toBe(201)
    }
    const recoveryMs = performance.now() - before
    console.log(`recovery after PostgreSQL: ${Math.round(recoveryMs)} ms`)
    expect(recoveryMs).toBeLessThan(RECOVERY_MS)
    await cluster.rest()
    expect(await cluster.difference()).toBeUndefined()
    // The hits of the outage.
    expect(await cluster.host(0).service.hitCount(code)).toBe(hosts.length)
  },
)

testCluster(
  'a password that changes is the reason that logs, /-/ready and health give',
  async () => {
    await using cluster = await TestCluster.start({ hosts: 1 })
    const host = cluster.host(0)
    const REASON_OF_SERVER = 'password authentication failed'
    const REASON = `PostgreSQL: ${REASON_OF_SERVER} for user "hopcode"`
    const old = new URL(cluster.postgres.url()).password
    await cluster.postgres.run(async (sql) => {
      await sql`ALTER ROLE hopcode PASSWORD 'another'`
      await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()`
      await notReady(host)
      await eventually('the host says why', async () => {
        const { reason } = (await (await host.fetch('/-/ready')).json()) as { reason?: string }
        return reason === REASON
      })
      // A request of another machine, by way of a proxy.
      const forwarded = await host.fetch('/-/ready', {
        headers: { 'x-forwarded-for': '192.0.2.1' },
      })
      expect(await forwarded.text()).not.toContain('password')
      const { err } = await command(['health'], host.settings)
      expect(err).toContain(REASON)
      const answer = await host.service.post('/api/shorten', cluster.key, {
        url: 'https://a.example',
      })
      expect(answer.status).toBe(500)
      await eventually('the log has the reason', async () => {
        return (await host.metric('hopcode_cluster_contact_age_seconds')) > 3
      })
      await sql.unsafe(`ALTER ROLE hopcode PASSWORD '${old}'`)
    })
    await cluster.ready()
    const { service } = host
    await host.stop()
    const lines = (await service.errors).split('\n').filter((line) => line.startsWith('{'))
    const has = (event: string) =>
      lines.some((line) => JSON.parse(line).event === event && line.includes(REASON_OF_SERVER))
    expect(['cluster.not_following', 'request.failed'].filter((event) => !has(event))).toEqual([])
  },
)

testCluster('a host that is cut off from PostgreSQL is not ready, and catches up', async () => {
  await using cluster = await start(2)
  const { key } = cluster
  const [one, two] = [cluster.host(0), cluster.host(1)]
  const code = await one.service.shorten(key, 'https://example.com/before')
  two.proxy.disconnect()
  await notReady(two)
  expect(await ready(one)).toBe(200)
  const during = await one.service.shorten(key, 'https://example.com/during')
  expect((await two.fetch(`/${code}`)).status).toBe(302)
  expect((await two.fetch(`/${during}`)).status).toBe(404)
  two.proxy.restore()
  await cluster.rest()
  expect((await two.fetch(`/${during}`)).status).toBe(302)
  expect(await cluster.difference()).toBeUndefined()
})

testCluster('a change that was answered 500 is not applied later over a newer one', async () => {
  await using cluster = await start(2)
  const { key } = cluster
  const [one, two] = [cluster.host(0), cluster.host(1)]
  const created = await one.service.post('/api/shorten', key, { url: 'https://example.com/first' })
  const { code, passcode } = (await created.json()) as { code: string; passcode: string }
  const update = async (host: TestHost, url: string) =>
    (await host.service.post('/api/update', key, { code, passcode, url })).status
  expect(await update(one, 'https://example.com/second')).toBe(200)
  // What host one sends now arrives, but only after it has given up.
  one.proxy.stall('up')
  expect(await update(one, 'https://example.com/third')).toBe(500)
  expect(await update(two, 'https://example.com/fourth')).toBe(200)
  one.proxy.restore()
  await one.proxy.delivered()
  await cluster.rest()
  for (const host of [one, two]) {
    const { headers } = await host.fetch(`/${code}`)
    expect(headers.get('location')).toBe('https://example.com/fourth')
  }
})

testCluster('without PostgreSQL a stop succeeds, and the next start counts the hits', async () => {
  await using cluster = await start(1)
  const host = cluster.host(0)
  const code = await host.service.shorten(cluster.key, 'https://example.com/kept')
  await cluster.rest()
  let hits = 0
  // The first stop comes before the host has noticed, the second one after that.
  for (const notices of [false, true]) {
    host.proxy.stall()
    if (notices) await notReady(host)
    for (let i = 0; i < 5; i++, hits++) expect((await host.fetch(`/${code}`)).status).toBe(302)
    const { service } = host
    expect(await host.stop()).toBe(0)
    const log = await service.errors
    expect(log).toContain('"event":"hits.waiting"')
    expect(log).not.toContain('service.stop_failed')
    host.proxy.restore()
    await host.start()
    await cluster.rest()
    expect(await host.service.hitCount(code)).toBe(hits)
  }
})

testCluster(
  'a start listens for redirects at once if PostgreSQL accepts and is silent',
  async () => {
    await using cluster = await start(1)
    const host = cluster.host(0)
    const code = await host.service.shorten(cluster.key, 'https://example.com/kept')
    await host.stop()
    const firstRedirectMs = async () => {
      const port = String(freePort())
      const begin = performance.now()
      const env = Object.assign(host.settings, { PORT: port, HOST: '127.0.0.1' })
      const child = Bun.spawn([await binary()], { env, stdout: 'ignore', stderr: 'ignore' })
      await eventually('a redirect is answered', async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/${code}`, { redirect: 'manual' })
          .then(({ status }) => status)
          .catch(() => 0)
        return answer === 302
      })
      const ms = performance.now() - begin
      child.kill('SIGKILL')
      await child.exited
      return ms
    }
    // The least of three, because other work on the machine delays single starts.
    const leastMs = async () =>
      Math.min(await firstRedirectMs(), await firstRedirectMs(), await firstRedirectMs())
    host.proxy.disconnect()
    const refusedMs = await leastMs()
    host.proxy.restore()
    host.proxy.stall()
    const silentMs = await leastMs()
    console.log(
      `first redirect: refused ${Math.round(refusedMs)}, silent ${Math.round(silentMs)} ms`,
    )
    // Without waiting for the end of a statement.
    expect(silentMs - refusedMs).toBeLessThan(STATEMENT_MS)
  },
)

testCluster('a host that was offline catches up before it is ready', async () => {
  await using cluster = await start(2)
  const { key } = cluster
  const [one, two] = [cluster.host(0), cluster.host(1)]
  expect(await two.stop()).toBe(0)
  const codes: string[] = []
  for (let n = 0; n < 50; n++) {
    codes.push(await one.service.shorten(key, `https://example.com/offline/${n}`))
  }
  await two.start()
  for (const code of codes) expect((await two.fetch(`/${code}`)).status).toBe(302)
  await cluster.rest()
  expect(await cluster.difference()).toBeUndefined()
})

testCluster('an entry that needs a newer program stops the host, which names it', async () => {
  await using cluster = await start(1)
  const { key } = cluster
  const host = cluster.host(0)
  const code = await host.service.shorten(key, 'https://example.com/kept')
  const seq = await appendEntry(cluster, { version: 2_001_003, calls: [] })
  await notReady(host)
  await eventually('the others know', async () => (await problemOf(cluster, host)) !== '')
  const problem = await problemOf(cluster, host)
  expect(problem).toContain(`entry ${seq} needs a newer Hopcode`)
  expect(problem).toContain('version 2.1.3')
  expect((await host.fetch(`/${code}`)).status).toBe(302)
})

testCluster('a log that has lost entries stops the hosts that have applied them', async () => {
  await using cluster = await start(1)
  const { key, postgres, database } = cluster
  const host = cluster.host(0)
  const code = await host.service.shorten(key, 'https://example.com/kept')
  await cluster.rest()
  await postgres.run(
    (sql) => sql`
      WITH gone AS (DELETE FROM hopcode.log WHERE seq = (SELECT seq FROM hopcode.cluster))
      UPDATE hopcode.cluster SET seq = seq - 1`,
    database,
  )
  await notReady(host)
  await eventually('the others know', async () => (await problemOf(cluster, host)) !== '')
  expect(await problemOf(cluster, host)).toContain('PostgreSQL has lost them')
  expect((await host.fetch(`/${code}`)).status).toBe(302)
})

testCluster('a host that was removed from the cluster stops', async () => {
  await using cluster = await start(2)
  const { key, postgres, database } = cluster
  const [one, two] = [cluster.host(0), cluster.host(1)]
  const code = await one.service.shorten(key, 'https://example.com/kept')
  await eventually('the link is there', async () => (await two.fetch(`/${code}`)).status === 302)
  await postgres.run((sql) => sql`DELETE FROM hopcode.hosts WHERE id = ${two.id}`, database)
  await notReady(two)
  expect((await two.fetch(`/${code}`)).status).toBe(302)
  const answer = await two.service.post('/api/shorten', key, { url: 'https://example.com/no' })
  expect(answer.status).toBe(500)
  expect(await ready(one)).toBe(200)
})
