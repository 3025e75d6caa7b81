import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { assert } from '../lib/assert.ts'
import { DataError } from '../lib/data-error.ts'
import { flushToDisk } from '../lib/flush.ts'
import { openFile } from '../lib/open-file.ts'
import { NO_FOLLOW } from '../lib/symbolic-links.ts'

/**
 * The file of the hit journal: a ring. Little-endian: a header page (magic, entries, journal id),
 * then entries of two 32-bit words: link id, lap. A position counts entries since the journal
 * began; its slot is `position % entries` and its lap `floor(position / entries) + 1`. An entry is
 * valid when its second word, written last, is its lap: the file needs no end marker, and a torn or
 * stale entry is never taken for a hit. Link id 0 is a redirect whose link is not known. The
 * database has the position where counting begins (`hit_totals.position`), committed together with
 * the counts, so a replay counts each hit once (decision 002).
 */

const MAGIC = 'HOPHITS1'
export const HEADER_BYTES = 4096
export const ENTRY_WORDS = 2
export const ENTRY_BYTES = 8
const ID_BYTES = 16
/** 4 million hits, 32 MiB: two minutes of 30,000 redirects a second while the disk refuses. */
export const JOURNAL_ENTRIES = 4 * 1024 * 1024
/** Entries read at once: 256 KiB. */
const CHUNK_ENTRIES = 32_768

/** Hits of one range of the journal, and the position just after it. */
export interface JournalRange {
  linkIds: Uint32Array
  end: number
}

/** Entries within one lap, the first of them at position `at`. */
interface Chunk {
  words: Uint32Array
  lap: number
  at: number
}

/**
 * Reads the file by system calls, which return the same bytes as a mapping: pages that are only
 * read add nothing to the memory of the process.
 */
export class JournalFile implements Disposable {
  readonly path: string
  /** Random, and also stored in the database: its position belongs to this journal only. */
  readonly id: string
  readonly entries: number
  readonly #descriptor: number
  readonly #chunk = new Uint32Array(CHUNK_ENTRIES * ENTRY_WORDS)
  readonly #chunkBytes = new Uint8Array(this.#chunk.buffer)

  private constructor(path: string, descriptor: number, { entries, id }: Header) {
    this.path = path
    this.#descriptor = descriptor
    this.entries = entries
    this.id = id
  }

  /** Creates the file if missing. Throws JournalDamaged when it is not a whole journal. */
  static open(path: string, entries = JOURNAL_ENTRIES): JournalFile {
    if (!existsSync(path)) create(path, entries)
    const descriptor = openReadable(path)
    try {
      return new JournalFile(path, descriptor, readHeader(path, descriptor))
    } catch (error) {
      closeSync(descriptor)
      throw error
    }
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /**
   * The link ids of a range that was appended and is not overwritten yet. Entries that the file has
   * lost since, because it was truncated, are left out.
   */
  read(position: number, end: number): Uint32Array {
    const linkIds = new Uint32Array(end - position)
    let filled = 0
    for (const { words, lap } of this.#chunks(position, end)) {
      for (let word = 0; word < words.length; word += ENTRY_WORDS) {
        if (words[word + 1] === lap) linkIds[filled++] = words[word] as number
      }
    }
    return linkIds.subarray(0, filled)
  }

  /**
   * The entries that an earlier process appended and did not count: the link ids from `position` to
   * the last whole entry. An entry in between that is not whole is 0: a kill came before it was
   * complete, or a power loss dropped its page.
   */
  recover(position: number): Uint32Array {
    const linkIds = new Uint32Array(this.entries)
    let end = 0
    for (const { words, lap, at } of this.#chunks(position, position + this.entries)) {
      // Almost no chunk contains the lap at all, and this native search is fast.
      if (!words.includes(lap)) continue
      for (let word = 0; word < words.length; word += ENTRY_WORDS) {
        if (words[word + 1] !== lap) continue
        const entry = at - position + word / ENTRY_WORDS
        linkIds[entry] = words[word] as number
        end = entry + 1
      }
    }
    return linkIds.slice(0, end)
  }

  /** Chunks of a range in order, each within one lap. A chunk is valid until the next one. */
  *#chunks(position: number, end: number): Generator<Chunk> {
    let at = position
    while (at < end) {
      const slot = at % this.entries
      const length = Math.min(end - at, this.entries - slot, CHUNK_ENTRIES)
      this.#fill(slot, length)
      const words = this.#chunk.subarray(0, length * ENTRY_WORDS)
      yield { words, lap: Math.floor(at / this.entries) + 1, at }
      at += length
    }
  }

  #fill(slot: number, length: number): void {
    const bytes = length * ENTRY_BYTES
    const start = HEADER_BYTES + slot * ENTRY_BYTES
    let filled = 0
    while (filled < bytes) {
      const read = readSync(
        this.#descriptor,
        this.#chunkBytes,
        filled,
        bytes - filled,
        start + filled,
      )
      assert(read > 0, 'a journal keeps its length')
      filled += read
    }
  }
}

/**
 * Writes every block instead of a sparse file: on a full disk, a store to a page without a block
 * would end the process with SIGBUS.
 */
function create(file: string, entries: number): void {
  const beside = `${file}.tmp`
  rmSync(beside, { force: true })
  using unfinished = openFile(beside, 'wx', 0o600)
  const { descriptor } = unfinished
  try {
    writeSync(descriptor, headerPage({ entries, id: randomBytes(ID_BYTES).toString('hex') }))
    const zeros = Buffer.alloc(Math.min(entries * ENTRY_BYTES, 1024 * 1024))
    let rest = entries * ENTRY_BYTES
    while (rest > 0) rest -= writeSync(descriptor, zeros, 0, Math.min(rest, zeros.length))
    fsyncSync(descriptor)
  } catch (error) {
    // On a full disk, the unfinished file would take space that other files need.
    rmSync(beside, { force: true })
    throw error
  }
  renameSync(beside, file)
  flushToDisk(dirname(file))
}

function headerPage({ entries, id }: Header): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.write(MAGIC, 0, 'latin1')
  header.writeUInt32LE(entries, 8)
  header.write(id, 16, 'hex')
  return header
}

/** Writes the header of a journal and sets its length, after it was truncated while mapped. */
export function restoreJournal(path: string, header: Header): void {
  using file = openFile(path, constants.O_RDWR | NO_FOLLOW)
  ftruncateSync(file.descriptor, HEADER_BYTES + header.entries * ENTRY_BYTES)
  writeSync(file.descriptor, headerPage(header), 0, HEADER_BYTES, 0)
}

function openReadable(path: string): number {
  try {
    if (!statSync(path).isFile()) throw new Error('it is not a file')
    return openSync(path, constants.O_RDONLY | NO_FOLLOW)
  } catch (cause) {
    throw inaccessible(path, cause)
  }
}

export const inaccessible = (path: string, cause: unknown) =>
  new DataError(
    `${path} cannot be opened: ${(cause as Error).message}. Is it a file that this user may read ` +
      'and write?',
    { cause },
  )

/** The file exists and can be read, but is not a whole journal: its hits are lost. */
export class JournalDamaged extends DataError {
  readonly reason: string

  constructor(file: string, reason: string) {
    super(`${file} is damaged: ${reason}. The next start renames it and creates a new one.`)
    this.reason = reason
  }
}

interface Header {
  entries: number
  id: string
}

function readHeader(file: string, descriptor: number): Header {
  const header = Buffer.alloc(HEADER_BYTES)
  const length = readSync(descriptor, header, 0, HEADER_BYTES, 0)
  const entries = header.readUInt32LE(8)
  const whole =
    length === HEADER_BYTES &&
    header.toString('latin1', 0, MAGIC.length) === MAGIC &&
    entries > 0 &&
    statSync(file).size === HEADER_BYTES + entries * ENTRY_BYTES
  if (!whole) throw new JournalDamaged(file, 'it is not a whole hit journal')
  return { entries, id: header.toString('hex', 16, 16 + ID_BYTES) }
}
