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
  expect(versionNeeded([{ name: 'links.changeUrl', args: {} }])).toBe(1)
})

test('large entries are compressed', () => {
  const calls = [
    { name: 'links.changeUrl', args: { urls: Array(1000).fill('https://example.com/') } },
  ]
  const { version, calls: compressed } = encodeEntry(calls, 1)
  expect(version).toBe(1)
  expect(compressed.length).toBeLessThan(encodeCalls(calls).length / 10)
  expect(decodeCalls(compressed)).toEqual(calls)
})

test('an entry that a host of the cluster does not know is refused', () => {
  const calls = [{ name: 'imports.add', args: {} }]
  expect(encodeEntry(calls, CALLS_VERSION).version).toBe(CALLS_VERSION)
  expect(() => encodeEntry(calls, CALLS_VERSION - 1)).toThrow(
    `must be upgraded first (it knows calls ${CALLS_VERSION - 1})`,
  )
})

test.each(SETTABLE_PROPERTIES)(
  'an entry that sets $name needs the set of that property',
  ({ name, since = 1 }) => {
    const patching = (patch: object) =>
      versionNeeded([{ name: 'links.patch', args: { ids: [1], patch } }])
    expect(patching({ [name]: null })).toBe(since)
    expect(patching({ addTags: ['a'], [name]: undefined })).toBe(1)
  },
)
