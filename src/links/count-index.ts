/** How many matches a list has, counted once and kept by ranges of link ids. */

/** The links of an account with an id above `after`, up to and including `upTo`. */
export interface IdRange {
  after: number
  upTo: number
}

/** Links have 32-bit ids: they count up and are never given out again. */
export const ID_MAX = 0xffff_ffff

/** The matches in the first part of a range. */
export interface Counted {
  /** Where the counting stopped: at the end of the range, or earlier when its time was over. */
  upTo: number
  count: number
  /** Oldest first; undefined where there are too many to keep. */
  ids: readonly number[] | undefined
  /** Bytes that were read to count them: what it takes to count them again. */
  bytes: number
}

/** Tells whether the time slice of a call is over. */
export type IsOver = () => boolean

/** The links of one account that match one search, or all of them. */
export interface LinkSource {
  /** Counts from the beginning of the range on. Always gets on, even if the slice is over. */
  count(range: IdRange, isOver: IsOver): Counted
  /** All ids in a range that was counted before, oldest first. */
  ids(range: IdRange): readonly number[]
}

interface Chunk extends IdRange {
  /** Undefined: not counted yet, or a link of the chunk has changed since. */
  counted: Counted | undefined
}

/** Tests pass smaller ones. */
export const CHUNK_SIZES = {
  /** Adjacent chunks are joined up to this size, which bounds what one changed link costs. */
  bytesMax: 512 * 1024,
  /** Ids that are kept of a chunk. More are found again for each page that needs them. */
  idsMax: 256,
}

/**
 * The caller reports every change of a link before the next count, and makes all reads of one
 * response in one snapshot.
 */
export class CountIndex {
  readonly #source: LinkSource
  readonly #sizes: typeof CHUNK_SIZES
  /** Without gaps, oldest first. */
  readonly #chunks: Chunk[] = []

  constructor(source: LinkSource, sizes = CHUNK_SIZES) {
    this.#source = source
    this.#sizes = sizes
  }

  /** Numbers that are kept: a measure of the memory. */
  get size(): number {
    return this.#chunks.reduce((sum, { counted }) => sum + 4 + (counted?.ids?.length ?? 0), 0)
  }

  /** A link may match now, or no longer: its chunk is counted again. */
  invalidate(id: number): void {
    const chunk = this.#chunkOf(id)
    if (chunk) chunk.counted = undefined
  }

  /** A link that is known to have matched, in a source that keeps no ids, was deleted. */
  remove(id: number): void {
    const counted = this.#chunkOf(id)?.counted
    if (counted) counted.count--
  }

  /**
   * Counts what is not counted yet, up to the account's newest link. Returns the matches in all, or
   * undefined when the slice was over first; the next call goes on from there.
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

  /** The ids of a page, newest first. All is counted. */
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

  /** Joins a chunk to the one before it where both are small. */
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
