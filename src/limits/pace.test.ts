import { expect, test } from 'bun:test'
import { Pace } from './pace.ts'

function pace() {
  const sleeps: number[] = []
  let now = 5000
  const subject = new Pace({
    bytesPerSecond: 1000,
    monotonic: () => now,
    sleep: async (ms) => void sleeps.push(ms),
  })
  return {
    subject,
    sleeps,
    advance: (ms: number) => {
      now += ms
    },
  }
}

test('a call waits for the time of the bytes before it, and not for its own', async () => {
  const { subject, sleeps, advance } = pace()
  await subject.wait(1, 300)
  expect(sleeps).toEqual([])
  await subject.wait(1, 200)
  expect(sleeps).toEqual([300])
  advance(100)
  await subject.wait(1, 1)
  expect(sleeps).toEqual([300, 400])
})

test('an account does not wait for the bytes of another', async () => {
  const { subject, sleeps } = pace()
  await subject.wait(1, 1_000_000)
  await subject.wait(2, 5)
  expect(sleeps).toEqual([])
})

test('unused time is not saved up', async () => {
  const { subject, sleeps, advance } = pace()
  await subject.wait(1, 100)
  advance(60_000)
  await subject.wait(1, 100)
  await subject.wait(1, 100)
  expect(sleeps).toEqual([100])
})

test('an account is dropped when the time for its bytes has passed', async () => {
  const { subject, advance } = pace()
  for (let account = 0; account < 100; account++) await subject.wait(account, 10)
  expect(subject.size).toBe(100)
  advance(10)
  await subject.wait(100, 10)
  expect(subject.size).toBe(1)
})
