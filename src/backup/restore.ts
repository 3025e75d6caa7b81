import type { Database } from 'bun:sqlite'
import {
  constants,
  copyFileSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isKeyOf, readSecretKey, SecretHasher, secretFile } from '../accounts/secrets.ts'
import { hostIdFile, hostIdOf } from '../cluster/host-id.ts'
import { findLogPosition } from '../cluster/position.ts'
import { FolderLock } from '../db/lock.ts'
import { openWritable, refuseUnusable } from '../db/open.ts'
import { SettingStore } from '../db/settings.ts'
import { countedOf } from '../hits/cluster-store.ts'
import { journalFile } from '../hits/hits.ts'
import { adoptJournal, findJournalPosition } from '../hits/store.ts'
import { JournalDamaged, JournalFile } from '../hot/journal-file.ts'
import { fileTime } from '../lib/clock.ts'
import { DataError, RUN_RESTORE } from '../lib/data-error.ts'
import { flushToDisk } from '../lib/flush.ts'
import { NO_FOLLOW, refuseLink } from '../lib/symbolic-links.ts'
import { imageFolder, retireImages } from '../qr/files.ts'
import { remakeAtStart } from '../qr/remake.ts'
import { type Contents, closeAlone, countsOf, takeContents, unpackBackup } from './backup-file.ts'
import { checkDatabase } from './invariants.ts'

/**
 * A restore is atomic. The new state is prepared in a folder of its own, and one rename of that
 * folder decides. Before the rename, the old state is complete and unchanged. After it, every
 * command first completes the moves below, so that no program ever sees a mix of both states.
 */

export const UNFINISHED = '.restore-unfinished'
const DECIDED = '.restore-decided'
/** A file in the folder of a restore that names the folder for the old files. */
const ASIDE = 'aside'

/** Moved into place in this order; the database comes last and ends the moves. */
const NEW_FILES = ['secret.key', 'hits.journal', 'hopcode.db'] as const
/** Files of the old database that the new one does not have yet. */
const OLD_COMPANIONS = ['hopcode.db-wal', 'hopcode.db-shm']

export const asideFile = (folder: string): string => join(folder, ASIDE)

export interface RestoreCommand {
  /** Names the backup in errors. */
  from: string
  dataDir: string
  /** The folder for the old files. `UNFINISHED`: they are not kept. */
  aside: string
  /**
   * Registers this folder in the cluster from which the backup comes. Absent for a folder of one
   * host alone.
   */
  joinCluster?: ((db: Database) => Promise<unknown>) | undefined
}

/**
 * Checks a backup and decides to restore it. `moves` then puts the old files into the folder
 * `aside` and the new ones in place. The caller holds the lock. If anything is wrong, throws
 * DataError and leaves the data folder unchanged.
 */
export async function decideOnBackup(
  source: AsyncIterable<Uint8Array>,
  command: RestoreCommand,
): Promise<Contents> {
  const { from, dataDir, aside } = command
  const folder = beginRestore(dataDir)
  try {
    await unpackBackup(source, from, join(folder, 'hopcode.db'))
    const contents = await prepareDatabase(folder, command)
    writeFileSync(asideFile(folder), aside, { flush: true })
    for (const name of NEW_FILES.filter((name) => existsSync(join(folder, name)))) {
      flushToDisk(join(folder, name))
    }
    decideRestore(dataDir)
    return contents
  } catch (error) {
    discardRestore(dataDir)
    throw error
  }
}

/**
 * Checks the unpacked database, writes its key beside it and creates its journal. A database that
 * contains no key is a copy of this folder's database: it gets the folder's key and journal.
 */
async function prepareDatabase(
  folder: string,
  { from, dataDir, joinCluster }: RestoreCommand,
): Promise<Contents> {
  const file = join(folder, 'hopcode.db')
  refuseUnusable(file)
  const db = openWritable(file)
  try {
    const contents = takeContents(db, from)
    requirePurpose(db, { from, isForJoin: joinCluster !== undefined })
    const secretKey = contents?.secretKey ?? readFolderKey(dataDir, from)
    writeFileSync(secretFile(folder), secretKey, { mode: 0o600, flag: 'wx' })
    const hasher = new SecretHasher(readSecretKey(folder, { fresh: false }))
    for (const { status, says } of checkDatabase(db)) {
      if (status === 'problem') throw new DataError(`${from} is not restored: ${says}.`)
    }
    if (!isKeyOf(db, hasher)) {
      throw new DataError(`${from} is not restored: its secret.key is that of another database.`)
    }
    const described = contents?.manifest ?? countsOf(db)
    const isCounting = joinCluster
      ? keepJournal(db, dataDir)
      : contents === undefined && copyJournal(db, dataDir, folder)
    if (!isCounting) {
      using journal = JournalFile.open(journalFile(folder))
      adoptJournal(db, journal.id)
    }
    remakeAtStart(new SettingStore(db, 'host_settings'))
    // Hosts of a cluster share sessions: those of the running hosts apply.
    if (joinCluster) await joinCluster(db)
    else endSessions(db)
    closeAlone(db)
    return described
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * A host that joins its cluster again keeps its journal, with the hits that no host has counted.
 * False if it has none.
 */
function keepJournal(db: Database, dataDir: string): boolean {
  if (!existsSync(hostIdFile(dataDir)) || !existsSync(journalFile(dataDir))) return false
  try {
    using journal = JournalFile.open(journalFile(dataDir))
    adoptJournal(db, journal.id, countedOf(db, hostIdOf(dataDir), journal.id))
    return true
  } catch (error) {
    if (error instanceof JournalDamaged) return false
    throw error
  }
}

/**
 * A copy of this folder's database is given the folder's journal: the next start counts the hits
 * since the copy, as far as the journal still has them. False if the journal is not of this
 * database, or not whole.
 */
function copyJournal(db: Database, dataDir: string, folder: string): boolean {
  const file = journalFile(dataDir)
  if (!existsSync(file)) return false
  try {
    using journal = JournalFile.open(file)
    if (journal.id !== findJournalPosition(db)?.journalId) return false
  } catch (error) {
    if (error instanceof JournalDamaged) return false
    throw error
  }
  copyFileSync(file, journalFile(folder), constants.COPYFILE_EXCL)
  return true
}

function requirePurpose(
  db: Database,
  { from, isForJoin }: { from: string; isForJoin: boolean },
): void {
  const isOfCluster = findLogPosition(db) !== undefined
  if (isOfCluster === isForJoin) return
  throw new DataError(
    isForJoin
      ? `${from} was not made for joining. On a host of the cluster: "hopcode backup --for-join".`
      : `${from} is for a further host of a cluster: "hopcode cluster join". For one host alone, ` +
          'make the backup without --for-join.',
  )
}

function readFolderKey(dataDir: string, from: string): string {
  try {
    return readFileSync(secretFile(dataDir), 'utf8')
  } catch (cause) {
    throw new DataError(
      `${from} contains no secret key, and ${dataDir} has none either. ${RUN_RESTORE}`,
      { cause },
    )
  }
}

/**
 * Deletes sessions and one-time links: one that was closed or used after the backup would work
 * again.
 */
function endSessions(db: Database): void {
  for (const table of ['sessions', 'one_time_links']) db.run(`DELETE FROM ${table}`)
}

/** Creates an empty folder for the new state and removes that of an interrupted restore. */
export function beginRestore(dataDir: string): string {
  discardRestore(dataDir)
  const folder = join(dataDir, UNFINISHED)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

/** Removes the files of a restore that was interrupted before its decision. */
export function discardRestore(dataDir: string): void {
  rmSync(join(dataDir, UNFINISHED), { recursive: true, force: true })
}

/** The name of the folder for the old files. */
export const asideName = (now: number): string => `before-restore-${fileTime(now)}`

/** Makes the new state the folder's state. Its files must be flushed to the disk before. */
export function decideRestore(dataDir: string): void {
  flushToDisk(join(dataDir, UNFINISHED))
  renameSync(join(dataDir, UNFINISHED), join(dataDir, DECIDED))
  flushToDisk(dataDir)
}

/**
 * Completes a decided restore. Returns whether there was one. Throws DataError while a service or
 * another restore holds the folder's lock.
 */
export function finishRestore(dataDir: string): boolean {
  if (!existsSync(join(dataDir, DECIDED))) return false
  using _lock = FolderLock.claim(dataDir)
  for (const _ of moves(dataDir));
  return true
}

/**
 * The moves of a decided restore, for the holder of the folder's lock. Yields after each one, and
 * can be started again after any of them.
 */
export function* moves(dataDir: string): Generator<string> {
  const decided = join(dataDir, DECIDED)
  refuseLink(decided)
  if (!existsSync(decided)) return
  const aside = join(dataDir, readAside(decided))
  refuseLink(aside)
  const isPending = (name: string) => existsSync(join(decided, name))

  function* putAside(name: string) {
    if (!existsSync(join(dataDir, name))) return
    mkdirSync(aside, { recursive: true, mode: 0o700 })
    renameSync(join(dataDir, name), join(aside, name))
    flushToDisk(aside)
    flushToDisk(dataDir)
    yield `${name} aside`
  }

  // Where the new file is no longer pending, the file in the data folder is the new one.
  if (isPending('hopcode.db')) {
    for (const name of OLD_COMPANIONS) yield* putAside(name)
    retireImages(imageFolder(dataDir))
    yield 'images retired'
  }
  for (const name of NEW_FILES) {
    if (!isPending(name)) continue
    yield* putAside(name)
    renameSync(join(decided, name), join(dataDir, name))
    flushToDisk(dataDir)
    yield `${name} in place`
  }
  giveToOwner(dataDir)
  rmSync(decided, { recursive: true, force: true })
  flushToDisk(dirname(decided))
}

/** Only a name that this program creates: another one could lead out of the folder. */
function readAside(decided: string): string {
  const flag = constants.O_RDONLY | NO_FOLLOW
  const name = readFileSync(asideFile(decided), { encoding: 'utf8', flag }).trim()
  if (/^before-restore-[\w.]+$/.test(name) || name === UNFINISHED) return name
  throw new DataError(
    `${asideFile(decided)} does not name a folder for the old files: this program did not write ` +
      `it. Move ${decided} away.`,
  )
}

/** After a restore by root, the user of the service must be able to open the files. */
function giveToOwner(dataDir: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dataDir)
  for (const name of readdirSync(dataDir)) {
    const found = lstatSync(join(dataDir, name))
    // A file with another hard link may belong to another program.
    if (found.isDirectory() || found.nlink === 1) lchownSync(join(dataDir, name), uid, gid)
  }
}
