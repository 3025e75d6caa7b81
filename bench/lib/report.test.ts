import { expect, test } from 'bun:test'
import { ratio } from './figures.ts'
import { machineLine, replaceBetween, reportTable, targetTable } from './report.ts'
import { alternate, medianRatio } from './rounds.ts'
import { mergeRuns, type SavedRun } from './saved-run.ts'
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
  expect(medianRatio(REPORT.variants, 'hopcode', 'bare', 'speed')).toBe(0.75)
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
  const uncertain = { ...figure(5, most), isUncertain: true }
  expect(rowOf(uncertain)).toEndWith('| not measurable |')
  expect(rowOf({ ...uncertain, value: 6 })).toEndWith('| yes |')
  const least: SummaryFigure['target'] = { sense: '≥', value: 20_000 }
  expect(rowOf(figure(20_000, least))).toBe('| x | a figure | 20,000.0 ms | ≥ 20,000 ms | yes |')
  expect(rowOf(figure(19_999, least))).toEndWith('| **no** |')
})

test('rounds that overlap and other work on the machine make a ratio uncertain', () => {
  const of = (values: number[], others = 0) =>
    ratio(
      'hopcode',
      'bare',
      'speed',
    )([
      variant('bare', [10, 20, 30]),
      { name: 'hopcode', rounds: values.map((speed) => ({ speed, othersPercent: others })) },
    ]).isUncertain
  expect(of([31, 40, 50])).toBe(false)
  expect(of([30, 40, 50])).toBe(true)
  expect(of([31, 40, 50], 11)).toBe(true)
})

test('new figures replace the old ones and nothing else of the page', () => {
  const page = 'before\n<!-- a -->\nold\n<!-- /a -->\n<!-- b -->\n<!-- /b -->\nafter\n'
  const once = replaceBetween(page, 'a', 'new')
  expect(once).toBe('before\n<!-- a -->\n\nnew\n\n<!-- /a -->\n<!-- b -->\n<!-- /b -->\nafter\n')
  expect(replaceBetween(once, 'a', 'new')).toBe(once)
  expect(() => replaceBetween('no markers', 'a', 'new')).toThrow(Error)
})

/** A run of one scenario. */
function run(speed: number, commit = 'abc'): SavedRun {
  const machine = {
    processor: 'CPU',
    cores: 2,
    memoryGibibytes: 4,
    kernel: '6',
    load: 0.5,
    bun: '1',
    commit,
    startedAt: `time ${speed}`,
  }
  const report = {
    ...REPORT,
    variants: [{ name: 'hopcode', rounds: [{ speed }] }],
    summary: [{ label: `speed of ${speed}`, value: speed, unit: ' /s', digits: 0 }],
  }
  return { machine, options: {} as SavedRun['options'], reports: [report], failures: [] }
}

test('merged runs show the median of each figure with its range, and the rounds of all runs', () => {
  const runs = [run(10), run(40), run(20)]
  const merged = mergeRuns(runs)
  expect(targetTable(merged)).toContain('| x | speed of 20 | 20 /s (10–40) |')
  expect(merged[0]?.variants[0]).toMatchObject({
    rounds: [{ speed: 10 }, { speed: 40 }, { speed: 20 }],
  })
  expect(reportTable(merged[0] as (typeof merged)[0])).toContain('| speed | 20.0 |')
  const line = machineLine(runs.map(({ machine }) => machine))
  expect(line).toContain('medians of 3 runs')
  expect(line).toEndWith('time 10 to time 20')
})

const different = [
  { name: 'of different commits', other: run(1, 'def') },
  { name: 'without a scenario', other: { ...run(1), reports: [] } },
  { name: 'with a failure', other: { ...run(1), failures: [{ name: 'x', reason: 'y' }] } },
]
test.each(different)('runs $name are not merged', ({ other }) => {
  expect(() => mergeRuns([run(1), other])).toThrow(RangeError)
})
