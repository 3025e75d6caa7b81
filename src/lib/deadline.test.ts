import { expect, test } from 'bun:test'
import { retry, withTimeout } from './deadline.ts'

test('a result in time is passed on, and so is an error', async () => {
  expect(await withTimeout(60_000, Promise.resolve('done'), 'late')).toBe('done')
  const failed = Promise.reject(new Error('failed'))
  await expect(withTimeout(60_000, failed, 'late')).rejects.toThrow('failed')
})

test('work that takes longer is given up', async () => {
  await expect(withTimeout(1, new Promise(() => {}), 'no answer')).rejects.toThrow('no answer')
})

test('work is repeated until it succeeds', async () => {
  let tries = 0
  const work = async () => {
    if (++tries < 3) throw new Error(`try ${tries}`)
    return tries
  }
  expect(await retry({ ms: 60_000, pauseMs: 1 }, work)).toBe(3)
})

test('after the time the last error remains', async () => {
  const work = async () => {
    throw new Error('refused')
  }
  await expect(retry({ ms: 5, pauseMs: 1 }, work)).rejects.toThrow('refused')
})
