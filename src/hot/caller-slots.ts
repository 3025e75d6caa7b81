import { halfSipHash, KeyIndex, type KeyIndexOptions, NO_SLOT } from './key-index.ts'
import type { SharedArrays } from './shared-arrays.ts'

/** Top byte of keys that are not IPv6 addresses. ff00::/8 is multicast, never a client. */
const OTHER_KEYS_TOP_BYTE = 0xff

/**
 * The group of an IPv6 `Client` is its /48, with a key of its own: ff, the 48 bits, a zero byte. No
 * /64 has that key, so the two are never counted together. (Keys of IPv4 begin with ffff0001, but
 * no /48 begins with ff.)
 */
const hasGroup = (keyHigh: number) => keyHigh >>> 24 !== OTHER_KEYS_TOP_BYTE
const groupHigh = (keyHigh: number) => 0xff00_0000 | (keyHigh >>> 8)
const groupLow = (keyHigh: number, keyLow: number) => (keyHigh << 24) | ((keyLow >>> 16) << 8)

export interface CallerSlotsOptions extends KeyIndexOptions {
  /**
   * The keys are addresses. A network (/64) that arrives while more than half of the slots are in
   * use shares the slot of its /48, until that slot is released. Networks with a slot keep it.
   */
  areAddresses: boolean
}

/** A hash of 32 bits, equal for all callers of a group, because they may share a slot later. */
export function callerHash(keys: CallerSlotsOptions, keyHigh: number, keyLow: number): number {
  return keys.areAddresses && hasGroup(keyHigh)
    ? halfSipHash(groupHigh(keyHigh), groupLow(keyHigh, keyLow), keys.seed0, keys.seed1)
    : halfSipHash(keyHigh, keyLow, keys.seed0, keys.seed1)
}

/**
 * HOT PATH. The slot in which a caller is counted: its own or that of its group, never both at a
 * time. All state is in shared memory, which is zero while no slot is in use; the caller excludes
 * other threads. `hash` is always the key's `callerHash`.
 */
export class CallerSlots extends KeyIndex {
  readonly #areAddresses: boolean
  readonly #ownMax: number

  constructor(memory: SharedArrays, options: CallerSlotsOptions) {
    super(memory, options)
    this.#areAddresses = options.areAddresses
    this.#ownMax = options.keysMax / 2
  }

  /** The caller's slot, or NO_SLOT. */
  override find(hash: number, keyHigh: number, keyLow: number): number {
    if (!this.#areAddresses || !hasGroup(keyHigh)) return super.find(hash, keyHigh, keyLow)
    const slot = super.find(this.hash(keyHigh, keyLow), keyHigh, keyLow)
    if (slot !== NO_SLOT) return slot
    return super.find(hash, groupHigh(keyHigh), groupLow(keyHigh, keyLow))
  }

  /** Gives a slot to a caller that has none, or to its group. NO_SLOT when full. */
  override add(hash: number, keyHigh: number, keyLow: number): number {
    if (!this.#areAddresses || !hasGroup(keyHigh)) return super.add(hash, keyHigh, keyLow)
    return this.size > this.#ownMax
      ? super.add(hash, groupHigh(keyHigh), groupLow(keyHigh, keyLow))
      : super.add(this.hash(keyHigh, keyLow), keyHigh, keyLow)
  }
}
