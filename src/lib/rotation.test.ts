import { expect, test } from 'bun:test'
import { Rotation } from './rotation.ts'

const full = () => new Error('full')

/** Runs jobs that all wait behind a first one. Returns their keys in the order of their starts. */
async function orderOf(jobs: readonly string[], jobsMax = 100): Promise<string[]> {
  const rotation = new Rotation({ jobsMax, full })
  const started: string[] = []
  const first = rotation.run(['first'], () => Promise.resolve())
  const all = jobs.map((job) =>
    rotation
      .run(job.split(' '), async () => {
        started.push(job)
      })
      .catch(() => {
        started.push(`${job} refused`)
      }),
  )
  await Promise.all([first, ...all])
  return started
}

test('many networks that ask about one link delay no other link', async () => {
  const attack = Array.from({ length: 8 }, (_, n) => `network-${n} link`)
  const order = await orderOf([...attack, ...attack, 'other-network other-link'])
  expect(order.indexOf('other-network other-link')).toBe(1)
})

test('one network that asks about many links delays no other network', async () => {
  const attack = Array.from({ length: 8 }, (_, n) => `network link-${n}`)
  const order = await orderOf([...attack, 'other-network other-link', 'other-network link-7'])
  expect(order.indexOf('other-network other-link')).toBe(1)
})

test('of the jobs about a link, that of a new network comes before those of one served before', async () => {
  const order = await orderOf(['a link', 'a link', 'a link', 'b link'])
  expect(order).toEqual(['a link', 'b link', 'a link', 'a link'])
})

test('jobs with the same keys run in order of arrival, also behind one that fails', async () => {
  const rotation = new Rotation({ jobsMax: 100, full })
  const results = await Promise.allSettled(
    [1, 2, 3].map((n) =>
      rotation.run(['a', 'b'], () => (n === 2 ? Promise.reject(full()) : Promise.resolve(n))),
    ),
  )
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('in a full queue, a job displaces the last one of the key with the most jobs', async () => {
  const attack = Array.from({ length: 4 }, (_, n) => `network-${n} link`)
  const order = await orderOf([...attack, 'other other', 'network-0 link'], 4)
  expect(order.filter((job) => job.includes('refused')).sort()).toEqual([
    'network-0 link refused',
    'network-3 link refused',
  ])
  expect(order).toContain('other other')
})
