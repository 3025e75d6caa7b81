import { pushVarint, VarintReader } from '../lib/varint.ts'
import {
  kindOf,
  NUMBERED,
  OTHER,
  STORED_KINDS,
  type StoredKind,
  VALUES_MAX,
  type VisitKey,
  visitKey,
  visitValue,
} from './values.ts'

/** What is known about some hits of one link or account. */
export interface VisitSums {
  /** Hits with details; an estimate if it is not `observed`. */
  known: number
  /** Hits whose details were read. Each stands for one hit or, under much load, for several. */
  observed: number
  /** Hits by value. */
  counts: Map<VisitKey, number>
}

export const emptySums = (): VisitSums => ({ known: 0, observed: 0, counts: new Map() })

/**
 * The stored form: a version, `known`, `observed`, and each value with its count, all as varints
 * (LEB128). The lowest bit of a value is set if its count is 1; the count is then left out. The
 * next three bits are its kind. The bits above are its index in `NUMBERED`, counted from 1; after
 * index 0, the length and the bytes of a text follow.
 */
const VERSION = 2
const KINDS_MAX = 8

const INDEXES = STORED_KINDS.map(
  (kind) => new Map(NUMBERED[kind].map((value, at) => [value, at + 1])),
)

export function encodeSums({ known, observed, counts }: VisitSums): Uint8Array {
  const out: number[] = [VERSION]
  pushVarint(out, known)
  pushVarint(out, observed)
  // Sorted: the same sums are the same bytes on all hosts.
  for (const key of [...counts.keys()].sort()) {
    const kind = Number(key[0])
    const index = INDEXES[kind]?.get(visitValue(key)) ?? 0
    const count = counts.get(key) as number
    pushVarint(out, (index * KINDS_MAX + kind) * 2 + (count === 1 ? 1 : 0))
    if (index === 0) {
      const text = Buffer.from(visitValue(key))
      pushVarint(out, text.length)
      for (const byte of text) out.push(byte)
    }
    if (count !== 1) pushVarint(out, count)
  }
  return Uint8Array.from(out)
}

/** Adds the sums to others. Throws RangeError for bytes that `encodeSums` did not return. */
export function decodeSums(bytes: Uint8Array, sums = emptySums()): VisitSums {
  const input = new VarintReader(bytes)
  if (input.next() !== VERSION) throw new RangeError('the form of these sums is unknown')
  sums.known += input.next()
  sums.observed += input.next()
  while (!input.isAtEnd) {
    const number = input.next()
    const code = Math.floor(number / 2)
    const kind = STORED_KINDS[code % KINDS_MAX]
    const index = Math.floor(code / KINDS_MAX)
    const value =
      index === 0 ? textOf(input.bytes(input.next())) : kind && NUMBERED[kind][index - 1]
    if (!kind || value === undefined) throw new RangeError('a value of these sums is unknown')
    const key = visitKey(kind, value)
    const count = number % 2 === 1 ? 1 : input.next()
    sums.counts.set(key, (sums.counts.get(key) ?? 0) + count)
  }
  return sums
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

/** A stored row's sums; undefined for one that is damaged. */
export function sumsOfRow({ parts }: { parts: Uint8Array }): VisitSums | undefined {
  try {
    return decodeSums(parts)
  } catch {
    return undefined
  }
}

/**
 * Adds `more` to `sums`. With a limit in the order of the keys, so that all hosts agree on what is
 * `other`.
 */
export function addSums(
  sums: VisitSums,
  more: VisitSums,
  limit?: (key: VisitKey) => VisitKey,
): void {
  sums.known += more.known
  sums.observed += more.observed
  const { counts } = sums
  for (const key of limit ? [...more.counts.keys()].sort() : more.counts.keys()) {
    const target = limit ? limit(key) : key
    counts.set(target, (counts.get(target) ?? 0) + (more.counts.get(key) as number))
  }
}

/**
 * For keys that are added to `counts`: returns the key itself, or that of `other` if its value
 * would be one more than a link or an account may have of its kind.
 */
export function keyLimit(
  counts: ReadonlyMap<VisitKey, number>,
  scope: 'link' | 'account',
): (key: VisitKey) => VisitKey {
  const sizes = new Map<StoredKind, number>()
  const note = (kind: StoredKind) => sizes.set(kind, (sizes.get(kind) ?? 0) + 1)
  for (const key of counts.keys()) note(kindOf(key))
  return (key) => {
    if (counts.has(key)) return key
    const kind = kindOf(key)
    if ((sizes.get(kind) ?? 0) >= VALUES_MAX[kind][scope]) return visitKey(kind, OTHER)
    note(kind)
    return key
  }
}
