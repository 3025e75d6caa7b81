import { expect, test } from 'bun:test'
import { InvalidArgumentError } from '@commander-js/extra-typings'
import { HOUR, MINUTE } from '../lib/clock.ts'
import { parseReason, untilParser } from './options.ts'

const NOW = Date.UTC(2026, 2, 1, 12)
const parseUntil = untilParser(() => NOW)

test.each([
  ['30m', NOW + 30 * MINUTE],
  ['2h', NOW + 2 * HOUR],
  ['1d', NOW + 24 * HOUR],
  ['2026-03-01T13:00:00Z', NOW + HOUR],
  ['2026-03-01T14:00:00.500+01:00', NOW + HOUR + 500],
  ['2026-03-02', NOW + 12 * HOUR],
  ['2028-02-29', Date.UTC(2028, 1, 29)],
  ['2026-03-01T24:00:00Z', NOW + 12 * HOUR],
])('--until %s', (text, expected) => {
  expect(parseUntil(text)).toBe(expected)
})

test.each([
  '',
  'soon',
  '1',
  '30',
  'May',
  '0m',
  '-5m',
  '5s',
  '2026-02-31T99:00Z',
  '2026-03-01',
  '2026-04-31',
  '2027-02-29T12:00:00Z',
])('--until %j is refused', (text) => {
  expect(() => parseUntil(text)).toThrow(InvalidArgumentError)
})

test.each(['', ' ', 'a\nb', 'x'.repeat(201), '--json'])('--reason %j is refused', (text) => {
  expect(() => parseReason(text)).toThrow(InvalidArgumentError)
})

test('--reason is one line of at most 200 characters, without spaces around it', () => {
  expect(parseReason(` ${'x'.repeat(200)} `)).toBe('x'.repeat(200))
})
