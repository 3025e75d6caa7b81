import { KEY_HIGH_IPV4, KEY_HIGH_UNKNOWN } from './client-address.ts'

/**
 * A caller for the log: enough to tell one network from another, too little to tell a person. The
 * first 24 bits of IPv4, the first 48 of IPv6, from a key as `ClientAddress` makes it.
 */
export function clientNetwork({ keyHigh, keyLow }: { keyHigh: number; keyLow: number }): string {
  if (keyHigh === KEY_HIGH_UNKNOWN) return 'unknown'
  if (keyHigh === KEY_HIGH_IPV4) {
    return `${keyLow >>> 24}.${(keyLow >>> 16) & 255}.${(keyLow >>> 8) & 255}.0/24`
  }
  const groups = [keyHigh >>> 16, keyHigh & 0xffff, keyLow >>> 16]
  return `${groups.map((group) => group.toString(16)).join(':')}::/48`
}

/** The same network, from an address as text: `192.0.2.1`, or the /64 `2001:db8:0:1::/64`. */
export const networkOf = (address: string): string =>
  address.replace(/\.\d+$/, '.0/24').replace(/:[^:]*::\/64$/, '::/48')
