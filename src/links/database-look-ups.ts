import type { Code } from '../lib/code.ts'
import type { LinkReads } from './store.ts'

type Finds = Pick<LinkReads, 'findDestination'>

/** Counts what the link cache has to ask the database: its misses, by what they found. */
export class DatabaseLookUps implements Finds {
  readonly #reads: Finds
  known = 0
  unknown = 0

  constructor(reads: Finds) {
    this.#reads = reads
  }

  findDestination(code: Code): ReturnType<LinkReads['findDestination']> {
    const row = this.#reads.findDestination(code)
    if (row) this.known++
    else this.unknown++
    return row
  }
}
