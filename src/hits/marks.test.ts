import { expect, test } from 'bun:test'
import { MarkedIds } from './marks.ts'

test('an id is remembered until another takes its place, and never mistaken for it', () => {
  const marked = new MarkedIds(8)
  expect(marked.find(3)).toBe(0)
  marked.set(3, 70)
  marked.set(4, 71)
  expect([marked.find(3), marked.find(4), marked.find(11)]).toEqual([70, 71, 0])
  marked.set(2 ** 32 - 5, 4_294_967_295)
  expect([marked.find(3), marked.find(2 ** 32 - 5)]).toEqual([0, 4_294_967_295])
  marked.clear()
  expect([marked.find(2 ** 32 - 5), marked.find(4)]).toEqual([0, 0])
})
