import type { Machine } from './machine.ts'
import { type Figures, median } from './rounds.ts'
import type { Metric, ScenarioReport, SummaryFigure } from './scenario.ts'

/** Machine, versions, commit and time of one or more runs of one commit, as a line of Markdown. */
export function machineLine(machines: readonly Machine[]): string {
  const [first, last] = [machines[0] as Machine, machines.at(-1) as Machine]
  const { processor, cores, memoryGibibytes, kernel, bun, wrk, commit } = first
  const loads = machines.map(({ load }) => load.toFixed(2)).join(', ')
  const versions = [`Bun ${bun}`, wrk && `wrk ${wrk}`].filter(Boolean)
  return [
    `${processor}, ${cores} cores, ${memoryGibibytes} GiB`,
    `Linux ${kernel}`,
    ...versions,
    `commit ${commit}`,
    ...(machines.length > 1
      ? [`medians of ${machines.length} runs (lowest–highest)`, `load ${loads} before them`]
      : [`load ${loads} before the run`]),
    first === last ? first.startedAt : `${first.startedAt} to ${last.startedAt}`,
  ].join(' · ')
}

/** The medians of each variant, and its ratios to the baseline where there is one, as Markdown. */
export function reportTable({ metrics, variants, baseline, notes }: ScenarioReport): string {
  const base = variants.find(({ name }) => name === baseline)
  const others = base ? variants.filter((variant) => variant !== base) : []
  const head = [
    'median of the rounds',
    ...variants.map(({ name }) => name),
    ...others.map(({ name }) => `${name} / ${baseline} (lowest–highest round)`),
  ]
  const rows = metrics.map((metric) => [
    metric.label,
    ...variants.map(({ rounds }) => medianCell(metric, rounds)),
    ...others.map(({ rounds }) => (metric.ratio ? ratioCell(metric, rounds, base?.rounds) : '')),
  ])
  return `${markdownTable(head, rows)}\n\n${notes.map((note) => `- ${note}`).join('\n')}`
}

/** The figures of all scenarios that have a target, and whether it is met, as Markdown. */
export function targetTable(reports: readonly ScenarioReport[]): string {
  const rows = reports.flatMap(({ scenario, summary }) =>
    summary.map((figure) => [
      scenario,
      figure.label,
      valueCell(figure),
      targetCell(figure),
      verdict(figure),
    ]),
  )
  return markdownTable(['scenario', 'figure', 'measured', 'target (stretch)', 'met'], rows, [2, 3])
}

/** The main figures for docs/benchmarks.md: value and command, as Markdown. */
export function shortTable(reports: readonly ScenarioReport[]): string {
  const rows = reports.flatMap(({ scenario, summary }) =>
    summary
      .filter(({ isMain }) => isMain)
      .map((figure) => [figure.label, valueCell(figure), `\`npm run bench -- ${scenario}\``]),
  )
  return markdownTable(['what', 'measured', 'command'], rows, [1])
}

/** `numbers`: the columns aligned to the right; by default all but the first. */
function markdownTable(head: string[], rows: string[][], numbers?: readonly number[]): string {
  const isNumber = (at: number) => numbers?.includes(at) ?? at > 0
  const lines = [head, head.map((_, at) => (isNumber(at) ? '---:' : '---')), ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function medianCell(metric: Metric, rounds: readonly Figures[]): string {
  const value = median(valuesOf(metric, rounds))
  return Number.isNaN(value) ? '' : value.toFixed(metric.digits)
}

function valueCell({ value, digits, unit, range }: SummaryFigure): string {
  if (Number.isNaN(value)) return 'not in this run'
  const spread = range ? ` (${range.map((end) => grouped(end, digits)).join('–')})` : ''
  return `${grouped(value, digits)}${unit}${spread}`
}

function targetCell({ target, unit }: SummaryFigure): string {
  if (!target) return ''
  const { sense, value, stretch } = target
  const further = stretch === undefined ? '' : ` (${grouped(stretch)}${unit})`
  return `${sense} ${grouped(value)}${unit}${further}`
}

function verdict({ target, value, isUncertain }: SummaryFigure): string {
  if (!target || Number.isNaN(value)) return ''
  const reaches = (goal: number) => (target.sense === '≤' ? value <= goal : value >= goal)
  if (target.stretch !== undefined && reaches(target.stretch))
    return isUncertain ? 'not measurable' : 'stretch'
  return reaches(target.value) ? 'yes' : '**no**'
}

const grouped = (value: number, digits?: number): string =>
  value.toLocaleString('en-US', {
    minimumFractionDigits: digits ?? 0,
    maximumFractionDigits: digits ?? 2,
  })

/**
 * The ratio is taken within each round, whose two processes ran next to each other, and then the
 * median.
 */
function ratioCell(
  metric: Metric,
  rounds: readonly Figures[],
  baseRounds: readonly Figures[] = [],
): string {
  const base = valuesOf(metric, baseRounds)
  const ratios = valuesOf(metric, rounds).map((value, round) => value / (base[round] ?? Number.NaN))
  if (ratios.some(Number.isNaN)) return ''
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)]
  return `${median(ratios).toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`
}

const valuesOf = ({ key }: Metric, rounds: readonly Figures[]): number[] =>
  rounds.map((figures) => figures[key] ?? Number.NaN)

/**
 * `text` with everything between `<!-- name -->` and `<!-- /name -->` replaced. Throws where a
 * marker is missing.
 */
export function replaceBetween(text: string, name: string, figures: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from === -1 || to < from) throw new Error(`the page has no ${begin} … ${end}`)
  return `${text.slice(0, from + begin.length)}\n\n${figures}\n\n${text.slice(to)}`
}
