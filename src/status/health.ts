import type { HitCounts } from '../hits/hits.ts'

interface HealthDeps {
  hits: HitCounts
  writer: { readonly failing: boolean }
  /** By name. */
  threads: Readonly<Record<string, { readonly isDead: boolean }>>
}

/**
 * Whether the database answers and takes writes, whether every thread runs, and whether the service
 * goes on.
 */
export class Health {
  readonly #deps: HealthDeps
  #isStopping = false

  constructor(deps: HealthDeps) {
    this.#deps = deps
  }

  /** The service is about to stop: from now on nobody should send it anything new. */
  beginStop(): void {
    this.#isStopping = true
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** The name of a thread that has ended: only a restart brings it back. */
  get deadThread(): string | undefined {
    return Object.entries(this.#deps.threads).find(([, { isDead }]) => isDead)?.[0]
  }

  isReady(): boolean {
    return !this.#isStopping && !this.deadThread && this.totalRedirects() !== undefined
  }

  /**
   * Every redirect served so far; undefined when the database does not answer or refuses writes.
   */
  totalRedirects(): number | undefined {
    try {
      return this.#deps.writer.failing ? undefined : this.#deps.hits.total()
    } catch {
      return undefined
    }
  }
}
