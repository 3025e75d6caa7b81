/**
 * Welch's t of two samples (B. L. Welch, 1947): how many standard errors their means lie apart.
 * NaN when either has fewer than two values; 0 when nothing varies and the means are equal.
 */
export function welchT(one: Float64Array, other: Float64Array): number {
  if (one.length < 2 || other.length < 2) return Number.NaN
  const [a, b] = [momentsOf(one), momentsOf(other)]
  const difference = a.mean - b.mean
  if (difference === 0) return 0
  return difference / Math.sqrt(a.variance / one.length + b.variance / other.length)
}

/** The values up to the quantile `keep` of both samples together, as dudect crops measurements. */
export function cropped(samples: readonly Float64Array[], keep: number): Float64Array[] {
  const all = Float64Array.from(samples.flatMap((sample) => [...sample])).sort()
  const limit = all[Math.floor(all.length * keep)] ?? Number.POSITIVE_INFINITY
  return samples.map((sample) => sample.filter((value) => value <= limit))
}

function momentsOf(sample: Float64Array): { mean: number; variance: number } {
  let mean = 0
  for (const value of sample) mean += value / sample.length
  let squares = 0
  for (const value of sample) squares += (value - mean) ** 2
  return { mean, variance: squares / (sample.length - 1) }
}
