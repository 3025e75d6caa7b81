import { existsSync } from 'node:fs'
import { issueOneTimeLink, OneTimeLinkStore } from './accounts/one-time-links.ts'
import { discardRestore } from './backup/restore.ts'
import { catchUp } from './cluster/catch-up.ts'
import { hostIdOf } from './cluster/host-id.ts'
import { recordBaseUrl, requireSameMode } from './cluster/setup.ts'
import type { Config } from './config.ts'
import { closeOpenFiles, createDataFolder, openDataFolder } from './data-folder.ts'
import { FolderLock } from './db/lock.ts'
import { databaseFile } from './db/open.ts'
import { SettingStore } from './db/settings.ts'
import { openJournal } from './hits/hits.ts'
import type { Clock } from './lib/clock.ts'
import { diskRefusal } from './lib/disk-refusal.ts'
import type { Log } from './lib/log.ts'
import type { RandomBytes } from './lib/random.ts'
import { imageFolder } from './qr/files.ts'
import { retireStaleImages } from './qr/remake.ts'
import { loggedWrites } from './writes.ts'

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

interface PrepareOptions {
  clock: Clock
  random: RandomBytes
  log: Log
  /** Entries of the hit journal if it is created. */
  journalEntries?: number
}

/** Prepares the data folder before the first request. Afterwards only the writer thread writes. */
export async function prepare(config: Config, options: PrepareOptions) {
  const { clock, random, log, journalEntries } = options
  const { dataDir, baseUrl, clusterUrl } = config
  createDataFolder(dataDir)
  const closed = closeOpenFiles(dataDir)
  if (closed.length > 0) log.warn('data.modes_closed', { files: closed.join(', ') })
  const lock = await FolderLock.claimAfterCommand(dataDir)
  try {
    unlessRefused(log, 'the removal of an unfinished restore', () => discardRestore(dataDir))
    // Before anything is created: what a refused start left would be in the way of a join.
    if (!existsSync(databaseFile(dataDir))) requireSameMode(undefined, dataDir, clusterUrl)
    const { db, accounts, hasher } = openDataFolder(dataDir)
    requireSameMode(db, dataDir, clusterUrl)
    unlessRefused(log, 'the BASE_URL', () => recordBaseUrl(db, baseUrl))
    const hostId = clusterUrl ? hostIdOf(dataDir) : undefined
    if (clusterUrl && hostId) {
      const functions = loggedWrites(db, hostId)
      await catchUp({ db, url: clusterUrl, host: hostId, functions }, log)
    }
    const journal = openJournal(db, dataDir, log, journalEntries, clock)
    const remakeImages = unlessRefused(log, 'the QR images of an earlier BASE_URL', () =>
      retireStaleImages(new SettingStore(db, 'host_settings'), imageFolder(dataDir), baseUrl),
    )
    const fresh = accounts.isEmpty()
    const setupLink = unlessRefused(log, 'the link that sets up the owner', () => {
      // In a cluster, all changes go through its log.
      if (clusterUrl || accounts.countOwners() > 0) return undefined
      const { path, stored } = issueOneTimeLink({ hasher, random }, { purpose: 'setup' }, clock())
      new OneTimeLinkStore(db).add(stored)
      return baseUrl + path
    })
    return { db, lock, journal, remakeImages, fresh, setupLink, hasher, hostId }
  } catch (error) {
    lock.release()
    throw error
  }
}
