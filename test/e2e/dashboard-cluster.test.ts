import { expect, test } from 'bun:test'
import { encodeCalls } from '../../src/cluster/entries.ts'
import { PostgresLog } from '../../src/cluster/log.ts'
import { eventually, testApp } from '../support/app.ts'
import { command } from '../support/binary.ts'
import { TestCluster } from '../support/cluster.ts'
import { OWNER, PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { testWith } from '../support/tools.ts'

/** What the page of the service shows of a cluster. */

const PAGE = '/app/service'
const MARKUP = '<b>future</b>'

/** The facts of the card, by name; undefined without a card. */
function cardIn(text: string): Record<string, string> | undefined {
  const [, card] = />Cluster<\/h2>([\s\S]*?)<\/dl>/.exec(text) ?? []
  if (card === undefined) return undefined
  const facts = card.matchAll(/<dt>([^<]*)<\/dt>\s*<dd>(.*?)<\/dd>/gs)
  return Object.fromEntries([...facts].map(([, name, value = '']) => [name, value.trim()]))
}

/** The owner, who may ask another host each time: `ask.url` is that of the next request. */
async function ownerOf(cluster: TestCluster) {
  const ask = { url: cluster.host(0).service.url }
  const args = ['account', 'setup-link', '--json']
  const { out, err } = await command(args, cluster.host(0).settings)
  if (out === '') throw new Error(err)
  const owner = new Visitor(ask)
  const fields = { email: OWNER, password: PASSWORD }
  await owner.post(new URL(JSON.parse(out).link).pathname, fields)
  return { ask, owner }
}

/** Adds an entry with a call that no release knows. */
async function appendUnknownCall({ clusterUrl }: { clusterUrl: string }): Promise<void> {
  const log = new PostgresLog({ url: clusterUrl, host: 'test' })
  const calls = encodeCalls([{ name: MARKUP, args: {} }])
  await log.head()
  await log.append({ batch: 'unknown', version: 1, calls }, log.deadlineAfter(1000))
  await log.close()
}

testWith('postgres')(
  'the page of the service shows the other hosts, what is to apply, and why a host has stopped',
  async () => {
    await using cluster = await TestCluster.start({ hosts: 2 })
    const { ask, owner } = await ownerOf(cluster)
    for (const host of cluster.hosts) {
      ask.url = host.service.url
      const healthy = { 'This host': 'live', 'Other hosts live': '1 of 1', 'Changes to apply': '0' }
      await eventually('each host shows that all is well', async () => {
        return Bun.deepEquals(cardIn((await owner.get(PAGE)).text), healthy)
      })
    }

    await cluster.host(1).kill()
    ask.url = cluster.host(0).service.url
    await eventually('the other host is away', async () => {
      return cardIn((await owner.get(PAGE)).text)?.['Other hosts live'] === '0 of 1'
    })
    expect((await owner.get(PAGE)).text).toContain('<strong>Healthy.</strong>')

    await appendUnknownCall(cluster.host(0))
    await eventually('this host has stopped', async () => {
      return cardIn((await owner.get(PAGE)).text)?.['This host'] === 'not following'
    })
    await eventually('it shows the entry that it has not applied', async () => {
      return cardIn((await owner.get(PAGE)).text)?.['Changes to apply'] === '1'
    })
    const { status, text } = await owner.get(PAGE)
    expect([status, text.includes(MARKUP)]).toEqual([200, false])
    expect(text).toMatch(
      /Changes fail: entry \d+ has the unknown call &lt;b&gt;future&lt;\/b&gt;\. Upgrade Hopcode\./,
    )
    expect(text).toContain('Upgrade Hopcode. Short links keep working')
    const part = (await owner.get(PAGE, { 'hx-request': 'true' })).text
    expect([cardIn(part)?.['This host'], part.includes(MARKUP)]).toEqual(['not following', false])
  },
)

testWith('postgres')(
  'a host that is blocked on one host of a cluster is blocked on the other before the page answers',
  async () => {
    await using cluster = await TestCluster.start({ hosts: 2 })
    const { ask, owner } = await ownerOf(cluster)
    const made = await command(
      ['account', 'create', '--email', 'a@example.com', '--plan', 'pro', '--json'],
      cluster.host(0).settings,
    )
    const headers = { 'x-api-key': JSON.parse(made.out).api_key }
    const [first, second] = cluster.hosts.map(({ service }) => service)
    const url = 'https://login.phish.example/'
    const code = await first?.shorten(headers['x-api-key'], url)
    const statusOn = async (host = first) => (await host?.fetch(`/${code}`))?.status
    await eventually('both redirect', async () => {
      return (await statusOn()) === 302 && (await statusOn(second)) === 302
    })
    ask.url = cluster.host(0).service.url
    const host = { host: 'phish.example', reason: 'Reported', confirmed: '1' }
    await owner.post('/app/service/hosts', host, { from: '/app/service/hosts' })
    expect([await statusOn(), await statusOn(second)]).toEqual([410, 410])
    ask.url = cluster.host(1).service.url
    await owner.post('/app/service/hosts/unblock', host, { from: '/app/service/hosts' })
    expect([await statusOn(), await statusOn(second)]).toEqual([302, 302])
  },
)

test('the page of a single host has no card of a cluster', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const { status, text } = await owner.get(PAGE)
  expect([status, text.includes('Hits being written')]).toEqual([200, true])
  expect(text).not.toContain('Cluster')
})
