import { expect, test } from 'bun:test'
import { sharedMonotonicClock } from './clock.ts'

const SOURCE = `
  const { sharedMonotonicClock } = require(${JSON.stringify(new URL('./clock.ts', import.meta.url).pathname)})
  self.postMessage(sharedMonotonicClock()())`

test('all threads read the same monotonic clock', async () => {
  const now = sharedMonotonicClock()
  const before = now()
  const file = new File([SOURCE], 'thread.js', { type: 'text/javascript' })
  const worker = new Worker(URL.createObjectURL(file))
  const between = await new Promise<number>((resolve) => {
    worker.onmessage = ({ data }) => resolve(data)
  })
  const after = now()
  worker.terminate()
  expect(between).toBeGreaterThan(before)
  expect(after).toBeGreaterThan(between)
})
