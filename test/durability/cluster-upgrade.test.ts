import { expect } from 'bun:test'
import { CALLS_VERSION } from '../../src/cluster/entries.ts'
import { eventually } from '../support/app.ts'
import { binary, command } from '../support/binary.ts'
import { TestCluster, type TestHost } from '../support/cluster.ts'
import { temporaryFolder } from '../support/folder.ts'
import { testWith } from '../support/tools.ts'
import { buildMutant } from './lib/mutant.ts'

/** A release whose reservations the release before it does not know. */
const NEXT_RELEASE = {
  file: 'src/links/subject.ts',
  changes: [[/(createOne: write\(\{\s+since:) \d+/g, `$1 ${CALLS_VERSION + 1}`]] as const,
}

const reserve = async (host: TestHost, key: string, code: string): Promise<number> =>
  (await host.service.post('/api/reserve', key, { code })).status

async function restart(host: TestHost, program: string): Promise<void> {
  await host.stop()
  await host.start(program)
}

testWith('postgres')(
  'hosts are upgraded one after the other: a new call waits for all of them, and a host that does not know it stops at it',
  async () => {
    using folder = temporaryFolder()
    const next = buildMutant(folder.path, NEXT_RELEASE)
    await using cluster = await TestCluster.start({ hosts: 2 })
    const [first, second, key] = [cluster.host(0), cluster.host(1), cluster.key]
    const before = await first.service.shorten(key, 'https://example.com/before')

    await restart(first, next)
    await cluster.ready()
    expect(await reserve(first, key, 'NEWCALL1')).toBe(500)
    // All other changes go on.
    const during = await first.service.shorten(key, 'https://example.com/during')
    await eventually('the older host has it', async () => {
      return (await second.fetch(`/${during}`)).status === 302
    })

    await restart(second, next)
    await cluster.ready()
    await eventually('all hosts know the new call', async () => {
      return (await reserve(first, key, 'NEWCALL2')) === 201
    })

    // The entry reaches it in its older release.
    await second.stop()
    expect(await reserve(first, key, 'NEWCALL3')).toBe(201)
    await second.start(await binary())
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
    expect((await second.fetch('/api/lookup/NEWCALL3')).status).toBe(404)
    await eventually('the status names the version', async () => {
      const { out } = await command(['cluster', 'status'], second.settings)
      const [needed, known] = [CALLS_VERSION + 1, CALLS_VERSION]
      return out.includes(
        `a newer Hopcode, with calls of version ${needed}; this one knows ${known}`,
      )
    })

    await restart(second, next)
    await cluster.ready()
    expect((await second.fetch('/api/lookup/NEWCALL3')).status).toBe(200)
    await cluster.rest()
    expect(await cluster.difference()).toBeUndefined()
  },
  180_000,
)
