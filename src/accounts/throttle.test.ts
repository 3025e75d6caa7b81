import { expect, test } from 'bun:test'
import { MINUTE, SECOND } from '../lib/clock.ts'
import { Throttle } from './throttle.ts'

const pair = [{ gate: 'pair', key: 'ann 192.0.2.1' }] as const

function throttleAt(time: { now: number }) {
  return new Throttle(() => time.now, { signUpsPerDay: 500 })
}

test('five failures pass, the sixth attempt waits a minute, and then one more passes', () => {
  const time = { now: 1000 }
  const throttle = throttleAt(time)
  for (let i = 0; i < 5; i++) {
    throttle.require(pair)
    throttle.count(pair)
  }
  expect(() => throttle.require(pair)).toThrow('Try again in 60 seconds.')
  time.now += MINUTE - SECOND
  expect(() => throttle.require(pair)).toThrow('Try again in 1 seconds.')
  time.now += SECOND
  throttle.require(pair)
  throttle.count(pair)
  expect(() => throttle.require(pair)).toThrow('Try again in 60 seconds.')
})

test('a refusal costs nothing, and another key is not touched', () => {
  const time = { now: 1000 }
  const throttle = throttleAt(time)
  for (let i = 0; i < 5; i++) throttle.count(pair)
  for (let i = 0; i < 9; i++) expect(() => throttle.require(pair)).toThrow()
  throttle.require([{ gate: 'pair', key: 'ann 192.0.2.2' }])
  throttle.require([{ gate: 'account', key: 'ann 192.0.2.1' }])
  time.now += MINUTE
  throttle.require(pair)
})

test('success forgets the failures', () => {
  const throttle = throttleAt({ now: 1000 })
  for (let i = 0; i < 5; i++) throttle.count(pair)
  throttle.clear(pair)
  throttle.require(pair)
})

test('of several waits, the longest one is reported, with a header', () => {
  const throttle = throttleAt({ now: 1000 })
  const address = { gate: 'address', key: '192.0.2.1' } as const
  for (let i = 0; i < 30; i++) throttle.count([address])
  for (let i = 0; i < 5; i++) throttle.count(pair)
  expect(() => throttle.require([address, ...pair])).toThrow(
    expect.objectContaining({ status: 429, headers: { 'retry-after': '60' } }),
  )
})

test('a network has 120 failures, however many addresses it has, then one in ten seconds', () => {
  const time = { now: 1000 }
  const throttle = throttleAt(time)
  const attemptsOf = (i: number) =>
    [
      { gate: 'address', key: `2001:db8:7:${i}::/64` },
      { gate: 'network', key: '2001:db8:7::/48' },
    ] as const
  for (let i = 0; i < 120; i++) {
    throttle.require(attemptsOf(i))
    throttle.count(attemptsOf(i))
  }
  expect(() => throttle.require(attemptsOf(120))).toThrow('Try again in 10 seconds.')
  time.now += 10 * SECOND
  throttle.require(attemptsOf(120))
  throttle.require([{ gate: 'network', key: '2001:db8:8::/48' }])
})
