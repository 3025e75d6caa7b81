import type { Database } from 'bun:sqlite'
import type { Code } from '../lib/code.ts'
import type { Caller } from '../lib/thread.ts'
import { BYTES_PER_CODE, CodeFilter } from './code-filter.ts'
import type { LinkReads } from './read.ts'

/** Room for codes that are created before the next start. More of them cost accuracy only. */
const NEW_CODES = 65_536
const BYTES_MAX = 2 ** 25
/** Codes that the reader thread adds at once: about a millisecond. */
const CHUNK = 1000

interface KnownCodesOptions {
  reads: Pick<LinkReads, 'lastId'>
  reader: Caller<CodeReads>
  onComplete?: (memory: SharedArrayBuffer) => void
}

/**
 * Recognizes unknown codes without a lookup. The codes in use are read when a lookup first finds
 * nothing; until then this costs nothing.
 */
export class KnownCodes {
  readonly #options: KnownCodesOptions
  #filter: CodeFilter | undefined
  #isComplete = false

  constructor(options: KnownCodesOptions) {
    this.#options = options
  }

  /**
   * False only if no link has the code and it is not disabled. True for all codes until those in
   * use have been read.
   */
  mayExist(code: Code): boolean {
    return !this.#isComplete || this.#filter?.has(code) !== false
  }

  /** The code or alias has a link now. */
  add(code: string): void {
    this.#filter?.add(code)
  }

  /** Memory of the filter of all codes in use; undefined until they have been read. */
  get memory(): SharedArrayBuffer | undefined {
    return this.#isComplete ? this.#filter?.memory : undefined
  }

  /** Begins to read the codes in use, unless that was done before. */
  prepare(): void {
    if (this.#filter !== undefined) return
    const codes = this.#options.reads.lastId() + NEW_CODES
    // Codes that are created from now on are added as well.
    const bytes = Math.min(BYTES_MAX, codes * BYTES_PER_CODE)
    const filter = new CodeFilter(new SharedArrayBuffer(bytes))
    this.#filter = filter
    this.#readAll(filter).catch(() => {
      // The thread has ended: the next call starts over.
      this.#filter = undefined
    })
  }

  async #readAll(filter: CodeFilter): Promise<void> {
    const { reader, onComplete } = this.#options
    const { memory } = filter
    for (let after: number | string | undefined = 0; after !== undefined; ) {
      after = await reader.call('addCodes', { memory, after, max: CHUNK }, { background: true })
    }
    this.#isComplete = true
    onComplete?.(memory)
  }
}

interface AddCodes {
  /** Memory of a `CodeFilter`. */
  memory: SharedArrayBuffer
  /** Starts after the link with this id, or after this alias. */
  after: number | string
  max: number
}

/** Runs on the reader thread. */
export function codeReads(db: Database) {
  const next = db.prepare<{ id: number; code: Code }, [number, number]>(
    'SELECT id, code FROM links WHERE id > ? ORDER BY id LIMIT ?',
  )
  const disabled = db.prepare<{ code: Code }, []>('SELECT code FROM disabled_codes')
  const nextAliases = db.prepare<{ path: string; folded: Code | null }, [string, number]>(
    'SELECT path, folded FROM aliases WHERE path > ? ORDER BY path LIMIT ?',
  )
  return {
    /**
     * Adds the codes of the next `max` links to a filter, after the last link the disabled codes,
     * and then the aliases: a link that was deleted before it was read here may have been disabled
     * before. Returns the last link's id or the last alias; undefined if that was all.
     */
    addCodes({ memory, after, max }: AddCodes): number | string | undefined {
      const filter = new CodeFilter(memory)
      if (typeof after === 'string') {
        const aliases = nextAliases.all(after, max)
        for (const { path, folded } of aliases) {
          filter.add(path)
          // A redirect thread looks for an alias of this form after its code.
          if (folded !== null) filter.add(folded)
        }
        return aliases.at(-1)?.path
      }
      const links = next.all(after, max)
      for (const { code } of links) filter.add(code)
      const last = links.at(-1)
      if (last) return last.id
      for (const { code } of disabled.all()) filter.add(code)
      return ''
    },
  }
}

export type CodeReads = ReturnType<typeof codeReads>
