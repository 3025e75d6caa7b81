import type { Caller } from '../lib/thread.ts'
import type { SearchWrites } from './search-index.ts'

interface IndexerWriter extends Caller<SearchWrites> {
  readonly idleMs: number
}

/** A step holds the writer for some 7 ms: it waits for a pause between writes, but not for long. */
const PAUSE_MS = 20
const PATIENCE_MS = 200

/** Takes new links into the search index while the writer thread has nothing better to do. */
export class SearchIndexer {
  readonly #writer: IndexerWriter
  #isRunning = false
  #isClosed = false

  constructor(writer: IndexerWriter) {
    this.#writer = writer
    this.wake()
  }

  /** There may be new links. A disk that refuses is asked again at the next call. */
  wake(): void {
    if (this.#isRunning || this.#isClosed) return
    this.#isRunning = true
    this.#run()
      .catch(() => {})
      .finally(() => {
        this.#isRunning = false
      })
  }

  close(): void {
    this.#isClosed = true
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#pause()
      if (this.#isClosed) return
      if (!(await this.#writer.call('indexLinks', {}, { background: true }))) return
    }
  }

  async #pause(): Promise<void> {
    const endsAt = performance.now() + PATIENCE_MS
    while (this.#writer.idleMs < PAUSE_MS && performance.now() < endsAt) await Bun.sleep(PAUSE_MS)
  }
}
