import type { Machine } from './machine.ts'
import { type Figures, median } from './rounds.ts'
import type { LoadOptions, ScenarioReport, SummaryFigure } from './scenario.ts'

/** What bench/run.ts writes into bench/results/<start>.json. */
export interface SavedRun {
  machine: Machine
  options: LoadOptions
  reports: ScenarioReport[]
  failures: { name: string; reason: string }[]
}

/**
 * One report per scenario from several runs of the same commit: the rounds of all runs together,
 * and of each judged figure the median of the runs with its range. Notes and settings are those of
 * the last run. Throws RangeError if the runs are of different
 * commits, or if a scenario failed or is missing in one of them.
 */
export function mergeRuns(runs: readonly SavedRun[]): ScenarioReport[] {
  const [first] = runs
  if (!first) throw new RangeError('no run to merge')
  for (const { machine, failures } of runs) {
    if (machine.commit !== first.machine.commit) {
      throw new RangeError(`runs of two commits: ${first.machine.commit} and ${machine.commit}`)
    }
    const [failed] = failures
    if (failed) throw new RangeError(`${failed.name} failed in the run of ${machine.startedAt}`)
  }
  return first.reports.map(({ scenario }) =>
    mergeReports(runs.map((run) => reportOf(run, scenario))),
  )
}

function reportOf({ machine, reports }: SavedRun, scenario: string): ScenarioReport {
  const found = reports.find((report) => report.scenario === scenario)
  if (!found) throw new RangeError(`the run of ${machine.startedAt} lacks ${scenario}`)
  return found
}

function mergeReports(reports: readonly ScenarioReport[]): ScenarioReport {
  const last = reports.at(-1) as ScenarioReport
  return {
    ...last,
    variants: last.variants.map((variant, at) => ({
      name: variant.name,
      rounds: reports.flatMap(({ variants }): Figures[] => variants[at]?.rounds ?? []),
    })),
    // By position: the label may contain a figure of its own run.
    summary: last.summary.map((figure, at) =>
      mergeFigures(
        reports.flatMap(({ summary }) => summary[at] ?? []),
        figure,
      ),
    ),
  }
}

function mergeFigures(summary: readonly SummaryFigure[], last: SummaryFigure): SummaryFigure {
  const values = summary.map(({ value }) => value)
  const range: [number, number] = [Math.min(...values), Math.max(...values)]
  const isUncertain = summary.some((figure) => figure.isUncertain === true)
  return { ...last, value: median(values), range, isUncertain }
}
