import { expect } from 'bun:test'
import { eventually } from '../support/app.ts'
import { TestCluster, type TestHost } from '../support/cluster.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** Three hosts with one log: what one host has answered holds on all of them. */

const cluster = shared(() => TestCluster.start())
const testCluster = testWith('postgres')

let urls = 0
const newUrl = () => `https://example.com/cluster/${++urls}`

interface Link {
  code: string
  passcode: string
}

async function post(host: TestHost, key: string, path: string, body: unknown) {
  const response = await host.service.post(path, key, body)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

async function shorten(host: TestHost, key: string, url = newUrl()): Promise<Link> {
  const { status, body } = await post(host, key, '/api/shorten', { url })
  expect([status, body.reused]).toEqual([201, false])
  return body as unknown as Link
}

const follow = async (host: TestHost, code: string) => {
  const { status, headers } = await host.fetch(`/${code}`)
  return status === 302 ? headers.get('location') : status
}

/** Changes that were answered before all hosts had them, because the machine is busy. */
async function lateChanges({ hosts }: TestCluster): Promise<number> {
  const late = hosts.map((host) => host.metric('hopcode_cluster_late_total'))
  return (await Promise.all(late)).reduce((sum, one) => sum + one, 0)
}

/**
 * Makes a change on each host in turn, and compares what all hosts say right after its answer.
 * Changes that were late say nothing about the others, so these are asked again until they agree.
 */
async function expectEverywhere(
  change: (host: TestHost, all: TestCluster) => Promise<string>,
  expected: (code: string) => unknown,
  look: (host: TestHost, code: string) => Promise<unknown> = follow,
): Promise<void> {
  const all = await cluster()
  for (const host of all.hosts) {
    const before = await lateChanges(all)
    const code = await change(host, all)
    expect(await look(host, code)).toEqual(expected(code))
    const seen = await Promise.all(all.hosts.map((other) => look(other, code)))
    if ((await lateChanges(all)) === before) expect(seen).toEqual(seen.map(() => expected(code)))
    else {
      await eventually('all hosts have the change', async () => {
        const now = await Promise.all(all.hosts.map((other) => look(other, code)))
        return now.every((one) => Bun.deepEquals(one, expected(code)))
      })
    }
  }
}

testCluster('a new link redirects on every host when its creation is answered', async () => {
  const url = 'https://example.com/cluster/new'
  const ends = [1, 2, 3].map((n) => `${url}/${n}`)
  const next = ends.values()
  let last = ''
  await expectEverywhere(
    async (host, { key }) => {
      last = next.next().value ?? ''
      return (await shorten(host, key, last)).code
    },
    () => last,
  )
})

testCluster('a changed URL is that of every host', async () => {
  await expectEverywhere(
    async (host, { key, hosts }) => {
      const { code, passcode } = await shorten(host, key)
      for (const other of hosts) expect(await follow(other, code)).toBeString()
      const url = `https://example.com/changed/${code}`
      const { status } = await post(host, key, '/api/update', { code, passcode, url })
      expect(status).toBe(200)
      return code
    },
    (code) => `https://example.com/changed/${code}`,
  )
})

testCluster('a deleted link is 404 on every host, and its code can be reserved', async () => {
  await expectEverywhere(
    async (host, { key, hosts }) => {
      const { code, passcode } = await shorten(host, key)
      for (const other of hosts) expect(await follow(other, code)).toBeString()
      expect((await post(host, key, '/api/delete', { code, passcode })).status).toBe(200)
      return code
    },
    () => 404,
  )
})

testCluster('properties and tags of a link are those of every host', async () => {
  const { key } = await cluster()
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const properties = { title: 'Poster', tags: ['spring'], paused: true }
  await expectEverywhere(
    async (host) => {
      const { code } = await shorten(host, key)
      const body = JSON.stringify(properties)
      const answer = await host.fetch(`/api/links/${code}`, { method: 'PATCH', headers, body })
      expect(answer.status).toBe(200)
      return code
    },
    () => [404, properties],
    async (host, code) => {
      const answer = await host.fetch(`/api/links/${code}`, { headers })
      const { title, tags, paused } = (await answer.json()) as typeof properties
      return [await follow(host, code), { title, tags, paused }]
    },
  )
})

testCluster('one URL shortened on all hosts at the same time gets one code', async () => {
  const { hosts, key } = await cluster()
  for (let round = 0; round < 10; round++) {
    const url = newUrl()
    const asked = hosts.flatMap((host) =>
      [1, 2].map(() => post(host, key, '/api/shorten', { url })),
    )
    const answers = await Promise.all(asked)
    expect(new Set(answers.map(({ body }) => body.code)).size).toBe(1)
    expect(answers.filter(({ body }) => body.reused === false).length).toBe(1)
  }
})

testCluster('a code that all hosts reserve at the same time is given once', async () => {
  const { hosts, key } = await cluster()
  for (let round = 0; round < 10; round++) {
    const code = `RACE${1000 + round}`
    const asked = hosts.map((host) => post(host, key, '/api/reserve', { code }))
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([201, 409, 409])
  }
})

testCluster('a passcode works on every host, and a wrong one on none', async () => {
  const { hosts, key } = await cluster()
  const [first] = hosts
  const { code, passcode } = await shorten(first as TestHost, key)
  for (const host of hosts) {
    const url = newUrl()
    const wrong = { code, passcode: 'A'.repeat(24), url }
    expect((await post(host, key, '/api/update', wrong)).status).toBe(403)
    expect((await post(host, key, '/api/update', { code, passcode, url })).status).toBe(200)
  }
})

testCluster('hits of all hosts are counted once each, and every host says so', async () => {
  const { hosts, key } = await cluster()
  const { code } = await shorten(hosts[0] as TestHost, key)
  const HITS = 30
  const statuses: unknown[] = []
  for (let hit = 0; hit < HITS; hit++) {
    statuses.push(await follow(hosts[hit % hosts.length] as TestHost, code))
  }
  expect(statuses.every((status) => typeof status === 'string')).toBe(true)
  for (const host of hosts) {
    await eventually(
      'all hits are counted',
      async () => (await host.service.hitCount(code)) >= HITS,
    )
  }
  await (await cluster()).rest()
  for (const host of hosts) expect(await host.service.hitCount(code)).toBe(HITS)
})

testCluster('a limit of hits includes the hits that other hosts have counted', async () => {
  const all = await cluster()
  const { key, hosts } = all
  const [first, ...others] = hosts as [TestHost, ...TestHost[]]
  const { code } = await shorten(first, key)
  const body = JSON.stringify({ max_hits: 5 })
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  await first.fetch(`/api/links/${code}`, { method: 'PATCH', headers, body })
  // Each host has the rules in memory when the hits of another one reach the limit.
  for (const host of hosts) expect(await follow(host, code)).toBeString()
  for (let hit = 0; hit < 2; hit++) expect(await follow(first, code)).toBeString()
  await all.rest()
  expect(await follow(first, code)).toBe(410)
  for (const host of others) {
    await eventually('the other host knows', async () => (await follow(host, code)) === 410)
  }
  expect(await first.service.hitCount(code)).toBe(5)
})

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0'

testCluster('details of redirects on all hosts add up on each of them', async () => {
  const all = await cluster()
  const { key, hosts } = all
  const { code } = await shorten(hosts[0] as TestHost, key)
  for (const host of hosts) {
    for (let hit = 0; hit < 3; hit++) {
      const headers = { 'user-agent': FIREFOX, referer: 'https://blog.example/post' }
      expect((await host.fetch(`/${code}`, { headers })).status).toBe(302)
    }
  }
  for (const host of hosts) {
    const referrers = async () => {
      const headers = { 'x-api-key': key }
      return (await host.fetch(`/api/links/${code}/visits`, { headers })).json()
    }
    await eventually('the details are written', async () => {
      const { known } = (await referrers()) as { known: number }
      return known === 3 * hosts.length
    })
    const values = [{ value: 'blog.example', name: 'blog.example', hits: 3 * hosts.length }]
    expect(await referrers()).toMatchObject({ values, other: 0 })
  }
})

testCluster('at rest, the databases of all hosts are equal row by row', async () => {
  const all = await cluster()
  await all.rest()
  expect(await all.difference()).toBeUndefined()
})

testCluster(
  'the password of a link is asked on every host, and a cookie is valid on all',
  async () => {
    const { hosts, key } = await cluster()
    const [one, , three] = hosts as [TestHost, TestHost, TestHost]
    const { code } = await shorten(one, key)
    for (const host of hosts) expect(await follow(host, code)).toBeString()
    const changed = await one.fetch(`/api/links/${code}`, {
      method: 'PATCH',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ password: 'open sesame' }),
    })
    expect(changed.status).toBe(200)
    await eventually('all hosts ask for it', async () => {
      const statuses = await Promise.all(hosts.map((host) => follow(host, code)))
      return statuses.every((status) => status === 401)
    })
    const body = new URLSearchParams({ password: 'open sesame' })
    const sent = await one.fetch(`/${code}`, { method: 'POST', body })
    expect(sent.status).toBe(303)
    const cookie = sent.headers.get('set-cookie')?.split(';')[0] ?? ''
    expect((await three.fetch(`/${code}`, { headers: { cookie } })).status).toBe(302)
    expect((await three.fetch(`/${code}`, { method: 'POST', body })).status).toBe(303)
  },
)
