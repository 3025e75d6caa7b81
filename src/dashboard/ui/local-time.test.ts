import { expect, test } from 'bun:test'
import { localText, longTime, parseLocal } from './local-time.ts'

const BERLIN = 'Europe/Berlin'

const times = [
  { zone: 'UTC', local: '2026-03-01T21:00', utc: '2026-03-01T21:00Z' },
  { zone: BERLIN, local: '2026-03-01T21:00', utc: '2026-03-01T20:00Z' },
  { zone: BERLIN, local: '2026-07-01T21:00', utc: '2026-07-01T19:00Z' },
  // Clocks go forward from 2:00 to 3:00, and in autumn back from 3:00 to 2:00.
  { zone: BERLIN, local: '2026-03-29T01:59', utc: '2026-03-29T00:59Z' },
  { zone: BERLIN, local: '2026-03-29T03:00', utc: '2026-03-29T01:00Z' },
  { zone: BERLIN, local: '2026-10-25T02:30', utc: '2026-10-25T00:30Z' },
  { zone: BERLIN, local: '2026-10-25T03:00', utc: '2026-10-25T02:00Z' },
  { zone: 'Asia/Kathmandu', local: '2026-03-01T00:00', utc: '2026-02-28T18:15Z' },
  { zone: 'America/St_Johns', local: '2026-12-31T23:59', utc: '2027-01-01T03:29Z' },
]
test.each(times)('$local in $zone is $utc', ({ zone, local, utc }) => {
  expect(parseLocal(local, zone)).toBe(Date.parse(utc))
  expect(localText(Date.parse(utc), zone)).toBe(local)
})

const noTimes = [
  '',
  'soon',
  '2026-03-01',
  '2026-02-30T12:00',
  '2026-03-29T02:30',
  '2026-03-01T25:00',
]
test.each(noTimes)('%p is no time in Berlin', (text) => {
  expect(parseLocal(text, BERLIN)).toBeUndefined()
})

test('a sentence names the zone, and the offset of a time that occurs twice', () => {
  const shown = (utc: string) => longTime(Date.parse(utc), BERLIN)
  expect(shown('2026-03-01T20:00:30Z')).toBe('1 Mar 2026, 21:00 (Europe/Berlin)')
  expect(shown('2026-10-25T00:30:00Z')).toBe('25 Oct 2026, 02:30 (Europe/Berlin, UTC+02:00)')
  expect(shown('2026-10-25T01:30:00Z')).toBe('25 Oct 2026, 02:30 (Europe/Berlin, UTC+01:00)')
})
