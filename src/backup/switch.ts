import {
  closeSync,
  constants,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { FolderLock } from '../db/lock.ts'
import { DataError } from '../lib/data-error.ts'
import { flushToDisk } from '../lib/flush.ts'
import { NO_FOLLOW, refuseLink } from '../lib/symbolic-links.ts'
import { QrFiles } from '../qr/files.ts'

/**
 * How a restored state takes the place of the old one. It is made ready in a folder of its own; one
 * rename of that folder then decides. Before it, the old state is whole and untouched. After it,
 * every command first carries out what is left of the moves below, so that no one ever sees a mix.
 */

export const UNFINISHED = '.restore-unfinished'
const DECIDED = '.restore-decided'
/** In the folder of a restore: where the old files go. */
const ASIDE = 'aside'

/** Moved into place in this order; the database comes last and ends the moves. */
const NEW_FILES = ['secret.key', 'hits.journal', 'hopcode.db'] as const
/** What belongs to the old database, and has no successor. */
const OLD_COMPANIONS = ['hopcode.db-wal', 'hopcode.db-shm']

/** An empty folder for the new state. What an interrupted restore left undecided goes. */
export function beginRestore(dataDir: string): string {
  discardRestore(dataDir)
  const folder = join(dataDir, UNFINISHED)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

/** Removes what a restore left that was interrupted before its decision. */
export function discardRestore(dataDir: string): void {
  rmSync(join(dataDir, UNFINISHED), { recursive: true, force: true })
}

/** The name of the folder that keeps the old files; ISO 8601's basic form, for all file systems. */
export const asideName = (iso: string): string => `before-restore-${iso.replace(/[:-]/g, '')}`

/** From here on the new state is the folder's. Its files must be flushed to the disk. */
export function decideRestore(dataDir: string): void {
  flushToDisk(join(dataDir, UNFINISHED))
  renameSync(join(dataDir, UNFINISHED), join(dataDir, DECIDED))
  flushToDisk(dataDir)
}

/**
 * Carries out a decided restore, if there is one, and returns whether there was. Throws DataError
 * while a service or another restore holds the folder.
 */
export function finishRestore(dataDir: string): boolean {
  if (!existsSync(join(dataDir, DECIDED))) return false
  const lock = FolderLock.claim(dataDir)
  try {
    for (const _ of moves(dataDir));
  } finally {
    lock.release()
  }
  return true
}

/** For the holder of the folder's lock. Stops after each move, and can be begun again at any. */
export function* moves(dataDir: string): Generator<string> {
  const decided = join(dataDir, DECIDED)
  refuseLink(decided)
  if (!existsSync(decided)) return
  const aside = join(dataDir, readAside(decided))
  refuseLink(aside)
  const waits = (name: string) => existsSync(join(decided, name))

  function* putAside(name: string) {
    if (!existsSync(join(dataDir, name))) return
    mkdirSync(aside, { recursive: true, mode: 0o700 })
    renameSync(join(dataDir, name), join(aside, name))
    flushToDisk(aside)
    flushToDisk(dataDir)
    yield `${name} aside`
  }

  // A name without its new file has been through this: what lies there now is the new one.
  if (waits('hopcode.db')) {
    for (const name of OLD_COMPANIONS) yield* putAside(name)
    const images = join(dataDir, 'cdn', 'qr')
    if (existsSync(images)) {
      // Deleted at leisure later; from now on no old image is found.
      new QrFiles({ dir: images }).retireAll().catch(() => {})
      yield 'images retired'
    }
  }
  for (const name of NEW_FILES) {
    if (!waits(name)) continue
    yield* putAside(name)
    renameSync(join(decided, name), join(dataDir, name))
    flushToDisk(dataDir)
    yield `${name} in place`
  }
  giveToOwner(dataDir)
  rmSync(decided, { recursive: true, force: true })
  flushToDisk(dirname(decided))
}

/** A name of this program's own making: another could lead out of the folder. */
function readAside(decided: string): string {
  const descriptor = openSync(nameAside(decided), constants.O_RDONLY | NO_FOLLOW)
  try {
    const name = readFileSync(descriptor, 'utf8').trim()
    if (/^before-restore-[\w.]+$/.test(name)) return name
  } finally {
    closeSync(descriptor)
  }
  throw new DataError(
    `${nameAside(decided)} does not name a folder for the old files: this program did not write ` +
      `it. Move ${decided} away.`,
  )
}

/** A restore by root leaves nothing that the service's own user could not open. */
function giveToOwner(dataDir: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dataDir)
  for (const name of readdirSync(dataDir)) {
    const found = lstatSync(join(dataDir, name))
    // A file with a further name may be anybody's.
    if (found.isDirectory() || found.nlink === 1) lchownSync(join(dataDir, name), uid, gid)
  }
}

export const nameAside = (folder: string): string => join(folder, ASIDE)
