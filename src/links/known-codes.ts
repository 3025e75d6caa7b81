import type { Database } from 'bun:sqlite'
import {
  type Address,
  addressKey,
  addressOfKey,
  canonicalPath,
  smallPath,
} from '../addresses/address.ts'
import { perConnection, type ScanCalls, scan } from '../db/subject.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { LinkReads } from './read.ts'

/** Room for codes that are created later, at least; beyond it, all codes are read again. */
const NEW_CODES = 65_536
const BYTES_MAX = 2 ** 25
/** Codes that the reader thread adds at once: about a millisecond. */
const CHUNK = 1000

interface KnownCodesOptions {
  data: { links: Pick<LinkReads, 'lastId'> & ScanCalls<typeof codeScans> }
  /** First segments of the routes of the service. */
  reserved: () => Iterable<string>
  onComplete?: (memory: SharedArrayBuffer) => void
}

/**
 * Recognizes unknown codes without a lookup. The codes in use are read when a lookup first finds
 * nothing; until then this costs nothing.
 */
export class KnownCodes {
  readonly #options: KnownCodesOptions
  /**
   * Each gets all new codes. The last but one is in use until the last one is complete, and on
   * threads that do not know of the last one yet.
   */
  #filters: CodeFilter[] = []
  #complete: CodeFilter | undefined
  #isReading = false
  /** How many more codes the complete filter has room for. */
  #room = 0

  constructor(options: KnownCodesOptions) {
    this.#options = options
  }

  /**
   * False only if no link has the code and it is not disabled. True for all codes until those in
   * use have been read.
   */
  mayExist(code: Code): boolean {
    return this.#complete?.has(code) !== false
  }

  /** The same for a decoded path, which may be a code or an alias. */
  mayName(path: string): boolean {
    const code = toCode(path)
    if (code !== undefined && this.mayExist(code)) return true
    return this.#complete?.mayHaveAlias(canonicalPath(path)) !== false
  }

  /** The code or alias has a link now. */
  add(code: string): void {
    for (const filter of this.#filters) filter.add(code)
    this.#room--
    const { byteLength = BYTES_MAX } = this.#complete?.memory ?? {}
    if (this.#room < 0 && byteLength < BYTES_MAX) void this.#read()
  }

  /** Begins to read the codes in use, unless that was done before. */
  prepare(): void {
    if (!this.#complete) void this.#read()
  }

  /** Reads all codes into a new filter. If the thread ends, the next call starts over. */
  async #read(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    const { data, reserved, onComplete } = this.#options
    const { links } = data
    const before = this.#complete ? [this.#complete] : []
    try {
      const aliases = await links.countAliases(undefined, { background: true })
      const codes = links.lastId() + aliases
      const room = Math.max(NEW_CODES, Math.ceil(codes / 2))
      const bytes = Math.min(BYTES_MAX, (codes + room) * BYTES_PER_CODE)
      const filter = new CodeFilter(new SharedArrayBuffer(bytes))
      // Codes that are created from now on are added; all earlier ones are read.
      this.#filters = [...before, filter]
      const { memory } = filter
      for (const segment of reserved()) filter.add(firstKey(segment))
      for (let after: number | string | undefined = 0; after !== undefined; ) {
        after = await links.addCodes({ memory, after, max: CHUNK }, { background: true })
      }
      this.#complete = filter
      this.#room = room
      onComplete?.(memory)
    } catch {
      this.#filters = before
    } finally {
      this.#isReading = false
    }
  }
}

interface AddCodes {
  /** Memory of a `CodeFilter`. */
  memory: SharedArrayBuffer
  /** Starts after the link with this id, or this alias: an `addressKey`, empty before the first. */
  after: number | string
  max: number
}

/** Runs on the reader thread. */
function codeReads(db: Database) {
  const next = db.prepare<{ id: number; code: Code }, [number, number]>(
    'SELECT id, code FROM links WHERE id > ? ORDER BY id LIMIT ?',
  )
  const disabled = db.prepare<{ code: Code }, []>('SELECT code FROM disabled_codes')
  const nextAliases = db.prepare<
    Address & { small: string; folded: Code | null },
    [number, string, number]
  >(
    `SELECT domain_id AS domainId, path, small_path AS small, folded FROM aliases
     WHERE (domain_id, path) > (?, ?) ORDER BY domain_id, path LIMIT ?`,
  )
  const aliasCount = db.prepare<{ n: number }, []>('SELECT count(*) AS n FROM aliases')
  return {
    /** The codes of all accounts in the order of their ids: the next `limit` after `id`. */
    codesAfter: ({ id, limit }: { id: number; limit: number }): { id: number; code: Code }[] =>
      next.all(id, limit),

    countAliases: (): number => aliasCount.get()?.n ?? 0,

    /**
     * Adds the codes of the next `max` links to a filter, after the last link the disabled codes,
     * and then the aliases: a link that was deleted before it was read here may have been disabled
     * before. Returns the last link's id or the last alias; undefined if that was all.
     */
    addCodes({ memory, after, max }: AddCodes): number | string | undefined {
      const filter = new CodeFilter(memory)
      if (typeof after === 'string') {
        const { domainId, path: last } = addressOfKey(after)
        const aliases = nextAliases.all(domainId, last, max)
        for (const { path, small, folded } of aliases) {
          filter.add(path)
          filter.add(small)
          // A redirect thread looks for an alias of this form after its code.
          if (folded !== null) filter.add(folded)
        }
        const end = aliases.at(-1)
        return end && addressKey(end)
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

const codesOf = perConnection(codeReads)

export const codeScans = {
  codesAfter: scan((db) => codesOf(db).codesAfter),
  countAliases: scan((db) => codesOf(db).countAliases),
  addCodes: scan((db) => codesOf(db).addCodes),
}

/** The first segment of an alias that has several. */
const FIRST_OF_SEVERAL = /^([^/]+)\//
/** Not the path of any link. One for a segment in any case, of which there are many. */
const firstKey = (segment: string): string => `//${segment.toUpperCase()}`

/** With four hashes in 16 bits per code, 1 of 400 unknown codes is taken for a known one. */
const BYTES_PER_CODE = 2
const HASHES = 4

/**
 * A set of codes and aliases in shared memory: a Bloom filter (B. Bloom, "Space/Time Trade-offs in
 * Hash Coding with Allowable Errors", 1970).
 */
export class CodeFilter {
  readonly memory: SharedArrayBuffer
  readonly #bits: Uint8Array

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#bits = new Uint8Array(memory)
  }

  add(code: string): void {
    const [, segment] = FIRST_OF_SEVERAL.exec(code) ?? []
    if (segment !== undefined) this.add(firstKey(segment))
    const bits = this.#bits
    const { first, step } = hashesOf(code)
    for (let n = 0; n < HASHES; n++) {
      const bit = (first + n * step) % (8 * bits.length)
      // Other threads add codes too.
      Atomics.or(bits, bit >>> 3, 1 << (bit & 7))
    }
  }

  /** HOT PATH. True for each code that was added, and for a few others. */
  has(code: string): boolean {
    const bits = this.#bits
    const { first, step } = hashesOf(code)
    for (let n = 0; n < HASHES; n++) {
      const bit = (first + n * step) % (8 * bits.length)
      if (((bits[bit >>> 3] as number) & (1 << (bit & 7))) === 0) return false
    }
    return true
  }

  /** HOT PATH. Whether a route or an alias may have the segment, and further ones behind it. */
  mayContinue(segment: string): boolean {
    return this.has(firstKey(segment))
  }

  /** Aliases are added in small letters too: some are found in any case. */
  mayHaveAlias(path: string): boolean {
    const small = smallPath(path)
    return this.has(path) || (small !== path && this.has(small))
  }
}

/** Double hashing: A. Kirsch, M. Mitzenmacher, "Less Hashing, Same Performance", 2006. */
const hashesOf = (code: string) => ({
  first: Bun.hash.xxHash32(code, 0),
  step: (Bun.hash.xxHash32(code, 1) | 1) >>> 0,
})
