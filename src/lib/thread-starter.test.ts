import { expect, test } from 'bun:test'
import { Thread } from './thread.ts'
import { LazyThread, RestartingThread } from './thread-starter.ts'

interface Calls {
  double: (n: number) => number
  end: (args: null) => never
}

const SERVICE = `
  import { functionService, serveThread } from '${new URL('./thread.ts', import.meta.url).pathname}'
  serveThread((settings) => {
    if (settings.broken) throw new Error('no such file')
    const functions = { double: (n) => n * 2, end: () => process.exit(3) }
    return functionService(functions)
  })
`

/** `broken`: the starts, from 0, that fail. */
function startsOf(broken: readonly number[] = []) {
  const seen = { starts: 0, restarts: 0 }
  let restarted = () => {}
  const file = new File([SERVICE], 'service.js', { type: 'text/javascript' })
  const start = () =>
    RestartingThread.start<Calls>(
      (onDeath) =>
        Thread.start<Calls>(
          new Worker(URL.createObjectURL(file)),
          { broken: broken.includes(seen.starts++) },
          { batchMax: 1, queueMax: 100, onDeath },
        ),
      {
        pauseMs: 1,
        onRestart() {
          seen.restarts++
          restarted()
        },
      },
    )
  const nextRestart = () =>
    new Promise<void>((resolve) => {
      restarted = resolve
    })
  return { start, seen, nextRestart }
}

async function startRestarting(broken: readonly number[] = []) {
  const { start, ...rest } = startsOf(broken)
  return { thread: await start(), ...rest }
}

test('a thread that ends refuses its calls, and its successor answers those that come later', async () => {
  const { thread, seen, nextRestart } = await startRestarting()
  for (let death = 1; death <= 3; death++) {
    const restarted = nextRestart()
    const outcomes = await Promise.allSettled([thread.call('end', null), thread.call('double', 1)])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(thread.isDead).toBe(true)
    expect(thread.call('double', 1)).rejects.toThrow('exit code 3')
    await restarted
    expect([thread.isDead, thread.pending, thread.batchMs]).toEqual([false, 0, 0])
    expect(await thread.call('double', 4)).toBe(8)
    expect(seen).toEqual({ starts: death + 1, restarts: death })
  }
  await thread.close()
})

test('a restart that fails is tried again', async () => {
  const { thread, seen, nextRestart } = await startRestarting([1, 2])
  const restarted = nextRestart()
  await thread.call('end', null).catch(() => {})
  await restarted
  expect(seen).toEqual({ starts: 4, restarts: 1 })
  expect(await thread.call('double', 4)).toBe(8)
  await thread.close()
})

test('a first start that fails is not tried again', async () => {
  expect(startRestarting([0])).rejects.toThrow('no such file')
})

test('a thread that is closed is not restarted', async () => {
  const { thread, seen } = await startRestarting()
  await thread.call('end', null).catch(() => {})
  await thread.close()
  await Bun.sleep(20)
  expect(seen).toEqual({ starts: 1, restarts: 0 })
})

test('a lazy thread starts once, with its first calls, and refuses them once it is closed', async () => {
  const { seen, start } = startsOf()
  const thread = new LazyThread(start)
  expect([seen.starts, thread.pending, thread.batchMs, thread.isDead]).toEqual([0, 0, 0, false])
  const doubled = await Promise.all([1, 2, 3].map((n) => thread.call('double', n)))
  expect([seen.starts, doubled]).toEqual([1, [2, 4, 6]])
  await thread.close()
  expect(thread.call('double', 1)).rejects.toThrow()

  const unused = new LazyThread(start)
  await unused.close()
  expect(unused.call('double', 1)).rejects.toThrow('closed')
  expect(seen.starts).toBe(1)
})

test('a lazy thread that is closed while it starts answers the calls before, and ends', async () => {
  const { start } = startsOf()
  const thread = new LazyThread(start)
  const doubled = thread.call('double', 4)
  await thread.close()
  expect(await doubled).toBe(8)
  expect(thread.call('double', 1)).rejects.toThrow()
})

test('a lazy thread whose start fails refuses the calls that wait, and the next one starts it', async () => {
  const { seen, start } = startsOf([0])
  const thread = new LazyThread(start)
  const waiting = [thread.call('double', 1), thread.call('double', 2)]
  const outcomes = await Promise.allSettled(waiting)
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await thread.call('double', 4)).toBe(8)
  expect(seen.starts).toBe(2)
  await thread.close()
})
