import { expect } from 'bun:test'
import { eventually } from '../support/app.ts'
import { command, makeAccount } from '../support/binary.ts'
import { TestCluster, type TestHost } from '../support/cluster.ts'
import { OWNER, PASSWORD, Visitor } from '../support/dashboard.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** Refusals of changes by a host that does not have the newest data. */

const testCluster = testWith('postgres')
const server = shared(() => PostgresServer.start())

interface Link {
  code: string
  passcode: string
}

let urls = 0
const newUrl = () => `https://example.com/refusals/${++urls}`

async function shorten(host: TestHost, key: string): Promise<Link> {
  return (await (await host.service.post('/api/shorten', key, { url: newUrl() })).json()) as Link
}

type Change = (host: TestHost, key: string, link: Link) => Promise<Response>

/** Changes of a link, with the statuses of a success and of a refusal. */
const CHANGES: readonly [name: string, success: number, refusal: number, change: Change][] = [
  [
    'update',
    200,
    403,
    (host, key, { code, passcode }) =>
      host.service.post('/api/update', key, { code, passcode, url: newUrl() }),
  ],
  [
    'delete',
    200,
    403,
    (host, key, { code, passcode }) => host.service.post('/api/delete', key, { code, passcode }),
  ],
  [
    'properties',
    200,
    404,
    (host, key, { code }) => {
      const headers = { 'x-api-key': key, 'content-type': 'application/json' }
      const body = JSON.stringify({ title: 'Poster' })
      return host.fetch(`/api/links/${code}`, { method: 'PATCH', headers, body })
    },
  ],
]

testCluster('a host that is behind catches up before it refuses a change', async () => {
  await using cluster = await TestCluster.start({ hosts: 2, postgres: await server() })
  const { key } = cluster
  const [one, two] = [cluster.host(0), cluster.host(1)]
  const other = { code: 'UNKNOWN', passcode: 'A'.repeat(24) }
  for (const [name, success, refusal, change] of CHANGES) {
    two.pause()
    const link = await shorten(one, key)
    two.resume()
    // 500 after a pause that was longer than planned.
    const statusOf = async (one: Link): Promise<number> => {
      const { status } = await change(two, key, one)
      return status === 500 ? statusOf(one) : status
    }
    expect([name, await statusOf(link)]).toEqual([name, success])
    expect([name, await statusOf(other)]).toEqual([name, refusal])
  }
  const unknown = await two.service.post('/api/shorten', `${key}x`, { url: newUrl() })
  expect(unknown.status).toBe(401)
})

testCluster('a host without contact answers 500 to changes that it would refuse', async () => {
  await using cluster = await TestCluster.start({ hosts: 2, postgres: await server() })
  const { key } = cluster
  const [one, two] = [cluster.host(0), cluster.host(1)]
  two.proxy.disconnect()
  const links = await Promise.all(CHANGES.map(() => shorten(one, key)))
  const newKey = await makeAccount(one.settings, 'pro')
  const { ask, owner, csrf } = await ownerOf(one)
  ask.url = two.service.url
  const tryAll = async (status: 'success' | 500) => {
    for (const [at, [name, success, , change]] of CHANGES.entries()) {
      const answer = await change(two, key, links[at] as Link)
      expect([name, answer.status]).toEqual([name, status === 500 ? 500 : success])
      const { request_id } = (await answer.json()) as { request_id?: string }
      if (status === 500) expect(request_id).toBeString()
    }
    const created = await two.service.post('/api/shorten', newKey, { url: newUrl() })
    expect(created.status).toBe(status === 500 ? 500 : 201)
    // Without its session, the response would redirect to the sign-in.
    const page = await owner.post('/app/account/time-zone', { csrf, zone: 'UTC' })
    const expected = status === 500 ? [500, null] : [303, expect.stringContaining('/app/account')]
    expect([page.status, page.location]).toEqual(expected)
  }
  await tryAll(500)
  await eventually('the host is not ready', async () => {
    return (await two.fetch('/-/ready')).status === 503
  })
  await tryAll(500)
  two.proxy.restore()
  await cluster.ready()
  await tryAll('success')
})

/** The owner of the service, signed in. `ask.url` is the host of the next request. */
async function ownerOf(host: TestHost) {
  const ask = { url: host.service.url }
  const { out, err } = await command(['account', 'setup-link', '--json'], host.settings)
  if (out === '') throw new Error(err)
  const owner = new Visitor(ask)
  await owner.post(new URL(JSON.parse(out).link).pathname, { email: OWNER, password: PASSWORD })
  const { csrf } = await owner.get('/app/links')
  return { ask, owner, csrf }
}
