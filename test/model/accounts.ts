export type Plan = 'free' | 'pro' | 'enterprise'

export interface Account {
  name: string
  plan: Plan
  /** All that were ever given, in order; `endsAt` is when one stops. */
  keys: { key: string; endsAt: number }[]
}

const OVERLAP_MS = 24 * 60 * 60 * 1000

/** The account whose key this is and works at `now`. */
export function accountOf(
  accounts: readonly Account[],
  key: string | undefined,
  now: number,
): Account | undefined {
  return accounts.find((account) => account.keys.some((one) => one.key === key && now < one.endsAt))
}

/** Every key of the account goes on for 24 hours at most, or not at all. */
export function endKeys({ keys }: Account, now: number, isAtOnce: boolean): void {
  const end = isAtOnce ? now : now + OVERLAP_MS
  for (const key of keys) key.endsAt = Math.min(key.endsAt, end)
}
