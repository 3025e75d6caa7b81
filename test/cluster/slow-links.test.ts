import { expect } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { eventually } from '../support/app.ts'
import { command } from '../support/binary.ts'
import { TestCluster, type TestHost } from '../support/cluster.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** Hosts whose connection to PostgreSQL is slow. */

const testCluster = testWith('postgres')
const server = shared(() => PostgresServer.start())
const start = async (hosts: number) => TestCluster.start({ hosts, postgres: await server() })

const ready = async (host: TestHost) => (await host.fetch('/-/ready')).status === 200

/** Creates links with random URLs of this length in one bulk. */
async function bulk(host: TestHost, key: string, count: number, length: number): Promise<string[]> {
  const newUrl = () =>
    `https://example.com/${randomBytes(length)
      .toString('base64url')
      .slice(0, length - 20)}`
  const urls = Array.from({ length: count }, newUrl)
  const answer = await host.service.post('/api/bulk-shorten', key, { urls })
  expect(answer.status).toBe(201)
  const { results } = (await answer.json()) as { results: { code: string }[] }
  return results.map(({ code }) => code)
}

/** Notes each change of the readiness of a host until `stop`. */
function watchReadiness(host: TestHost) {
  const changes: boolean[] = []
  let isStopped = false
  // It ends with the host: where a test fails, its own error is the one to see.
  const watched = (async () => {
    for (let isLast = false; !isLast; await Bun.sleep(50)) {
      isLast = isStopped
      const now = await ready(host).catch(() => undefined)
      if (now === undefined) return
      if (changes.at(-1) !== now) changes.push(now)
    }
  })()
  return async () => {
    isStopped = true
    await watched
    return changes
  }
}

testCluster('with 1 Mbit/s a host catches up, is not ready meanwhile, and says why', async () => {
  await using cluster = await start(2)
  const { key } = cluster
  const [one, two] = [cluster.host(0), cluster.host(1)]
  await cluster.rest()
  // Slower than any machine creates the links.
  two.proxy.limit(100_000)
  const stopWatching = watchReadiness(two)
  const codes: string[] = []
  for (let i = 0; i < 4; i++) codes.push(...(await bulk(one, key, 400, 800)))
  await eventually('the host is not ready', async () => !(await ready(two)))
  const { reason } = (await (await two.fetch('/-/ready')).json()) as { reason: string }
  expect(reason).toContain('still reading the log')
  const answer = await two.service.post('/api/shorten', key, { url: 'https://example.com/no' })
  expect(answer.status).toBe(500)
  await eventually('the status says so', async () => {
    const { out } = await command(['cluster', 'status'], one.settings)
    return out.includes('still reading the log')
  })
  two.proxy.limit(1_000_000)
  await cluster.ready()
  expect(await stopWatching()).toEqual([true, false, true])
  expect((await two.fetch(`/${codes.at(-1)}`)).status).toBe(302)
  two.proxy.restore()
  await cluster.rest()
  expect(await cluster.difference()).toBeUndefined()
})

testCluster('an entry that takes longer than any statement is read in pieces', async () => {
  await using cluster = await start(2)
  const { key } = cluster
  const [one, two] = [cluster.host(0), cluster.host(1)]
  await cluster.rest()
  two.proxy.limit(8_000_000)
  const stopWatching = watchReadiness(two)
  const codes = await bulk(one, key, 1000, 5900)
  await eventually('the host has the link', async () => {
    return (await two.fetch(`/${codes.at(-1)}`)).status === 302
  })
  await cluster.rest()
  expect((await stopWatching()).length).toBeLessThanOrEqual(3)
  expect(await cluster.difference()).toBeUndefined()
})

testCluster(
  'with 300 ms to PostgreSQL and back, changes succeed and the host is ready',
  async () => {
    await using cluster = await start(2)
    const { key } = cluster
    const [one, two] = [cluster.host(0), cluster.host(1)]
    await cluster.rest()
    for (const restarts of [false, true]) {
      two.proxy.delay(150)
      if (restarts) {
        await two.stop()
        await two.start()
        await cluster.ready()
      }
      const stopWatching = watchReadiness(two)
      const codes: string[] = []
      for (let i = 0; i < 10; i++) {
        const host = i % 3 === 0 ? one : two
        const url = `https://example.com/${restarts}/${i}`
        const answer = await host.service.post('/api/shorten', key, { url })
        expect([i, answer.status]).toEqual([i, 201])
        codes.push(((await answer.json()) as { code: string }).code)
      }
      for (const code of codes) {
        await eventually('both have it', async () => {
          return (await two.fetch(`/${code}`)).status === 302
        })
      }
      expect(await stopWatching()).toEqual([true])
      two.proxy.restore()
    }
    await cluster.rest()
    expect(await cluster.difference()).toBeUndefined()
  },
)
