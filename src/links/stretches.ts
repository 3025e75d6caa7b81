/** How many matches a list has and where the n-th of them lies, without walking over the others. */

/** The links of an account with an id above `after`, up to and with `upTo`. */
export interface Span {
  after: number
  upTo: number
}

export interface Counted {
  count: number
  /** All of them, newest first, where they are few and finding them again would cost a lot. */
  ids?: readonly number[]
}

/**
 * What is counted: the links of one account that match one search, or all of them. Ids alone say
 * what is new: they count up and are never given out again.
 */
export interface MatchSource {
  /** Stretches that are counted in some milliseconds: a slice, in which no other list goes on. */
  readonly stretchesPerSlice: number
  /**
   * Counts the next stretch after the id `after`. `end` is the last id that belongs to it, or
   * undefined where links that are still to come may belong to it too.
   */
  next(after: number): Counted & { end: number | undefined }
  count(span: Span): Counted
  /** The ids of a page within the span, newest first. */
  page(span: Span, limit: number, offset: number): readonly number[]
}

export const ID_MAX = 0xffff_ffff

interface Stretch extends Span {
  /** Undefined once a link of it has changed. */
  counted: Counted | undefined
}

/**
 * The matches of one source in stretches of about the same count, the oldest first, each counted
 * once and again only when a link in it changes. Whoever calls sees to it that every change of a
 * link is told before the next count, and that all reads of an answer are of one snapshot.
 */
export class Stretches {
  readonly #source: MatchSource
  readonly #matchesMax: number
  readonly #whole: Stretch[] = []
  #total = 0
  #newest: Stretch = { after: 0, upTo: ID_MAX, counted: undefined }

  /** `matchesMax`: a stretch that has come to hold more is divided. */
  constructor(source: MatchSource, { matchesMax }: { matchesMax: number }) {
    this.#source = source
    this.#matchesMax = matchesMax
  }

  /** Stretches that are kept: what it takes of memory. The newest one is counted each time. */
  get length(): number {
    return this.#whole.length
  }

  /** A link is not what it was: its stretch is counted again. */
  doubt(id: number): void {
    const stretch = this.#stretchOf(id)
    if (stretch) stretch.counted = undefined
  }

  /** A link that is known to have matched is gone. */
  remove(id: number): void {
    const counted = this.#stretchOf(id)?.counted
    if (counted) counted.count--
  }

  /**
   * Counts what is not counted yet, at most `stretchesMax` stretches. Gives how many matches there
   * are in all, or undefined when some are still to be counted: then call again.
   */
  count({ stretchesMax }: { stretchesMax: number }): number | undefined {
    let left = stretchesMax
    for (const [index, stretch] of this.#whole.entries()) {
      if (stretch.counted !== undefined) continue
      if (left-- <= 0) return undefined
      stretch.counted = this.#source.count(stretch)
      if (stretch.counted.count > this.#matchesMax) this.#whole.length = index
    }
    for (;;) {
      if (left-- <= 0) return undefined
      const after = this.#last()
      const { end, ...counted } = this.#source.next(after)
      if (end === undefined) {
        this.#newest = { after, upTo: ID_MAX, counted }
        this.#total = this.#sum() + counted.count
        return this.#total
      }
      this.#whole.push({ after, upTo: end, counted })
    }
  }

  /**
   * The same where the total is known already: counts no further than the page at `offset` needs.
   * Whether that is done.
   */
  countTo(offset: number, total: number, { stretchesMax }: { stretchesMax: number }): boolean {
    let left = stretchesMax
    let sum = this.#sum()
    while (sum < total - offset) {
      if (left-- <= 0) return false
      const { end, ...counted } = this.#source.next(this.#last())
      if (end === undefined) break
      this.#whole.push({ after: this.#last(), upTo: end, counted })
      sum += counted.count
    }
    this.#newest = { after: this.#last(), upTo: ID_MAX, counted: { count: total - sum } }
    this.#total = total
    return true
  }

  /** The ids of a page of the matches that have just been counted, newest first. */
  page(limit: number, offset: number): number[] {
    const ids: number[] = []
    let skip = offset
    if (offset >= this.#total) return ids
    for (let at = this.#whole.length; at >= 0 && ids.length < limit; at--) {
      const stretch = this.#whole[at] ?? this.#newest
      const count = countOf(stretch)
      if (skip >= count) {
        skip -= count
        continue
      }
      const wanted = limit - ids.length
      const few = stretch.counted?.ids
      ids.push(...(few?.slice(skip, skip + wanted) ?? this.#source.page(stretch, wanted, skip)))
      skip = 0
    }
    return ids
  }

  #last(): number {
    return this.#whole.at(-1)?.upTo ?? 0
  }

  #sum(): number {
    return this.#whole.reduce((sum, stretch) => sum + countOf(stretch), 0)
  }

  #stretchOf(id: number): Stretch | undefined {
    let low = 0
    let high = this.#whole.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#whole[middle]?.upTo ?? 0) < id) low = middle + 1
      else high = middle
    }
    return this.#whole[low]
  }
}

const countOf = ({ counted }: Stretch): number => counted?.count ?? 0
