import { expect, test } from 'bun:test'
import { inProcess } from '../../test/support/in-process.ts'
import { Thread } from './thread.ts'

/** The functions that the thread below serves. */
interface Calls {
  double: (n: number) => number
  fail: (message: string) => never
  batchSize: (args: null) => number
  followUps: (args: null) => number
  /** Ends the thread before it answers: by an uncaught error, or by an exit. */
  end: (how: 'error' | 'exit') => never
}

const SERVICE = `
  import { functionService, serveThread } from '${new URL('./thread.ts', import.meta.url).pathname}'
  serveThread((settings) => {
    if (settings.broken) throw new Error('no such file')
    let size = 0
    let followUps = 0
    const functions = {
      double: (n) => n * 2,
      fail: (message) => { throw new Error(message) },
      batchSize: () => size,
      followUps: () => followUps,
      end: (how) => how === 'exit'
        ? process.exit(3)
        : new Promise(() => setTimeout(() => { throw new Error('out of luck') })),
    }
    const service = functionService(functions)
    return {
      ...service,
      answer: (calls) => {
        size = calls.length
        return service.answer(calls)
      },
      onBatchDone: () => { followUps++ },
    }
  })
`

const newWorker = () =>
  new Worker(URL.createObjectURL(new File([SERVICE], 'service.js', { type: 'text/javascript' })))

const start = (settings = {}, options = { batchMax: 100, queueMax: 100 }) =>
  Thread.start<Calls>(newWorker(), settings, options)

/** A thread, its reported deaths, and a promise of its end. */
async function startMortal() {
  const worker = newWorker()
  const reported: Error[] = []
  const options = {
    batchMax: 1,
    queueMax: 100,
    onDeath: (error: Error) => void reported.push(error),
  }
  const thread = await Thread.start<Calls>(worker, {}, options)
  const ended = new Promise((resolve) => worker.addEventListener('close', resolve))
  return { thread, reported, ended }
}

test('calls are answered, each with its own value or error', async () => {
  const thread = await start()
  const [one, two, three] = await Promise.allSettled([
    thread.call('double', 4),
    thread.call('fail', 'changed its mind'),
    thread.call('double', 5),
  ])
  expect([one, three]).toEqual([
    { status: 'fulfilled', value: 8 },
    { status: 'fulfilled', value: 10 },
  ])
  expect(two).toMatchObject({ status: 'rejected', reason: { message: 'changed its mind' } })
  await thread.close()
})

test('calls made in one tick are sent in one batch', async () => {
  const thread = await start()
  const sizes = await Promise.all(Array.from({ length: 7 }, () => thread.call('batchSize', null)))
  expect(sizes).toEqual(Array(7).fill(7))
  await thread.close()
})

test('background calls are sent only when no other call waits, in their own order', async () => {
  const thread = await start({}, { batchMax: 1, queueMax: 100 })
  const order: string[] = []
  const note = (name: string, background: boolean) =>
    thread.call('double', 1, { background }).then(() => order.push(name))
  await Promise.all([note('b1', true), note('b2', true), note('u1', false), note('u2', false)])
  expect(order).toEqual(['u1', 'u2', 'b1', 'b2'])
  await thread.close()
})

test('calls beyond the queue are refused, and those within it are answered', async () => {
  const thread = await start({}, { batchMax: 1, queueMax: 3 })
  const outcomes = await Promise.allSettled(
    Array.from({ length: 5 }, (_, i) => thread.call('double', i)),
  )
  expect(outcomes.map(({ status }) => status)).toEqual([
    ...Array(3).fill('fulfilled'),
    ...Array(2).fill('rejected'),
  ])
  await thread.close()
})

test('a thread that cannot start says why', () => {
  expect(start({ broken: true })).rejects.toThrow('no such file')
})

test('closing answers waiting calls, and refuses later ones', async () => {
  const thread = await start({}, { batchMax: 1, queueMax: 100 })
  const waiting = [thread.call('double', 1), thread.call('double', 2)]
  await thread.close()
  expect(await Promise.all(waiting)).toEqual([2, 4])
  expect(thread.call('double', 3)).rejects.toThrow('closed')
})

test('a call during the close is refused, and not left without an answer', async () => {
  const thread = await start()
  const closed = thread.close()
  const late = thread.call('double', 1)
  expect(late).rejects.toThrow('closed')
  await Promise.allSettled([late, closed])
})

test('closing drops background calls of the given names, and finishes the others', async () => {
  const thread = await start({}, { batchMax: 1, queueMax: 100 })
  const outcomes = Promise.allSettled([
    thread.call('double', 1),
    thread.call('double', 2, { background: true }),
    thread.call('batchSize', null, { background: true }),
  ])
  await thread.close({ drop: ['double'] })
  expect((await outcomes).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
  ])
})

test('onBatchDone runs after the answers of a batch are sent, before the next batch', async () => {
  const thread = await start()
  expect(await thread.call('followUps', null)).toBe(0)
  expect(await Promise.all([1, 2].map(() => thread.call('followUps', null)))).toEqual([1, 1])
  expect(await thread.call('followUps', null)).toBe(2)
  await thread.close()
})

test.each([
  ['error', 'out of luck'],
  ['exit', 'exit code 3'],
] as const)(
  'a thread that ends without close (%s) is reported once, and every call is refused',
  async (how, why) => {
    const { thread, reported, ended } = await startMortal()
    expect(thread.isDead).toBe(false)
    const outcomes = [
      ...(await Promise.allSettled([thread.call('end', how), thread.call('double', 1)])),
      ...(await Promise.allSettled([thread.call('double', 2)])),
    ]
    for (const outcome of outcomes) {
      expect(outcome.status).toBe('rejected')
      expect(String((outcome as PromiseRejectedResult).reason)).toContain(why)
    }
    expect(thread.isDead).toBe(true)
    await thread.close()
    await ended
    expect(reported).toHaveLength(1)
  },
)

test('closing a thread is not reported as a death', async () => {
  const { thread, reported, ended } = await startMortal()
  await thread.close()
  await ended
  expect(reported).toEqual([])
})

test('the time of a batch is measured from its sending until its answer', async () => {
  let now = 1000
  const options = { batchMax: 1, queueMax: 100, monotonic: () => now }
  const thread = await start({}, options)
  expect(thread.batchMs).toBe(0)
  const first = thread.call('double', 1)
  const second = thread.call('double', 2)
  await Promise.resolve()
  now += 6000
  expect(thread.batchMs).toBe(6000)
  // The second batch is sent with the answer of the first, and its time begins then.
  await first
  expect(thread.batchMs).toBe(0)
  await second
  now += 6000
  expect(thread.batchMs).toBe(0)
  await thread.close()
})

test('in process, calls of one tick are one batch, and a throw or a rejection is the error of its call', async () => {
  const sizes: number[] = []
  const thread = inProcess<Pick<Calls, 'double' | 'fail'>>(
    {
      double: async (n) => n * 2,
      fail(message) {
        throw new Error(message)
      },
    },
    { batchMax: 2, observe: (calls) => void sizes.push(calls) },
  )
  const outcomes = await Promise.allSettled([
    thread.call('double', 4),
    thread.call('fail', 'changed its mind'),
    thread.call('double', 5, { background: true }),
  ])
  expect(outcomes).toMatchObject([
    { value: 8 },
    { reason: { message: 'changed its mind' } },
    { value: 10 },
  ])
  expect(sizes).toEqual([2, 1])
  await thread.close()
  expect(thread.call('double', 1)).rejects.toThrow('closed')
})
