import type { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import type { SQL } from 'bun'
import { inTransaction } from '../db/open.ts'
import { SettingStore } from '../db/settings.ts'
import { recordOwnPosition } from '../hits/cluster-store.ts'
import { SECOND } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { RELEASE, VERSION } from '../lib/version.ts'
import { OTHER_CLUSTER } from './apply.ts'
import { UNDECIDED } from './comparison.ts'
import { Connection, connectionProblem } from './connection.ts'
import { hostIdFile, hostIdOf } from './host-id.ts'
import {
  findDamage,
  findLogPosition,
  type LogPosition,
  logPositionSetter,
  removeLogPosition,
} from './position.ts'
import { beginLog, createTables, FIRST_CHAIN, HOSTS_LOCK } from './schema.ts'

/** Adds a data folder to a cluster, and removes it from one. */

interface ClusterFolder {
  db: Database
  dataDir: string
  clusterUrl: string
  /** The name and the address of the host, for the list of hosts. */
  name: string
  address: string
}

/**
 * Creates or upgrades the tables in PostgreSQL. Without a host in them, the data of this folder
 * become those of a new cluster. A host of a cluster whose PostgreSQL is lost continues its log in
 * an empty database. Throws DataError.
 */
export async function initCluster(folder: ClusterFolder): Promise<LogPosition> {
  const { db, dataDir } = folder
  const found = findLogPosition(db)
  const id = hostIdOf(dataDir)
  const position = found ?? { cluster: crypto.randomUUID(), seq: 0, chain: FIRST_CHAIN }
  await inPostgres(folder, async (sql) => {
    await createTables(sql)
    const [row] = await sql`SELECT name FROM hopcode.cluster`
    const hosts = await sql`SELECT id FROM hopcode.hosts`
    if (found && row && found.cluster !== row.name) {
      throw new DataError(`${dataDir} belongs to another cluster. ${LEAVE_FIRST}`)
    }
    // An earlier call that was killed may have registered this host.
    const isOwn = hosts.some((host: { id: string }) => host.id === id)
    if (hosts.length > (isOwn ? 1 : 0) && !(found && isOwn)) throw new DataError(HAS_HOSTS)
    // Entries that no other host has applied belong to a cluster that all hosts have left.
    if (!found || !row) await beginLog(sql, position)
    if (!found || !isOwn) await register(sql, folder, position)
  })
  if (found) return found
  inTransaction(db, () => {
    recordOwnPosition(db, id)
    logPositionSetter(db)(position)
  })
  return position
}

/**
 * Registers the host of a folder whose database is a copy of another host's. Throws DataError if
 * the log no longer has the entries that follow.
 */
export async function joinCluster(folder: ClusterFolder): Promise<LogPosition> {
  const position = requirePosition(folder)
  if (findDamage(folder.db)) throw new DataError(COPY_DAMAGED)
  return inPostgres(folder, async (sql) => {
    // Until this transaction ends, no host deletes entries. Then the log keeps them for this host.
    await sql`SELECT pg_advisory_xact_lock(${HOSTS_LOCK})`
    const [row] = await sql`
      SELECT name, seq,
        (SELECT count(*) FROM hopcode.hosts
         WHERE problem = ${UNDECIDED} AND id <> ${hostIdOf(folder.dataDir)}) AS undecided,
        (SELECT count(*) FROM hopcode.log WHERE seq > ${position.seq}) AS following,
        (SELECT chain FROM hopcode.log WHERE seq = ${position.seq}) AS chain
      FROM hopcode.cluster`
    if (row?.name !== position.cluster) throw new DataError(OTHER_CLUSTER)
    if (Number(row.undecided) > 0) throw new DataError(COPY_UNDECIDED)
    const isOther = row.chain !== null && !row.chain.equals(position.chain)
    if (position.seq > Number(row.seq) || isOther) throw new DataError(COPY_AHEAD)
    if (Number(row.following) !== Number(row.seq) - position.seq) {
      throw new DataError('The backup is too old: the log no longer has all later entries.')
    }
    await register(sql, folder, position)
    return position
  })
}

const COPY_DAMAGED =
  'The copy is of a host whose data differ from those of most hosts. Use a copy of another host.'

const COPY_UNDECIDED =
  'The hosts have different data, and no majority agrees: first remove the host whose data are ' +
  'wrong with "hopcode cluster leave --host".'

const COPY_AHEAD =
  'The copy has entries that the log lacks: PostgreSQL has lost them. Use a copy of a host that ' +
  'has none of them: see "hopcode cluster status".'

const BASE_URL = 'base_url'

/** For copies of this database: another BASE_URL would give other short URLs. */
export function recordBaseUrl(db: Database, baseUrl: string): void {
  const settings = new SettingStore(db, 'host_settings')
  if (settings.findByName(BASE_URL) !== baseUrl) settings.set(BASE_URL, baseUrl)
}

/** Throws DataError if the host of which `db` is a copy has another BASE_URL. */
export function requireSameBaseUrl(db: Database, baseUrl: string): void {
  const others = new SettingStore(db, 'host_settings').findByName(BASE_URL)
  if (others === undefined || others === baseUrl) return
  throw new DataError(`BASE_URL is ${baseUrl} here and ${others} on the host of the copy.`)
}

/** Throws DataError if the database has a cluster with hosts: a new host joins it. */
export async function requireNoHosts(clusterUrl: string): Promise<void> {
  await usingPostgres(clusterUrl, async (sql) => {
    const [found] = await sql`SELECT to_regclass('hopcode.hosts') IS NOT NULL AS exists`
    const [row] = found.exists ? await sql`SELECT count(*) AS hosts FROM hopcode.hosts` : []
    if (Number(row?.hosts ?? 0) > 0) throw new DataError(HAS_HOSTS)
  })
}

const HAS_HOSTS =
  'This cluster has a host already. Another one begins with a copy of its data: ' +
  '"hopcode cluster join".'

/** The folder belongs to one host again. Returns the last entry that it has applied. */
export function leaveCluster({ db, dataDir }: Pick<ClusterFolder, 'db' | 'dataDir'>): number {
  const { seq } = requirePosition({ db, dataDir })
  inTransaction(db, () => removeLogPosition(db))
  rmSync(hostIdFile(dataDir), { force: true })
  return seq
}

export async function removeHost(sql: SQL, id: string): Promise<void> {
  await sql`DELETE FROM hopcode.hosts WHERE id = ${id}`
}

/**
 * Runs `work` with a connection that is closed afterwards. Throws DataError, which names no
 * credentials, also if PostgreSQL does not answer within `WORK_MS`.
 */
export async function usingPostgres<Result>(
  url: string,
  work: (sql: SQL) => Promise<Result>,
): Promise<Result> {
  // `WORK_MS` limits all statements together, and the locks of a process that has vanished.
  const connection = new Connection(url, {
    statement_timeout: '0',
    idle_in_transaction_session_timeout: String(WORK_MS),
  })
  try {
    return await connection.run(work, WORK_MS)
  } catch (error) {
    const cause = ((error as Error).cause ?? error) as Error & { errno?: string; code?: string }
    if (cause instanceof DataError) throw cause
    if (cause.errno === UNDEFINED_TABLE) {
      throw new DataError(
        'The database of CLUSTER_URL has no cluster yet: run "hopcode cluster init".',
        { cause },
      )
    }
    const isClosed = cause.code?.startsWith('ERR_POSTGRES_CONNECTION_')
    const reason = (isClosed && (await connectionProblem(url))) || cause.message
    throw new DataError(`PostgreSQL at ${hostOf(url)}: ${reason}`, { cause })
  } finally {
    await connection.close()
  }
}

const inPostgres = <Result>(
  { clusterUrl }: ClusterFolder,
  work: (sql: SQL) => Promise<Result>,
): Promise<Result> => usingPostgres(clusterUrl, (sql) => sql.begin(work))

const WORK_MS = 10 * SECOND
/** SQLSTATE. */
const UNDEFINED_TABLE = '42P01'

const hostOf = (url: string): string => URL.parse(url)?.host ?? 'CLUSTER_URL'

const LEAVE_FIRST = 'Run "hopcode cluster leave" first.'

/**
 * Refuses a start whose settings do not fit the folder: its changes would be missing on the other
 * hosts. `db`: undefined for a folder without a database. Throws DataError.
 */
export function requireSameMode(
  db: Database | undefined,
  dataDir: string,
  clusterUrl?: string,
): void {
  const isInCluster = db !== undefined && findLogPosition(db) !== undefined
  if (isInCluster && !clusterUrl) {
    throw new DataError(
      `${dataDir} belongs to a cluster: set CLUSTER_URL. To use it on one host alone again, run ` +
        '"hopcode cluster leave".',
    )
  }
  if (!isInCluster && clusterUrl) {
    throw new DataError(
      `${dataDir} belongs to no cluster yet: run "hopcode cluster init" on the first host, and ` +
        '"hopcode cluster join" on each further one.',
    )
  }
}

export function requirePosition({
  db,
  dataDir,
}: Pick<ClusterFolder, 'db' | 'dataDir'>): LogPosition {
  const position = findLogPosition(db)
  if (!position) throw new DataError(`${dataDir} belongs to no cluster.`)
  return position
}

async function register(
  sql: SQL,
  { dataDir, name, address }: ClusterFolder,
  { seq }: LogPosition,
): Promise<void> {
  const id = hostIdOf(dataDir)
  await sql`
    INSERT INTO hopcode.hosts (id, name, address, program, version, applied, seen)
    VALUES (${id}, ${name}, ${address}, ${VERSION}, ${RELEASE}, ${seq}, 'epoch')
    ON CONFLICT (id) DO UPDATE SET name = ${name}, address = ${address},
      applied = ${seq}, problem = NULL`
  await sql`DELETE FROM hopcode.digests WHERE host = ${id}`
}
