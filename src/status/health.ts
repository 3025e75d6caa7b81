import type { HitCounts } from '../hits/hits.ts'

interface HealthDeps {
  hits: HitCounts
  writer: { readonly failing: boolean }
  /** By name. */
  threads: Readonly<Record<string, { readonly isDead: boolean }>>
  watch: { readonly hangingThread: string | undefined }
}

/**
 * Whether the database answers and takes writes, whether every thread runs, and whether the service
 * goes on.
 */
export class Health {
  readonly #deps: HealthDeps
  readonly #stopListeners: (() => void)[] = []
  #isStopping = false

  constructor(deps: HealthDeps) {
    this.#deps = deps
  }

  /** The service is about to stop: from now on nobody should send it anything new. */
  beginStop(): void {
    this.#isStopping = true
    for (const begin of this.#stopListeners.splice(0)) begin()
  }

  /** Runs `begin` when the service is about to stop. */
  onStop(begin: () => void): void {
    this.#stopListeners.push(begin)
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** The name of a thread that has ended. The writer comes back with a restart of the service. */
  get deadThread(): string | undefined {
    return Object.entries(this.#deps.threads).find(([, { isDead }]) => isDead)?.[0]
  }

  /** The name of a thread that has not answered for seconds. */
  get hangingThread(): string | undefined {
    return this.#deps.watch.hangingThread
  }

  isReady(): boolean {
    if (this.#isStopping || this.deadThread || this.hangingThread) return false
    return this.totalRedirects() !== undefined
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
