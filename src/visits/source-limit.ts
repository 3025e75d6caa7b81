import { DAY, HOUR } from '../lib/clock.ts'
import {
  kindOf,
  LABEL_NUMBER,
  NAMES,
  OTHER,
  type VisitKey,
  visitKey,
  visitValue,
} from './values.ts'

/** New sources of one link and day that are stored. */
const LINK_MAX = 20
/** Sources that are stored from their first hit; further ones are from their second. */
const AT_ONCE_MAX = 12
/** New sources of all links together in an hour, beyond the first one of each link and day. */
const HOUR_MAX = 2000
/** Sources in memory. Beyond this, both limits begin again. */
const MEMORY_MAX = 100_000

/**
 * Limits how many sources are stored: anybody can follow any link with any `utm_source` or `ref`. A
 * source beyond the limits counts as `other`.
 */
export class SourceLimit {
  /** So that nobody can choose sources with the same hash. */
  readonly #seed = crypto.getRandomValues(new Uint32Array(1))[0] as number
  /** Hashes of the stored sources of the day, each with its link. */
  readonly #stored = new Set<number>()
  /** Hashes of sources with one hit, each with its link. */
  readonly #seenOnce = new Set<number>()
  /** Stored sources of the day, by link. */
  readonly #counts = new Map<number, number>()
  #day = 0
  #hour = 0
  #newInHour = 0

  /** `now`: epoch milliseconds. Call it before `limit`. */
  setTime(now: number): void {
    const day = Math.floor(now / DAY)
    if (day !== this.#day) this.#clear()
    this.#day = day
    const hour = Math.floor(now / HOUR)
    if (hour !== this.#hour) this.#newInHour = 0
    this.#hour = hour
  }

  /** The key to count in place of `key`: itself, or that of other sources. */
  limit(linkId: number, key: VisitKey): VisitKey {
    const kind = kindOf(key)
    const value = visitValue(key)
    if ((kind !== 'referrer' && kind !== 'scan') || value in NAMES[kind]) return key
    const other = visitKey(kind, OTHER)
    // A word of `ref` is a source and a scan: it counts once.
    const hash = this.#hashOf(linkId, value)
    // Scans of numbered labels, `table-1` to `table-24`, need the room of one source of the link.
    const isNumbered = kind === 'scan' && LABEL_NUMBER.test(value)
    const series = isNumbered ? this.#hashOf(linkId, value.replace(LABEL_NUMBER, '-')) : hash
    const isOfSeries = this.#stored.has(series)
    if (this.#stored.has(hash)) {
      this.#stored.add(series)
      return key
    }
    const count = this.#counts.get(linkId) ?? 0
    if (count >= LINK_MAX && !isOfSeries) return other
    // A link without sources is always admitted, so that nobody can use up the hour for others.
    if (count > 0 && this.#newInHour >= HOUR_MAX) return other
    if (count >= AT_ONCE_MAX && !isOfSeries && !this.#seenOnce.has(hash)) {
      if (this.#seenOnce.size >= MEMORY_MAX) this.#seenOnce.clear()
      this.#seenOnce.add(hash)
      return other
    }
    if (this.#stored.size >= MEMORY_MAX) this.#clear()
    this.#seenOnce.delete(hash)
    this.#stored.add(hash)
    this.#stored.add(series)
    if (!isOfSeries) this.#counts.set(linkId, count + 1)
    this.#newInHour++
    return key
  }

  #hashOf = (linkId: number, value: string): number =>
    Bun.hash.xxHash32(`${linkId} ${value}`, this.#seed)

  #clear(): void {
    this.#stored.clear()
    this.#seenOnce.clear()
    this.#counts.clear()
  }
}
