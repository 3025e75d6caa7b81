export interface Rate {
  refused: boolean
  limit: number
  remaining: number
  /** Until the oldest request counted leaves; of a refusal, until the next one passes. */
  resetAfterMs: number
}

const WINDOW_MS = 60_000

/** Exact sliding windows, as a list of every request that passed. */
export class Windows {
  #passed = new Map<string, number[]>()

  /** Spends one request, unless the caller's budget of any 60 seconds is spent. */
  take(caller: string, limit: number, elapsed: number): Rate {
    const counted = (this.#passed.get(caller) ?? []).filter((at) => at + WINDOW_MS > elapsed)
    const refused = counted.length >= limit
    if (!refused) counted.push(elapsed)
    this.#passed.set(caller, counted)
    // With a budget that was lowered, more than the oldest have to leave.
    const last = counted[refused ? counted.length - limit : 0] ?? elapsed
    return {
      refused,
      limit,
      remaining: Math.max(0, limit - counted.length),
      resetAfterMs: last + WINDOW_MS - elapsed,
    }
  }

  /** A new process remembers nobody. */
  forget(): void {
    this.#passed = new Map()
  }
}
