import { closeSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DataError } from '../db/data-error.ts'
import { readPieces } from './disk.ts'
import { readTar, TarError, tarEnd, tarHeader, tarPadding } from './tar.ts'

/**
 * A backup is a tar of four files, in this order. `sha256sum -c SHA256SUMS` proves the others, and
 * comes last: a backup that was cut off has none.
 */
const CONTENTS = ['hopcode.db', 'secret.key', 'manifest.json'] as const
const SUMS = 'SHA256SUMS'
const ORDER: readonly string[] = [...CONTENTS, SUMS]

/** The small files of a backup are at most this large. */
const SMALL_MAX_BYTES = 64 * 1024

/** Raised when an older Hopcode could no longer restore what this one backs up. */
const FORMAT = 1

const count = z.int().nonnegative()

/** What a backup says of itself. */
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

/** Takes bytes in order; they may change once it has returned. */
type Sink = (bytes: Uint8Array) => Promise<void> | void

/** Writes the backup whose files lie in `folder`. `modified`: epoch seconds. */
export async function writeArchive(folder: string, modified: number, put: Sink): Promise<void> {
  const sums: string[] = []
  for (const name of CONTENTS) {
    const { size } = statSync(join(folder, name))
    const hasher = new Bun.CryptoHasher('sha256')
    await put(tarHeader({ name, size, modified }))
    for (const piece of readPieces(join(folder, name))) {
      hasher.update(piece)
      await put(piece)
    }
    await put(tarPadding(size))
    sums.push(sumLine(hasher.digest('hex'), name))
  }
  const list = Buffer.from(sums.join(''))
  await put(tarHeader({ name: SUMS, size: list.length, modified }))
  await put(list)
  await put(tarPadding(list.length))
  await put(tarEnd())
}

/**
 * Unpacks a backup into an empty folder, every file flushed to the disk. `from` names it in errors.
 * Throws DataError unless it is whole, undamaged and of a format that this program knows.
 */
export async function unpackArchive(
  source: AsyncIterable<Uint8Array>,
  from: string,
  folder: string,
): Promise<Manifest> {
  try {
    const sums = await unpack(source, folder)
    const expected = CONTENTS.map((name) => sumLine(sums.get(name) ?? '', name)).join('')
    if (readFileSync(join(folder, SUMS), 'utf8') !== expected) {
      throw new TarError('its checksums do not agree with its content')
    }
  } catch (error) {
    if (!(error instanceof TarError)) throw error
    throw new DataError(`${from} is damaged: ${error.message}. Restore another backup.`)
  }
  return parseManifest(readFileSync(join(folder, 'manifest.json'), 'utf8'), from)
}

const sumLine = (sum: string, name: string) => `${sum}  ${name}\n`

async function unpack(source: AsyncIterable<Uint8Array>, folder: string) {
  const sums = new Map<string, string>()
  let seen = 0
  for await (const { name, size, body } of readTar(source)) {
    if (name !== ORDER[seen++]) throw new TarError(`${name} is not a file of a backup in its place`)
    if (name !== 'hopcode.db' && size > SMALL_MAX_BYTES) throw new TarError(`${name} is too large`)
    sums.set(name, await save(body, join(folder, name)))
  }
  const missing = ORDER[seen]
  if (missing) throw new TarError(`${missing} is missing`)
  return sums
}

async function save(body: AsyncIterable<Uint8Array>, path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  const descriptor = openSync(path, 'wx', 0o600)
  try {
    for await (const piece of body) {
      hasher.update(piece)
      writeWhole(descriptor, piece)
    }
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  return hasher.digest('hex')
}

/** A single write may take less than it was given. */
export function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at)
}

function parseManifest(text: string, from: string): Manifest {
  const parsed = Manifest.safeParse(readJson(text))
  if (parsed.success) return parsed.data
  throw new DataError(
    `${from} is a backup that this Hopcode cannot read: restore it with the release that made ` +
      'it, or a newer one.',
  )
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
