import {
  alternate,
  medianOf,
  medianRatio,
  type Progress,
  type RoundResult,
  type VariantResult,
  valuesOf,
} from './rounds.ts'
import type { Findings, LoadOptions, Metric, SummaryFigure } from './scenario.ts'

type Target = SummaryFigure['target']

/** A judged figure without its label. */
type FigureOf = (variants: readonly VariantResult[]) => Omit<SummaryFigure, 'label'>

export interface Plan<V extends { name: string }> {
  variants: readonly V[]
  /** A round of one variant. Throws if a result is wrong. */
  measure: (variant: V) => Promise<RoundResult>
  /** Adds figures to the rounds of the variants. */
  finish?: (variants: VariantResult[]) => Promise<void>
  /** The variant that the others are compared with. */
  baseline?: string
  metrics: Metric[]
  /** By their labels. */
  figures: Record<string, FigureOf>
  /** In addition to the options of the command line. */
  settings?: Findings['settings']
  notes: string[]
}

/** Measures the variants in alternating rounds and computes the figures. */
export async function measureVariants<V extends { name: string }>(
  { variants, measure, finish, baseline, metrics, figures, settings = {}, notes }: Plan<V>,
  { rounds }: LoadOptions,
  say: Progress,
): Promise<Findings> {
  const measured = await alternate(variants, rounds, measure, say)
  await finish?.(measured)
  const summary = Object.entries(figures).map(([label, figure]) => ({ label, ...figure(measured) }))
  return {
    ...(baseline !== undefined && { baseline }),
    settings,
    metrics,
    variants: measured,
    summary,
    notes,
  }
}

export const atMost = (value: number, stretch?: number): Target => ({
  sense: '≤',
  value,
  ...(stretch !== undefined && { stretch }),
})
export const atLeast = (value: number, stretch?: number): Target => ({
  sense: '≥',
  value,
  ...(stretch !== undefined && { stretch }),
})

/** Other work on the machine, in %, with which no figure is a stretch target reached. */
const OTHERS_PERCENT_MAX = 10

const isBusy = (variants: readonly VariantResult[], names: readonly string[]): boolean =>
  names.some((name) => medianOf(variants, name, 'othersPercent') > OTHERS_PERCENT_MAX)

/** Whether the rounds of two variants overlap: a run does not distinguish them. */
function doOverlap(variants: readonly VariantResult[], names: [string, string], key: string) {
  const [one, other] = names.map((name) => valuesOf(variants, name, key))
  if (!one || !other) return false
  return Math.min(...one) <= Math.max(...other) && Math.min(...other) <= Math.max(...one)
}

/** The median of the ratios, in each round, of a metric of the variant `of` to that of `by`. */
export const ratio =
  (of: string, by: string, key: string, target?: Target): FigureOf =>
  (variants) => ({
    value: medianRatio(variants, of, by, key),
    isUncertain: isBusy(variants, [of, by]) || doOverlap(variants, [of, by], key),
    unit: '×',
    digits: 2,
    ...(target && { target }),
  })

/** The median of a metric. */
export const value =
  (of: string, key: string, unit: string, digits = 0, target?: Target): FigureOf =>
  (variants) => ({
    value: medianOf(variants, of, key),
    isUncertain: isBusy(variants, [of]),
    unit,
    digits,
    ...(target && { target }),
  })

/** The median of a metric in microseconds, as milliseconds. */
export const milliseconds =
  (of: string, key: string, digits: number, target?: Target): FigureOf =>
  (variants) => {
    const figure = value(of, key, ' ms', digits, target)(variants)
    return { ...figure, value: figure.value / 1000 }
  }

/** Shown in docs/benchmarks.md. */
export const main =
  (figure: FigureOf): FigureOf =>
  (variants) => ({ ...figure(variants), isMain: true })
