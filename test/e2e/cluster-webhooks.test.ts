import { expect } from 'bun:test'
import { eventually } from '../support/app.ts'
import { command } from '../support/binary.ts'
import { TestCluster } from '../support/cluster.ts'
import { Receiver } from '../support/receiver.ts'
import { testWith } from '../support/tools.ts'

/** Which host of a cluster sends an event. */

const testCluster = testWith('postgres')

testCluster(
  'the host of a change sends its event, after an end when it is back, or another one when it has left',
  async () => {
    using receiver = new Receiver()
    const env = () => ({ OUTGOING_HOSTS: '127.0.0.1' })
    await using cluster = await TestCluster.start({ hosts: 2, env })
    const [first, second] = [cluster.host(0), cluster.host(1)]
    const { key } = cluster
    const idOf = (at: number) => receiver.received[at]?.headers['webhook-id']
    const sequences = () => receiver.bodies().map(({ sequence }) => sequence)
    const json = { url: receiver.url, events: ['link.created'] }
    expect((await first.service.post('/api/webhooks', key, json)).status).toBe(201)
    const hang = () => new Promise<Response>(() => {})

    receiver.next.push(hang)
    await second.service.shorten(key, 'https://example.com/1')
    await receiver.until(1)
    await second.kill()
    // The event of the other host waits for it.
    await first.service.shorten(key, 'https://example.com/2')
    await receiver.until(2)
    expect(sequences()).toEqual([1, 2])
    await second.start()
    await receiver.until(3)
    expect([sequences(), idOf(2)]).toEqual([[1, 2, 1], idOf(0) as string])
    await cluster.rest()
    expect(await cluster.difference()).toBeUndefined()

    receiver.next.push(hang)
    await second.service.shorten(key, 'https://example.com/3')
    await receiver.until(4)
    const { id } = second
    await second.kill()
    const words = ['cluster', 'leave', '--host', id, '--force']
    await eventually('the host has left', async () => {
      return (await command(words, first.settings)).code === 0
    })
    await receiver.until(5)
    expect([sequences(), idOf(4)]).toEqual([[1, 2, 1, 3, 3], idOf(3) as string])
    await eventually('nothing waits', async () => {
      return (await first.metric('hopcode_webhook_deliveries_queued')) === 0
    })
  },
)
