import type { KeyGroups } from './caller-slots.ts'

/** Keys of IPv6 addresses have another top byte: below ff00::/8 there are no single hosts. */
const OTHER_KEYS_TOP_BYTE = 0xff

/**
 * The /48 of an IPv6 key, as `ClientAddress` makes it, as a key of its own: ff, the 48 bits, and a
 * zero byte. No /64 has that key, so the two are never counted together. (IPv4 is ffff0001, but a
 * /48 that begins with ff does not exist.)
 */
export const IPV6_GROUPS: KeyGroups = {
  has: (keyHigh) => keyHigh >>> 24 !== OTHER_KEYS_TOP_BYTE,
  high: (keyHigh) => 0xff00_0000 | (keyHigh >>> 8),
  low: (keyHigh, keyLow) => (keyHigh << 24) | ((keyLow >>> 16) << 8),
}
