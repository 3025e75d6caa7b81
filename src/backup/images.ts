import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Finding } from './invariants.ts'

const CHUNK = 500
const NAMED_MAX = 3

/**
 * Checks that each stored image belongs to a code. Their content is not read: an image that is
 * deleted is created again on request.
 */
export async function checkImages(dir: string, db: Database): Promise<Finding> {
  const check = 'images'
  if (!existsSync(dir)) {
    return { check, status: 'note', says: 'none is stored yet; each is created on request' }
  }
  const known = db.prepare<{ code: string }, [string]>(
    'SELECT value AS code FROM json_each(?) WHERE value IN (SELECT code FROM links)',
  )
  const withoutLink = (codes: readonly string[]) => {
    const existing = new Set(known.all(JSON.stringify(codes)).map(({ code }) => code))
    return codes.filter((code) => !existing.has(code))
  }
  let stored = 0
  const orphans: string[] = []
  const chunk: string[] = []
  for await (const { name } of await opendir(dir)) {
    if (!name.endsWith('.png')) continue
    stored++
    chunk.push(name.slice(0, -'.png'.length))
    if (chunk.length === CHUNK) orphans.push(...withoutLink(chunk.splice(0)))
  }
  orphans.push(...withoutLink(chunk))
  // A code may have been claimed, or the image of a deleted one removed, in the meantime.
  const left = withoutLink(orphans).filter((code) => existsSync(join(dir, `${code}.png`)))
  if (left.length === 0) return { check, status: 'ok', says: `${stored} stored, each of a code` }
  const says =
    `${left.length} without a code: ${named(left)}. A process that was killed may leave the ` +
    'image of a deleted code. Nobody can get it, and you can delete it'
  return { check, status: 'note', says }
}

function named(codes: readonly string[]): string {
  const names = codes.slice(0, NAMED_MAX).map((code) => `${code}.png`)
  return codes.length > NAMED_MAX ? `${names.join(', ')}, …` : names.join(', ')
}
