import type { Operations } from '../db/subject.ts'
import { AppError, retryAfter } from '../errors.ts'
import { type CountedLinks, type HitSeries, HOURS_OF_DAY } from '../hits/series.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import type { Holder } from '../limits/shared-budget.ts'
import { groupOf, nameOf } from '../visits/names.ts'
import { addSums, decodeSums, emptySums, type VisitSums } from '../visits/parts.ts'
import type { ScanCount, VisitQuery, VisitSlice, visits } from '../visits/store.ts'
import {
  isWordOf,
  kindOf,
  OTHER,
  STORED_KINDS,
  type StoredKind,
  visitKey,
  visitValue,
} from '../visits/values.ts'

/** UTC days since 1970 began, `to` exclusive. */
export interface DayRange {
  from: number
  to: number
}

export interface VisitValue {
  /** A stable key, such as `google.com`, `DE` or `phone`. */
  value: string
  name: string
  hits: number
}

/** What is known of the redirects of some days. */
export interface Visits {
  /** All redirects: exact. */
  hits: number
  /** Redirects with details: at most `hits`. */
  known: number
  /** The sums were made from a part of the redirects. */
  isEstimated: boolean
  people: number
  bots: number
  /** Scans of each day, and of each link that has some. */
  scans: { byDay: readonly number[]; byLink: ReadonlyMap<number, number> }
  /**
   * The most frequent first, equal ones in the order of their keys. `scan`: also words that no code
   * has.
   */
  values: Record<StoredKind, VisitValue[]>
}

/** Links of a report that are read at once. */
const LINKS_AT_ONCE = 10
/** Reads that wait. */
const READS_MAX = 512
/**
 * 400 days of an account with the most values take about 80 slices. Further slices wait, and leave
 * most of the time of two threads to others: the reader thread, and the control thread, which adds
 * the sums of the slices.
 */
const SLICES = { burst: 100, everyMs: 20 }
/** Time for one report. The server closes a connection on which nothing is sent for 30 s. */
const DEADLINE_MS = 20_000

interface VisitDetailsOptions {
  /** Whether details are recorded now. */
  isOn: boolean
  /** Whether there is a source of countries. */
  hasCountries: boolean
  data: { visits: Pick<Operations<typeof visits>, 'sums'> }
  series: Pick<HitSeries, 'bars'>
  /** Time for one report. Default: 20 s. */
  deadlineMs?: number
}

/** Details of redirects, from the database. */
export class VisitDetails {
  readonly #options: VisitDetailsOptions
  /** One report of each reader at a time, so that the first ones are complete in time. */
  readonly #reports = new FairQueue({ atOnce: 'keys' })
  /** One slice of one report at a time, in the order of the readers. */
  readonly #reads = new FairQueue({
    ...SLICES,
    jobsMax: READS_MAX,
    full: () => new AppError('overloaded', '', retryAfter(5)),
  })

  constructor(options: VisitDetailsOptions) {
    this.#options = options
  }

  get isOn(): boolean {
    return this.#options.isOn
  }

  get hasCountries(): boolean {
    return this.#options.hasCountries
  }

  /**
   * `by`: who reads: one account or public page gets no more time for further requests. `refs`:
   * words of codes, whose visits are scans: together they are one source. Throws `visits_timeout`.
   */
  async of(
    counted: CountedLinks,
    days: DayRange,
    by: Holder,
    refs: readonly string[] = [],
  ): Promise<Visits> {
    const endsAt = performance.now() + (this.#options.deadlineMs ?? DEADLINE_MS)
    const query = { counted, ...days, refs }
    const { sums, scans } = await this.#reports.run(by, () => this.#sumsOf(query, { by, endsAt }))
    // Afterwards, so that there are no more details than hits.
    const hours: [number, number] = [days.from * HOURS_OF_DAY, days.to * HOURS_OF_DAY]
    const { counts } = await this.#options.series.bars(counted, hours)
    return { ...visitsOf(sums, counts[0] ?? 0, refs), scans: scansOf(scans, days) }
  }

  async #sumsOf(
    whole: VisitQuery,
    { by, endsAt }: { by: Holder; endsAt: number },
  ): Promise<{ sums: VisitSums; scans: ScanCount[] }> {
    const sums = emptySums()
    const scans: ScanCount[] = []
    for (const counted of partsOf(whole.counted)) {
      let next: number | undefined = whole.from
      while (next !== undefined) {
        if (performance.now() > endsAt) throw new AppError('visits_timeout', '', retryAfter(5))
        const query: VisitQuery = { ...whole, counted, from: next }
        // A background read, because lists come first.
        const read = () => this.#options.data.visits.sums(query, { background: true })
        const slice: VisitSlice = await this.#reads.run(by, read)
        addSums(sums, decodeSums(slice.parts))
        scans.push(...slice.scans)
        next = slice.next
      }
    }
    return { sums, scans }
  }
}

function partsOf(counted: CountedLinks): CountedLinks[] {
  if (!('linkIds' in counted)) return [counted]
  const { linkIds } = counted
  return Array.from({ length: Math.ceil(linkIds.length / LINKS_AT_ONCE) }, (_, i) => ({
    linkIds: linkIds.slice(i * LINKS_AT_ONCE, (i + 1) * LINKS_AT_ONCE),
  }))
}

/** Values with fewer hits could tell about single people. */
const PUBLIC_HITS_MIN = 3

/** Counts for a public page: values of few hits are part of `other`. */
export function withFewHidden(visits: Visits): Visits {
  const hide = (kind: StoredKind): VisitValue[] => {
    const isFew = ({ value, hits }: VisitValue) => hits < PUBLIC_HITS_MIN || value === OTHER
    const shown = visits.values[kind].filter((one) => !isFew(one))
    const hits = sumOf(visits.values[kind].filter(isFew))
    const other = { value: OTHER, name: nameOf(kind, OTHER), hits }
    return hits === 0 ? shown : [...shown, other]
  }
  const values = Object.fromEntries(STORED_KINDS.map((kind) => [kind, hide(kind)]))
  return { ...visits, values: values as Visits['values'] }
}

function scansOf(scans: readonly ScanCount[], { from, to }: DayRange): Visits['scans'] {
  const byDay = Array<number>(to - from).fill(0)
  const byLink = new Map<number, number>()
  for (const { id, day, count } of scans) {
    byDay[day - from] = (byDay[day - from] ?? 0) + count
    byLink.set(id, (byLink.get(id) ?? 0) + count)
  }
  return { byDay, byLink }
}

function visitsOf(
  sums: VisitSums,
  counted: number,
  refs: readonly string[],
): Omit<Visits, 'scans'> {
  // Hits of the last quarter of a second may not be counted yet.
  const hits = Math.max(counted, sums.observed)
  const values = Object.fromEntries(
    STORED_KINDS.map((kind) => [kind, valuesOf(sums, kind, refs)]),
  ) as Visits['values']
  const bots = sumOf(values.bot)
  return {
    hits,
    known: Math.min(sums.known, hits),
    isEstimated: sums.known !== sums.observed,
    // Each redirect of a person has one device.
    people: sumOf(values.device),
    bots,
    values,
  }
}

/** The source of all scans. It has a space, as no word of a code does. */
const SCANNED = 'qr codes'

function valuesOf({ counts }: VisitSums, kind: StoredKind, refs: readonly string[]): VisitValue[] {
  const grouped = new Map<string, number>()
  const add = (value: string, count: number) =>
    count > 0 && grouped.set(value, (grouped.get(value) ?? 0) + count)
  for (const [key, count] of counts) {
    if (kindOf(key) !== kind) continue
    const value = visitValue(key)
    const isWord = kind === 'referrer' && isWordOf(refs, value)
    const scans = isWord ? Math.min(count, counts.get(visitKey('scan', value)) ?? 0) : 0
    add(SCANNED, scans)
    add(groupOf(kind, value), count - scans)
  }
  return [...grouped]
    .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .map(([value, count]) => ({
      value,
      name: value === SCANNED ? 'QR codes' : nameOf(kind, value),
      hits: count,
    }))
}

const sumOf = (values: readonly VisitValue[]): number =>
  values.reduce((sum, { hits }) => sum + hits, 0)
