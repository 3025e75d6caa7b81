import type { Database } from 'bun:sqlite'
import { DataError } from '../lib/data-error.ts'
import { retry, withTimeout } from '../lib/deadline.ts'
import { flushToDisk } from '../lib/flush.ts'
import type { Log } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import { Applier, IDLE_TRANSACTION_BYTES, NOT_CURRENT, OTHER_CLUSTER } from './apply.ts'
import { NOT_ANSWERING, STATEMENT_MS } from './connection.ts'
import { HostInUse, LEASE_MS, PostgresLog } from './log.ts'

/** Time that a start waits for PostgreSQL before it listens: redirects do not need it. */
const CONTACT_MS = 500
/** The process of this host that was killed may have reported just before. */
const REPORTS = { ms: LEASE_MS + 500, pauseMs: 100 }
/** Pages in the write-ahead log, 39 MiB, after which it is checkpointed. */
const CHECKPOINT_PAGES = 10_000

export interface LogFolder {
  /** A connection that may write. */
  db: Database
  url: string
  host: string
  /** All functions that an entry may call. */
  functions: object
  /** The id of this process if it is the service. */
  boot?: string
}

/**
 * Applies all entries of the log before the service starts. The hit journal must not be opened
 * before that: a loss of power may have removed hits from it that the log has already counted, and
 * new hits must not get their positions. Without PostgreSQL the service starts with what it has.
 * Throws `HostInUse`.
 */
export async function catchUp(folder: LogFolder, log: Log): Promise<void> {
  try {
    log.info('cluster.caught_up', { entries: await applyLog(folder, CONTACT_MS) })
  } catch (error) {
    if (error instanceof HostInUse) throw error
    log.warn('cluster.not_caught_up', { reason: messageOf(error) })
  }
}

/**
 * Applies all entries of the log, and returns how many. For the holder of the folder's lock. Throws
 * DataError if PostgreSQL does not answer at first for `contactMs`, the disk refuses, or an entry
 * must not be applied here.
 */
export async function applyLog(
  { db, url, host, functions, boot }: LogFolder,
  contactMs = STATEMENT_MS,
): Promise<number> {
  const applier = new Applier({ db, functions, transactionBytes: IDLE_TRANSACTION_BYTES })
  const entries = new PostgresLog({ url, host, ...(boot !== undefined && { boot }) })
  const first = applier.position.seq
  // One flush to the disk is enough for a page of entries: the log still has them.
  db.run('PRAGMA synchronous = NORMAL')
  db.run(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  try {
    const { cluster } = await withTimeout(contactMs, entries.head(), NOT_ANSWERING)
    if (cluster !== applier.position.cluster) throw new DataError(OTHER_CLUSTER)
    // Again with each page: the pages may take longer than the lease.
    const report = async () => {
      // First: the log may delete entries that every host has reported.
      if (applier.position.seq > first) flushToDisk(`${db.filename}-wal`)
      if (!boot) return
      const applied = applier.position.seq
      // The other hosts do not wait for this one.
      const { problem = NOT_CURRENT } = applier
      await retry(REPORTS, () => entries.report({ applied, problem, digests: [] }))
    }
    for (await report(); !applier.problem; await report()) {
      const page = await entries.readAfter(applier.position.seq)
      if (page.length === 0) return applier.position.seq - first
      for (const _ of applier.apply(page)) await Bun.sleep(0)
    }
    throw new DataError(applier.problem)
  } catch (error) {
    if (error instanceof DataError) throw error
    const reason = messageOf(error)
    throw new DataError(`The log of the cluster cannot be applied: ${reason}`, { cause: error })
  } finally {
    // The close is not awaited: the server may not answer.
    void entries.close()
    db.run('PRAGMA synchronous = FULL')
  }
}
