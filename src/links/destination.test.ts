import { expect, test } from 'bun:test'
import { CodeVersions } from '../hot/code-versions.ts'
import type { Destination } from '../hot/destination-cache.ts'
import { RedirectCounters } from '../hot/redirect-counters.ts'
import type { Code } from '../lib/code.ts'
import { LinkCache } from './destination.ts'

const code = (text: string) => text as Code

/** A cache over `rows`, with a count of the reads of each code. */
function cacheOver(rows: Map<string, Destination>) {
  const reads: Record<string, number> = {}
  const versions = CodeVersions.allocate()
  const counters = new RedirectCounters()
  const cache = new LinkCache({
    reads: {
      findByCode(asked) {
        reads[asked] = (reads[asked] ?? 0) + 1
        return rows.get(asked)
      },
    },
    aliases: { findByPath: () => undefined },
    versions,
    counters,
    max: 100,
  })
  const find = (text: string) => {
    const inMemory = cache.findInMemory(code(text))
    return inMemory === undefined ? cache.lookUp(code(text)) : (inMemory ?? undefined)
  }
  return { find, versions, counters, reads }
}

const row = (id: number, location: string | null): Destination => ({
  id,
  domainId: 0,
  location,
  isDisabled: false,
  rules: '',
})

test('a known and an unknown code are read from the database once', () => {
  const { find, reads, counters } = cacheOver(new Map([['KNOWN1', row(1, 'https://example.com/')]]))
  for (let i = 0; i < 3; i++) {
    expect(find('KNOWN1')?.location).toBe('https://example.com/')
    expect(find('NOBODY')).toBeUndefined()
  }
  expect(reads).toEqual({ KNOWN1: 1, NOBODY: 1 })
  expect([counters.get('known'), counters.get('unknown')]).toEqual([1, 1])
  expect([counters.get('foundInDatabase'), counters.get('notInDatabase')]).toEqual([1, 1])
})

test('a code that was unknown is found as soon as it is created', () => {
  const rows = new Map<string, Destination>()
  const { find, versions } = cacheOver(rows)
  expect(find('SPRING')).toBeUndefined()
  rows.set('SPRING', row(1, null))
  versions.change(code('SPRING'))
  expect(find('SPRING')).toEqual(row(1, null))
})

test('unknown codes are bounded and evict no link', () => {
  const { find, reads, counters } = cacheOver(new Map([['KNOWN1', row(1, 'https://example.com/')]]))
  find('KNOWN1')
  for (let i = 0; i < 20_000; i++) find(`GUESS${i}`)
  expect([counters.get('known'), counters.get('unknown')]).toEqual([1, 10_000])
  find('KNOWN1')
  expect(reads.KNOWN1).toBe(1)
})

test('a deleted code is unknown, and every link is read again after a change of all', () => {
  const rows = new Map([
    ['DELETE', row(1, 'https://example.com/')],
    ['HOSTIL', row(2, null)],
  ])
  const { find, versions } = cacheOver(rows)
  expect(find('DELETE')?.id).toBe(1)
  rows.delete('DELETE')
  versions.change(code('DELETE'))
  expect(find('DELETE')).toBeUndefined()
  expect(find('HOSTIL')).toEqual(row(2, null))
  rows.set('HOSTIL', row(2, 'https://example.com/'))
  versions.changeAll()
  expect(find('HOSTIL')?.location).toBe('https://example.com/')
})
