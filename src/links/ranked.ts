/** Links in the order of their hits. */

export interface Ranked {
  id: number
  /** Committed hits. */
  count: number
}

/** `next`: the id below which the next slice begins; undefined after the last. */
export interface RankedSlice {
  /** Most hits first, then newest first. */
  best: Ranked[]
  next: number | undefined
}
