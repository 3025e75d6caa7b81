import { dateOf, type HitRange, hourOfDay } from '../../hits/range.ts'
import { CHARACTER_WIDTH, MARGIN, middleOf, type Tick, WIDTHS } from './chart.ts'

/** Labels below the axis of time: at round hours, at days, on Mondays, or at months. */

type Screen = keyof typeof WIDTHS

/** One of the sets of labels that suit a range, the densest first. */
type Ticks = readonly Omit<Tick, 'screen'>[]

export function timeTicks(range: HitRange): Tick[] {
  const sets = tickSets(range)
  const wide = densest(sets, 'wide')
  const narrow = densest(sets, 'narrow')
  const isIn = ({ at }: Pick<Tick, 'at'>, ticks: Ticks) => ticks.some((tick) => tick.at === at)
  return [
    ...wide.map((tick) => (isIn(tick, narrow) ? tick : { ...tick, screen: 'wide' as const })),
    ...narrow
      .filter((tick) => !isIn(tick, wide))
      .map((tick) => ({ ...tick, screen: 'narrow' as const })),
  ]
}

const GAP = 2 * CHARACTER_WIDTH

/** The first set whose labels are inside the drawing with a gap between each two. */
function densest(sets: readonly Ticks[], screen: Screen): Ticks {
  const width = WIDTHS[screen]
  const reach = ({ text }: { text: string }) => (text.length * CHARACTER_WIDTH) / 2
  const inside = (ticks: Ticks) =>
    ticks.filter(
      (tick) =>
        tick.at * width - reach(tick) >= -MARGIN.left &&
        tick.at * width + reach(tick) <= width + MARGIN.right,
    )
  const fits = (ticks: Ticks) =>
    ticks.every((tick, i) => {
      const next = ticks[i + 1]
      return !next || (next.at - tick.at) * width >= reach(tick) + reach(next) + GAP
    })
  return sets.map(inside).find(fits) ?? []
}

function tickSets(range: HitRange): Ticks[] {
  const { unit, zone } = range
  const starts = range.bounds.slice(0, -1)
  if (unit === 'hour') {
    const hours = starts.map((hour, i) => {
      const time = hourOfDay(hour, zone)
      const text =
        time === 0 ? shortDate(dateOf(hour, zone)) : `${String(time).padStart(2, '0')}:00`
      return { time, at: middleOf(i, starts.length), text }
    })
    return [1, 2, 3, 6, 12, 24].map((step) => hours.filter(({ time }) => time % step === 0))
  }
  const days = starts.map((hour, i) => {
    const date = dateOf(hour, zone)
    return { date, at: middleOf(i, starts.length), text: shortDate(date) }
  })
  const months = monthStarts(range).map((month) => {
    const bar = days.findLastIndex(({ date }) => Temporal.PlainDate.compare(date, month) <= 0)
    const part = unit === 'day' ? 0.5 : (days[bar]?.date.until(month).days ?? 0) / 7
    const text = month.month === 1 ? `Jan ${month.year}` : shortMonth(month)
    return { month, at: (bar + part) / starts.length, text }
  })
  const everyMonth = [1, 2, 3, 6].map((step) =>
    months.filter(({ month }) => (month.month - 1) % step === 0),
  )
  if (unit === 'week') return everyMonth
  const mondays = days.filter(({ date }) => date.dayOfWeek === 1)
  return [days, mondays, mondays.filter((_, i) => i % 2 === 0), ...everyMonth]
}

function monthStarts({ first, last }: HitRange): Temporal.PlainDate[] {
  const starts: Temporal.PlainDate[] = []
  let month = first.with({ day: 1 }).add({ months: first.day === 1 ? 0 : 1 })
  for (; Temporal.PlainDate.compare(month, last) <= 0; month = month.add({ months: 1 })) {
    starts.push(month)
  }
  return starts
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const shortMonth = ({ month }: Temporal.PlainDate): string => MONTHS[month - 1] ?? ''

export const shortDate = (date: Temporal.PlainDate): string => `${date.day} ${shortMonth(date)}`
export const longDate = (date: Temporal.PlainDate): string => `${shortDate(date)} ${date.year}`
