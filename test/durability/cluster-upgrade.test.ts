import { expect } from 'bun:test'
import { eventually } from '../support/app.ts'
import { binary, command } from '../support/binary.ts'
import { TestCluster, type TestHost } from '../support/cluster.ts'
import { temporaryFolder } from '../support/folder.ts'
import { testWith } from '../support/tools.ts'
import { buildMutant } from './lib/mutant.ts'

const NEXT_RELEASE = {
  file: 'package.json',
  changes: [[/"version": "\d+\.\d+\.\d+"/g, '"version": "9.8.7"']] as const,
}

const reserve = async (host: TestHost, key: string, code: string): Promise<number> =>
  (await host.service.post('/api/reserve', key, { code })).status

async function restart(host: TestHost, program: string): Promise<void> {
  await host.stop()
  await host.start(program)
}

testWith('postgres')(
  'a host that meets an entry of a newer release stops at it, says so, and goes on once it is upgraded',
  async () => {
    using folder = temporaryFolder()
    const next = buildMutant(folder.path, NEXT_RELEASE)
    await using cluster = await TestCluster.start({ hosts: 2 })
    const [first, second, key] = [cluster.host(0), cluster.host(1), cluster.key]
    expect(await reserve(second, key, 'BEFORE1')).toBe(201)
    const before = await first.service.shorten(key, 'https://example.com/before')

    // It applies what the older release wrote.
    await restart(first, next)
    expect((await first.fetch('/api/lookup/BEFORE1')).status).toBe(200)
    await eventually('the newer host changes something', async () => {
      return (await reserve(first, key, 'NEWER1')) === 201
    })
    await eventually('the older host stops applying', async () => {
      return (await second.metric('hopcode_cluster_following')) === 0
    })
    const ready = await second.fetch('/-/ready')
    expect([ready.status, await ready.json()]).toEqual([
      503,
      expect.objectContaining({
        error: 'Service degraded: this host does not follow the log of its cluster',
      }),
    ])
    expect((await second.fetch(`/${before}`)).status).toBe(302)
    expect((await second.fetch('/api/lookup/NEWER1')).status).toBe(404)
    expect(await reserve(second, key, 'OLDER1')).toBe(500)
    await eventually('the status names both releases', async () => {
      const { out } = await command(['cluster', 'status'], second.settings)
      return /version 9\.8\.7 has written it, and this host has \d+\.\d+\.\d+\. Upgrade it/.test(
        out,
      )
    })
    await restart(second, await binary())
    await eventually('nor does it apply the entry after a start', async () => {
      return (await second.metric('hopcode_cluster_following')) === 0
    })
    expect((await second.fetch('/api/lookup/NEWER1')).status).toBe(404)

    await restart(second, next)
    await cluster.ready()
    expect((await second.fetch('/api/lookup/NEWER1')).status).toBe(200)
    expect(await reserve(second, key, 'NEWER2')).toBe(201)
    await cluster.rest()
    expect(await cluster.difference()).toBeUndefined()
  },
  180_000,
)
