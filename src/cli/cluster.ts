import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { AccountStore } from '../accounts/store.ts'
import { applyLog } from '../cluster/catch-up.ts'
import { hostIdFile, hostIdOf } from '../cluster/host-id.ts'
import { findLogPosition } from '../cluster/position.ts'
import {
  initCluster,
  joinCluster,
  leaveCluster,
  recordBaseUrl,
  removeHost,
  requireNoHosts,
  requirePosition,
  requireSameBaseUrl,
  usingPostgres,
} from '../cluster/setup.ts'
import { type HostState, readCluster } from '../cluster/status.ts'
import type { Config } from '../config.ts'
import { createDataFolder, openDataFolder, requireDatabase } from '../data-folder.ts'
import { FolderLock } from '../db/lock.ts'
import { closeWritable, databaseFile } from '../db/open.ts'
import { SettingStore } from '../db/settings.ts'
import { type Clock, MINUTE, SECOND } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { messageOf } from '../lib/thread.ts'
import { isRestoredOnly } from '../qr/remake.ts'
import { loggedWrites } from '../writes.ts'
import { CommandError } from './args.ts'
import { STREAM } from './backup.ts'
import { findPositionOf, readFolder, requireOrigin, restoreFiles } from './restore.ts'
import { localAddress } from './service.ts'

/** Commands on a cluster and its hosts. Each returns what it prints. */

/** Creates a cluster with the data of this folder, or upgrades the tables of its cluster. */
export async function init(config: Config): Promise<string> {
  const { dataDir } = config
  const clusterUrl = requireClusterUrl(config)
  // A refused command must not leave a database in an empty folder.
  if (!existsSync(databaseFile(dataDir))) await requireNoHosts(clusterUrl)
  createDataFolder(dataDir)
  const wasInCluster = findPositionOf(dataDir) !== undefined
  await withFolder(dataDir, async ({ db }) => {
    recordBaseUrl(db, config.baseUrl)
    await initCluster({ db, dataDir, clusterUrl, ...nameAndAddress(config) })
  })
  return wasInCluster
    ? 'The tables of the cluster are those of this release.'
    : 'This host is the first one of a new cluster. Start its service with CLUSTER_URL.'
}

/**
 * Fills this folder with a copy of a host of the cluster. A folder that belongs to the cluster
 * already gets a new database, and keeps its id and the hits that are not counted yet.
 */
export async function join(
  config: Config,
  { source }: { source: string },
  clock: Clock,
): Promise<string> {
  const { dataDir } = config
  const clusterUrl = requireClusterUrl(config)
  const origin = source === '' ? STREAM : source
  requireOrigin(origin)
  createDataFolder(dataDir)
  using _lock = FolderLock.claim(dataDir)
  // Before the copy is read, which may take minutes.
  const { name } = await usingPostgres(clusterUrl, readCluster)
  const isUnused = readFolder(dataDir, (db) => hasNeverServed(db, name)) === true
  if (!isUnused) requireReplaceable(dataDir, name)
  const restored = await restoreFiles(origin, {
    dataDir,
    clock,
    keepsOld: !isUnused,
    joinCluster: (db) => {
      requireSameBaseUrl(db, config.baseUrl)
      return joinCluster({ db, dataDir, clusterUrl, ...nameAndAddress(config) })
    },
  })
  return (
    `Joined the cluster with ${restored}\n` +
    'Start the service. It applies what the cluster has changed since.'
  )
}

/** Nothing is lost with such a database: a join or a start created it, and nothing followed. */
function hasNeverServed(db: Database, name: string): boolean {
  const cluster = findLogPosition(db)?.cluster
  if (cluster === undefined) return new AccountStore(db).isEmpty()
  return cluster === name && isRestoredOnly(new SettingStore(db, 'host_settings'))
}

/** Throws CommandError for data that do not belong to the cluster of this name. */
function requireReplaceable(dataDir: string, name: string): void {
  if (!existsSync(databaseFile(dataDir))) return
  const cluster = findPositionOf(dataDir)?.cluster
  // The cluster of a damaged database is unknown.
  if (cluster === name || (cluster === undefined && existsSync(hostIdFile(dataDir)))) return
  throw new CommandError(
    `${dataDir} has data that do not belong to this cluster, and a join would replace them: ` +
      'choose an empty DATA_DIR, or move the files away.',
  )
}

/** Makes this host a single service again, with the data of the cluster. */
export async function leave(config: Config): Promise<string> {
  const { dataDir, clusterUrl } = config
  requireDatabase(dataDir)
  return withFolder(dataDir, async ({ db }) => {
    requirePosition({ db, dataDir })
    const host = hostIdOf(dataDir)
    if (clusterUrl) {
      const functions = loggedWrites(db, host)
      try {
        await applyLog({ db, url: clusterUrl, host, functions })
        await usingPostgres(clusterUrl, (sql) => removeHost(sql, host))
      } catch (error) {
        throw new CommandError(`${messageOf(error)} ${LEAVE_ANYWAY}`)
      }
    }
    const seq = leaveCluster({ db, dataDir })
    const left = `This host has left the cluster, with its data up to entry ${seq}.`
    if (clusterUrl) return `${left} Start its service without CLUSTER_URL.`
    return (
      `${left} Without CLUSTER_URL, the cluster still lists it. If PostgreSQL is not lost, run ` +
      `this on another host: hopcode cluster leave --host ${host}`
    )
  })
}

const LEAVE_ANYWAY =
  'To leave with the data that this host has, run the command with an empty CLUSTER_URL.'

/** A host without contact for less may be paused, or starting. */
const LOST_MS = 10 * MINUTE

/** Removes a lost host from the cluster. `id`: its id or name. */
export async function removeLost(
  config: Config,
  { host: id, force }: { host: string; force: boolean },
): Promise<string> {
  const host = await usingPostgres(requireClusterUrl(config), async (sql) => {
    const { hosts } = await readCluster(sql)
    const found = requireHost(hosts, id)
    if (found.isLive) {
      throw new DataError(
        `${found.name} is live: stop its service, and run "hopcode cluster leave" there.`,
      )
    }
    const { silentMs } = found
    if (!force && silentMs !== undefined && silentMs < LOST_MS) {
      throw new DataError(
        `${found.name} was in contact ${Math.round(silentMs / SECOND)} s ago, and may return. If ` +
          'it is lost, add --force.',
      )
    }
    await removeHost(sql, found.id)
    return found
  })
  return (
    `${host.name} is removed. Its data folder cannot follow the log any more: to use the host ` +
    'again, run "hopcode cluster join" there.'
  )
}

function requireHost(hosts: readonly HostState[], id: string): HostState {
  const found = hosts.filter((host) => host.id === id || host.name === id)
  if (found.length === 1) return found[0] as HostState
  const known = hosts.map((host) => `${host.id} (${host.name}, ${host.address})`).join(', ')
  const problem = found.length === 0 ? 'No host has' : 'Several hosts have'
  throw new DataError(`${problem} the id or name ${id}. The hosts: ${known || 'none'}`)
}

export function requireClusterUrl({ clusterUrl }: Config): string {
  if (clusterUrl) return clusterUrl
  throw new CommandError('CLUSTER_URL is missing: the PostgreSQL database of the cluster')
}

/** Of this host, for people: all hosts have the same BASE_URL. */
function nameAndAddress({ host, port, hostName }: Config): { name: string; address: string } {
  const local = localAddress(host, port)
  const address = local.replace(/^http:\/\/127\.0\.0\.1(?=:)/, `http://${hostName}`)
  return { name: hostName, address }
}

/** Opens the folder while no service uses it. */
async function withFolder<Result>(
  dataDir: string,
  work: (folder: ReturnType<typeof openDataFolder>) => Promise<Result>,
): Promise<Result> {
  using _lock = FolderLock.claim(dataDir)
  const folder = openDataFolder(dataDir)
  try {
    return await work(folder)
  } finally {
    closeWritable(folder.db)
  }
}
