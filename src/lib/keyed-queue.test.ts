import { expect, test } from 'bun:test'
import { KeyedQueue } from './keyed-queue.ts'

test('jobs of one key run in order, also after one that fails, and no key waits for another', async () => {
  const queue = new KeyedQueue<string>()
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
