import type { Database } from 'bun:sqlite'
import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { z } from 'zod'
import { DataError } from '../lib/data-error.ts'

/**
 * A backup is one SQLite database, compressed with zstd: the tables of the service, and a table
 * `backup` with the secret key and a manifest. An uncompressed database restores too, such as the
 * copy that an upgrade leaves.
 */

/** Raised when an older Hopcode could no longer restore what this one backs up. */
const FORMAT = 2

const count = z.int().nonnegative()

/** Facts about a backup. */
const Manifest = z.object({
  format: z.literal(FORMAT),
  /** The release that made it. */
  hopcode: z.string(),
  database_version: count,
  /** When it began: everything acknowledged and every redirect served before is in it. */
  created_at: z.iso.datetime(),
  accounts: count,
  links: count,
  redirects: count,
})
export type Manifest = z.infer<typeof Manifest>

export const newManifest = (facts: Omit<Manifest, 'format'>): Manifest => ({
  format: FORMAT,
  ...facts,
})

const TABLE = 'backup'

/** Puts the manifest and the text of `secret.key` into the copy that becomes a backup. */
export function addContents(db: Database, manifest: Manifest, secretKey: string): void {
  db.run(`CREATE TABLE ${TABLE} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`)
  const add = db.prepare<null, [string, string]>(`INSERT INTO ${TABLE} VALUES (?, ?)`)
  add.run('manifest', JSON.stringify(manifest))
  add.run('secret.key', secretKey)
  add.finalize()
}

/**
 * Takes the manifest and the key out of an unpacked backup; undefined for a database that is none,
 * such as the copy that an upgrade leaves. `from` names it in errors. Throws DataError for a format
 * that this program does not know.
 */
export function takeContents(
  db: Database,
  from: string,
): { manifest: Manifest; secretKey: string } | undefined {
  const tables = db.query<{ n: number }, [string]>(
    'SELECT count(*) AS n FROM sqlite_schema WHERE name = ?',
  )
  if (tables.get(TABLE)?.n === 0) return undefined
  const find = db.prepare<{ value: string }, [string]>(`SELECT value FROM ${TABLE} WHERE name = ?`)
  const manifest = parseManifest(find.get('manifest')?.value ?? '')
  const secretKey = find.get('secret.key')?.value
  find.finalize()
  if (!manifest || secretKey === undefined) {
    throw new DataError(
      `${from} is a backup that this Hopcode cannot read: restore it with the release that made ` +
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

/** Writes bytes in order. Resolves when it accepts the next ones. */
type Sink = (bytes: Uint8Array) => Promise<void> | void

/** Compresses a finished copy of a database. */
export async function writeBackup(database: string, put: Sink): Promise<void> {
  const zstd = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })
  await pipeline(createReadStream(database), zstd, async (pieces: AsyncIterable<Uint8Array>) => {
    for await (const piece of pieces) await put(piece)
  })
}

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
const SQLITE_MAGIC = Buffer.from('SQLite format 3\0')

/**
 * Writes the database of a backup to `file`, which must not exist. `from` names the backup in
 * errors. Throws DataError for what is no backup, or a damaged one.
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
  const stages = isPlain ? [] : [createZstdDecompress()]
  try {
    const out = createWriteStream(file, { flags: 'wx', mode: 0o600 })
    await pipeline([Readable.from(pieces), ...stages, out])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
    throw damaged(from, (error as Error).message)
  }
  // The decompressor does not mind where its input ends.
  const bytes = await Bun.file(file).slice(0, 100).bytes()
  if (statSync(file).size !== databaseBytes(Buffer.from(bytes)))
    throw damaged(from, 'it is cut off')
}

const damaged = (from: string, why: string) =>
  new DataError(`${from} is damaged: ${why}. Restore another backup.`)

/** What an SQLite header says of the file's size: https://sqlite.org/fileformat.html, 1.3. */
function databaseBytes(header: Buffer): number {
  if (header.length < 100) return -1
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return pageBytes * header.readUInt32BE(28)
}

/** The first bytes of a stream, at least `length` where it has so many, and the whole of it. */
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
