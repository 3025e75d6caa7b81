/** The figures of one round of one variant, by the metric's key. */
export type Figures = Record<string, number>

export interface RoundResult {
  figures: Figures
}

export interface VariantResult {
  name: string
  rounds: Figures[]
}

/** Receives progress messages. */
export type Progress = (line: string) => void

/**
 * Measures the variants in turn, `rounds` times, every other round in reverse (A B B A …), so that
 * a slow drift of the machine affects all of them equally.
 */
export async function alternate<V extends { name: string }>(
  variants: readonly V[],
  rounds: number,
  measure: (variant: V) => Promise<RoundResult>,
  say: Progress,
): Promise<VariantResult[]> {
  const figures: Figures[][] = variants.map(() => [])
  for (let round = 0; round < rounds; round++) {
    const order = variants.map((variant, index) => ({ variant, index }))
    for (const { variant, index } of round % 2 === 0 ? order : order.reverse()) {
      say(`round ${round + 1} of ${rounds}: ${variant.name}`)
      figures[index]?.push((await measure(variant)).figures)
    }
  }
  return variants.map(({ name }, index) => ({ name, rounds: figures[index] ?? [] }))
}

/** The middle value, or the mean of the two middle ones; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2
}

/** The median over the rounds of one figure of one variant; NaN if it was not measured. */
export const medianOf = (variants: readonly VariantResult[], name: string, key: string): number =>
  median(valuesOf(variants, name, key))

/**
 * The median of the ratios taken within each round, whose two processes ran next to each other.
 */
export function medianRatio(
  variants: readonly VariantResult[],
  name: string,
  baseline: string,
  key: string,
): number {
  const base = valuesOf(variants, baseline, key)
  const values = valuesOf(variants, name, key)
  return median(values.map((value, round) => value / (base[round] ?? Number.NaN)))
}

/** The values of a figure of one variant, round by round. */
export function valuesOf(variants: readonly VariantResult[], name: string, key: string): number[] {
  const variant = variants.find((candidate) => candidate.name === name)
  if (!variant) throw new Error(`no variant is named ${name}`)
  return variant.rounds.map((figures) => figures[key] ?? Number.NaN)
}
