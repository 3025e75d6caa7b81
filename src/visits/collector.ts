import { type RecordedVisit, RING_SLOTS, SHIFT_MAX, VisitReader } from '../hot/visit-ring.ts'
import { type Clock, clocksIn, DAY, SECOND } from '../lib/clock.ts'
import { visitClassifier, visitHeaders } from './classify.ts'
import { COUNTRY_CHECK_MS, Countries } from './country.ts'
import { emptySums, encodeSums, keyLimit, type VisitSums } from './parts.ts'
import { SourceLimit } from './source-limit.ts'
import type { VisitBatch } from './store.ts'
import type { VisitKey } from './values.ts'

export interface CollectorSettings {
  rings: readonly SharedArrayBuffer[]
  countryFile: string | undefined
  countryHeader: string | undefined
  /** See `clocksIn`. */
  time: SharedArrayBuffer | undefined
}

export interface CollectorState {
  /** Hits with details since the start: an estimate under much load. */
  recorded: number
  /** Hits whose details were read. */
  observed: number
  /** Hits without details, because there was no room or too much load. */
  skipped: number
  /** Hits without details, because their visitors asked for it. */
  declined: number
  /** The longest time that a visit waited since the last state, in seconds. */
  lagSeconds: number
  /** Why `COUNTRY_FILE` is not in use. */
  countryProblem: string | undefined
}

const PASS_MS = 100
/** Visits that are classified per second: at most 3 % of a core. */
const BUDGET_PER_SECOND = 10_000
/** Factor of an earlier, higher load at each pass: it fades slowly, because hits come in bursts. */
const LOAD_DECAY = 0.93
/** Values of all links that wait to be written. Visits that would add more are skipped. */
const VALUES_WAITING_MAX = 50_000
/** So many values are written before a flush is due. */
const VALUES_FLUSHED = 20_000
/** Links in one write: about 10 ms of the writer thread. */
const LINKS_PER_BATCH = 1000
/** Maximum factor by which weights grow for the hits that found the ring full. */
const SCALE_MAX = 64
/** Visits between two garbage collections. Without them, strings take 30 MiB more memory. */
const VISITS_PER_COLLECTION = 16_384

interface CollectedLink {
  sums: VisitSums
  /** See `keyLimit`. */
  limit: (key: VisitKey) => VisitKey
}

function newLink(): CollectedLink {
  const sums = emptySums()
  return { sums, limit: keyLimit(sums.counts, 'link') }
}

/** Reads the rings, classifies visits and adds them up. Runs on a thread of its own. */
export class VisitCollector {
  readonly #readers: readonly VisitReader[]
  readonly #countries: Countries | undefined
  readonly #classify: ReturnType<typeof visitClassifier>
  readonly #clock: Clock
  readonly #timers: Timer[]
  readonly #sources = new SourceLimit()
  #links = new Map<number, CollectedLink>()
  #day = 0
  #values = 0
  /** Batches of days that have ended. */
  #ended: VisitBatch[] = []
  #recorded = 0
  #observed = 0
  #tooMany = 0
  /** Skipped hits of each ring that are accounted for. */
  readonly #skipped: Uint32Array
  #declined = 0
  /** Hits per second: the present rate, or an earlier higher one that fades. */
  #load = 0
  #shift = 0
  #sinceCollection = 0
  #passedAt = performance.now()
  #lagMs = 0

  constructor({ rings, countryFile, countryHeader, time }: CollectorSettings) {
    const headers = visitHeaders(countryHeader)
    this.#readers = rings.map((ring) => new VisitReader(ring, headers))
    // A thread that was started again does not know the earlier ones.
    this.#skipped = Uint32Array.from(this.#readers, ({ skipped }) => skipped)
    this.#countries = countryFile === undefined ? undefined : new Countries(countryFile)
    this.#classify = visitClassifier({ countries: this.#countries, countryHeader })
    this.#clock = clocksIn(time).clock
    this.#timers = [
      setInterval(() => this.#pass(), PASS_MS),
      setInterval(() => this.#countries?.refresh(), COUNTRY_CHECK_MS),
    ]
  }

  readonly functions = {
    /**
     * Returns what was collected since the last call, if `isDue` or there is much of it. The caller
     * writes the batches.
     */
    takeVisits: ({ isDue }: { isDue: boolean }) => {
      this.#pass()
      const batches = isDue || this.#values >= VALUES_FLUSHED ? this.#drain() : []
      return { batches, state: this.#state() }
    },
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  /** Reads what is in the rings, and adapts how many hits the redirect threads keep. */
  #pass(): void {
    const now = performance.now()
    const elapsedMs = now - this.#passedAt
    this.#passedAt = now
    this.#lagMs = Math.max(this.#lagMs, elapsedMs)
    const wallTime = this.#clock()
    this.#sources.setTime(wallTime)
    const day = Math.floor(wallTime / DAY)
    if (day !== this.#day) this.#ended.push(...this.#drainDay())
    this.#day = day
    let hits = 0
    let isOverHalfFull = false
    for (const [at, reader] of this.#readers.entries()) {
      const visits = reader.drain()
      const weights = this.#weightsOf(at, visits)
      for (const [n, visit] of visits.entries()) {
        const weight = weights[n] as number
        hits += weight
        this.#add(visit, weight)
      }
      isOverHalfFull ||= visits.length > RING_SLOTS / 2
      this.#sinceCollection += visits.length
    }
    if (this.#sinceCollection >= VISITS_PER_COLLECTION) {
      this.#sinceCollection = 0
      Bun.gc(true)
    }
    // After a shorter time, a few hits that arrived together would look like a high load.
    this.#adapt(hits / (Math.max(PASS_MS, elapsedMs) / SECOND), isOverHalfFull)
  }

  /**
   * The weights of visits that were read together, as whole numbers. They include the hits that
   * found the ring full meanwhile, up to `SCALE_MAX` times the weights.
   */
  #weightsOf(at: number, visits: readonly RecordedVisit[]): number[] {
    const skipped = ((this.#readers[at]?.skipped ?? 0) - (this.#skipped[at] as number)) >>> 0
    const sum = visits.reduce((total, { weight }) => total + weight, 0)
    if (sum === 0) return []
    this.#skipped[at] = ((this.#skipped[at] as number) + skipped) >>> 0
    const scale = Math.min(SCALE_MAX, 1 + skipped / sum)
    this.#tooMany += Math.max(0, Math.round(sum + skipped - sum * scale))
    let before = 0
    let total = 0
    return visits.map(({ weight }) => {
      total += weight * scale
      const whole = Math.round(total) - before
      before += whole
      return whole
    })
  }

  #adapt(hitsPerSecond: number, isOverHalfFull: boolean): void {
    this.#load = Math.max(hitsPerSecond, this.#load * LOAD_DECAY)
    const wanted = Math.ceil(Math.log2(this.#load / BUDGET_PER_SECOND))
    const least = isOverHalfFull ? this.#shift + 1 : this.#shift - 1
    this.#shift = Math.min(SHIFT_MAX, Math.max(0, wanted, least))
    for (const reader of this.#readers) reader.shift = this.#shift
  }

  #add(visit: RecordedVisit, weight: number): void {
    const { linkId } = visit
    const keys = this.#classify(visit)?.map((key) => this.#sources.limit(linkId, key))
    if (!keys) {
      this.#declined += weight
      return
    }
    const link = this.#links.get(linkId) ?? newLink()
    const { counts } = link.sums
    if (this.#values >= VALUES_WAITING_MAX && keys.some((key) => !counts.has(key))) {
      this.#tooMany += weight
      return
    }
    const before = counts.size
    for (const key of keys) {
      const target = link.limit(key)
      counts.set(target, (counts.get(target) ?? 0) + weight)
    }
    this.#values += counts.size - before
    link.sums.known += weight
    link.sums.observed++
    this.#links.set(linkId, link)
    this.#recorded += weight
    this.#observed++
  }

  #drain(): VisitBatch[] {
    const batches = [...this.#ended, ...this.#drainDay()]
    this.#ended = []
    return batches
  }

  #drainDay(): VisitBatch[] {
    const links = [...this.#links]
      .map(([id, { sums }]) => [id, encodeSums(sums)] as const)
      .sort(([a], [b]) => a - b)
    this.#links = new Map()
    this.#values = 0
    const batches: VisitBatch[] = []
    for (let at = 0; at < links.length; at += LINKS_PER_BATCH) {
      batches.push({ day: this.#day, links: links.slice(at, at + LINKS_PER_BATCH) })
    }
    return batches
  }

  #state(): CollectorState {
    const lagSeconds = this.#lagMs / 1000
    this.#lagMs = 0
    return {
      recorded: this.#recorded,
      observed: this.#observed,
      skipped: this.#tooMany,
      declined: this.#declined,
      lagSeconds,
      countryProblem: this.#countries?.problem,
    }
  }
}

export type CollectorFunctions = VisitCollector['functions']
