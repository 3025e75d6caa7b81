/** Which host a URL means, and whether a set of hosts covers it. Pure. */

const DOT = 46
/** The longest name that DNS can carry. */
const HOST_LENGTH_MAX = 253
/** One place in `text` is a 32-bit number: about 20,000 times a large list. */
const TEXT_BYTES_MAX = 2 ** 32 - 2

/**
 * The host of a URL in the one form in which hosts are compared: WHATWG's (lower case, punycode,
 * percent-encoding undone, IPv4 as four decimals, IPv6 compressed in brackets), without dots at
 * its end, and as IPv4 where IPv6 carries one. Throws TypeError if `url` is none.
 */
export const hostOf = (url: string): string => canonicalHost(new URL(url).hostname)

/** As `hostOf`, from what `URL.hostname` gives. */
export function canonicalHost(hostname: string): string {
  if (hostname.startsWith('[')) return unmapped(hostname)
  let end = hostname.length
  // mutate hosts-with-a-final-dot: s/>/</
  while (end > 0 && hostname.charCodeAt(end - 1) === DOT) end--
  return end === hostname.length ? hostname : hostname.slice(0, end)
}

/**
 * The IPv4 address that an IPv6 address reaches, else the address itself. `address` is compressed
 * and in brackets. These prefixes carry IPv4 in their last 32 bits, unless said otherwise: mapped
 * and compatible (RFC 4291), translated by SIIT (RFC 2765), NAT64 (RFC 6052) and its local prefix
 * (RFC 8215), 6to4 (RFC 3056: in words 1 and 2), Teredo (RFC 4380: inverted).
 */
function unmapped(address: string): string {
  const words = wordsOf(address)
  const [w0, w1, w2, w3, w4, w5, w6, w7] = words
  if (w0 === 0x2002) return ipv4Of(w1, w2)
  if (w0 === 0x2001 && w1 === 0) return ipv4Of(w6 ^ 0xffff, w7 ^ 0xffff)
  if (w0 === 0x64 && w1 === 0xff9b) {
    const isWellKnown = w2 === 0 && w3 === 0 && w4 === 0 && w5 === 0
    return isWellKnown || w2 === 1 ? ipv4Of(w6, w7) : address
  }
  if (w0 !== 0 || w1 !== 0 || w2 !== 0 || w3 !== 0) return address
  const isTranslated = w4 === 0xffff && w5 === 0
  const isMapped = w4 === 0 && w5 === 0xffff
  // Below 1.0.0 a compatible address is one of IPv6's own, like ::1.
  const isCompatible = w4 === 0 && w5 === 0 && w6 !== 0
  return isTranslated || isMapped || isCompatible ? ipv4Of(w6, w7) : address
}

type Words = [number, number, number, number, number, number, number, number]

/** The eight words of an address, whose longest run of zeros may be written `::`. */
function wordsOf(address: string): Words {
  const [before = '', after] = address.slice(1, -1).split('::')
  const [head, tail] = [before, after ?? ''].map((part) =>
    part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16)),
  )
  const zeros = new Array(8 - (head?.length ?? 0) - (tail?.length ?? 0)).fill(0)
  return [...(head ?? []), ...zeros, ...(tail ?? [])] as Words
}

const ipv4Of = (high: number, low: number): string =>
  [high >> 8, high & 255, low >> 8, low & 255].join('.')

/** A set of hosts, flat and in shared memory: it crosses threads without being copied. */
export interface PackedHosts {
  /** Each host once: a byte for its length, then its ASCII bytes. */
  readonly text: Uint8Array
  /**
   * Open addressing: 1 + a host's place in `text`, or 0. A power of two long, at most half full.
   */
  readonly slots: Uint32Array
  readonly seed: number
  readonly size: number
}

/**
 * FNV-1a's step, fed from a host's end to its start, so that one pass gives the hash of every
 * suffix.
 */
const step = (hash: number, byte: number): number => Math.imul(hash ^ byte, 0x01000193)

/** MurmurHash3's last mix: every bit of the hash reaches the low ones that choose the slot. */
function mixed(hash: number): number {
  let mix = hash
  mix = Math.imul(mix ^ (mix >>> 16), 0x85ebca6b)
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35)
  return mix ^ (mix >>> 16)
}

/** Where `bytes` from `start` to `end` stand in the set, or the empty slot where they belong. */
function slotOf(
  { text, slots }: Pick<PackedHosts, 'text' | 'slots'>,
  bytes: Uint8Array,
  start: number,
  end: number,
  hash: number,
): number {
  const mask = slots.length - 1
  const length = end - start
  let slot = mixed(hash) & mask
  for (let place = slots[slot]; place; place = slots[slot]) {
    let same = text[place - 1] === length ? 0 : -1
    while (same >= 0 && same < length) {
      same = text[place + same] === bytes[start + same] ? same + 1 : -1
    }
    if (same === length) break
    slot = (slot + 1) & mask
  }
  return slot
}

/** The host that is looked for, as bytes. Used within one call only. */
const scratch = new Uint8Array(HOST_LENGTH_MAX)

/**
 * Hosts compared letter by letter, never by hash alone: there is no false hit. A million of them
 * take about 30 MB.
 */
export class HostSet {
  readonly #packed: PackedHosts

  constructor(packed: PackedHosts) {
    this.#packed = packed
  }

  get size(): number {
    return this.#packed.size
  }

  /** Whether `host`, in the form of `hostOf`, or a domain that it lies under is in the set. */
  covers(host: string): boolean {
    const { slots, seed } = this.#packed
    // No entry is longer than a DNS name: a longer host is judged by its last part.
    const end = Math.min(host.length, HOST_LENGTH_MAX)
    const skipped = host.length - end
    let hash = seed
    for (let i = end - 1; i >= 0; i--) {
      const byte = host.charCodeAt(skipped + i)
      if (byte === DOT && slots[slotOf(this.#packed, scratch, i + 1, end, hash)]) return true
      scratch[i] = byte
      hash = step(hash, byte)
    }
    const isWhole = skipped === 0 || host.charCodeAt(skipped - 1) === DOT
    return isWhole && slots[slotOf(this.#packed, scratch, 0, end, hash)] !== 0
  }
}

/** Collects hosts, each once, and packs them. */
export class HostSetBuilder {
  readonly #seed: number
  #text: Uint8Array
  #slots = new Uint32Array(new SharedArrayBuffer(256))
  #length = 0
  #size = 0

  /**
   * `seed`: any 32 bits; a random one keeps a list's author from choosing hosts of one hash.
   * `bytesExpected`: room reserved for the hosts, so that it need not move; what stays unused of it
   * costs address space only.
   */
  constructor({ seed, bytesExpected }: { seed: number; bytesExpected: number }) {
    this.#seed = seed | 0
    this.#text = new Uint8Array(new SharedArrayBuffer(Math.max(bytesExpected, 1024)))
  }

  get size(): number {
    return this.#size
  }

  /** `host`: ASCII in the form of `hostOf`, 1 to 253 characters; else RangeError. */
  add(host: string): void {
    const bytes = Buffer.from(host, 'latin1')
    const { length } = bytes
    if (length < 1 || length > HOST_LENGTH_MAX) {
      throw new RangeError(`a host has 1 to ${HOST_LENGTH_MAX} characters`)
    }
    this.#reserve(length + 1)
    const hash = hashOf(this.#seed, bytes, 0, length)
    const slot = slotOf({ text: this.#text, slots: this.#slots }, bytes, 0, length, hash)
    if (this.#slots[slot]) return
    this.#slots[slot] = this.#length + 1
    this.#text[this.#length++] = length
    this.#text.set(bytes, this.#length)
    this.#length += length
    if (++this.#size * 2 > this.#slots.length) this.#widen()
  }

  pack(): PackedHosts {
    const text = this.#text.subarray(0, this.#length)
    return { text, slots: this.#slots, seed: this.#seed, size: this.#size }
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#text.length) return
    if (needed > TEXT_BYTES_MAX) throw new RangeError('a host set holds at most 4 GiB of text')
    const wider = new Uint8Array(new SharedArrayBuffer(2 * this.#text.length))
    wider.set(this.#text)
    this.#text = wider
  }

  #widen(): void {
    const wider = new Uint32Array(new SharedArrayBuffer(2 * this.#slots.byteLength))
    const mask = wider.length - 1
    let place = 0
    while (place < this.#length) {
      const end = place + 1 + (this.#text[place] ?? 0)
      let slot = mixed(hashOf(this.#seed, this.#text, place + 1, end)) & mask
      while (wider[slot]) slot = (slot + 1) & mask
      wider[slot] = place + 1
      place = end
    }
    this.#slots = wider
  }
}

function hashOf(seed: number, bytes: Uint8Array, start: number, end: number): number {
  let hash = seed
  for (let i = end - 1; i >= start; i--) hash = step(hash, bytes[i] ?? 0)
  return hash
}
