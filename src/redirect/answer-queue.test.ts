import { expect, test } from 'bun:test'
import { AnswerQueue } from './answer-queue.ts'
import type { AddressUsage } from './connection-limits.ts'

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

/** A queue on a clock of its own, and what is answered in each tick. */
function createQueue(answerMs: number) {
  let now = 0
  const queue = new AnswerQueue(() => now)
  const usages = new Map<string, AddressUsage>()
  const answered: string[] = []

  class Connection {
    readonly name: string
    readonly usage: AddressUsage
    left = 0

    constructor(name: string, address: string, isProxy = false) {
      this.name = name
      const usage = { address, isProxy, connections: 1, requests: 0, uploads: 0, bytes: 0 }
      this.usage = usages.getOrInsertComputed(address, () => usage)
    }

    receive(requests: number) {
      this.left += requests
      if (!queue.takes(this)) this.resume()
    }

    resume() {
      for (let isSpent = false; !isSpent && this.left > 0; this.left--) {
        answered.push(this.name)
        now += answerMs
        isSpent = queue.spend()
      }
      if (this.left > 0) queue.add(this)
    }
  }

  const tick = async () => {
    answered.length = 0
    await nextTick()
    return [...answered]
  }
  const pass = (ms: number) => {
    now += ms
  }
  return { Connection, answered, tick, pass }
}

test('a tick answers for about 2 ms, whatever an answer takes and however many connections', async () => {
  for (const answerMs of [0.01, 0.1, 0.25]) {
    const { Connection, answered, tick, pass } = createQueue(answerMs)
    pass(1000)
    const connections = Array.from({ length: 64 }, (_, i) => new Connection(`${i}`, `${i % 8}`))
    for (const connection of connections) connection.receive(40)
    // What begins before the tick is watched, and between two readings of the clock.
    const spare = 8
    expect(answered.length).toBeLessThanOrEqual(1.5 / answerMs + spare)
    const total = 64 * 40
    let count = answered.length
    while (count < total) {
      const { length } = await tick()
      expect(length).toBeLessThanOrEqual(2 / answerMs + spare)
      expect(length).toBeGreaterThan(0)
      count += length
    }
    expect(count).toBe(total)
  }
})

test('addresses are served in turns, however many connections they have', async () => {
  const { Connection, tick } = createQueue(1)
  for (let i = 0; i < 64; i++) new Connection('many', '192.0.2.1').receive(100)
  const one = new Connection('one', '192.0.2.2')
  const counts = { many: 0, one: 0 }
  one.receive(100)
  for (let i = 0; i < 20; i++) {
    for (const name of await tick()) counts[name as keyof typeof counts]++
  }
  expect(counts.one).toBeGreaterThan(counts.many / 2)
  expect(counts.many).toBeGreaterThan(counts.one / 2)
})

test('an address that has nothing in the queue is answered at once', async () => {
  const { Connection, answered, tick } = createQueue(0.5)
  for (let i = 0; i < 64; i++) new Connection('heavy', '192.0.2.1').receive(100)
  await tick()
  answered.length = 0
  new Connection('light', '192.0.2.2').receive(1)
  expect(answered).toEqual(['light'])
  answered.length = 0
  new Connection('heavy', '192.0.2.1').receive(1)
  expect(answered).toEqual([])
})

test('each connection of a trusted proxy is an address of its own', async () => {
  const { Connection, answered, tick } = createQueue(0.5)
  new Connection('heavy', '192.0.2.1', true).receive(100)
  await tick()
  answered.length = 0
  new Connection('light', '192.0.2.1', true).receive(1)
  expect(answered).toEqual(['light'])
})
