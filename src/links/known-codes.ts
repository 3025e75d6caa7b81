import type { Log } from '../lib/log.ts'
import { type Caller, messageOf } from '../lib/thread.ts'
import { CodeFilter } from './code-filter.ts'
import type { CodeFilterReads, FillFilter } from './code-filter-store.ts'

/** About 3 ms of the reader thread. */
const FILL_AT_ONCE = 4000
/** Room for as many codes again, and for a service that begins. */
const ROOM = 2
const CAPACITY_MIN = 50_000

interface KnownCodesOptions {
  lists: Caller<CodeFilterReads>
  log: Log
}

/**
 * Tells without the database that nobody holds a code. Every code enters in the turn in which its
 * creation is acknowledged; those of before this start are read in the background, and until then
 * any code may be held. Grows by reading all codes into a larger filter.
 */
export class KnownCodes {
  readonly #options: KnownCodesOptions
  /** Complete: a code that is not in it is held by nobody. */
  #whole: CodeFilter | undefined
  /** Being read in. */
  #next: CodeFilter | undefined
  #added = 0
  #isClosed = false
  #filling: Promise<void> | undefined

  constructor(options: KnownCodesOptions) {
    this.#options = options
    this.#fill()
  }

  /** Resolves once every code is known, or reading them has failed. */
  async filled(): Promise<void> {
    await this.#filling
  }

  /** HOT PATH. False: nobody holds it. */
  mayHold(code: string): boolean {
    return this.#whole === undefined || this.#whole.mayHold(code)
  }

  /** In the turn of every acknowledged creation, before anyone can ask for the code. */
  add(code: string): void {
    this.#whole?.add(code)
    this.#next?.add(code)
    this.#added++
    if (this.#whole && this.#added > this.#whole.capacity) this.#fill()
  }

  /** Reads the codes again where that has failed. */
  retry(): void {
    if (!this.#whole && !this.#isClosed) this.#fill()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#filling
  }

  #fill(): void {
    const { log } = this.#options
    this.#filling ??= this.#read()
      .catch((error: unknown) => {
        // Each new guess is looked up meanwhile; tried again after as many creations more.
        this.#added = 0
        if (!this.#isClosed) log.warn('links.codes_not_read', { reason: messageOf(error) })
      })
      .finally(() => {
        this.#next = undefined
        this.#filling = undefined
      })
  }

  async #read(): Promise<void> {
    const { lists } = this.#options
    const links = await lists.call('countLinks', undefined)
    const filter = CodeFilter.forCodes(Math.max(CAPACITY_MIN, links * ROOM))
    // From here on creations enter it themselves; those of before are in the database.
    this.#next = filter
    this.#added = links
    let after: string | null = ''
    while (after !== null) {
      if (this.#isClosed) return
      const order: FillFilter = { memory: filter.memory, after, most: FILL_AT_ONCE }
      after = await lists.call('fillFilter', order)
    }
    this.#whole = filter
  }
}
