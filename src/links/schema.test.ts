import { expect, test } from 'bun:test'
import { invalid } from '../../test/support/refusals.ts'
import { Tag } from './schema.ts'

test.each([
  [' Spring   2026 ', 'spring 2026'],
  ['e\u0301'.repeat(40), 'é'.repeat(40)],
  ['\u03b1\u0313\u0300\u0345'.repeat(40), '\u1f82'.repeat(40)],
  ['😀'.repeat(40), '😀'.repeat(40)],
  [`a${' '.repeat(60_000)}b`, 'a b'],
])('a tag is stored in one form (%#)', (sent, stored) => {
  expect(Tag.parse(sent)).toBe(stored)
})

test.each([
  ['too many letters', 'a'.repeat(41)],
  ['too many composed letters', 'e\u0301'.repeat(41)],
  ['a comma', 'a,b'],
  ['a lone surrogate', '\ud800'],
  // Composing these takes minutes.
  ['200,000 combining marks', `${'\u0301'.repeat(100_000)}${'\u0323'.repeat(100_000)}`],
])('a tag with %s is refused', (_, sent) => {
  const [issue] = Tag.safeParse(sent).error?.issues ?? []
  expect(issue?.message).toEqual(invalid('tags'))
})
