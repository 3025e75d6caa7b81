import { expect, test } from 'bun:test'
import { replaceBetween, reportTable, shortTable, targetTable } from './report.ts'
import { alternate, median, medianOf, medianRatio } from './rounds.ts'
import type { ScenarioReport, SummaryFigure } from './scenario.ts'

const variant = (name: string, values: number[]) => {
  return { name, rounds: values.map((speed) => ({ speed })) }
}

const REPORT: ScenarioReport = {
  scenario: 'x',
  question: 'How fast?',
  baseline: 'bare',
  settings: {},
  metrics: [{ key: 'speed', label: 'speed', digits: 1, ratio: true }],
  variants: [variant('bare', [10, 20, 40]), variant('hopcode', [5, 20, 30])],
  summary: [],
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
    return { figures: { at: order.length } }
  }
  const results = await alternate([{ name: 'A' }, { name: 'B' }], 3, measure, () => {})
  expect(order.join('')).toBe('ABBAAB')
  expect(results.map(({ rounds }) => rounds.map(({ at }) => at))).toEqual([
    [1, 4, 5],
    [2, 3, 6],
  ])
})

test('the median is the middle value, or the mean of the middle two', () => {
  expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([7])]).toEqual([2, 2.5, 7])
  expect(median([])).toBeNaN()
})

test('a figure that one variant lacks stays empty, as do all ratios without a baseline', () => {
  const { baseline: _, ...alone } = REPORT
  expect(reportTable(alone)).toContain('| speed | 20.0 | 20.0 |\n')
  const more = [...REPORT.metrics, { key: 'size', label: 'size', digits: 0, ratio: true }]
  expect(reportTable({ ...REPORT, metrics: more })).toContain('| size |  |  |  |')
})

const figure = (value: number, target?: SummaryFigure['target']): SummaryFigure => ({
  label: 'a figure',
  value,
  unit: ' ms',
  digits: 1,
  ...(target && { target }),
})
const rowOf = (judged: SummaryFigure) =>
  targetTable([{ ...REPORT, summary: [judged] }]).split('\n')[2]

test('a target is met on its right side, and so is its stretch target', () => {
  const most: SummaryFigure['target'] = { sense: '≤', value: 10, stretch: 5 }
  expect(rowOf(figure(5, most))).toBe('| x | a figure | 5.0 ms | ≤ 10 ms (5 ms) | stretch |')
  expect(rowOf(figure(5.1, most))).toEndWith('| yes |')
  expect(rowOf(figure(10.01, most))).toEndWith('| **no** |')
  const least: SummaryFigure['target'] = { sense: '≥', value: 20_000 }
  expect(rowOf(figure(20_000, least))).toBe('| x | a figure | 20,000.0 ms | ≥ 20,000 ms | yes |')
  expect(rowOf(figure(19_999, least))).toEndWith('| **no** |')
})

test('a figure without a target, or of a run that was too short, has no verdict', () => {
  expect(rowOf(figure(7))).toBe('| x | a figure | 7.0 ms |  |  |')
  expect(rowOf(figure(Number.NaN, { sense: '≤', value: 1 }))).toBe(
    '| x | a figure | not in this run | ≤ 1 ms |  |',
  )
})

test('the front page has the main figures alone, each with its command', () => {
  const summary = [figure(1), { ...figure(2), label: 'the main one', isMain: true }]
  expect(
    shortTable([{ ...REPORT, summary }])
      .split('\n')
      .slice(2),
  ).toEqual(['| the main one | 2.0 ms | `npm run bench -- x` |'])
})

test('a median ratio is taken within each round', () => {
  expect(medianRatio(REPORT.variants, 'hopcode', 'bare', 'speed')).toBe(0.75)
  expect(medianOf(REPORT.variants, 'hopcode', 'speed')).toBe(20)
  expect(medianOf(REPORT.variants, 'hopcode', 'weight')).toBeNaN()
  expect(() => medianOf(REPORT.variants, 'nobody', 'speed')).toThrow(Error)
})

test('new figures replace the old ones and nothing else of the page', () => {
  const page = 'before\n<!-- a -->\nold\n<!-- /a -->\n<!-- b -->\n<!-- /b -->\nafter\n'
  const once = replaceBetween(page, 'a', 'new')
  expect(once).toBe('before\n<!-- a -->\n\nnew\n\n<!-- /a -->\n<!-- b -->\n<!-- /b -->\nafter\n')
  expect(replaceBetween(once, 'a', 'new')).toBe(once)
  expect(() => replaceBetween('no markers', 'a', 'new')).toThrow(Error)
})
