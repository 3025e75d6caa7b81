import { expect, test } from 'bun:test'
import { machineLine, reportTable, targetTable } from './report.ts'
import { mergeRuns, type SavedRun } from './saved-run.ts'

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
    scenario: 'x',
    question: 'How fast?',
    settings: {},
    metrics: [{ key: 'speed', label: 'speed', digits: 0, ratio: false }],
    variants: [{ name: 'hopcode', rounds: [{ speed }] }],
    summary: [{ label: `speed of ${speed}`, value: speed, unit: ' /s', digits: 0 }],
    notes: [],
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
  expect(reportTable(merged[0] as (typeof merged)[0])).toContain('| speed | 20 |')
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
