/** The host that a URL names, and whether a set of hosts covers it. Pure. */

import ipaddr from 'ipaddr.js'
import { DNS_NAME_MAX } from '../addresses/address.ts'

const DOT = 46

/**
 * The host of a URL in the one form in which hosts are compared: WHATWG's (lower case, punycode,
 * percent-encoding undone, IPv4 as four decimals, IPv6 compressed in brackets), without dots at
 * its end, and as IPv4 where IPv6 carries one. Throws TypeError if `url` is not a URL.
 */
export const hostOf = (url: string): string => canonicalHost(new URL(url).hostname)

/** The result of `hostOf` for a value of `URL.hostname`. */
export function canonicalHost(hostname: string): string {
  if (hostname.startsWith('[')) return unmapped(hostname)
  let end = hostname.length
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
  const { parts } = ipaddr.IPv6.parse(address.slice(1, -1))
  const [w0, w1, w2, w3, w4, w5, w6, w7] = parts as Words
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

const ipv4Of = (high: number, low: number): string =>
  [high >> 8, high & 255, low >> 8, low & 255].join('.')

/**
 * Hosts as 64-bit hashes, in shared memory, so that a set crosses threads without a copy. A million
 * hosts take 16 MiB. With that many, a host that is not listed matches by chance once in 10^13
 * lookups, and no longer after the next load, which has another seed.
 */
export interface PackedHosts {
  /** Open addressing: two words per slot, low and high; 0 and 0 mean empty. A power of two long. */
  readonly slots: Uint32Array
  readonly size: number
  /** Random, so that the author of a list cannot choose hosts whose hashes collide. */
  readonly seed: bigint
}

interface Hash {
  low: number
  high: number
}

function hashOf(host: string, seed: bigint): Hash {
  const hash = Bun.hash.xxHash64(host, seed)
  const high = Number(hash >> 32n)
  // A hash of 0 would look like an empty slot.
  return { low: Number(hash & 0xffffffffn) || (high === 0 ? 1 : 0), high }
}

/** The first word of the slot that contains the hash, or of the empty slot where it belongs. */
function slotOf(slots: Uint32Array, { low, high }: Hash): number {
  const mask = slots.length - 1
  let at = (2 * low) & mask
  while (slots[at] !== low || slots[at + 1] !== high) {
    if (slots[at] === 0 && slots[at + 1] === 0) break
    at = (at + 2) & mask
  }
  return at
}

/** Whether the set contains `host`, in the form of `hostOf`, or a domain above it. */
export function covers(hosts: PackedHosts, host: string): boolean {
  // No entry is longer than a DNS name, so only the end of a longer host can match.
  const first = host.length - DNS_NAME_MAX
  let start = first <= 0 ? 0 : host.indexOf('.', first - 1) + 1
  if (start === 0 && first > 0) return false
  for (;;) {
    if (has(hosts, host.slice(start))) return true
    const dot = host.indexOf('.', start)
    if (dot < 0) return false
    start = dot + 1
  }
}

function has({ slots, seed }: PackedHosts, host: string): boolean {
  const at = slotOf(slots, hashOf(host, seed))
  return slots[at] !== 0 || slots[at + 1] !== 0
}

const SLOTS_MIN = 32

/** Collects hosts, each once. */
export class HostSetBuilder {
  readonly #seed: bigint
  #slots = sharedSlots(SLOTS_MIN)
  #size = 0

  /** `seed`: any 64 bits. */
  constructor(seed: bigint) {
    this.#seed = seed
  }

  get size(): number {
    return this.#size
  }

  /** `host`: in the form of `hostOf`, 1 to 253 characters; else RangeError. */
  add(host: string): void {
    if (host.length < 1 || host.length > DNS_NAME_MAX) {
      throw new RangeError(`a host has 1 to ${DNS_NAME_MAX} characters`)
    }
    if (!insert(this.#slots, hashOf(host, this.#seed))) return
    this.#size++
    // At most three quarters full.
    if (this.#size * 8 > this.#slots.length * 3) this.#grow()
  }

  pack(): PackedHosts {
    return { slots: this.#slots, size: this.#size, seed: this.#seed }
  }

  #grow(): void {
    const old = this.#slots
    this.#slots = sharedSlots(old.length)
    for (let at = 0; at < old.length; at += 2) {
      const [low = 0, high = 0] = [old[at], old[at + 1]]
      if (low !== 0 || high !== 0) insert(this.#slots, { low, high })
    }
  }
}

const sharedSlots = (count: number) => new Uint32Array(new SharedArrayBuffer(count * 8))

/** Whether the hash was not there yet. */
function insert(slots: Uint32Array, hash: Hash): boolean {
  const at = slotOf(slots, hash)
  if (slots[at] !== 0 || slots[at + 1] !== 0) return false
  slots[at] = hash.low
  slots[at + 1] = hash.high
  return true
}
