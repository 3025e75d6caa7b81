import type { RandomBytes } from '../lib/random.ts'
import { KeyIndex, NO_SLOT } from './key-index.ts'

/** Which keys may be counted together, and under which key. */
interface KeyGroups {
  has(keyHigh: number): boolean
  high(keyHigh: number, keyLow: number): number
  low(keyHigh: number, keyLow: number): number
}

/** Top byte of keys that are not IPv6 addresses. ff00::/8 is multicast, never a client. */
const OTHER_KEYS_TOP_BYTE = 0xff

/**
 * The group of an IPv6 `Client` is its /48, with a key of its own: ff, the 48 bits, a zero byte. No
 * /64 has that key, so the two are never counted together. (Keys of IPv4 begin with ffff0001, but
 * no /48 begins with ff.)
 */
export const IPV6_GROUPS: KeyGroups = {
  has: (keyHigh) => keyHigh >>> 24 !== OTHER_KEYS_TOP_BYTE,
  high: (keyHigh) => 0xff00_0000 | (keyHigh >>> 8),
  low: (keyHigh, keyLow) => (keyHigh << 24) | ((keyLow >>> 16) << 8),
}

export interface CallerSlotsOptions {
  /** Slots, from 1 to 16,777,216: see `KeyIndex` for what each takes. */
  keysMax: number
  /**
   * A caller that arrives while more than half of the slots are in use shares the slot of its
   * group, until that slot is released. Callers with a slot keep it.
   */
  groups?: KeyGroups | undefined
  /** Seeds the hash. */
  random?: RandomBytes | undefined
}

/**
 * HOT PATH. The slot in which a caller is counted: its own or that of its group, never both at a
 * time. Nothing is allocated after construction.
 */
export class CallerSlots {
  readonly #index: KeyIndex
  readonly #groups: KeyGroups | undefined
  readonly #ownMax: number

  constructor({ keysMax, groups, random }: CallerSlotsOptions) {
    this.#index = new KeyIndex(keysMax, random)
    this.#groups = groups
    this.#ownMax = keysMax / 2
  }

  get size(): number {
    return this.#index.size
  }

  get isFull(): boolean {
    return this.#index.isFull
  }

  /** Slots that have ever been used. */
  get slotsUsed(): number {
    return this.#index.slotsUsed
  }

  /** Memory used, at its highest so far. */
  get bytes(): number {
    return this.#index.bytes
  }

  /** The caller's slot, or NO_SLOT. */
  find(keyHigh: number, keyLow: number): number {
    const index = this.#index
    const slot = index.find(index.hash(keyHigh, keyLow), keyHigh, keyLow)
    const groups = this.#groups
    if (slot !== NO_SLOT || !groups?.has(keyHigh)) return slot
    const high = groups.high(keyHigh, keyLow)
    const low = groups.low(keyHigh, keyLow)
    return index.find(index.hash(high, low), high, low)
  }

  /** Gives a slot to a caller that has none, or to its group. Throws when full. */
  add(keyHigh: number, keyLow: number): number {
    const index = this.#index
    const groups = index.size > this.#ownMax ? this.#groups : undefined
    if (!groups?.has(keyHigh)) return index.add(index.hash(keyHigh, keyLow), keyHigh, keyLow)
    const high = groups.high(keyHigh, keyLow)
    const low = groups.low(keyHigh, keyLow)
    return index.add(index.hash(high, low), high, low)
  }

  remove(slot: number): void {
    this.#index.remove(slot)
  }

  /** A hash of 32 bits, equal for all callers of a group, because they may share a slot later. */
  hash(keyHigh: number, keyLow: number): number {
    const groups = this.#groups
    if (!groups?.has(keyHigh)) return this.#index.hash(keyHigh, keyLow)
    return this.#index.hash(groups.high(keyHigh, keyLow), groups.low(keyHigh, keyLow))
  }
}
