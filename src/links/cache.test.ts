import { expect, test } from 'bun:test'
import type { Code } from '../lib/code.ts'
import { LinkCache } from './cache.ts'
import type { DestinationRow } from './read.ts'

const code = (text: string) => text as Code

/** A cache over `rows`, with a count of the reads of each code. */
function cacheOver(rows: Map<string, DestinationRow>) {
  const reads: Record<string, number> = {}
  const cache = new LinkCache({
    reads: {
      findDestination(asked) {
        reads[asked] = (reads[asked] ?? 0) + 1
        return rows.get(asked)
      },
    },
    blocklist: { isBlocked: ({ host }) => host.includes('blocked') },
    max: 100,
  })
  return { cache, reads }
}

const row = (id: number, url: string | null): DestinationRow => ({
  id,
  url,
  isDisabled: 0,
  hasRules: 0,
})

test('a known and an unknown code are read from the database once', () => {
  const { cache, reads } = cacheOver(new Map([['KNOWN1', row(1, 'https://example.com/')]]))
  for (let i = 0; i < 3; i++) {
    expect(cache.find(code('KNOWN1'))?.location).toBe('https://example.com/')
    expect(cache.find(code('NOBODY'))).toBeUndefined()
  }
  expect(reads).toEqual({ KNOWN1: 1, NOBODY: 1 })
  expect(cache.sizes).toEqual({ known: 1, unknown: 1 })
})

test('a code that was unknown is found as soon as it is created', () => {
  const rows = new Map<string, DestinationRow>()
  const { cache } = cacheOver(rows)
  expect(cache.find(code('SPRING'))).toBeUndefined()
  rows.set('SPRING', row(1, null))
  cache.add(code('SPRING'))
  expect(cache.find(code('SPRING'))).toEqual({
    id: 1,
    location: null,
    isDisabled: false,
    hasRules: false,
  })
})

test('unknown codes are bounded and evict no link', () => {
  const { cache, reads } = cacheOver(new Map([['KNOWN1', row(1, 'https://example.com/')]]))
  cache.find(code('KNOWN1'))
  for (let i = 0; i < 20_000; i++) cache.find(code(`GUESS${i}`))
  expect(cache.sizes).toEqual({ known: 1, unknown: 10_000 })
  cache.find(code('KNOWN1'))
  expect(reads.KNOWN1).toBe(1)
})

test('a deleted code is unknown, and a blocked link has no location until the cache is cleared', () => {
  const rows = new Map([
    ['DELETE', row(1, 'https://example.com/')],
    ['HOSTIL', row(2, 'https://blocked.example/')],
  ])
  const { cache } = cacheOver(rows)
  expect(cache.find(code('DELETE'))?.id).toBe(1)
  rows.delete('DELETE')
  cache.drop(code('DELETE'))
  expect(cache.find(code('DELETE'))).toBeUndefined()
  expect(cache.find(code('HOSTIL'))).toEqual({
    id: 2,
    location: null,
    isDisabled: true,
    hasRules: false,
  })
  rows.set('HOSTIL', row(2, 'https://example.com/'))
  cache.clear()
  expect(cache.find(code('HOSTIL'))?.location).toBe('https://example.com/')
})
