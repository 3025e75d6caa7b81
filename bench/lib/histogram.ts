const SUB_BUCKET_BITS = 7
const OCTAVES = 40
const SLOTS = OCTAVES << SUB_BUCKET_BITS
const VALUE_MAX = 2 ** OCTAVES
/** Bits of a double's upper word below the sub-bucket: 20 bits of mantissa less those kept. */
const SHIFT = 20 - SUB_BUCKET_BITS
/** The exponent field of 1.0, so that the value 1 falls into slot 0. */
const ONE = 1023 << SUB_BUCKET_BITS

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1
const UPPER = LITTLE_ENDIAN ? 1 : 0
const double = new Float64Array(1)
const words = new Uint32Array(double.buffer)

/** A histogram as JSON: its filled slots as pairs of slot and count. */
export interface HistogramJson {
  count: number
  sum: number
  min: number
  max: number
  slots: [number, number][]
}

/**
 * Counts of values from 1 to 2^40 in log-linear slots, after Gil Tene's HdrHistogram: each power of
 * two has 128 even slots, so a value read back is at most 0.4 % off. A slot is the exponent and the
 * first seven mantissa bits of the value's own double. Values outside the range count at its ends.
 */
export class Histogram {
  readonly #counts = new Float64Array(SLOTS)
  #count = 0
  #sum = 0
  #min = Number.POSITIVE_INFINITY
  #max = 0

  get count(): number {
    return this.#count
  }

  /** The smallest value recorded, exact; 0 while empty. */
  get min(): number {
    return this.#count === 0 ? 0 : this.#min
  }

  /** The largest value recorded, exact; 0 while empty. */
  get max(): number {
    return this.#max
  }

  /** The arithmetic mean, exact but for clamped values; 0 while empty. */
  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count
  }

  /** Throws RangeError for NaN. */
  record(value: number): void {
    if (Number.isNaN(value)) throw new RangeError('a histogram takes numbers only')
    const clamped = Math.min(Math.max(value, 1), VALUE_MAX - 1)
    const slot = slotOf(clamped)
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1
    this.#count += 1
    this.#sum += clamped
    if (clamped < this.#min) this.#min = clamped
    if (clamped > this.#max) this.#max = clamped
  }

  merge(other: Histogram): void {
    for (let slot = 0; slot < SLOTS; slot++) {
      this.#counts[slot] = (this.#counts[slot] ?? 0) + (other.#counts[slot] ?? 0)
    }
    this.#count += other.#count
    this.#sum += other.#sum
    this.#min = Math.min(this.#min, other.#min)
    this.#max = Math.max(this.#max, other.#max)
  }

  /**
   * The value that `percent` of all values (0 to 100) do not exceed, by nearest rank; 0 while
   * empty.
   */
  percentile(percent: number): number {
    if (!(percent >= 0 && percent <= 100)) throw new RangeError('a percentile is from 0 to 100')
    if (this.#count === 0) return 0
    // Without the small step back, 99.9 % of 1000 would be rank 1000 instead of 999.
    const rank = Math.max(1, Math.ceil((percent / 100) * this.#count - 1e-6))
    let seen = 0
    for (let slot = 0; slot < SLOTS; slot++) {
      seen += this.#counts[slot] ?? 0
      if (seen >= rank) return Math.min(Math.max(middleOf(slot), this.#min), this.#max)
    }
    return this.#max
  }

  toJSON(): HistogramJson {
    const slots: [number, number][] = []
    this.#counts.forEach((count, slot) => {
      if (count > 0) slots.push([slot, count])
    })
    return { count: this.#count, sum: this.#sum, min: this.min, max: this.#max, slots }
  }

  static fromJson(json: HistogramJson): Histogram {
    const histogram = new Histogram()
    if (json.count === 0) return histogram
    for (const [slot, count] of json.slots) histogram.#counts[slot] = count
    histogram.#count = json.count
    histogram.#sum = json.sum
    histogram.#min = json.min
    histogram.#max = json.max
    return histogram
  }
}

function slotOf(value: number): number {
  double[0] = value
  return ((words[UPPER] ?? 0) >>> SHIFT) - ONE
}

function middleOf(slot: number): number {
  const width = 2 ** (slot >> SUB_BUCKET_BITS) / (1 << SUB_BUCKET_BITS)
  const step = slot & ((1 << SUB_BUCKET_BITS) - 1)
  return ((1 << SUB_BUCKET_BITS) + step + 0.5) * width
}
