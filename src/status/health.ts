import type { HitCounts } from '../hits/hits.ts'

interface HealthDeps {
  hits: HitCounts
  writer: { readonly failing: boolean }
  /** Threads by name. */
  threads: Readonly<Record<string, { readonly isDead: boolean }>>
  watch: { readonly hangingThread: string | undefined }
  /** Absent where this host is alone. */
  cluster?: { readonly problem: string | undefined } | undefined
}

/**
 * Whether the database answers and accepts writes, every thread runs, and the service is not about
 * to stop.
 */
export class Health {
  readonly #deps: HealthDeps
  #isStopping = false

  constructor(deps: HealthDeps) {
    this.#deps = deps
  }

  /** From now on the service is not ready: it is about to stop. */
  beginStop(): void {
    this.#isStopping = true
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** The name of a thread that has ended. The writer needs a restart of the service. */
  get deadThread(): string | undefined {
    return Object.entries(this.#deps.threads).find(([, { isDead }]) => isDead)?.[0]
  }

  /** The name of a thread that has not answered for seconds. */
  get hangingThread(): string | undefined {
    return this.#deps.watch.hangingThread
  }

  /** Why this host does not follow the log of its cluster. */
  get clusterProblem(): string | undefined {
    return this.#deps.cluster?.problem
  }

  isReady(): boolean {
    if (this.#isStopping || this.deadThread || this.hangingThread || this.clusterProblem)
      return false
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
