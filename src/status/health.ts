import type { HitCounts } from '../hits/hits.ts'

/** Whether the database answers and takes writes, and whether the service goes on. */
export class Health {
  readonly #hits: HitCounts
  readonly #writer: { readonly failing: boolean }
  #isStopping = false

  constructor(hits: HitCounts, writer: { readonly failing: boolean }) {
    this.#hits = hits
    this.#writer = writer
  }

  /** The service is about to stop: from now on nobody should send it anything new. */
  beginStop(): void {
    this.#isStopping = true
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  isReady(): boolean {
    return !this.#isStopping && this.totalRedirects() !== undefined
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
