import type { HitCounts } from '../hits/hits.ts'

/** Whether the database answers and takes writes. */
export class Health {
  readonly #hits: HitCounts
  readonly #writer: { readonly failing: boolean }

  constructor(hits: HitCounts, writer: { readonly failing: boolean }) {
    this.#hits = hits
    this.#writer = writer
  }

  /**
   * Every redirect served so far; undefined when the database does not answer or refuses writes.
   */
  totalRedirects(): number | undefined {
    try {
      return this.#writer.failing ? undefined : this.#hits.total()
    } catch {
      return undefined
    }
  }
}
