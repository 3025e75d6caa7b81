import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Machine } from './machine.ts'
import { latencyPlot } from './plot.ts'
import { machineLine, replaceBetween, reportTable, shortTable, targetTable } from './report.ts'
import type { ScenarioReport } from './scenario.ts'

const BENCH = resolve(import.meta.dir, '..')
/** The plots of the results page, kept in the repository. */
const FIGURES = join(BENCH, 'figures')
const RESULTS_PAGE = join(BENCH, 'results.md')
const FRONT_PAGE = join(BENCH, '../README.md')

/** Writes one SVG per report with a plot. Returns the names of these scenarios. */
export function writePlots(
  reports: readonly ScenarioReport[],
  folder: string,
  prefix: string,
): string[] {
  mkdirSync(folder, { recursive: true })
  return reports.flatMap(({ scenario, plot, variants }) => {
    if (plot === undefined) return []
    writeFileSync(join(folder, `${prefix}${scenario}.svg`), latencyPlot(plot, variants))
    return [scenario]
  })
}

/** Writes bench/results.md, and the table of the front page if every scenario has run. */
export function writePages(
  machines: readonly Machine[],
  reports: readonly ScenarioReport[],
  { isComplete }: { isComplete: boolean },
): void {
  const plots = writePlots(reports, FIGURES, '')
  const sections = reports.map((report) => {
    const section = `### ${report.scenario}\n\n${reportTable(report)}`
    if (!plots.includes(report.scenario)) return section
    const { scenario } = report
    return `${section}\n\n![Latency of ${scenario} by percentile](figures/${scenario}.svg)`
  })
  const figures = [machineLine(machines), targetTable(reports), ...sections].join('\n\n')
  replaceIn(RESULTS_PAGE, 'figures', figures)
  if (!isComplete) return
  const more = `${machineLine(machines)}. [More](bench/results.md).`
  replaceIn(FRONT_PAGE, 'speed', `${shortTable(reports)}\n\n${more}`)
}

function replaceIn(page: string, marker: string, text: string): void {
  writeFileSync(page, replaceBetween(readFileSync(page, 'utf8'), marker, text))
}
