import { expect, test } from 'bun:test'
import { Histogram } from './histogram.ts'
import { latencyPlot } from './plot.ts'
import { replaceFigures, reportTable } from './report.ts'
import { alternate, median } from './rounds.ts'
import type { ScenarioReport } from './scenario.ts'

const variant = (name: string, values: number[]) => {
  const latency = new Histogram()
  for (const value of values) latency.record(value * 1e6)
  return { name, rounds: values.map((speed) => ({ speed })), latency: latency.toJSON() }
}

const REPORT: ScenarioReport = {
  scenario: 'x',
  question: 'How fast?',
  baseline: 'bare',
  settings: {},
  metrics: [{ key: 'speed', label: 'speed', digits: 1, ratio: true }],
  variants: [variant('bare', [10, 20, 40]), variant('hopcode', [5, 20, 30])],
  notes: ['One note.'],
}

test('the table shows medians, and the median of the ratios within each round', () => {
  // The ratios are 0.5, 1 and 0.75; the ratio of the medians would be 1.
  expect(reportTable(REPORT)).toContain('| speed | 20.0 | 20.0 | 0.75 (0.50–1.00) |')
  expect(reportTable(REPORT)).toContain('- One note.')
})

test('variants are measured in turn, every other round backwards', async () => {
  const order: string[] = []
  const measure = async ({ name }: { name: string }) => {
    order.push(name)
    const latency = new Histogram()
    latency.record(order.length)
    return { figures: { at: order.length }, latency }
  }
  const results = await alternate([{ name: 'A' }, { name: 'B' }], 3, measure, () => {})
  expect(order.join('')).toBe('ABBAAB')
  expect(results.map(({ rounds }) => rounds.map(({ at }) => at))).toEqual([
    [1, 4, 5],
    [2, 3, 6],
  ])
  expect(results[1]?.latency).toMatchObject({ count: 3, min: 2, max: 6 })
})

test('the median is the middle value, or the mean of the middle two', () => {
  expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([7])]).toEqual([2, 2.5, 7])
  expect(median([])).toBeNaN()
})

test('new figures replace the old ones and nothing else of the page', () => {
  const page = 'before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n'
  const once = replaceFigures(page, 'new')
  expect(once).toBe('before\n<!-- figures -->\n\nnew\n\n<!-- /figures -->\nafter\n')
  expect(replaceFigures(once, 'new')).toBe(once)
  expect(() => replaceFigures('no markers', 'new')).toThrow(Error)
})

test('the plot is one curve a variant, each within the picture', () => {
  const svg = latencyPlot('a < b', REPORT.variants)
  const curves = [...svg.matchAll(/points="([^"]+)"/g)].map(([, points = '']) => points)
  expect(curves).toHaveLength(2)
  for (const point of curves.join(' ').split(' ')) {
    const [x = NaN, y = NaN] = point.split(',').map(Number)
    expect(x >= 0 && x <= 760 && y >= 0 && y <= 420).toBe(true)
  }
  expect(svg).toContain('<title>a &lt; b</title>')
})
