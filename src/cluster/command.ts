import { FolderLock } from '../db/lock.ts'
import { DataError } from '../lib/data-error.ts'
import { repeated } from '../lib/deadline.ts'
import { messageOf, type Outcome } from '../lib/thread.ts'
import { commandHost, OTHER_CLUSTER } from './apply.ts'
import { applyLog, type LogFolder } from './catch-up.ts'
import { encodeCalls, type LoggedCall, versionNeeded } from './entries.ts'
import { PostgresLog } from './log.ts'
import { findLogPosition } from './position.ts'
import { usingPostgres } from './setup.ts'
import { readCluster } from './status.ts'

/** Changes by a command on a host of a cluster: they go through the log. */

/** The append is repeated for `ms` while its outcome is unknown. */
const APPENDS = { ms: 5000, pauseMs: 100 }
/** How long a command waits until this host has applied its change. */
const APPLY_MS = 10_000
const APPLY_POLL_MS = 20

interface CommandFolder extends LogFolder {
  dataDir: string
}

/**
 * Applies the log if no service does: a command must decide on the newest data. Throws DataError if
 * PostgreSQL does not answer.
 */
export async function applyWithoutService(folder: CommandFolder): Promise<void> {
  using lock = FolderLock.tryClaim(folder.dataDir)
  if (lock) await applyLog(folder)
}

/**
 * Appends a call to the log, waits until this host has applied it, and returns its result. Throws
 * DataError if the log does not accept the call, or if its result is not known in time.
 */
export async function submitCommand(folder: CommandFolder, call: LoggedCall): Promise<unknown> {
  await requireMember(folder, versionNeeded([call]))
  const batch = crypto.randomUUID()
  await append(folder, batch, call)
  const outcome = await outcomeOf(folder, batch)
  if ('error' in outcome) throw new DataError(`The change failed: ${outcome.error}`)
  return outcome.value
}

/** A host with another cluster's data, or one that was removed, must not write to this log. */
async function requireMember({ db, url, host }: CommandFolder, version: number): Promise<void> {
  const { name, hosts } = await usingPostgres(url, readCluster)
  if (findLogPosition(db)?.cluster !== name) {
    throw new DataError(OTHER_CLUSTER)
  }
  if (!hosts.some(({ id }) => id === host)) {
    throw new DataError('This host was removed from the cluster: nothing is changed.')
  }
  const older = hosts.find((one) => one.version < version)
  if (older) {
    throw new DataError(`Upgrade ${older.name} first: its release does not know this change.`)
  }
}

async function append(folder: CommandFolder, batch: string, call: LoggedCall): Promise<void> {
  const log = new PostgresLog({ url: folder.url, host: commandHost(folder.host) })
  const entry = { batch, version: versionNeeded([call]), calls: encodeCalls([call]) }
  try {
    await log.head()
    const deadline = log.deadlineAfter(APPENDS.ms)
    await repeated(APPENDS, () => log.append(entry, deadline))
  } catch (error) {
    throw new DataError(
      `PostgreSQL has not confirmed the change, which may have happened: ${messageOf(error)}`,
      { cause: error },
    )
  } finally {
    await log.close()
  }
}

/** The service on this folder applies the log, or else this process. */
async function outcomeOf(folder: CommandFolder, batch: string): Promise<Outcome> {
  const find = folder.db.prepare<{ results: string }, [string]>(
    'SELECT results FROM command_results WHERE id = ?',
  )
  const deadline = performance.now() + APPLY_MS
  do {
    const row = find.get(batch)
    if (row) {
      folder.db.query('DELETE FROM command_results WHERE id = ?').run(batch)
      return (JSON.parse(row.results) as Outcome[])[0] ?? { error: 'it has no result' }
    }
    await applyWithoutService(folder)
    await Bun.sleep(APPLY_POLL_MS)
  } while (performance.now() < deadline)
  throw new DataError(
    'The change is in the log of the cluster, but this host has not applied it yet. ' +
      'See "hopcode cluster status".',
  )
}
