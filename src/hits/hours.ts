import { pushVarint, VarintReader } from '../lib/varint.ts'

/** The hits of an hour. Hours count from 1970. */
export type HourCount = readonly [hour: number, count: number]

/**
 * The stored form of hours, which are in descending order: the newest hour, counted from `base`,
 * with its hits, and each older one as the hours between it and the one before, with its hits. All
 * are varints (LEB128). So hits of the newest hour change the first bytes only.
 */
export function encodeHours(hours: readonly HourCount[], base = 0): Uint8Array {
  const out: number[] = []
  for (const [at, [hour, count]] of hours.entries()) {
    pushVarint(out, at === 0 ? hour - base : (hours[at - 1] as HourCount)[0] - hour)
    pushVarint(out, count)
  }
  return new Uint8Array(out)
}

/** Without what is damaged: counts of links do not depend on it. */
export function decodeHours(bytes: Uint8Array | null | undefined, base = 0): HourCount[] {
  const hours: HourCount[] = []
  if (!bytes || bytes.length === 0) return hours
  const input = new VarintReader(bytes)
  try {
    for (let hour = base + input.next(); ; hour -= input.next()) {
      hours.push([hour, input.next()])
      if (input.isAtEnd) return hours
    }
  } catch {
    return hours
  }
}

/** The newest hour that is stored with base 0; undefined if there is none. */
export function newestHour(bytes: Uint8Array | null): number | undefined {
  const length = bytes ? varintLength(bytes, 0) : 0
  return bytes && length > 0 ? varintAt(bytes, 0, length) : undefined
}

/**
 * HOT PATH of a flush. Adds hits of an hour to those that are stored with base 0: most hits are of
 * the newest hour, or of the one that becomes it.
 */
export function addHour(stored: Uint8Array | null, hour: number, count: number): Uint8Array {
  const newest = newestHour(stored)
  if (!stored || newest === undefined) return encodeHours([[hour, count]])
  if (hour < newest) return encodeHours(mergeHours(decodeHours(stored), [[hour, count]]))
  const head: number[] = []
  pushVarint(head, hour)
  let at = varintLength(stored, 0)
  if (hour === newest) {
    const length = varintLength(stored, at)
    pushVarint(head, varintAt(stored, at, length) + count)
    at += length
  } else {
    pushVarint(head, count)
    pushVarint(head, hour - newest)
  }
  const added = new Uint8Array(head.length + stored.length - at)
  added.set(head)
  for (let to = head.length; to < added.length; to++, at++) added[to] = stored[at] as number
  return added
}

/** Bytes of the number that begins there; 0 if it is incomplete. */
function varintLength(bytes: Uint8Array, start: number): number {
  for (let at = start; at < bytes.length; at++) {
    if ((bytes[at] as number) < 0x80) return at + 1 - start
  }
  return 0
}

function varintAt(bytes: Uint8Array, start: number, length: number): number {
  let value = 0
  for (let at = start + length - 1; at >= start; at--) {
    value = value * 0x80 + ((bytes[at] as number) % 0x80)
  }
  return value
}

/** The hits of both. */
export function mergeHours(some: readonly HourCount[], others: readonly HourCount[]): HourCount[] {
  const counts = new Map<number, number>()
  for (const [hour, count] of [...some, ...others]) {
    counts.set(hour, (counts.get(hour) ?? 0) + count)
  }
  return [...counts].sort(([a], [b]) => b - a)
}

export const sumOf = (hours: readonly HourCount[]): number =>
  hours.reduce((sum, [, count]) => sum + count, 0)
