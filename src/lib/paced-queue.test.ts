import { expect, test } from 'bun:test'
import { PacedQueue } from './paced-queue.ts'

/** A queue whose rests pass at once on its own clock. */
function pacedQueue({ places = 100 } = {}) {
  const rests: number[] = []
  const time = {
    now: 0,
    monotonic: () => time.now,
    async rest(ms: number) {
      rests.push(ms)
      time.now += ms
    },
  }
  const queue = new PacedQueue({ burst: 3, everyMs: 100, places, time })
  const arrive = (jobs: number) =>
    Promise.all(Array.from({ length: jobs }, () => queue.run(async () => {})))
  return { queue, time, rests, arrive }
}

test('a few jobs run at once, more at the pace, and after a quiet time at once again', async () => {
  const { time, rests, arrive } = pacedQueue()
  await arrive(3)
  expect(rests).toEqual([])
  await arrive(3)
  expect(rests).toEqual([100, 100, 100])
  time.now += 50
  await arrive(2)
  expect(rests.slice(3)).toEqual([50, 100])
  time.now += 60_000
  await arrive(3)
  expect(rests).toHaveLength(5)
})

test('a job that took longer than the pace makes nobody wait for it', async () => {
  const { queue, time, rests } = pacedQueue()
  const slow = async () => {
    time.now += 150
  }
  await Promise.all(Array.from({ length: 10 }, () => queue.run(slow)))
  expect(rests).toEqual([])
})

test('jobs run one at a time in the order they came, also behind one that fails', async () => {
  const { queue } = pacedQueue()
  const order: string[] = []
  const job = (name: string) => async () => {
    order.push(`${name} begins`)
    await Promise.resolve()
    order.push(`${name} ends`)
    if (name === 'a') throw new Error('a failed')
    return name
  }
  const [a, b] = await Promise.allSettled([queue.run(job('a')), queue.run(job('b'))])
  expect(a).toMatchObject({ status: 'rejected', reason: { message: 'a failed' } })
  expect(b).toEqual({ status: 'fulfilled', value: 'b' })
  expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
})

test('a job that is refused at its turn costs nobody any time, and the next one runs', async () => {
  const { queue, rests, arrive } = pacedQueue()
  const refuse = () => {
    throw new Error('refused')
  }
  const refused = Array.from({ length: 20 }, () => queue.run(async () => {}, refuse))
  const outcomes = await Promise.allSettled(refused)
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true)
  await arrive(3)
  expect(rests).toEqual([])
})

test('it is full with a job in every place, and has places again', async () => {
  const { queue, arrive } = pacedQueue({ places: 2 })
  const all = arrive(2)
  expect(queue.isFull).toBe(true)
  await all
  expect(queue.isFull).toBe(false)
})

test('once it is closed nobody waits for the pace', async () => {
  const { queue, rests, arrive } = pacedQueue()
  queue.close()
  await arrive(20)
  expect(rests).toEqual([])
})
