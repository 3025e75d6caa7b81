import ipaddr from 'ipaddr.js'

/**
 * Upper halves of keys that no IPv6 client has: ff00::/8 is multicast and never the address of one
 * host, so it is refused as malformed.
 */
const KEY_HIGH_IPV4 = 0xffff0001
const KEY_HIGH_UNKNOWN = 0xffff0002
const MULTICAST_BYTE = 0xff

/** Maximum number of proxies that are followed. */
const FORWARDED_MAX = 64

const MAPPED = '::ffff:'
const TAB = 9
const SPACE = 32
const PERCENT = 37
const COMMA = ','
const DOT = 46
const COLON = 58
const OPEN = 91
const CLOSE = 93

/**
 * A client's address as a key of 64 bits in two halves, 0 to 2^32 - 1 each. IPv6 gives its first 64
 * bits, IPv4 (also as ::ffff:0:0/96) ffff0001 and the address. A peer that is no IP address is
 * ffff0002 and 0.
 */
export interface Client {
  readonly keyHigh: number
  readonly keyLow: number
}

/**
 * HOT PATH. Finds the client's address: the peer's, or, if the peer is a trusted proxy, the
 * rightmost address of `X-Forwarded-For` that is not one; if all are, the leftmost. Everything left
 * of a malformed entry, or of the 64th from the right, is ignored: the client is then the last
 * proxy read. Nothing is allocated after construction.
 */
export class ClientAddress {
  readonly #address = new Address()
  /** A network and its mask, one word each. */
  readonly #ipv4Ranges: Int32Array
  /** A network and its mask, four words each. */
  readonly #ipv6Ranges: Int32Array
  readonly #client = { keyHigh: KEY_HIGH_UNKNOWN, keyLow: 0 }

  /** `trustedProxies`: IP addresses and CIDR ranges. Throws if one is neither. */
  constructor(trustedProxies: readonly string[]) {
    const ranges = trustedProxies.map(parseRange)
    this.#ipv4Ranges = Int32Array.from(ranges.flatMap((words) => (words.length === 2 ? words : [])))
    this.#ipv6Ranges = Int32Array.from(ranges.flatMap((words) => (words.length === 8 ? words : [])))
  }

  /**
   * `peer` is the address of a connection as Bun gives it; an empty one is unknown. Every call
   * returns the same object: read it before the next call, and copy it before an `await`.
   */
  resolve(peer: string, forwardedFor: string | null): Client {
    if (this.#address.read(peer, 0, peer.length)) {
      this.#setKey()
      if (forwardedFor !== null && this.#isTrusted()) this.#follow(forwardedFor)
    } else {
      this.#client.keyHigh = KEY_HIGH_UNKNOWN
      this.#client.keyLow = 0
    }
    return this.#client
  }

  /** Whether `peer` is a trusted proxy. */
  isProxy(peer: string): boolean {
    return this.#address.read(peer, 0, peer.length) && this.#isTrusted()
  }

  #follow(forwardedFor: string): void {
    let end = forwardedFor.length
    for (let looked = 0; looked < FORWARDED_MAX && end > 0; looked++) {
      const comma = forwardedFor.lastIndexOf(COMMA, end - 1)
      if (!this.#address.read(forwardedFor, comma + 1, end)) return
      this.#setKey()
      // mutate leftmost-forwarded-address: s/.*//
      if (!this.#isTrusted()) return
      end = comma
    }
  }

  #setKey(): void {
    const { isIpv4, word0, word1, word3 } = this.#address
    this.#client.keyHigh = isIpv4 ? KEY_HIGH_IPV4 : word0 >>> 0
    this.#client.keyLow = (isIpv4 ? word3 : word1) >>> 0
  }

  #isTrusted(): boolean {
    return this.#address.isIpv4 ? this.#isTrustedIpv4() : this.#isTrustedIpv6()
  }

  #isTrustedIpv4(): boolean {
    const ranges = this.#ipv4Ranges
    const { word3 } = this.#address
    for (let i = 0; i < ranges.length; i += 2) {
      if ((word3 & at(ranges, i + 1)) === at(ranges, i)) return true
    }
    return false
  }

  #isTrustedIpv6(): boolean {
    const ranges = this.#ipv6Ranges
    const { word0, word1, word2, word3 } = this.#address
    for (let i = 0; i < ranges.length; i += 8) {
      const differs =
        ((word0 & at(ranges, i + 4)) ^ at(ranges, i)) |
        ((word1 & at(ranges, i + 5)) ^ at(ranges, i + 1)) |
        ((word2 & at(ranges, i + 6)) ^ at(ranges, i + 2)) |
        ((word3 & at(ranges, i + 7)) ^ at(ranges, i + 3))
      if (differs === 0) return true
    }
    return false
  }
}

const at = (numbers: Int32Array, index: number): number => numbers[index] as number

/**
 * The client's IPv4 address, or the /64 of its IPv6 address, as text: `192.0.2.1`,
 * `2001:db8:0:1::/64`. Clients with different keys in the limiter have different texts.
 */
export function clientIp({ keyHigh, keyLow }: Client): string {
  if (keyHigh === KEY_HIGH_UNKNOWN) return 'unknown'
  if (keyHigh === KEY_HIGH_IPV4) {
    return [24, 16, 8, 0].map((shift) => (keyLow >>> shift) & 255).join('.')
  }
  const groups = [keyHigh >>> 16, keyHigh & 0xffff, keyLow >>> 16, keyLow & 0xffff]
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`
}

/**
 * The /24 of IPv4 or the /48 of IPv6 that a `clientIp` belongs to. The log has no more of a client:
 * enough to tell networks apart, too little to identify a person.
 */
export const networkOf = (ip: string): string =>
  ip.replace(/\.\d+$/, '.0/24').replace(/:[^:]*::\/64$/, '::/48')

export const clientNetwork = (client: Client): string => networkOf(clientIp(client))

/**
 * Network words, then mask words: one each of IPv4, four each of IPv6. A range of IPv4-mapped
 * addresses is an IPv4 range; a wider IPv6 range, even ::/0, contains no IPv4 address.
 */
function parseRange(text: string): number[] {
  const isRange = text.includes('/')
  const [address, prefix] = isRange ? ipaddr.parseCIDR(text) : [ipaddr.parse(text), 128]
  const words = wordsOf(address.toByteArray())
  if (words.length === 1) return masked(words, Math.min(prefix, 32))
  const isMapped = words[0] === 0 && words[1] === 0 && words[2] === 0xffff && prefix >= 96
  return isMapped ? masked(words.slice(3), prefix - 96) : masked(words, prefix)
}

function wordsOf(bytes: readonly number[]): number[] {
  const view = new DataView(Uint8Array.from(bytes).buffer)
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getInt32(4 * i))
}

function masked(words: readonly number[], prefix: number): number[] {
  const masks = words.map((_, i) => {
    const bits = Math.min(Math.max(prefix - 32 * i, 0), 32)
    return bits === 0 ? 0 : -1 << (32 - bits)
  })
  return [...words.map((word, i) => word & (masks[i] ?? 0)), ...masks]
}

/** Parses one address within a longer text, without creating a string. */
class Address {
  /** The address in 32-bit words; IPv4 is ::ffff:0:0/96. */
  word0 = 0
  word1 = 0
  word2 = 0
  word3 = 0
  isIpv4 = false
  readonly #groups = new Uint16Array(8)

  /**
   * Whether `text` from `start` to `end` is `1.2.3.4`, `1.2.3.4:567`, `::1`, `[::1]` or
   * `[::1]:567`, with white space around it; IPv6 may name its zone (`fe80::1%eth0`). If not, the
   * words have no meaning.
   */
  read(text: string, start: number, end: number): boolean {
    let first = start
    let last = end
    while (first < last && isBlank(text.charCodeAt(first))) first++
    while (last > first && isBlank(text.charCodeAt(last - 1))) last--
    if (text.charCodeAt(first) === OPEN) {
      const close = closingBracket(text, first, last)
      return close > 0 && isPort(text, close + 1, last) && this.#readIpv6(text, first + 1, close)
    }
    // A socket on :: reports IPv4 peers in this form, so it is as common as IPv4 itself and has a
    // fast path.
    if (text.startsWith(MAPPED, first)) {
      if (this.#readIpv4(text, first + MAPPED.length, last) === last) return true
    }
    const stop = this.#readIpv4(text, first, last)
    return stop > 0 ? isPort(text, stop, last) : this.#readIpv6(text, first, last)
  }

  /**
   * Where a dotted IPv4 address ends; -1 if there is none. A leading zero could mean octal:
   * refused.
   */
  #readIpv4(text: string, start: number, end: number): number {
    let address = 0
    let octet = 0
    let digits = 0
    let dots = 0
    let i = start
    for (; i < end; i++) {
      const char = text.charCodeAt(i)
      if (char >= 48 && char <= 57) {
        if (digits > 0 && octet === 0) return -1
        octet = 10 * octet + char - 48
        digits++
        if (octet > 255) return -1
      } else if (char === DOT && digits > 0 && dots < 3) {
        address = (address << 8) | octet
        octet = 0
        digits = 0
        dots++
      } else break
    }
    if (dots !== 3 || digits === 0) return -1
    this.#set(0, 0, 0xffff, (address << 8) | octet)
    return i
  }

  #readIpv6(text: string, start: number, end: number): boolean {
    const groups = this.#groups
    let count = 0
    let gap = -1
    let i = start
    if (end - i >= 2 && text.charCodeAt(i) === COLON && text.charCodeAt(i + 1) === COLON) {
      gap = 0
      i += 2
    }
    while (i < end && text.charCodeAt(i) !== PERCENT) {
      const groupStart = i
      let group = 0
      for (let digit = hexDigit(text, i, end); digit >= 0; digit = hexDigit(text, i, end)) {
        group = (group << 4) | digit
        if (++i - groupStart > 4) return false
      }
      if (i < end && text.charCodeAt(i) === DOT) {
        i = this.#readIpv4(text, groupStart, end)
        if (i < 0 || count > 6) return false
        groups[count++] = this.word3 >>> 16
        groups[count++] = this.word3
        if (i < end && text.charCodeAt(i) !== PERCENT) return false
        break
      }
      if (i === groupStart || count === 8) return false
      groups[count++] = group
      if (i === end || text.charCodeAt(i) === PERCENT) break
      if (text.charCodeAt(i) !== COLON || ++i === end) return false
      if (text.charCodeAt(i) === COLON) {
        if (gap >= 0) return false
        gap = count
        i++
      }
    }
    if (gap < 0 ? count !== 8 : count > 7) return false
    return this.#setGroups(count, gap)
  }

  #setGroups(count: number, gap: number): boolean {
    const groups = this.#groups
    // Groups right of `::` move to the end, last one first, and zeros fill the gap.
    for (let i = 7, from = count - 1; gap >= 0 && i >= gap; i--, from--) {
      groups[i] = from >= gap ? (groups[from] as number) : 0
    }
    this.#set(wordAt(groups, 0), wordAt(groups, 2), wordAt(groups, 4), wordAt(groups, 6))
    return this.word0 >>> 24 !== MULTICAST_BYTE
  }

  #set(word0: number, word1: number, word2: number, word3: number): void {
    this.word0 = word0
    this.word1 = word1
    this.word2 = word2
    this.word3 = word3
    this.isIpv4 = word0 === 0 && word1 === 0 && word2 === 0xffff
  }
}

const wordAt = (groups: Uint16Array, index: number): number =>
  ((groups[index] as number) << 16) | (groups[index + 1] as number)

const isBlank = (char: number): boolean => char === SPACE || char === TAB

/** 0 to 15; -1 at the end or where there is none. */
function hexDigit(text: string, index: number, end: number): number {
  if (index >= end) return -1
  const char = text.charCodeAt(index)
  if (char >= 48 && char <= 57) return char - 48
  const lower = char | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

function closingBracket(text: string, start: number, end: number): number {
  for (let i = start; i < end; i++) if (text.charCodeAt(i) === CLOSE) return i
  return -1
}

/** Nothing, or a colon and one to five digits. */
function isPort(text: string, start: number, end: number): boolean {
  if (start === end) return true
  const digits = end - start - 1
  if (text.charCodeAt(start) !== COLON || digits < 1 || digits > 5) return false
  for (let i = start + 1; i < end; i++) {
    const char = text.charCodeAt(i)
    if (char < 48 || char > 57) return false
  }
  return true
}
