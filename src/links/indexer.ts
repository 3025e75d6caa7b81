import type { Caller } from '../lib/thread.ts'
import type { SearchWrites } from './search-index.ts'

/** Takes new links into the search index while the writer thread has nothing better to do. */
export class SearchIndexer {
  readonly #writer: Caller<SearchWrites>
  #isRunning = false
  #isClosed = false

  constructor(writer: Caller<SearchWrites>) {
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
    while (!this.#isClosed) {
      if (!(await this.#writer.call('indexLinks', {}, { background: true }))) return
    }
  }
}
