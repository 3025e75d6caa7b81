import { Histogram } from './histogram.ts'
import type { VariantResult } from './rounds.ts'

const WIDTH = 760
const HEIGHT = 420
const LEFT = 70
const RIGHT = 110
const TOP = 50
const BOTTOM = 50
/** Distinguishable with any colour vision (Okabe and Ito), on white. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#000000']
const TICKS = [0, 50, 90, 99, 99.9, 99.99, 99.999]
const STEPS_PER_NINE = 24

/**
 * Latency against percentile as an SVG picture. The x axis gives each further nine the same width
 * (after HdrHistogram's plots) and ends where fewer than ten answers are left; the y axis is
 * logarithmic.
 */
export function latencyPlot(title: string, variants: readonly VariantResult[]): string {
  const series = variants.map(({ name, latency }) => ({
    name,
    histogram: Histogram.fromJson(latency),
  }))
  const fewest = Math.min(...series.map(({ histogram }) => histogram.count))
  const ninesMax = Math.max(1, Math.log10(Math.max(fewest, 10) / 10))
  const micros = (histogram: Histogram, nines: number) =>
    Math.max(histogram.percentile(100 * (1 - 10 ** -nines)), 1) / 1000

  const least = Math.min(...series.map(({ histogram }) => micros(histogram, 0)))
  const most = Math.max(...series.map(({ histogram }) => micros(histogram, ninesMax)))
  const [low, high] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most) + 1e-9)]
  const x = (nines: number) => LEFT + (nines / ninesMax) * (WIDTH - LEFT - RIGHT)
  const y = (value: number) =>
    HEIGHT - BOTTOM - ((Math.log10(value) - low) / (high - low)) * (HEIGHT - TOP - BOTTOM)

  const grid: string[] = []
  for (const percent of TICKS) {
    const nines = -Math.log10(1 - percent / 100)
    if (nines > ninesMax + 0.01) break
    grid.push(line(x(nines), TOP, x(nines), HEIGHT - BOTTOM))
    grid.push(text(x(nines), HEIGHT - BOTTOM + 18, `${percent} %`, 'middle'))
  }
  for (let decade = low; decade <= high; decade++) {
    grid.push(line(LEFT, y(10 ** decade), WIDTH - RIGHT, y(10 ** decade)))
    grid.push(text(LEFT - 8, y(10 ** decade) + 4, duration(10 ** decade), 'end'))
  }

  const curves = series.map(({ name, histogram }, index) => {
    const colour = COLOURS[index % COLOURS.length] ?? '#000000'
    const steps = Math.ceil(ninesMax * STEPS_PER_NINE)
    const points = Array.from({ length: steps + 1 }, (_, step) => {
      const nines = (step / steps) * ninesMax
      return `${x(nines).toFixed(1)},${y(micros(histogram, nines)).toFixed(1)}`
    })
    const key = TOP + 10 + index * 20
    return [
      `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${points.join(' ')}"/>`,
      `<rect x="${WIDTH - RIGHT + 12}" y="${key - 9}" width="12" height="12" fill="${colour}"/>`,
      text(WIDTH - RIGHT + 30, key + 2, name, 'start'),
    ].join('\n')
  })

  const box = `viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${box}>
<title>${escapeXml(title)}</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
${text(LEFT, 26, title, 'start')}
${grid.join('\n')}
${curves.join('\n')}
${text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, 'share of requests at least as fast', 'middle')}
</svg>
`
}

const line = (x1: number, y1: number, x2: number, y2: number) =>
  `<path d="M${[x1, y1, x2, y2].map((at) => at.toFixed(1)).join(' ')}" stroke="#dddddd"/>`

function text(x: number, y: number, words: string, anchor: 'start' | 'middle' | 'end'): string {
  const place = `x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"`
  return `<text ${place} fill="#222222">${escapeXml(words)}</text>`
}

function duration(micros: number): string {
  if (micros >= 1e6) return `${micros / 1e6} s`
  return micros >= 1000 ? `${micros / 1000} ms` : `${micros} µs`
}

const escapeXml = (words: string) =>
  words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
