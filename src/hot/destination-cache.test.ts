import { expect, test } from 'bun:test'
import { seededRandom } from '../../bench/lib/realistic-urls.ts'
import type { Code } from '../lib/code.ts'
import { CodeVersions, encodeKey, KEY_WORDS } from './code-versions.ts'
import { type Destination, DestinationCache } from './destination-cache.ts'

const ring = (max: number) => {
  const versions = CodeVersions.allocate((length) => new Uint8Array(length).fill(7))
  return new TestCache({ max, versions })
}

/** Stores each destination with the present version of its code. */
class TestCache extends DestinationCache {
  readonly versions: CodeVersions

  constructor(options: ConstructorParameters<typeof DestinationCache>[0]) {
    super(options)
    this.versions = options.versions
  }

  put(code: Code, what: Destination): void {
    this.set(code, what, this.versionOf(code))
  }
}
const code = (text: string) => text as Code
const destination = (id: number, length = 30): Destination => ({
  id,
  domainId: 0,
  location: `https://x/${id}`.padEnd(length, '.'),
  isDisabled: false,
  rules: id % 2 === 0 ? '{"paused":1}' : '',
})

test('what was set is found, whatever its code and location', () => {
  const cache = ring(100)
  const entries: [string, Destination][] = [
    ['ABCDEF', destination(1)],
    ['ABCDEG', destination(2, 100)],
    ['ABCDEFG', { id: 4_294_967_295, location: null, isDisabled: false, rules: '', domainId: 0 }],
    ['ABCDEFH', { id: 4_294_967_294, location: null, isDisabled: true, rules: '', domainId: 0 }],
    ['ABCDEFGHIJ', destination(4, 41)],
    ['ABCDEFGHIJK', destination(5, 40)],
    ['00000000000000000000', destination(6, 8192)],
    ['000000000000000000000'.slice(2), destination(7, 49_152)],
    ['ZZZZZZZZZZZZZZZZZZZZ', destination(8, 39)],
  ]
  for (const [text, what] of entries) cache.put(code(text), what)
  for (const [text, what] of entries) expect(cache.findByKey(code(text))).toEqual(what)
  expect(cache.size).toBe(entries.length)
  for (const text of ['ABCDE0', 'ABCDEH', 'ABCDEFGHIJKL', '0000000000000000000Z']) {
    expect(cache.findByKey(code(text))).toBeUndefined()
  }
})

test('a code that has changed is missing until it is set again, and all of them after changeAll', () => {
  const cache = ring(100)
  for (let id = 10; id < 60; id++) cache.put(code(`CODE${id}`), destination(id))
  cache.versions.change(code('CODE20'))
  const missing = () =>
    Array.from({ length: 50 }, (_, n) => `CODE${10 + n}`).filter(
      (text) => cache.findByKey(code(text)) === undefined,
    )
  expect(missing()).toEqual(['CODE20'])
  cache.put(code('CODE20'), destination(99))
  expect(cache.findByKey(code('CODE20'))).toEqual(destination(99))
  cache.versions.changeAll()
  expect(missing()).toHaveLength(50)
})

test('what was read before a change is not found after it', () => {
  const cache = ring(100)
  const version = cache.versionOf(code('ABCDEF'))
  cache.versions.change(code('ABCDEF'))
  cache.set(code('ABCDEF'), destination(1), version)
  expect(cache.findByKey(code('ABCDEF'))).toBeUndefined()
})

test('every character of a code counts, at every place', () => {
  const cache = ring(1000)
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
  let id = 0
  const all = new Map<string, number>()
  for (let place = 0; place < 20; place++) {
    for (const letter of letters) {
      const text = 'A'.repeat(place) + letter + 'A'.repeat(19 - place)
      all.set(text, ++id)
      cache.put(code(text), destination(id))
    }
  }
  for (const [text, expected] of all) expect(cache.findByKey(code(text))?.id).toBe(expected)
  expect(cache.size).toBe(all.size)
})

test('a code that is set again has its new destination, and counts once', () => {
  const cache = ring(10)
  for (let id = 1; id <= 1000; id++) {
    cache.put(code('PROMO2026'), destination(id, id))
    expect(cache.findByKey(code('PROMO2026'))).toEqual(destination(id, id))
    expect(cache.size).toBe(1)
  }
})

test('a deleted code is gone, and others stay', () => {
  const cache = ring(3000)
  for (let id = 1; id <= 2000; id++) cache.put(code(`CODE${id}`), destination(id))
  for (let id = 1; id <= 2000; id += 2) cache.delete(code(`CODE${id}`))
  cache.delete(code('NEVER1'))
  for (let id = 1; id <= 2000; id++) {
    expect(cache.findByKey(code(`CODE${id}`))?.id).toBe(id % 2 === 0 ? id : undefined)
  }
  expect(cache.size).toBe(1000)
})

test('it holds at most so many entries, and so many bytes', () => {
  const many = ring(1000)
  for (let id = 1; id <= 5000; id++) {
    many.put(code(`CODE${id}`), destination(id))
    expect(many.size).toBe(Math.min(id, 1000))
  }
  const long = ring(1000)
  for (let id = 1; id <= 200; id++) long.put(code(`CODE${id}`), destination(id, 49_000))
  expect(long.size).toBeGreaterThan(3)
  expect(long.size).toBeLessThan(6)
})

test('the oldest goes first, but not one that was asked for since it came by', () => {
  const cache = ring(1000)
  for (let id = 1; id <= 1000; id++) cache.put(code(`CODE${id}`), destination(id))
  for (let id = 1001; id <= 20_000; id++) {
    expect(cache.findByKey(code('CODE7'))?.id).toBe(7)
    cache.put(code(`CODE${id}`), destination(id))
    expect(cache.findByKey(code(`CODE${id - 100}`))?.id).toBe(id - 100)
  }
  expect(cache.findByKey(code('CODE8'))).toBeUndefined()
})

test('a location that would fill a quarter of it is not kept, and pushes nothing out', () => {
  const cache = ring(1000)
  cache.put(code('SHORT1'), destination(1))
  cache.put(code('LONGER'), destination(2, 70_000))
  expect(cache.findByKey(code('LONGER'))).toBeUndefined()
  cache.put(code('SHORT1'), destination(1, 70_000))
  expect(cache.findByKey(code('SHORT1'))).toBeUndefined()
  expect(cache.size).toBe(0)
})

// The model may hold more than the cache: what is found must be right, and the newest be found.
test.each([1, 2, 3, 4, 5, 6])('it never gives a wrong answer: random calls, seed %i', (seed) => {
  const random = seededRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const max = [1, 7, 100, 1500, 3000, 64][seed % 6] as number
  const cache = ring(max)
  const model = new Map<string, Destination>()
  let hits = 0
  for (let call = 0; call < 60_000; call++) {
    const text = `C${below(Math.min(3 * max + 10, 300))}`.padEnd(6 + below(2), 'X')
    const what = below(10)
    if (what < 4) {
      const lengths = [12, 40, 41, 60, 200, 3000, 49_000]
      const next = destination(below(2 ** 31), lengths[Math.min(below(9), below(9), below(9), 6)])
      const isDisabled = below(2) === 0
      const empty = { id: next.id, location: null, isDisabled, rules: '', domainId: 0 }
      const entry = below(20) === 0 ? empty : next
      cache.put(code(text), entry)
      model.set(text, entry)
      expect(cache.findByKey(code(text))).toEqual(entry)
    } else if (what === 4) {
      cache.delete(code(text))
      model.delete(text)
      expect(cache.findByKey(code(text))).toBeUndefined()
    } else {
      const found = cache.findByKey(code(text))
      if (found) hits++
      if (found) expect(found).toEqual(model.get(text) as Destination)
    }
    expect(cache.size).toBeLessThanOrEqual(max)
  }
  expect(hits).toBeGreaterThan(1000)
})

test('long locations, all asked for again and again, never overwrite one another', () => {
  const random = seededRandom(7)
  const cache = ring(1000)
  const model = new Map<string, Destination>()
  for (let id = 1; id <= 3000; id++) {
    const text = `CODE${id % 40}`
    const next = destination(id, 20 + Math.floor(random() * 16_000))
    cache.put(code(text), next)
    model.set(text, next)
    for (const [held, expected] of model) {
      const found = cache.findByKey(code(held))
      if (found && found.location !== expected.location) throw new Error(`${held} is overwritten`)
    }
  }
  expect(cache.size).toBeGreaterThan(10)
})

test('no two aliases share a key, whatever their letter case and length', () => {
  const words = new Int32Array(KEY_WORDS)
  const keyOf = (path: string) => {
    encodeKey(path, words)
    return words.join()
  }
  const signs = 'AaPp0pZz9-_'
  const paths = new Set(['A', 'AA', 'AAA', 'AAAAA', 'AAAAAA', 'A'.repeat(19), 'A'.repeat(20)])
  const random = seededRandom(7)
  while (paths.size < 20_000) {
    const length = 1 + Math.floor(random() * 20)
    paths.add(Array.from({ length }, () => signs[Math.floor(random() * signs.length)]).join(''))
  }
  expect(new Set([...paths].map(keyOf)).size).toBe(paths.size)
})
