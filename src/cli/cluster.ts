import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import type { Command } from '@commander-js/extra-typings'
import { AccountStore } from '../accounts/store.ts'
import { loggedFunctions } from '../cluster/apply.ts'
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
import { MINUTE, SECOND } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { hostAddress } from '../lib/local-address.ts'
import { print } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import { isRestoredOnly } from '../qr/remake.ts'
import { STREAM } from './backup.ts'
import { addClusterStatus, requireClusterUrl } from './cluster-status.ts'
import { CommandError } from './errors.ts'
import { readConfigOfFolder } from './folder.ts'
import { type Flag, JSON_OBJECT, parseText } from './options.ts'
import { findPositionOf, readFolder, requireOrigin, restoreFiles, summaryOf } from './restore.ts'

export function addClusterCommands(program: Command): void {
  const cluster = program.command('cluster').description('several hosts with the same links')
  cluster
    .command('init')
    .summary('create a cluster with the data of this host')
    .description(
      'Create a cluster with the data of this host: the tables in the PostgreSQL database of ' +
        'CLUSTER_URL. Run it again after an upgrade that says so, or with an empty database ' +
        'after the loss of PostgreSQL. Stop the service first.',
    )
    .option(...JSON_OBJECT)
    .action(async (options) => report(await init(readConfigOfFolder()), options))
  cluster
    .command('join')
    .summary('add this host to a cluster, with a copy of another host')
    .description(
      'Add this host to a cluster, with a copy of another host. On the new host: ' +
        'ssh HOST hopcode backup --for-join - | hopcode cluster join. DATA_DIR is empty, or the ' +
        'host belongs to the cluster: then its database is replaced. Stop its service first.',
    )
    .argument('[FILE]', 'a backup; - is standard input', STREAM)
    .option(...JSON_OBJECT)
    .action(async (source, options) => report(await join(readConfigOfFolder(), source), options))
  addClusterStatus(cluster)
  cluster
    .command('leave')
    .summary('remove this host, or a lost one, from its cluster')
    .description(
      'Remove this host, or a lost one, from its cluster. This host keeps its data and works ' +
        'alone again: stop its service first, and start it without CLUSTER_URL. If PostgreSQL is ' +
        'lost, run it without CLUSTER_URL.',
    )
    .option('--host <ID>', 'remove a lost host instead of this one, by its id or name', parseText)
    .option('--force', 'with --host: also if it was in contact in the last ten minutes')
    .option(...JSON_OBJECT)
    .action(async ({ host, force, json }) => {
      const config = readConfigOfFolder()
      const left = host === undefined ? leave(config) : removeLost(config, { host, force })
      report(await left, { json })
    })
}

/** What a command did: facts for programs, and a text for a person. */
interface Done {
  text: string
  json: Record<string, unknown>
}

const report = ({ text, json: facts }: Done, { json }: { json?: Flag }): void =>
  print(json ? JSON.stringify(facts) : text)

/** Creates a cluster with the data of this folder, or upgrades the tables of its cluster. */
async function init(config: Config): Promise<Done> {
  const { dataDir } = config
  const clusterUrl = requireClusterUrl(config)
  // A refused command must not leave a database in an empty folder.
  if (!existsSync(databaseFile(dataDir))) await requireNoHosts(clusterUrl)
  createDataFolder(dataDir)
  const wasInCluster = findPositionOf(dataDir) !== undefined
  const { seq } = await withFolder(dataDir, ({ db }) => {
    recordBaseUrl(db, config.baseUrl)
    return initCluster({ db, dataDir, clusterUrl, ...entryOf(config) })
  })
  const text = wasInCluster
    ? `The tables of the cluster are those of this release. This host is at entry ${seq}.`
    : 'This host is the first one of a new cluster. Start its service with CLUSTER_URL.'
  return { text, json: { host: hostIdOf(dataDir), is_new: !wasInCluster, entry: seq } }
}

/**
 * Fills this folder with a copy of a host of the cluster. A folder that belongs to the cluster
 * already gets a new database, and keeps its id and the hits that are not counted yet.
 */
async function join(config: Config, origin: string): Promise<Done> {
  const { dataDir } = config
  const clusterUrl = requireClusterUrl(config)
  requireOrigin(origin)
  createDataFolder(dataDir)
  using _lock = await FolderLock.claimAfterCommand(dataDir)
  // Before the copy is read, which may take minutes.
  const { name } = await usingPostgres(clusterUrl, readCluster)
  const isUnused = readFolder(dataDir, (db) => hasNeverServed(db, name)) === true
  if (!isUnused) requireReplaceable(dataDir, name)
  const restored = await restoreFiles(origin, {
    dataDir,
    keepsOld: !isUnused,
    joinCluster: (db) => {
      requireSameBaseUrl(db, config.baseUrl)
      return joinCluster({ db, dataDir, clusterUrl, ...entryOf(config) })
    },
  })
  return {
    text:
      `Joined the cluster with ${summaryOf(restored)}\n` +
      'Start the service. It applies what the cluster has changed since.',
    json: { host: hostIdOf(dataDir), ...restored },
  }
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
async function leave(config: Config): Promise<Done> {
  const { dataDir, clusterUrl } = config
  requireDatabase(dataDir)
  return withFolder(dataDir, async ({ db }) => {
    requirePosition({ db, dataDir })
    const host = hostIdOf(dataDir)
    if (clusterUrl) {
      const functions = loggedFunctions(db, { id: host })
      try {
        await applyLog({ db, url: clusterUrl, host, functions })
        await usingPostgres(clusterUrl, (sql) => removeHost(sql, host))
      } catch (error) {
        throw new CommandError(`${messageOf(error)} ${LEAVE_ANYWAY}`)
      }
    }
    const seq = leaveCluster({ db, dataDir })
    const json = { host, entry: seq }
    const left = `This host has left the cluster, with its data up to entry ${seq}.`
    const next = clusterUrl
      ? 'Start its service without CLUSTER_URL.'
      : 'Without CLUSTER_URL, the cluster still lists it. If PostgreSQL is not lost, run this on ' +
        `another host: hopcode cluster leave --host ${host}`
    return { text: `${left} ${next}`, json }
  })
}

const LEAVE_ANYWAY =
  'To leave with the data that this host has, run the command with an empty CLUSTER_URL.'

/** A host without contact for less may be paused, or starting. */
const LOST_MS = 10 * MINUTE

/** Removes a lost host from the cluster. `id`: its id or name. */
async function removeLost(
  config: Config,
  { host: id, force }: { host: string; force?: Flag },
): Promise<Done> {
  const host = await usingPostgres(requireClusterUrl(config), async (sql) => {
    const { hosts } = await readCluster(sql)
    const found = requireHost(hosts, id)
    if (found.isLive) {
      throw new DataError(
        `${found.name} is live: stop its service, and run "hopcode cluster leave" there.`,
      )
    }
    const { silentMs } = found
    if (!force && silentMs !== null && silentMs < LOST_MS) {
      throw new DataError(
        `${found.name} was in contact ${Math.round(silentMs / SECOND)} s ago, and may return. If ` +
          'it is lost, add --force.',
      )
    }
    await removeHost(sql, found.id)
    return found
  })
  return {
    text:
      `${host.name} is removed. Its data folder cannot follow the log any more: to use the host ` +
      'again, run "hopcode cluster join" there.',
    json: { host: host.id, name: host.name },
  }
}

function requireHost(hosts: readonly HostState[], id: string): HostState {
  const found = hosts.filter((host) => host.id === id || host.name === id)
  if (found.length === 1) return found[0] as HostState
  const known = hosts.map((host) => `${host.id} (${host.name}, ${host.address})`).join(', ')
  const problem = found.length === 0 ? 'No host has' : 'Several hosts have'
  throw new DataError(`${problem} the id or name ${id}. The hosts: ${known || 'none'}`)
}

/** Opens the folder while no service uses it. */
async function withFolder<Result>(
  dataDir: string,
  work: (folder: ReturnType<typeof openDataFolder>) => Promise<Result>,
): Promise<Result> {
  using _lock = await FolderLock.claimAfterCommand(dataDir)
  const folder = openDataFolder(dataDir)
  try {
    return await work(folder)
  } finally {
    closeWritable(folder.db)
  }
}

/** This host in the list of hosts. */
const entryOf = (config: Config) => ({ name: config.hostName, address: hostAddress(config) })
