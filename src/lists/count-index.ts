/** The number of matches of a list, counted once and kept by ranges of link ids: decision 009. */

/** The links of an account with an id above `after`, up to and including `upTo`. */
export interface IdRange {
  after: number
  upTo: number
}

/** Links have 32-bit ids, which count up and are never reused. */
export const ID_MAX = 0xffff_ffff

/** The counted matches at the beginning of a range. */
export interface Counted {
  /** The end of what was counted: that of the range, or less if the time slice was over. */
  upTo: number
  count: number
  /** Oldest first; undefined if there are too many to keep. */
  ids: readonly number[] | undefined
  /** Bytes that were read to count them: the cost of counting them again. */
  bytes: number
}

/** Whether the time slice of a call is over. */
export type IsOver = () => boolean

/** The links of one account that match one search, or all of them. */
export interface LinkSource {
  /** Counts from the beginning of the range. Makes progress even if the slice is over. */
  count(range: IdRange, isOver: IsOver): Counted
  /** All ids in a range that was counted, oldest first. */
  ids(range: IdRange): readonly number[]
}

interface Chunk extends IdRange {
  /** Undefined: not counted yet, or a link of the chunk has changed since. */
  counted: Counted | undefined
}

/** Tests pass smaller ones. */
export const CHUNK_SIZES = {
  /** Adjacent chunks are joined up to this size, which bounds the cost of one changed link. */
  bytesMax: 512 * 1024,
  /** A chunk with more ids keeps none: each page that needs them finds them again. */
  idsMax: 256,
}

/**
 * Counts of one list by chunks of link ids. It is not used for an account with fewer than about
 * 80,000 links and no search. The caller reports every change of a link before the next count, and
 * makes all reads of one response in one snapshot.
 */
export class CountIndex {
  readonly #source: LinkSource
  readonly #sizes: typeof CHUNK_SIZES
  /** Chunks without gaps between them, oldest first. */
  readonly #chunks: Chunk[] = []

  constructor(source: LinkSource, sizes = CHUNK_SIZES) {
    this.#source = source
    this.#sizes = sizes
  }

  /** Size in memory: the number of stored numbers. */
  get size(): number {
    return this.#chunks.reduce((sum, { counted }) => sum + 4 + (counted?.ids?.length ?? 0), 0)
  }

  /** A link was changed or deleted: its chunk is counted again. */
  invalidate(id: number): void {
    const chunk = this.#chunkOf(id)
    if (chunk) chunk.counted = undefined
  }

  /**
   * Counts the rest, up to the account's newest link. Returns the total, or undefined if the slice
   * was over first: the next call continues from there.
   */
  count(newestId: number, isOver: IsOver): number | undefined {
    const last = this.#chunks.at(-1)?.upTo ?? 0
    if (newestId > last) this.#chunks.push({ after: last, upTo: newestId, counted: undefined })
    let hasCounted = false
    for (let at = 0; at < this.#chunks.length; at++) {
      const chunk = this.#chunks[at]
      if (!chunk || chunk.counted) continue
      if (hasCounted && isOver()) return undefined
      hasCounted = true
      const counted = this.#source.count(chunk, isOver)
      if (counted.upTo < chunk.upTo) {
        const rest = { after: counted.upTo, upTo: chunk.upTo, counted: undefined }
        this.#chunks.splice(at + 1, 0, rest)
      }
      chunk.upTo = counted.upTo
      chunk.counted = this.#withFewIds(counted)
      if (this.#join(at)) at--
    }
    return this.#chunks.reduce((sum, { counted }) => sum + (counted?.count ?? 0), 0)
  }

  /** The ids of a page, newest first. Call it after `count` has returned the total. */
  page(limit: number, offset: number): number[] {
    const ids: number[] = []
    let skip = offset
    for (let at = this.#chunks.length - 1; at >= 0 && ids.length < limit; at--) {
      const chunk = this.#chunks[at]
      if (!chunk?.counted) break
      const { counted } = chunk
      if (skip >= counted.count) {
        skip -= counted.count
        continue
      }
      const end = counted.count - skip
      const wanted = limit - ids.length
      const found = counted.ids ?? this.#source.ids(chunk)
      ids.push(...found.slice(Math.max(0, end - wanted), end).reverse())
      skip = 0
    }
    return ids
  }

  /** The newest ids below an id. Call it after `count` has returned the total. */
  pageBelow(below: number, limit: number): number[] {
    const ids: number[] = []
    for (let at = this.#chunks.length - 1; at >= 0 && ids.length < limit; at--) {
      const chunk = this.#chunks[at]
      if (!chunk?.counted?.count || chunk.after >= below - 1) continue
      const found = (chunk.counted.ids ?? this.#source.ids(chunk)).filter((id) => id < below)
      ids.push(...found.slice(-(limit - ids.length)).reverse())
    }
    return ids
  }

  /** Joins a chunk to the one before it if both are small. */
  #join(at: number): boolean {
    const [older, newer] = [this.#chunks[at - 1], this.#chunks[at]]
    if (!older?.counted || !newer?.counted) return false
    const bytes = older.counted.bytes + newer.counted.bytes
    if (bytes > this.#sizes.bytesMax) return false
    const { ids } = older.counted
    const joined = {
      upTo: newer.upTo,
      count: older.counted.count + newer.counted.count,
      ids: ids && newer.counted.ids && [...ids, ...newer.counted.ids],
      bytes,
    }
    const chunk = { after: older.after, upTo: newer.upTo, counted: this.#withFewIds(joined) }
    this.#chunks.splice(at - 1, 2, chunk)
    return true
  }

  #withFewIds(counted: Counted): Counted {
    return counted.count > this.#sizes.idsMax ? { ...counted, ids: undefined } : counted
  }

  #chunkOf(id: number): Chunk | undefined {
    let low = 0
    let high = this.#chunks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#chunks[middle]?.upTo ?? 0) < id) low = middle + 1
      else high = middle
    }
    return this.#chunks[low]
  }
}
