import { expect, test } from 'bun:test'
import { Thread } from '../lib/thread.ts'
import type { BucketWrites } from './buckets.ts'
import { BucketPruner } from './pruner.ts'

/** A writer that has so many batches of old buckets to remove. */
function setUp(batches: number) {
  const orders: { now: number; most: number }[] = []
  const state = { isFull: false }
  const writer = Thread.inProcess<BucketWrites>({
    pruneBuckets(order) {
      orders.push(order)
      if (state.isFull) throw new Error('database or disk is full')
      return orders.length < batches
    },
  })
  const pruner = new BucketPruner({ writer, clock: () => 77 })
  return { orders, state, pruner }
}

test('pruning begins at the start and goes on until nothing old is left', async () => {
  const { orders, pruner } = setUp(3)
  while (orders.length < 3) await Promise.resolve()
  await pruner.prune()
  pruner.close()
  expect(orders).toEqual(Array(4).fill({ now: 77, most: 4000 }))
})

test('pruning ends with the service, and a disk that refuses does not end it', async () => {
  const { orders, state, pruner } = setUp(1000)
  state.isFull = true
  expect(pruner.prune()).rejects.toThrow('disk is full')
  await pruner.prune().catch(() => {})
  state.isFull = false
  const running = pruner.prune()
  pruner.close()
  await running
  expect(orders.length).toBeLessThan(10)
})
