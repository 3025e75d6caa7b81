import { expect, test } from 'bun:test'
import { HOUR } from '../lib/clock.ts'
import { findTimeZone, hitRange, type PRESETS, parseDate, type RangeChoice } from './range.ts'

const at = (text: string) => Date.parse(text)
const date = (text: string) => Temporal.PlainDate.from(text)
const between = (from: string, to: string): RangeChoice => ({ from: date(from), to: date(to) })
const times = (bounds: readonly number[] = []) =>
  bounds.map((hour) => new Date(hour * HOUR).toISOString().slice(0, 13))
const lengths = (bounds: readonly number[]) =>
  bounds.slice(1).map((hour, i) => hour - (bounds[i] ?? 0))

const NOW = at('2026-03-01T12:34:56Z')

test('a day begins at the midnight of the zone', () => {
  const range = hitRange(between('2026-02-26', '2026-02-28'), { zone: 'Asia/Tokyo', now: NOW })
  const bounds = ['2026-02-25T15', '2026-02-26T15', '2026-02-27T15', '2026-02-28T15']
  expect(times(range.bounds)).toEqual(bounds)
  expect(range.unit).toBe('day')
  expect(times(range.previous)).toEqual([
    '2026-02-22T15',
    '2026-02-23T15',
    '2026-02-24T15',
    '2026-02-25T15',
  ])
})

test('where the offset has minutes, the hour with midnight belongs to the day before', () => {
  // Midnight is 18:30 and 18:15 UTC.
  for (const zone of ['Asia/Kolkata', 'Asia/Kathmandu']) {
    const { bounds } = hitRange(between('2026-02-26', '2026-02-28'), { zone, now: NOW })
    expect([zone, times(bounds)[0]]).toEqual([zone, '2026-02-25T19'])
  }
})

test.each([
  ['Europe/Berlin', '2026-03-29', 23],
  ['Europe/Berlin', '2025-10-26', 25],
  ['America/New_York', '2026-03-08', 23],
  ['America/New_York', '2025-11-02', 25],
  // Its clocks change at midnight: the day begins at 01:00.
  ['Africa/Cairo', '2026-04-24', 23],
  ['Pacific/Auckland', '2026-04-05', 25],
])('in %s the %s has %d hours', (zone, day, hours) => {
  const now = at('2026-05-01T12:00:00Z')
  const of = (unit: 'hour' | 'day') => hitRange(between(day, day), { zone, now, unit }).bounds
  expect(lengths(of('day'))).toEqual([hours])
  expect(lengths(of('hour'))).toEqual(Array(hours).fill(1))
})

test('presets end with the current hour, day or week', () => {
  const about = (preset: (typeof PRESETS)[number]) => {
    const range = hitRange({ preset }, { zone: 'UTC', now: NOW, firstHit: 0 })
    const { first, last, unit, bounds } = range
    return [String(first), String(last), unit, bounds.length - 1, range.previous !== undefined]
  }
  expect(about('24h')).toEqual(['2026-02-28', '2026-03-01', 'hour', 24, true])
  expect(about('7d')).toEqual(['2026-02-23', '2026-03-01', 'day', 7, true])
  expect(about('30d')).toEqual(['2026-01-31', '2026-03-01', 'day', 30, true])
  expect(about('90d')).toEqual(['2025-12-02', '2026-03-01', 'day', 90, true])
  // What was before is not kept.
  expect(about('12m')).toEqual(['2025-03-02', '2026-03-01', 'week', 53, false])
  expect(about('all')).toEqual(['2025-01-27', '2026-03-01', 'week', 57, false])
})

test('weeks begin on Monday, the first and the last one may be shorter', () => {
  const { bounds } = hitRange(between('2025-10-01', '2026-02-28'), { zone: 'UTC', now: NOW })
  const days = lengths(bounds).map((hours) => hours / 24)
  expect(days).toEqual([5, ...Array<number>(20).fill(7), 6])
})

test('the period before ends at the same time of day', () => {
  const { bounds, previous = [] } = hitRange({ preset: '7d' }, { zone: 'UTC', now: NOW })
  expect(lengths(bounds).at(-1)).toBe(24)
  expect(times(previous).slice(-2)).toEqual(['2026-02-22T00', '2026-02-22T13'])
  const past = hitRange(between('2026-02-01', '2026-02-10'), { zone: 'UTC', now: NOW })
  expect(lengths(past.previous ?? [])).toEqual(Array(10).fill(24))
})

test('long presets begin with the day of the first hit, in suitable bars', () => {
  const options = { zone: 'Europe/Berlin', now: NOW }
  const from = (text: string) => at(text) / HOUR
  const short = hitRange({ preset: '12m' }, { ...options, firstHit: from('2026-02-20T23:00Z') })
  expect([String(short.first), short.unit, short.previous]).toEqual([
    '2026-02-21',
    'day',
    undefined,
  ])
  const none = hitRange({ preset: 'all' }, options)
  expect([String(none.first), none.unit]).toEqual(['2026-03-01', 'hour'])
})

test('a range is narrowed to what is kept and not in the future', () => {
  const range = (from: string, to: string) => {
    const { first, last, bounds } = hitRange(between(from, to), { zone: 'UTC', now: NOW })
    return [String(first), String(last), bounds.length]
  }
  expect(range('0001-01-01', '9999-12-31')).toEqual(['2025-01-27', '2026-03-01', 58])
  expect(range('2030-01-01', '2031-01-01')).toEqual(['2026-03-01', '2026-03-01', 14])
  expect(range('2020-01-01', '2020-01-01')).toEqual(['2020-01-01', '2020-01-01', 25])
})

test('today is drawn up to the current hour', () => {
  const { bounds } = hitRange(between('2026-03-01', '2026-03-01'), { zone: 'UTC', now: NOW })
  expect(times(bounds).at(-1)).toBe('2026-03-01T13')
})

test.each(['', '2026-2-1', '2026-02-30', '2026-13-01', '20260301', '2026-03-01T00:00', '1e3'])(
  'no date: %s',
  (text) => expect(parseDate(text)).toBeUndefined(),
)

test('time zones are IANA names', () => {
  for (const zone of ['UTC', 'Europe/Berlin', 'Asia/Kolkata']) expect(findTimeZone(zone)).toBe(zone)
  expect(['Asia/Calcutta', 'Etc/UTC'].map(findTimeZone)).toEqual(['Asia/Kolkata', 'UTC'])
  for (const text of ['', '+01:00', 'Mars/Phobos', '__proto__', 'constructor', 'utc '])
    expect([text, findTimeZone(text)]).toEqual([text, undefined])
})
