import { expect, test } from 'bun:test'
import { Lock } from './lock.ts'

const newWords = () => new Int32Array(new SharedArrayBuffer(12))

test('a lock names the thread that holds it', () => {
  const words = newWords()
  const lock = new Lock(words, 1, 1_000_000)
  expect(lock.acquire()).toBe(true)
  expect(lock.isHeldBy(1_000_000)).toBe(true)
  expect(lock.isHeldBy(1)).toBe(false)
  lock.release()
  expect(lock.isHeldBy(1_000_000)).toBe(false)
  expect([...words]).toEqual([0, 0, 0])
})

test('a lock that nobody releases is given up, and can be freed for the thread that held it', () => {
  const words = newWords()
  new Lock(words, 0, 2).acquire()
  const lock = new Lock(words, 0, 1)
  expect(lock.acquire()).toBe(false)
  expect(lock.isHeldBy(2)).toBe(true)
  lock.release()
  expect(lock.acquire()).toBe(true)
})

/** Adds 1 to a word, many times, by a read and a write that other threads may come between. */
const SOURCE = `
  const { Lock } = require(${JSON.stringify(new URL('./lock.ts', import.meta.url).pathname)})
  self.onmessage = ({ data: { words, thread, times } }) => {
    const lock = new Lock(words, 0, thread)
    for (let i = 0; i < times; i++) {
      lock.acquire()
      const value = words[1]
      if (i % 500 === 0) Atomics.wait(words, 2, 0, 1)
      words[1] = value + 1
      lock.release()
    }
    self.postMessage('done')
  }`

test('threads that need the lock at once have it one after the other, and none waits forever', async () => {
  const file = new File([SOURCE], 'thread.js', { type: 'text/javascript' })
  const workers = Array.from({ length: 4 }, () => new Worker(URL.createObjectURL(file)))
  const words = newWords()
  const times = 20_000
  await Promise.all(
    workers.map((worker, index) => {
      worker.postMessage({ words, thread: index + 1, times })
      return new Promise((resolve, reject) => {
        worker.onmessage = resolve
        worker.onerror = reject
      })
    }),
  )
  for (const worker of workers) worker.terminate()
  expect([...words]).toEqual([0, 4 * times, 0])
})
