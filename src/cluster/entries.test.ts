import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { SETTABLE_PROPERTIES } from '../links/property-table.ts'
import { CALLS_VERSION, decodeCalls, encodeCalls, encodeEntry, versionNeeded } from './entries.ts'

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

test('an entry of calls of the first set needs version 1', () => {
  expect(versionNeeded([])).toBe(1)
  expect(versionNeeded([{ name: 'changeUrl', args: {} }])).toBe(1)
})

test('large entries are compressed if every host can read them', () => {
  const calls = [{ name: 'changeUrl', args: { urls: Array(1000).fill('https://example.com/') } }]
  const plain = encodeCalls(calls)
  const { version, calls: compressed } = encodeEntry(calls, CALLS_VERSION)
  expect(compressed.length).toBeLessThan(plain.length / 10)
  expect(decodeCalls(compressed)).toEqual(calls)
  expect(encodeEntry(calls, version - 1)).toEqual({ version: 1, calls: plain })
})

test('an entry that a host of the cluster does not know is refused', () => {
  const calls = [{ name: 'signUp', args: {} }]
  expect(encodeEntry(calls, 3).version).toBe(3)
  expect(() => encodeEntry(calls, 2)).toThrow('must be upgraded first (it knows calls 2)')
})

const patching = (patch: object) => [{ name: 'patchLinks', args: { ids: [1], patch } }]

test('a host that lacks the newest property refuses exactly the entries that set it', () => {
  const newest = SETTABLE_PROPERTIES.at(-1)?.name as string
  const others = SETTABLE_PROPERTIES.slice(0, -1).map(({ name }) => [name, null])
  expect(versionNeeded(patching({ [newest]: true, title: 'a' }))).toBe(CALLS_VERSION)
  if (SETTABLE_PROPERTIES.length > 9) {
    expect(versionNeeded(patching(Object.fromEntries(others)))).toBe(CALLS_VERSION - 1)
  }
  expect(versionNeeded(patching({ addTags: ['a'], [newest]: undefined }))).toBe(2)
  const args = { ids: [1], patch: {}, aliases: { set: ['a-b'] } }
  expect(versionNeeded([{ name: 'patchLinks', args }])).toBeGreaterThan(5)
})
