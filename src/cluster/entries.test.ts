import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { RELEASE, releaseName, VERSION } from '../lib/version.ts'
import { decodeCalls, encodeCalls, encodeEntry, isLocal, splitCalls } from './entries.ts'

const value = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.integer(),
  fc.constant(null),
  fc.boolean(),
  fc.uint8Array(),
  fc.array(fc.record({ id: fc.nat(), at: fc.nat() })),
)
const call = fc.record({
  name: fc.string(),
  args: fc.dictionary(fc.constantFrom('url', 'urlKey', 'items', 'now'), value),
})

test('calls come back as they were written, with bytes at any address', () => {
  fc.assert(
    fc.property(fc.array(call), (calls) => {
      const decoded = decodeCalls(encodeCalls(calls))
      expect(decoded).toEqual(calls.map(({ name, args }) => ({ name, args: { ...args } })))
    }),
  )
  const part = Buffer.from('a part of a buffer').subarray(2, 6)
  const [decoded] = decodeCalls(encodeCalls([{ name: 'n', args: { part } }]))
  expect(decoded?.args).toEqual({ part: new Uint8Array(Buffer.from('part')) })
})

test('what is encoded twice has the same bytes', () => {
  fc.assert(
    fc.property(fc.array(call), (calls) => {
      const bytes = encodeCalls(calls)
      expect(encodeCalls(decodeCalls(bytes)).equals(bytes)).toBe(true)
    }),
  )
})

test('an entry has the release that wrote it, and a large one is compressed', () => {
  const calls = [
    { name: 'links.changeUrl', args: { urls: Array(1000).fill('https://example.com/') } },
  ]
  const { version, calls: compressed } = encodeEntry(calls)
  expect(version).toBe(RELEASE)
  expect(releaseName(version)).toBe(VERSION.replace(/-.*/, ''))
  expect(compressed.length).toBeLessThan(encodeCalls(calls).length / 10)
  expect(decodeCalls(compressed)).toEqual(calls)
})

test('only calls that are declared as local stay out of the log', () => {
  const local = ['links.index', 'hits.recent', 'settings.saveForHost']
  expect(local.map(isLocal)).toEqual([true, true, true])
  const shared = ['links.createOne', 'hits.count', 'hashRows', 'unknown', 'constructor']
  expect(shared.map(isLocal)).toEqual(shared.map(() => false))
})

test.each([
  ['texts', { url: 'u'.repeat(1_000_000) }],
  ['texts of a link', { item: { url: 'u'.repeat(500_000) }, patch: { note: 'n'.repeat(500_000) } }],
  ['bytes of a list', { links: [[1, new Uint8Array(1_000_000)]] }],
  ['ids', { ids: Array(200_000).fill(1_000_000) }],
])('calls with large %s are split into entries, in their order', (_, large) => {
  const calls = Array.from({ length: 20 }, (_, n) => ({ name: 'call', args: { n, ...large } }))
  const parts = splitCalls(calls)
  expect(parts.flat()).toEqual(calls)
  expect(parts.length).toBeGreaterThan(2)
  const small = Array.from({ length: 1000 }, (_, n) => ({ name: 'call', args: { n } }))
  expect(splitCalls(small)).toHaveLength(1)
})
