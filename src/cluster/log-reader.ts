import type { Connection } from './connection.ts'

/**
 * Bytes of calls that one statement reads. They grow while the connection is fast. 1 Mbit/s are 64
 * KiB in half a second, so that reports of the host are not delayed for longer.
 */
const PIECE_MIN = 16 * 1024
const PIECE_MAX = 4 * 1024 * 1024
const PIECE_ENTRIES = 500
const FAST_MS = 500
const SLOW_MS = 1000

export interface Entry {
  seq: number
  host: string
  batch: string
  /** The release that wrote it, as `RELEASE`; 1 before entries had it. */
  version: number
  /** SHA-256 over the chain of the entry before it and `calls`. */
  chain: Buffer
  calls: Uint8Array
}

/** An entry of which `calls` may be a part. `size`: bytes of all of its calls. */
type Piece = Entry & { size: number }

/** Reads the log in pieces. One that ends inside an entry is continued, also after an error. */
export class LogReader {
  readonly #connection: Connection
  #pieceBytes = PIECE_MIN
  /** The beginning of the calls of the entry `seq`. */
  #begun = { seq: 0, pieces: [] as Uint8Array[], bytes: 0 }

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** The next entries after `seq`, in order. Empty at the end of the log. */
  async readAfter(seq: number): Promise<Entry[]> {
    if (this.#begun.seq !== seq + 1) this.#begun = { seq: seq + 1, pieces: [], bytes: 0 }
    for (;;) {
      const pieces = await this.#readPieces()
      const entries = pieces.flatMap((piece) => this.#complete(piece) ?? [])
      if (entries.length > 0 || pieces.length === 0) return entries
    }
  }

  /** Keeps the beginning of an entry that is not complete. */
  #complete({ size, ...entry }: Piece): Entry | undefined {
    if (this.#begun.seq !== entry.seq) this.#begun = { seq: entry.seq, pieces: [], bytes: 0 }
    const { pieces } = this.#begun
    pieces.push(entry.calls)
    this.#begun.bytes += entry.calls.length
    if (this.#begun.bytes < size) return undefined
    return pieces.length > 1 ? { ...entry, calls: Buffer.concat(pieces) } : entry
  }

  async #readPieces(): Promise<Piece[]> {
    const { seq, bytes } = this.#begun
    const most = this.#pieceBytes
    const start = performance.now()
    // After an error, the connection may have become slower.
    this.#pieceBytes = PIECE_MIN
    const rows = await this.#connection.run<Piece[]>(
      (sql) => sql`
        SELECT seq, host, batch, version, chain, size,
          substring(calls FROM begin + 1 FOR ${most} - bytes_before::int) AS calls
        FROM (
          SELECT *, sum(size - begin) OVER (ORDER BY seq) - (size - begin) AS bytes_before FROM (
            SELECT *, length(calls) AS size, CASE seq WHEN ${seq} THEN ${bytes} ELSE 0 END AS begin
            FROM hopcode.log WHERE seq >= ${seq} ORDER BY seq LIMIT ${PIECE_ENTRIES}
          ) AS following
        ) AS next WHERE bytes_before < ${most} ORDER BY seq`,
    )
    const pieces = rows.map((row) => ({ ...row, seq: Number(row.seq) }))
    const ms = performance.now() - start
    const read = pieces.reduce((sum, { calls }) => sum + calls.length, 0)
    if (ms > SLOW_MS) this.#pieceBytes = Math.max(PIECE_MIN, most / 2)
    else this.#pieceBytes = ms < FAST_MS && read >= most ? Math.min(PIECE_MAX, 2 * most) : most
    return pieces
  }
}
