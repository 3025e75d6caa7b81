import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { hitRange, PRESETS, type RangeChoice } from '../../hits/range.ts'
import { HOUR } from '../../lib/clock.ts'
import { CHARACTER_WIDTH, MARGIN, timeTicks, WIDTHS } from './chart.ts'

const NOON = Date.UTC(2026, 2, 1, 12)

const ticksOf = (choice: RangeChoice, zone = 'UTC', now = NOON) =>
  timeTicks(hitRange(choice, { zone, now, firstHit: now / HOUR - 9000 })).sort(
    (a, b) => a.at - b.at,
  )
const wide = (choice: RangeChoice, zone?: string) =>
  ticksOf(choice, zone)
    .filter(({ screen }) => screen === 'wide')
    .map(({ text }) => text)
const narrow = (choice: RangeChoice) =>
  ticksOf(choice)
    .filter(({ screen }) => screen === 'narrow')
    .map(({ text }) => text)

test('labels are at round hours, at days, on Mondays and at months', () => {
  const hours = ['15:00', '18:00', '21:00', '1 Mar', '03:00', '06:00', '09:00', '12:00']
  expect(wide({ preset: '24h' })).toEqual(hours)
  expect(narrow({ preset: '24h' })).toEqual(['18:00', '1 Mar', '06:00', '12:00'])
  const days = ['23 Feb', '24 Feb', '25 Feb', '26 Feb', '27 Feb', '28 Feb', '1 Mar']
  expect(wide({ preset: '7d' })).toEqual(days)
  expect(wide({ preset: '30d' })).toEqual(['2 Feb', '9 Feb', '16 Feb', '23 Feb'])
  expect(narrow({ preset: '90d' })).toEqual(['Jan 2026', 'Feb', 'Mar'])
  expect(narrow({ preset: '12m' })).toEqual(['Apr', 'Jul', 'Oct', 'Jan 2026'])
  expect(wide({ preset: '12m' })).toContain('Jan 2026')
})

test('hours are those of the zone, also with half an hour', () => {
  expect(wide({ preset: '24h' }, 'Asia/Tokyo')).toContain('21:00')
  expect(wide({ preset: '24h' }, 'Asia/Kolkata')).toContain('18:00')
})

test('labels of any range are inside the drawing and do not touch', () => {
  const day = fc.integer({ min: 0, max: 398 })
  const today = Temporal.PlainDate.from('2026-03-01')
  fc.assert(
    fc.property(
      day,
      day,
      fc.constantFrom('UTC', 'Asia/Kolkata', 'America/New_York'),
      (a, b, zone) => {
        const [from, to] = [Math.max(a, b), Math.min(a, b)].map((days) => today.subtract({ days }))
        const ticks = ticksOf({ from: from ?? today, to: to ?? today }, zone)
        for (const screen of ['wide', 'narrow'] as const) {
          const shown = ticks
            .filter((tick) => tick.screen === screen)
            .sort((left, right) => left.at - right.at)
            .map(({ at, text }) => {
              const half = (text.length * CHARACTER_WIDTH) / 2
              return { left: at * WIDTHS[screen] - half, right: at * WIDTHS[screen] + half }
            })
          for (const [i, { left, right }] of shown.entries()) {
            expect(left).toBeGreaterThanOrEqual(Math.max(-MARGIN.left, shown[i - 1]?.right ?? -99))
            expect(right).toBeLessThanOrEqual(WIDTHS[screen] + MARGIN.right)
          }
        }
      },
    ),
  )
})

test('every preset has a label for either screen', () => {
  for (const preset of PRESETS) {
    expect([preset, wide({ preset }).length > 0, narrow({ preset }).length > 0]).toEqual([
      preset,
      true,
      true,
    ])
  }
})
