import { expect, test } from 'bun:test'
import { askService, createWorld, KINDS, sample, timeRefusal } from '../../scripts/timing-403.ts'
import { KeepAlive } from '../durability/lib/keep-alive.ts'
import { testApp } from '../support/app.ts'
import { cropped, welchT } from '../support/welch.ts'

/**
 * That the four refusals of a passcode are one. How long each takes is measured by
 * scripts/timing-403.ts, on a machine that does nothing else.
 */

// design: 4.8 the same 403, byte for byte and in time
test('unknown, foreign and wrong passcodes get one body, byte for byte', async () => {
  using world = createWorld()
  const env = { ENTERPRISE_WRITES_PER_MINUTE: '0' }
  await using app = await testApp({ dataDir: world.dataDir, env })
  const client = await KeepAlive.open(app.url)
  for (const kind of KINDS) {
    for (let i = 0; i < 20; i++) {
      const { body, code } = await askService(client, world, kind)
      expect(body).toBe(`{"error":"Invalid passcode for code ${code}"}`)
    }
  }
  client.close()
})

test('every kind of refusal asks the database once and hashes once', async () => {
  using world = createWorld()
  const { reads, hasher } = world.deps
  const asked: string[] = []
  const noted = <Args extends unknown[], Result>(what: string, work: (...args: Args) => Result) => {
    return (...args: Args): Result => {
      asked.push(what)
      return work(...args)
    }
  }
  const findNearest = noted('look', reads.findNearest.bind(reads))
  const hash = noted('hash', hasher.hash.bind(hasher))
  world.deps.reads = { findNearest } as unknown as typeof reads
  world.deps.hasher = { hash } as unknown as typeof hasher
  await sample(KINDS, 50, (kind) => {
    asked.length = 0
    timeRefusal(world, kind)
    expect(asked).toEqual(['look', 'hash'])
    return 0
  })
})

test('Welch’s t is that of a worked example, and the slowest are cropped together', () => {
  // Means 2 and 5, variances 1 and 1: (2 - 5) / sqrt(1/3 + 1/3).
  expect(welchT(Float64Array.of(1, 2, 3), Float64Array.of(4, 5, 6))).toBeCloseTo(-3.674_23, 5)
  expect(welchT(Float64Array.of(1, 1), Float64Array.of(1, 1))).toBe(0)
  expect(welchT(Float64Array.of(1), Float64Array.of(1, 2))).toBeNaN()
  const [a, b] = cropped([Float64Array.of(1, 90, 2), Float64Array.of(3, 4, 80)], 0.5)
  expect([[...(a ?? [])], [...(b ?? [])]]).toEqual([
    [1, 2],
    [3, 4],
  ])
})
