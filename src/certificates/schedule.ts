import { DAY, HOUR, MINUTE, SECOND } from '../lib/clock.ts'
import type { CertificateState, OrderRecord } from './store.ts'

/**
 * When a certificate is ordered, and for which names: pure functions of what is stored. The limits
 * are below those of Let's Encrypt, which count per account, name and set of names.
 */

const WEEK = 7 * DAY
const ORDER_GAP_MS = MINUTE
const ORDERS_MAX = 10
const ORDERS_SPAN_MS = 3 * HOUR
const SAME_SET_MAX = 3
const NEW_MAX = 20
const NAME_FAILURES_MAX = 4
/** Several names that are added one after the other become one order. */
const GATHER_MS = 10 * SECOND
const BACKOFF_MS = [15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY] as const

/** When to try a name again that has failed this many times in a row. */
export const backoffAfter = (failures: number): number => BACKOFF_MS[failures - 1] ?? DAY

export interface Situation {
  /** Names that the certificate should have. */
  names: readonly string[]
  /** Those of the present one; undefined without a certificate. */
  certified: readonly string[] | undefined
  /** When the names changed last. */
  changedAt: number
  state: CertificateState
  now: number
}

export interface PlannedOrder {
  names: string[]
  isRenewal: boolean
  /** When it is due, which may be in the past. */
  at: number
}

/** The next order; undefined if none is needed as far as is known. */
export function planOrder({
  names,
  certified,
  changedAt,
  state,
  now,
}: Situation): PlannedOrder | undefined {
  const missing = certified ? names.filter((name) => !certified.includes(name)) : names
  const readyAt = (name: string) => readyTime(state, name)
  const wantedAt = Math.max(
    certified ? changedAt + GATHER_MS : 0,
    Math.min(...missing.map(readyAt)),
  )
  const renewAt = certified && state.renewal ? state.renewal.at : Number.POSITIVE_INFINITY
  const isRenewal = renewAt <= wantedAt || (renewAt <= now && certified !== undefined)
  const first = Math.max(
    isRenewal ? renewAt : wantedAt,
    // At least one of them must be ready.
    Math.min(...names.map(readyAt)),
  )
  if (first === Number.POSITIVE_INFINITY) return undefined
  const ready = names.filter((name) => readyAt(name) <= Math.max(first, now))
  return { names: ready, isRenewal, at: Math.max(first, limitedUntil(state, ready, isRenewal)) }
}

/** When a name may be ordered. */
function readyTime({ names, orders }: CertificateState, name: string): number {
  const refused = orders.filter(({ result, failed, names }) =>
    (failed ?? (result ? [] : names)).includes(name),
  )
  return Math.max(names[name]?.nextAt ?? 0, after(refused, NAME_FAILURES_MAX, HOUR))
}

function limitedUntil(
  { orders, blockedUntil }: CertificateState,
  names: readonly string[],
  isRenewal: boolean,
): number {
  // Those without a result may have been issued.
  const issued = orders.filter(({ result }) => result !== 'failed')
  const set = keyOf(names)
  return Math.max(
    blockedUntil,
    after(orders, 1, ORDER_GAP_MS),
    after(orders, ORDERS_MAX, ORDERS_SPAN_MS),
    after(
      issued.filter((order) => keyOf(order.names) === set),
      SAME_SET_MAX,
      WEEK,
    ),
    isRenewal
      ? 0
      : after(
          issued.filter((order) => !order.isRenewal),
          NEW_MAX,
          WEEK,
        ),
  )
}

const keyOf = (names: readonly string[]): string => names.toSorted().join(' ')

/** When there may be another one, with at most `max` in a span of time. */
function after(orders: readonly OrderRecord[], max: number, spanMs: number): number {
  const first = orders.at(-max)
  return first ? first.at + spanMs : 0
}

/** Part of the lifetime after which a certificate is renewed where the authority does not say. */
const RENEWED_AFTER = 2 / 3
const SHORT_MS = 10 * DAY
const SPREAD = 0.05

/** The time in which a certificate is renewed where the authority does not say. */
export function usualWindow({ from, until }: { from: number; until: number }) {
  const lifetime = until - from
  const part = lifetime <= SHORT_MS ? 1 / 2 : RENEWED_AFTER
  return {
    start: from + lifetime * (part - SPREAD),
    end: from + lifetime * (part + SPREAD),
  }
}
