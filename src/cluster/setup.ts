import type { Database } from 'bun:sqlite'
import { hostname } from 'node:os'
import { SQL } from 'bun'
import { inTransaction } from '../db/open.ts'
import { recordOwnPosition } from '../hits/shared-store.ts'
import { DataError } from '../lib/data-error.ts'
import { VERSION } from '../lib/version.ts'
import { FIRST_DIGEST } from './digest.ts'
import { CALLS_VERSION } from './entries.ts'
import { hostIdOf } from './host-id.ts'
import {
  findLogPosition,
  type LogPosition,
  logPositionSetter,
  removeLogPosition,
} from './position.ts'
import { createTables, FIRST_CHAIN } from './schema.ts'

/** How a data folder becomes part of a cluster, and stops being one. */

interface ClusterFolder {
  db: Database
  dataDir: string
  clusterUrl: string
  /** Where the host answers: for people who read the list of hosts. */
  address: string
}

/**
 * Creates or upgrades the tables in PostgreSQL. With a cluster that has no host yet, the data of
 * this folder become those of the cluster. Throws DataError.
 */
export async function initCluster(folder: ClusterFolder): Promise<LogPosition> {
  const { db, dataDir, clusterUrl } = folder
  return usingPostgres(clusterUrl, async (sql) => {
    const name = findLogPosition(db)?.cluster ?? crypto.randomUUID()
    const head = await sql.begin(async (tx) => {
      await createTables(tx, name)
      const [row] = await tx`
        SELECT name, seq, (SELECT count(*) FROM hopcode.hosts) AS hosts FROM hopcode.cluster`
      return { name: String(row.name), seq: Number(row.seq), hosts: Number(row.hosts) }
    })
    const found = findLogPosition(db)
    if (found?.cluster === head.name) return found
    if (found) throw new DataError(`${dataDir} belongs to another cluster. ${LEAVE_FIRST}`)
    if (head.hosts > 0 || head.seq > 0) {
      throw new DataError(
        'This cluster has a host already. Another one begins with a copy of its data: ' +
          '"hopcode cluster join".',
      )
    }
    const position = { cluster: head.name, seq: 0, chain: FIRST_CHAIN, digest: FIRST_DIGEST }
    await register(sql, folder, position)
    inTransaction(db, () => {
      recordOwnPosition(db, hostIdOf(dataDir))
      logPositionSetter(db)(position)
    })
    return position
  })
}

/**
 * Registers the host of a folder whose database is a copy of another host's. Throws DataError if
 * the log no longer has the entries that follow.
 */
export async function joinCluster(folder: ClusterFolder): Promise<LogPosition> {
  const position = requirePosition(folder)
  return usingPostgres(folder.clusterUrl, async (sql) => {
    await requireCluster(sql, position)
    const [row] = await sql`
      SELECT seq, (SELECT count(*) FROM hopcode.log WHERE seq > ${position.seq}) AS following
      FROM hopcode.cluster`
    if (Number(row.following) !== Number(row.seq) - position.seq) {
      throw new DataError('The backup is too old: the log no longer has all later entries.')
    }
    await register(sql, folder, position)
    return position
  })
}

/** The folder belongs to one host again, and its host is removed from the cluster. */
export async function leaveCluster({ db, dataDir, clusterUrl }: ClusterFolder): Promise<void> {
  requirePosition({ db, dataDir })
  await usingPostgres(clusterUrl, (sql) => removeHost(sql, hostIdOf(dataDir)))
  inTransaction(db, () => removeLogPosition(db))
}

/** Removes a host that is lost. False if the cluster has no such host. */
export async function removeHost(sql: SQL, id: string): Promise<boolean> {
  const removed = await sql`DELETE FROM hopcode.hosts WHERE id = ${id} RETURNING id`
  return removed.length > 0
}

/** Runs `work` with a connection that is closed afterwards. An error names no credentials. */
export async function usingPostgres<Result>(
  url: string,
  work: (sql: SQL) => Promise<Result>,
): Promise<Result> {
  const sql = new SQL(url, { max: 1, connectionTimeout: CONNECT_SECONDS })
  try {
    return await work(sql)
  } catch (error) {
    if (error instanceof DataError) throw error
    const { message } = error as Error
    throw new DataError(`PostgreSQL at ${hostOf(url)}: ${message}`, { cause: error })
  } finally {
    await sql.close({ timeout: 0 })
  }
}

const CONNECT_SECONDS = 10

const hostOf = (url: string): string => URL.parse(url)?.host ?? 'CLUSTER_URL'

const LEAVE_FIRST = 'Run "hopcode cluster leave" first.'

/**
 * Refuses a start whose settings do not fit the folder: its changes would be missing on the other
 * hosts. Throws DataError.
 */
export function requireSameMode(db: Database, dataDir: string, clusterUrl?: string): void {
  const isInCluster = findLogPosition(db) !== undefined
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

function requirePosition({ db, dataDir }: Pick<ClusterFolder, 'db' | 'dataDir'>): LogPosition {
  const position = findLogPosition(db)
  if (!position) throw new DataError(`${dataDir} belongs to no cluster.`)
  return position
}

async function requireCluster(sql: SQL, { cluster }: LogPosition): Promise<void> {
  const [row] = await sql`SELECT name FROM hopcode.cluster`
  if (row?.name !== cluster) throw new DataError('CLUSTER_URL leads to another cluster.')
}

async function register(
  sql: SQL,
  { dataDir, address }: ClusterFolder,
  { seq }: LogPosition,
): Promise<void> {
  const id = hostIdOf(dataDir)
  await sql`
    INSERT INTO hopcode.hosts (id, name, address, program, version, applied, seen)
    VALUES (${id}, ${hostname()}, ${address}, ${VERSION}, ${CALLS_VERSION}, ${seq}, 'epoch')
    ON CONFLICT (id) DO UPDATE SET applied = ${seq}, problem = NULL`
}
