import { type Html, html } from '../../lib/html.ts'
import { plural } from './components.ts'

/** Height of the picture in units of its view box. */
const HEIGHT = 16
const STEP = 2

/** A line of one point per day or minute, oldest first, up to the one with the most hits. */
export function sparkline(counts: readonly number[], unit: 'day' | 'minute' = 'day'): Html {
  const most = Math.max(...counts, 1)
  const sum = counts.reduce((total, count) => total + count, 0)
  const heights = counts.map((count) => HEIGHT - Math.round((count / most) * HEIGHT))
  const steps = heights.slice(1).map((y, i) => `${STEP} ${y - (heights[i] ?? 0)}`)
  const path = `M0 ${heights[0] ?? HEIGHT}l${steps.join(' ')}`
  const label = `${plural(sum, 'hit')} in ${plural(counts.length, unit)}`
  const width = STEP * (counts.length - 1)
  return html`<svg class="spark" role="img" aria-label="${label}" viewBox="0 -1 ${width} 18"
    preserveAspectRatio="none"><path d="${path}"/></svg>`
}
