/** Counts of one link or account. Hours and days are those of UTC, from 1970. */
interface Counts {
  ofHour: (hour: number) => number
  ofDay: (day: number) => number
}

const HOURS_OF_DAY = 24
/**
 * Shorter bars show only hours: the hits of a day without hours would be a spike in one of them.
 */
const LONG_BAR_HOURS = 12

/**
 * Hits between each two `bounds`, which are hours in ascending order. A UTC day within one bar is
 * one lookup, every other day with hits is 25.
 *
 * Hits of a day that are in none of its hours belong to the bar with the day's noon: hours are kept
 * for a shorter time than days.
 */
export function countBars(bounds: readonly number[], { ofHour, ofDay }: Counts): number[] {
  const counts = Array<number>(Math.max(0, bounds.length - 1)).fill(0)
  const endOf = (bar: number) => bounds[bar + 1] ?? 0
  /** The bar of the last added hour: -1 before the first bar, `counts.length` after the last. */
  let bar = -1
  const moveTo = (hour: number) => {
    while (bar < counts.length && endOf(bar) <= hour) bar++
  }
  const add = (to: number, count: number) => {
    if (to >= 0 && to < counts.length) counts[to] = (counts[to] ?? 0) + count
  }

  const [first = 0] = bounds
  const end = bounds.at(-1) ?? 0
  for (let start = first - (first % HOURS_OF_DAY); start < end; start += HOURS_OF_DAY) {
    const total = ofDay(start / HOURS_OF_DAY)
    if (total === 0) continue
    moveTo(start)
    if (bar >= 0 && endOf(bar) >= start + HOURS_OF_DAY) {
      add(bar, total)
      continue
    }
    let rest = total
    let noonBar = -1
    for (let hour = start; hour < start + HOURS_OF_DAY; hour++) {
      const count = ofHour(hour)
      moveTo(hour)
      add(bar, count)
      rest -= count
      if (hour === start + HOURS_OF_DAY / 2) noonBar = bar
    }
    const isLong = endOf(noonBar) - (bounds[noonBar] ?? 0) >= LONG_BAR_HOURS
    if (rest > 0 && isLong) add(noonBar, rest)
  }
  return counts
}
