import { expect, test } from 'bun:test'
import { secureRandom } from '../lib/random.ts'
import { RequestIds } from './context.ts'

const numberOf = (id: string): number => Number.parseInt(id.split('-')[1] ?? '', 36)

test('ids are short, and none comes twice', () => {
  const ids = new RequestIds(secureRandom)
  const seen = new Set<string>()
  for (let i = 0; i < 200_000; i++) seen.add(ids.next())
  expect(seen.size).toBe(200_000)
  for (const id of [...seen].slice(0, 1000)) expect(id).toMatch(/^[a-z0-9]{8}-[a-z0-9]{1,6}$/)
})

// Two ids would reveal the service's traffic to every client.
test('two ids do not reveal how many requests came between them', () => {
  const ids = new RequestIds(secureRandom)
  const numbers = Array.from({ length: 1001 }, () => numberOf(ids.next()))
  const steps = numbers.slice(1).map((number, i) => number - (numbers[i] ?? 0))
  const small = steps.filter((step) => Math.abs(step) < 100_000)
  expect(new Set(steps).size).toBeGreaterThan(900)
  expect(small.length).toBeLessThan(50)
})

test('a new prefix is drawn when the ids of one are used up', () => {
  const ids = new RequestIds(secureRandom, { idsPerPrefix: 10 })
  const prefixes = Array.from({ length: 30 }, () => ids.next().split('-')[0] ?? '')
  expect(new Set(prefixes).size).toBe(3)
  expect(new Set(prefixes.slice(0, 10)).size).toBe(1)
})
