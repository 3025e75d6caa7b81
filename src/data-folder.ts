import type { Database } from 'bun:sqlite'
import {
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  readdirSync,
} from 'node:fs'
import { join } from 'node:path'
import { issueOneTimeLink, OneTimeLinkStore } from './accounts/one-time-links.ts'
import { claimKey, readSecretKey, SecretHasher } from './accounts/secrets.ts'
import { AccountStore } from './accounts/store.ts'
import { discardRestore } from './backup/restore.ts'
import { CERTIFICATES } from './certificates/store.ts'
import { loggedFunctions } from './cluster/apply.ts'
import { catchUp } from './cluster/catch-up.ts'
import { hostIdOf } from './cluster/host-id.ts'
import { recordBaseUrl, requireSameMode } from './cluster/setup.ts'
import type { Config } from './config.ts'
import { FolderLock } from './db/lock.ts'
import { migrate } from './db/migrate.ts'
import { databaseFile, openWritable, refuseUnusable } from './db/open.ts'
import { SettingStore } from './db/settings.ts'
import { openJournal } from './hits/hits.ts'
import type { Clock } from './lib/clock.ts'
import { DataError } from './lib/data-error.ts'
import { diskRefusal } from './lib/disk-refusal.ts'
import type { Log } from './lib/log.ts'
import { openFile } from './lib/open-file.ts'
import type { RandomBytes } from './lib/random.ts'
import { refuseLink } from './lib/symbolic-links.ts'
import { imageFolder } from './qr/files.ts'
import { retireStaleImages } from './qr/remake.ts'

export interface DataFolder {
  /** A connection that may write; the caller closes it. */
  db: Database
  accounts: AccountStore
  hasher: SecretHasher
}

/** Creates `DATA_DIR` if it is missing. Throws DataError. */
export function createDataFolder(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new DataError(`${dataDir} cannot be created: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** Names under which a symbolic link would lead the program to files outside of its folder. */
const NAMES = [
  'hopcode.db',
  'secret.key',
  'hits.journal',
  'host.id',
  'serving.lock',
  'serving.pid',
  'serving.sock',
  '.restore-decided',
  CERTIFICATES,
  'cdn',
  'cdn/qr',
]

/** Throws DataError if this process is root and the folder has a symbolic link of these names. */
export function refuseLinks(dataDir: string): void {
  for (const name of NAMES) refuseLink(join(dataDir, name))
}

/**
 * Throws DataError if the folder has no database: a command that changes or reads what exists must
 * not create an empty one where `DATA_DIR` was mistyped.
 */
export function requireDatabase(dataDir: string): void {
  const file = databaseFile(dataDir)
  refuseUnusable(file)
  if (existsSync(file)) return
  throw new DataError(
    `${dataDir} contains no Hopcode data: hopcode.db is missing. Is DATA_DIR right? The first ` +
      'start of the service creates it.',
  )
}

/** Opens `DATA_DIR`: creates what is missing and upgrades the database. Throws DataError. */
export function openDataFolder(dataDir: string): DataFolder {
  createDataFolder(dataDir)
  const file = databaseFile(dataDir)
  refuseUnusable(file)
  const db = openWritable(file)
  try {
    migrate(db)
    const accounts = new AccountStore(db)
    const fresh = accounts.isEmpty()
    const hasher = new SecretHasher(readSecretKey(dataDir, { fresh }))
    claimKeyIfPossible(db, hasher, { dataDir, fresh })
    return { db, accounts, hasher }
  } catch (error) {
    db.close()
    throw error
  }
}

/** A full disk may refuse the first claim; the next start repeats it. */
function claimKeyIfPossible(...args: Parameters<typeof claimKey>): void {
  try {
    claimKey(...args)
  } catch (error) {
    if (!diskRefusal(error)) throw error
  }
}

const OTHERS = 0o077
/** The files that this program creates, without those that an operator put beside them. */
const OWN_FILES = /^(hopcode\.db|hits\.journal|secret\.key|host\.id|serving\.|certificates\/)/

/**
 * Names of files in the data folder that other users can read or write. The files contain e-mail
 * addresses and hashes. The images, in a folder of their own, are public.
 */
export function listOpenFiles(dataDir: string): string[] {
  const inFolder = (folder: string) =>
    readdirSync(join(dataDir, folder), { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => join(folder, name))
  const hasCertificates = lstatSync(join(dataDir, CERTIFICATES), {
    throwIfNoEntry: false,
  })?.isDirectory()
  return [...inFolder('.'), ...(hasCertificates ? inFolder(CERTIFICATES) : [])]
    .filter((name) => OWN_FILES.test(name))
    .filter((name) => {
      const { mode = 0 } = lstatSync(join(dataDir, name), { throwIfNoEntry: false }) ?? {}
      return mode & OTHERS
    })
    .sort()
}

/**
 * Makes a file private: the files of a copied folder may have other modes. Call it only while this
 * process has no connection to the database, because it opens the file (decision 15). By
 * descriptor, so that a symbolic link that replaces the file meanwhile is not followed.
 */
function closeToOthers(file: string): boolean {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  try {
    using opened = openFile(file, flags)
    const { descriptor } = opened
    const { mode, nlink } = fstatSync(descriptor)
    // A file with another hard link may belong to another program.
    if (nlink !== 1) return false
    fchmodSync(descriptor, mode & 0o700)
    return true
  } catch {
    // Another user's file, or a read-only disk: `hopcode check` reports it.
    return false
  }
}

/**
 * Runs a write that redirects do not need. If the disk refuses it, the start continues without it,
 * and the next start tries again.
 */
function unlessRefused<Result>(log: Log, what: string, work: () => Result): Result | undefined {
  try {
    return work()
  } catch (error) {
    const reason = diskRefusal(error)
    if (!reason) throw error
    log.warn('start.write_refused', { what, reason })
    return undefined
  }
}

interface ServiceOptions {
  clock: Clock
  random: RandomBytes
  log: Log
  /** Entries of the hit journal if it is created. */
  journalEntries?: number
}

export type ServiceFolder = Awaited<ReturnType<typeof openForService>>

/** Prepares the data folder for the service. Afterwards only the writer thread writes. */
export async function openForService(config: Config, options: ServiceOptions) {
  const { clock, random, log, journalEntries } = options
  const { dataDir, baseUrl, clusterUrl } = config
  createDataFolder(dataDir)
  const closed = listOpenFiles(dataDir).filter((name) => closeToOthers(join(dataDir, name)))
  if (closed.length > 0) log.warn('data.modes_closed', { files: closed.join(', ') })
  const lock = await FolderLock.claimAfterCommand(dataDir)
  try {
    unlessRefused(log, 'the removal of an unfinished restore', () => discardRestore(dataDir))
    // Before anything is created: what a refused start left would be in the way of a join.
    if (!existsSync(databaseFile(dataDir))) requireSameMode(undefined, dataDir, clusterUrl)
    const { db, accounts, hasher } = openDataFolder(dataDir)
    requireSameMode(db, dataDir, clusterUrl)
    const host = clusterUrl ? { id: hostIdOf(dataDir), boot: crypto.randomUUID() } : undefined
    if (clusterUrl && host) {
      const { id, boot } = host
      const functions = loggedFunctions(db, { id })
      await catchUp({ db, url: clusterUrl, host: id, functions, boot }, log)
    }
    const journal = openJournal(db, dataDir, log, journalEntries, clock)
    // Not before: a start that an unreadable journal ends must leave the database as it was.
    unlessRefused(log, 'the BASE_URL', () => recordBaseUrl(db, baseUrl))
    const remakeImages = unlessRefused(log, 'the QR images of an earlier BASE_URL', () =>
      retireStaleImages(new SettingStore(db, 'host_settings'), imageFolder(dataDir), baseUrl),
    )
    const setupLink = unlessRefused(log, 'the link that sets up the owner', () => {
      // In a cluster, all changes go through its log.
      if (clusterUrl || accounts.listOwners().length > 0) return undefined
      const { path, stored } = issueOneTimeLink({ hasher, random }, { purpose: 'setup' }, clock())
      new OneTimeLinkStore(db).add(stored)
      return baseUrl + path
    })
    return { db, lock, journal, remakeImages, setupLink, hasher, host }
  } catch (error) {
    lock.release()
    throw error
  }
}
