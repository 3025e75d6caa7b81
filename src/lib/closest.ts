/** The candidate that a mistyped word most likely stands for; undefined if none is similar. */
export function findClosest(word: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: editDistance(word, candidate) }))
    .sort((a, b) => a.edits - b.edits)
  const [best] = ranked
  // More edits would suggest words that have little in common.
  return best && best.edits <= Math.max(1, best.candidate.length / 3) ? best.candidate : undefined
}

/** Longer words are not typing errors, and comparing them would take long. */
const LENGTH_MAX = 40

/** Levenshtein: insertions, deletions and replacements of one character. */
function editDistance(from: string, to: string): number {
  if (from.length > LENGTH_MAX) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (const [i, character] of [...from].entries()) {
    const next = [i + 1]
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (character === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
