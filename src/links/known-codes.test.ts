import { expect, test } from 'bun:test'
import { createLog } from '../lib/log.ts'
import type { Caller } from '../lib/thread.ts'
import { CodeFilter } from './code-filter.ts'
import type { CodeFilterReads, FillFilter } from './code-filter-store.ts'
import { KnownCodes } from './known-codes.ts'

const log = createLog({ level: 'silent', human: false, write: () => {} })

/** Codes in their own order, read as the reader thread would, one slice a turn. */
function library(codes: string[], onSlice: (after: string) => void = () => {}) {
  const calls = { countLinks: 0, fillFilter: 0 }
  const lists = {
    async call(name: keyof CodeFilterReads, order: unknown) {
      calls[name]++
      if (name === 'countLinks') return codes.length
      const { memory, after, most } = order as FillFilter
      onSlice(after)
      const ordered = codes.toSorted()
      const start = after === '' ? 0 : ordered.indexOf(after) + 1
      const slice = ordered.slice(start, start + most)
      const filter = new CodeFilter(memory)
      for (const code of slice) filter.add(code)
      return slice.length < most ? null : slice.at(-1)
    },
  } as unknown as Caller<CodeFilterReads>
  return { lists, calls }
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `CODE${from + i}`)

const held = (known: KnownCodes, codes: string[]) =>
  codes.filter((code) => known.mayHold(code)).length

test('until all codes are read, any may be held', async () => {
  const known = new KnownCodes({ lists: library(numbered(0, 100)).lists, log })
  expect(known.mayHold('NOBODYS')).toBe(true)
  await known.filled()
  expect(known.mayHold('NOBODYS')).toBe(false)
})

test('every code of before the start is known', async () => {
  const codes = numbered(0, 25_000)
  const known = new KnownCodes({ lists: library(codes).lists, log })
  await known.filled()
  expect(held(known, codes)).toBe(codes.length)
})

test('a code created while the others are read is known', async () => {
  const codes = numbered(0, 25_000)
  const created: string[] = []
  const { lists } = library(codes, (after) => {
    const code = `DURING${created.length}OF${after}`
    created.push(code)
    known.add(code)
  })
  const known = new KnownCodes({ lists, log })
  await known.filled()
  expect(created.length).toBe(7)
  expect(held(known, created)).toBe(7)
})

test('with more codes than it was made for, it is made anew, and none is denied meanwhile', async () => {
  const codes = numbered(0, 100)
  const { lists, calls } = library(codes)
  const known = new KnownCodes({ lists, log })
  await known.filled()
  for (const code of numbered(100, 150_000)) {
    codes.push(code)
    known.add(code)
    expect(known.mayHold(code)).toBe(true)
  }
  await known.filled()
  expect(calls.countLinks).toBe(2)
  expect(held(known, codes)).toBe(codes.length)
  const guesses = numbered(500_000, 520_000)
  expect(held(known, guesses) / guesses.length).toBeLessThan(0.02)
})

test('codes that cannot be read deny nothing', async () => {
  const lists = {
    call: () => Promise.reject(new Error('disk I/O error')),
  } as unknown as Caller<CodeFilterReads>
  const known = new KnownCodes({ lists, log })
  await known.filled()
  known.add('CODE1')
  expect(known.mayHold('NOBODYS')).toBe(true)
})

test('a close while codes are read ends at the next slice', async () => {
  const { lists, calls } = library(numbered(0, 100_000))
  const known = new KnownCodes({ lists, log })
  await known.close()
  expect(calls.fillFilter).toBeLessThan(3)
})
