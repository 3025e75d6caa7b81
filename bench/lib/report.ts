import type { Machine } from './machine.ts'
import { median } from './rounds.ts'
import type { Metric, ScenarioReport } from './scenario.ts'

/** Where and of what the figures are, as one line of Markdown. */
export function machineLine(machine: Machine): string {
  const { processor, cores, memoryGibibytes, kernel, bun, wrk, nginx, commit, load } = machine
  const versions = [`Bun ${bun}`, wrk && `wrk ${wrk}`, nginx && `nginx ${nginx}`].filter(Boolean)
  return [
    `${processor}, ${cores} cores, ${memoryGibibytes} GiB`,
    `Linux ${kernel}`,
    ...versions,
    `commit ${commit}`,
    `load ${load.toFixed(2)} before the run`,
    machine.startedAt,
  ].join(' · ')
}

/** The medians of each variant, and its ratios to the baseline, as Markdown. */
export function reportTable({ metrics, variants, baseline, notes }: ScenarioReport): string {
  const base = variants.find(({ name }) => name === baseline)
  const others = variants.filter((variant) => variant !== base)
  const head = [
    'median of the rounds',
    ...variants.map(({ name }) => name),
    ...others.map(({ name }) => `${name} / ${baseline} (lowest–highest round)`),
  ]
  const rows = metrics.map((metric) => [
    metric.label,
    ...variants.map(({ rounds }) => median(valuesOf(metric, rounds)).toFixed(metric.digits)),
    ...others.map(({ rounds }) => (metric.ratio ? ratioCell(metric, rounds, base?.rounds) : '')),
  ])
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows]
  const table = lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
  return `${table}\n\n${notes.map((note) => `- ${note}`).join('\n')}`
}

/**
 * The ratio is taken within each round, whose two processes ran next to each other, and then the
 * median.
 */
function ratioCell(
  metric: Metric,
  rounds: readonly Record<string, number>[],
  baseRounds: readonly Record<string, number>[] = [],
): string {
  const base = valuesOf(metric, baseRounds)
  const ratios = valuesOf(metric, rounds).map((value, round) => value / (base[round] ?? Number.NaN))
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)]
  return `${median(ratios).toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`
}

const valuesOf = ({ key }: Metric, rounds: readonly Record<string, number>[]): number[] =>
  rounds.map((figures) => figures[key] ?? Number.NaN)

/**
 * `text` with everything between the two marker comments replaced. Throws where a marker is
 * missing.
 */
export function replaceFigures(text: string, figures: string): string {
  const [begin, end] = ['<!-- figures -->', '<!-- /figures -->']
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from === -1 || to < from) throw new Error(`the page has no ${begin} … ${end}`)
  return `${text.slice(0, from + begin.length)}\n\n${figures}\n\n${text.slice(to)}`
}
