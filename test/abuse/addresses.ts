/** Client addresses and codes of floods. */

/** The addresses that the limiter tells apart at once. */
export const ADDRESSES_MAX = 393_216

/** `count` IPv4 addresses of `<network>.0.0.0/8`, each once. At most 16,777,216. */
export function* freshIpv4(count: number, network: number): Generator<string> {
  for (let i = 0; i < count; i++) {
    yield `${network}.${(i >>> 16) & 255}.${(i >>> 8) & 255}.${i & 255}`
  }
}

/**
 * `count` addresses, each in an IPv6 /64 of its own, all in one network of `prefixLength` bits, 32
 * to 48. Spread over its /48 in turn, so that few networks of 48 bits have many of 64 each.
 */
export function* ipv6Networks(
  count: number,
  { prefixLength = 45, start = 0x2001_0db8 } = {},
): Generator<string> {
  const siblings = 2 ** (48 - prefixLength)
  const head = `${(start >>> 16).toString(16)}:${(start & 0xffff).toString(16)}`
  for (let i = 0; i < count; i++) {
    const site = (i % siblings).toString(16)
    const subnet = (Math.floor(i / siblings) & 0xffff).toString(16)
    yield `${head}:${site}:${subnet}::1`
  }
}

/** `count` codes that nobody holds, unless by chance: `salt` and a number, 8 to 20 characters. */
export function* guessedCodes(count: number, salt = 'NO'): Generator<string> {
  for (let i = 0; i < count; i++) {
    yield `${salt.toUpperCase()}${i.toString(36).toUpperCase().padStart(8, '0')}`
  }
}
