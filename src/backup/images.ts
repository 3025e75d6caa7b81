import type { Database } from 'bun:sqlite'
import { existsSync, readFileSync } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Finding } from './invariants.ts'

const CHUNK = 500
/** How many images are read unless all are. */
const SAMPLE = 1000
const NAMED_MAX = 3

const SIGNATURE = '89504e470d0a1a0a'
/** A 13-byte header chunk: 512 by 512 pixels, one bit a pixel, by palette. */
const HEADER = '0000000d4948445200000200000002000103000000'
const LAST_CHUNK = '0000000049454e44ae426082'
const SIGNATURE_BYTES = 8
const START_BYTES = (SIGNATURE.length + HEADER.length) / 2

interface Counted {
  stored: number
  read: number
  damaged: string[]
  /** Images whose code the database did not know when they were seen. */
  orphans: string[]
}

/** Looks at the stored images: whether each is of a code, and a sample's or `all` bytes. */
export async function checkImages(
  dir: string,
  db: Database,
  { all }: { all: boolean },
): Promise<Finding[]> {
  const check = 'images'
  if (!existsSync(dir)) {
    return [{ check, status: 'note', says: 'none is stored yet; each is made when asked for' }]
  }
  const found: Counted = { stored: 0, read: 0, damaged: [], orphans: [] }
  const known = db.prepare<{ code: string }, [string]>(
    'SELECT value AS code FROM json_each(?) WHERE value IN (SELECT code FROM links)',
  )
  const look = (codes: readonly string[]) => {
    const existing = new Set(known.all(JSON.stringify(codes)).map(({ code }) => code))
    found.orphans.push(...codes.filter((code) => !existing.has(code)))
    for (const code of codes) {
      found.stored++
      if (!all && found.read >= SAMPLE) continue
      found.read++
      if (isDamaged(join(dir, `${code}.png`))) found.damaged.push(code)
    }
  }
  const chunk: string[] = []
  for await (const { name } of await opendir(dir)) {
    if (!name.endsWith('.png')) continue
    chunk.push(name.slice(0, -'.png'.length))
    if (chunk.length === CHUNK) look(chunk.splice(0))
  }
  look(chunk)
  // A code may have been claimed, or the image of a deleted one removed, since it was seen.
  const claimed = new Set(known.all(JSON.stringify(found.orphans)).map(({ code }) => code))
  found.orphans = found.orphans.filter(
    (code) => !claimed.has(code) && existsSync(join(dir, `${code}.png`)),
  )
  return describe(check, dir, found)
}

function describe(check: string, dir: string, found: Counted): Finding[] {
  const { stored, read, damaged, orphans } = found
  const findings: Finding[] = []
  if (damaged.length > 0) {
    const advice = `Delete these files in ${dir}: an image of a code is made when it is asked for.`
    const says = `${damaged.length} damaged: ${named(damaged)}`
    findings.push({ check, status: 'problem', says, advice })
  }
  if (orphans.length > 0) {
    const says =
      `${orphans.length} of no code: ${named(orphans)}. A process that was killed may leave ` +
      'the image of a deleted code. It leads nowhere, and may be deleted'
    findings.push({ check, status: 'note', says })
  }
  if (findings.length > 0) return findings
  const says = `${stored} stored, each of a code; ${read} read, each whole`
  return [{ check, status: 'ok', says }]
}

function named(codes: readonly string[]): string {
  const names = codes.slice(0, NAMED_MAX).map((code) => `${code}.png`)
  return codes.length > NAMED_MAX ? `${names.join(', ')}, …` : names.join(', ')
}

/** A file that is gone is no damage: it is made again. */
function isDamaged(path: string): boolean {
  try {
    return !isWholePng(readFileSync(path))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

/** Whether the bytes are an image as the service stores it, every chunk with its right checksum. */
function isWholePng(bytes: Buffer): boolean {
  if (bytes.toString('hex', 0, START_BYTES) !== SIGNATURE + HEADER) return false
  let at = SIGNATURE_BYTES
  while (at + 12 <= bytes.length) {
    const length = bytes.readUInt32BE(at)
    const end = at + 12 + length
    if (end > bytes.length) return false
    if (crc32(bytes.subarray(at + 4, end - 4)) !== bytes.readUInt32BE(end - 4)) return false
    if (end === bytes.length) return bytes.subarray(at).toString('hex') === LAST_CHUNK
    at = end
  }
  return false
}
