import type { Database } from 'bun:sqlite'
import { createReadStream, createWriteStream, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { z } from 'zod'
import { hasTable } from '../cluster/position.ts'
import { versionOf } from '../db/migrate.ts'
import { closeWritable } from '../db/open.ts'
import { assert } from '../lib/assert.ts'
import { isoTime } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { roomError } from './disk.ts'
import { wholeFrame } from './zstd-frame.ts'

/**
 * A backup is one SQLite database, compressed with zstd: the tables of the service, and a table
 * `backup` with the secret key and a manifest. An uncompressed database restores too, such as the
 * copy that an upgrade leaves.
 */

/** Increased when an older Hopcode can no longer restore the backups of this one. */
const FORMAT = 2

const count = z.int().nonnegative()

/** Facts about a backup. */
const Manifest = z.object({
  format: z.literal(FORMAT),
  /** The release that wrote it. */
  hopcode: z.string(),
  database_version: count,
  /** The start of the backup. It contains every change acknowledged and every redirect before. */
  created_at: z.iso.datetime(),
  accounts: count,
  links: count,
  redirects: count,
})
export type Manifest = z.infer<typeof Manifest>

type Counts = Pick<Manifest, 'accounts' | 'links' | 'redirects'>

/** What a restored file contains. Only a backup says when it was made. */
export type Contents = Counts & Partial<Pick<Manifest, 'created_at'>>

/** Describes a database. `hopcode`: the release that wrote it. `createdAt`: epoch ms. */
export function newManifest(db: Database, hopcode: string, createdAt: number): Manifest {
  const created_at = isoTime(createdAt)
  const database_version = versionOf(db)
  return { format: FORMAT, hopcode, created_at, database_version, ...countsOf(db) }
}

export function countsOf(db: Database): Counts {
  return db
    .query<Counts, []>(
      `SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM links) AS links,
              coalesce((SELECT redirects FROM hit_totals WHERE id = 1), 0) AS redirects`,
    )
    .get() as Counts
}

const TABLE = 'backup'

/** Adds the manifest and the text of `secret.key` to the copy that becomes a backup. */
export function addContents(db: Database, manifest: Manifest, secretKey: string): void {
  db.run(`CREATE TABLE ${TABLE} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`)
  const add = db.prepare<null, [string, string]>(`INSERT INTO ${TABLE} VALUES (?, ?)`)
  add.run('manifest', JSON.stringify(manifest))
  add.run('secret.key', secretKey)
  add.finalize()
}

/**
 * Removes the manifest and the key from an unpacked backup and returns them; undefined for another
 * database, such as the copy that an upgrade leaves. `from` names it in errors. Throws DataError
 * for an unknown format.
 */
export function takeContents(
  db: Database,
  from: string,
): { manifest: Manifest; secretKey: string } | undefined {
  if (!hasTable(db, TABLE)) return undefined
  const find = db.prepare<{ value: string }, [string]>(`SELECT value FROM ${TABLE} WHERE name = ?`)
  const manifest = parseManifest(find.get('manifest')?.value ?? '')
  const secretKey = find.get('secret.key')?.value
  find.finalize()
  if (!manifest || secretKey === undefined) {
    throw new DataError(
      `${from} is a backup that this Hopcode cannot read: restore it with the release that wrote ` +
        'it, or a newer one.',
    )
  }
  db.run(`DROP TABLE ${TABLE}`)
  return { manifest, secretKey }
}

function parseManifest(text: string): Manifest | undefined {
  try {
    return Manifest.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Closes the only connection to a database and leaves a single file. */
export function closeAlone(db: Database): void {
  const file = db.filename
  closeWritable(db)
  const left = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  assert(left === 0, 'a closed database is whole without its log')
  for (const companion of ['-wal', '-shm']) rmSync(`${file}${companion}`, { force: true })
}

/** Writes bytes in order. Resolves when it is ready for more. */
export type Sink = (bytes: Uint8Array) => Promise<void> | void

/** Compresses a finished copy of a database. `onRead` gets the number of bytes read so far. */
export async function writeBackup(
  database: string,
  put: Sink,
  onRead: (bytes: number) => void,
): Promise<void> {
  const zstd = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })
  const copy = createReadStream(database)
  await pipeline(copy, zstd, async (pieces: AsyncIterable<Uint8Array>) => {
    for await (const piece of pieces) {
      await put(piece)
      onRead(copy.bytesRead)
    }
  })
}

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
const SQLITE_MAGIC = Buffer.from('SQLite format 3\0')

/**
 * Writes the database of a backup to `file`, which must not exist. `from` names the backup in
 * errors. Throws DataError if it is damaged, or not a backup.
 */
export async function unpackBackup(
  source: AsyncIterable<Uint8Array>,
  from: string,
  file: string,
): Promise<void> {
  const { head, pieces } = await peek(source, SQLITE_MAGIC.length)
  const isPlain = head.subarray(0, SQLITE_MAGIC.length).equals(SQLITE_MAGIC)
  if (!isPlain && !head.subarray(0, ZSTD_MAGIC.length).equals(ZSTD_MAGIC)) {
    throw new DataError(`${from} is not a backup of Hopcode.`)
  }
  // The decompressor accepts input that is cut off.
  const stages = isPlain ? [] : [wholeFrame, createZstdDecompress()]
  const whole = (parts: AsyncIterable<Buffer>) => limitToHeader(parts, dirname(file))
  try {
    const out = createWriteStream(file, { flags: 'wx', mode: 0o600 })
    await pipeline([Readable.from(pieces), ...stages, whole, out])
  } catch (error) {
    if (error instanceof DataError) throw error
    if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
    throw damaged(from, (error as Error).message)
  }
  const bytes = await Bun.file(file).slice(0, HEADER_BYTES).bytes()
  if (statSync(file).size !== databaseBytes(Buffer.from(bytes)))
    throw damaged(from, 'it is cut off')
}

const damaged = (from: string, why: string) =>
  new DataError(`${from} is damaged: ${why}. Restore another backup.`)

/**
 * The bytes of a database, which may come from a small file that expands to many. Throws once they
 * are more than its header says; DataError if the disk of `folder` has no room for that many. A
 * damaged header may name any size, so that without room the rest is read first, and not passed on.
 */
async function* limitToHeader(parts: AsyncIterable<Buffer>, folder: string) {
  let head = Buffer.alloc(0)
  let bytes = 0
  let noRoom: DataError | undefined
  for await (const part of parts) {
    bytes += part.length
    if (head.length < HEADER_BYTES) {
      head = Buffer.concat([head, part.subarray(0, HEADER_BYTES)])
      if (head.length >= HEADER_BYTES) noRoom = roomError(folder, databaseBytes(head))
    }
    if (head.length >= HEADER_BYTES && bytes > databaseBytes(head)) {
      throw new Error('it is longer than its header says')
    }
    if (!noRoom) yield part
  }
  if (!noRoom) return
  if (bytes < databaseBytes(head)) throw new Error('it is shorter than its header says')
  throw noRoom
}

const HEADER_BYTES = 100

/** The size of the file by its header: https://sqlite.org/fileformat.html, 1.3. */
function databaseBytes(header: Buffer): number {
  if (header.length < HEADER_BYTES) return -1
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return pageBytes * header.readUInt32BE(28)
}

/** The first `length` bytes of a stream or more, fewer if it is shorter; and the whole stream. */
async function peek(source: AsyncIterable<Uint8Array>, length: number) {
  const iterator = source[Symbol.asyncIterator]()
  let head = Buffer.alloc(0)
  while (head.length < length) {
    const { done, value } = await iterator.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  async function* pieces() {
    if (head.length > 0) yield head
    for (;;) {
      const { done, value } = await iterator.next()
      if (done) return
      yield value
    }
  }
  return { head, pieces: pieces() }
}
