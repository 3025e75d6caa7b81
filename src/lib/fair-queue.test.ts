import { expect, test } from 'bun:test'
import { FairQueue } from './fair-queue.ts'

const full = () => new Error('full')

/** A queue whose sleeps return at once and advance its clock. */
function fairQueue({ jobsMax = 100 } = {}) {
  const sleeps: number[] = []
  const time = {
    now: 0,
    monotonic: () => time.now,
    async sleep(ms: number) {
      sleeps.push(ms)
      time.now += ms
    },
  }
  const queue = new FairQueue({ burst: 3, everyMs: 100, jobsMax, full, time })
  const arrive = (jobs: number) =>
    Promise.all(Array.from({ length: jobs }, () => queue.run('a', async () => {})))
  return { queue, time, sleeps, arrive }
}

test('a few jobs run at once, more at the pace, and after a quiet time at once again', async () => {
  const { time, sleeps, arrive } = fairQueue()
  await arrive(3)
  expect(sleeps).toEqual([])
  await arrive(3)
  expect(sleeps).toEqual([100, 100, 100])
  time.now += 50
  await arrive(2)
  expect(sleeps.slice(3)).toEqual([50, 100])
  time.now += 60_000
  await arrive(3)
  expect(sleeps).toHaveLength(5)
})

test('a job that took longer than the pace delays no other job', async () => {
  const { queue, time, sleeps } = fairQueue()
  const slow = async () => {
    time.now += 150
  }
  await Promise.all(Array.from({ length: 10 }, () => queue.run('a', slow)))
  expect(sleeps).toEqual([])
})

test('jobs of a key run one at a time in the order they came, also behind one that fails', async () => {
  const { queue } = fairQueue()
  const order: string[] = []
  const job = (name: string) => async () => {
    order.push(`${name} begins`)
    await Promise.resolve()
    order.push(`${name} ends`)
    if (name === 'a') throw new Error('a failed')
    return name
  }
  const [a, b] = await Promise.allSettled([queue.run('k', job('a')), queue.run('k', job('b'))])
  expect(a).toMatchObject({ status: 'rejected', reason: { message: 'a failed' } })
  expect(b).toEqual({ status: 'fulfilled', value: 'b' })
  expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
})

test('a job refused by admit does not count for the pace, and the next one runs', async () => {
  const { queue, sleeps, arrive } = fairQueue()
  const refuse = () => {
    throw new Error('refused')
  }
  const refused = Array.from({ length: 20 }, () => queue.run('a', async () => {}, refuse))
  const outcomes = await Promise.allSettled(refused)
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true)
  await arrive(3)
  expect(sleeps).toEqual([])
})

/** Begins a job for each key, in order. Returns what has become of each, by its number. */
async function settle(queue: FairQueue, keys: string): Promise<string> {
  const order: string[] = []
  const jobs = [...keys].map((key) => queue.run(key, async () => void order.push(key)))
  const outcomes = await Promise.allSettled(jobs)
  const refused = outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))
  return `${order.join('')} refused ${refused.join()}`
}

test('keys are served round-robin, however many jobs one of them has', async () => {
  expect(await settle(fairQueue().queue, 'aaaaabbc')).toBe('aabcabaa refused ')
})

test('one key may take every place; beyond them it is refused', async () => {
  const { queue, arrive } = fairQueue({ jobsMax: 4 })
  expect(await settle(queue, 'aaaaaa')).toBe('aaaa refused 4,5')
  await arrive(4)
})

test('in a full queue a new key displaces the latest job of the key that has the most', async () => {
  const { queue } = fairQueue({ jobsMax: 6 })
  expect(await settle(queue, 'aaaabbcd')).toBe('aabcdb refused 2,3')
})

test('a queue that is full of keys with one job each refuses a new one', async () => {
  const { queue, arrive } = fairQueue({ jobsMax: 4 })
  expect(await settle(queue, 'abcde')).toBe('abcd refused 4')
  await arrive(4)
})

/** Begins jobs of keys, each in the group of its first letter. One of `ax9` costs 9. */
async function settleCosts(keys: string, jobsMax = 100): Promise<string> {
  const queue = new FairQueue({ jobsMax, full })
  const order: string[] = []
  const jobs = keys.split(' ').map((name) => {
    const [, key = '', group = '', cost = ''] = /^(([a-z])[a-z]?)(\d*)$/.exec(name) ?? []
    const share = { group, cost: Number(cost || 1) }
    return queue.run(key, async () => void order.push(key), undefined, share)
  })
  const outcomes = await Promise.allSettled(jobs)
  const refused = outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))
  return `${order.join(' ')} refused ${refused.join()}`
}

const shares = [
  ['short jobs come before long ones that have not begun', 'a9 a9 b9 c9 d1', 'a d a b c refused '],
  ['keys get the same cost, not the same number', 'a1 a4 a4 b1 b1 b1 b1', 'a b b b a b a refused '],
  [
    'keys of a group get together what one key gets',
    'ax ax ay az b b b',
    'ax ax b ay b az b refused ',
  ],
  ['a short job comes first in its group, too', 'ax9 ax9 ay9 az1 b9', 'ax az ax b ay refused '],
] as const

test.each(shares)('%s', async (_, keys, order) => {
  expect(await settleCosts(keys)).toBe(order)
})

const full6 = [
  ['a key with fewer jobs displaces by cost', 'a1 a1 b4 c1', 'a a c refused 2'],
  [
    'a group with the most loses, of its keys the one with the most',
    'ax1 ax1 ay3 az1 b1',
    'ax ax b az refused 2',
  ],
  ['in its own group, a job displaces the key with more', 'ax1 ax4 ay1 ay1', 'ax ay ay refused 1'],
  ['a job that costs more than all others is refused', 'a1 b2 c2 d3', 'a b c refused 3'],
  ['a job that costs more than there is room runs alone', 'a9', 'a refused '],
] as const

test.each(full6)('in a full queue, %s', async (_, keys, order) => {
  expect(await settleCosts(keys, 6)).toBe(order)
})

test('a job of a higher cost is followed by a longer pause', async () => {
  const { queue, sleeps } = fairQueue()
  const costs = [3, 1, 5]
  await Promise.all(costs.map((cost) => queue.run('a', async () => {}, undefined, { cost })))
  expect(sleeps).toEqual([100, 500])
})

test('after close, jobs run without the pace', async () => {
  const { queue, sleeps, arrive } = fairQueue()
  queue.close()
  await arrive(20)
  expect(sleeps).toEqual([])
})

test('with one job of each key at once, those of a key run in order, and no key waits for another', async () => {
  const queue = new FairQueue({ atOnce: 'keys' })
  const events: string[] = []
  const held = Promise.withResolvers<void>()
  const job =
    (name: string, until: Promise<void> = Promise.resolve()) =>
    async () => {
      events.push(`${name} begins`)
      await until
      events.push(`${name} ends`)
      return name
    }
  const failing = queue.run('a', async () => {
    await held.promise
    throw new Error('failed')
  })
  const second = queue.run('a', job('second'))
  const third = queue.run('a', job('third'))
  expect(await queue.run('b', job('other'))).toBe('other')
  expect(events).toEqual(['other begins', 'other ends'])
  held.resolve()
  expect(failing).rejects.toThrow('failed')
  expect(await Promise.all([second, third])).toEqual(['second', 'third'])
  expect(events.slice(2)).toEqual(['second begins', 'second ends', 'third begins', 'third ends'])
})
