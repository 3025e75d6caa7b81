import type { Database } from 'bun:sqlite'
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { findLogPosition } from '../../src/cluster/position.ts'
import { initCluster, joinCluster } from '../../src/cluster/setup.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { databaseFile, openReadonly, openWritable } from '../../src/db/open.ts'
import { sharedTables } from './database.ts'

/**
 * With `TEST_HOSTS=3`, the service of a test is a cluster of three hosts: `npm run test:cluster`.
 * `TEST_POSTGRES` is the URL of a PostgreSQL server in which each service gets a database.
 */

export const TEST_HOSTS = Number(process.env.TEST_HOSTS ?? 1)

export interface HostFolders {
  /** The first one is that of the test. */
  dataDirs: readonly string[]
  /** Undefined where the service is one host alone. */
  clusterUrl: string | undefined
}

/** By the test's own folder: a service that starts again on it finds its other hosts. */
const known = new Map<string, HostFolders>()

process.on('exit', () => {
  for (const { dataDirs } of known.values()) {
    for (const path of dataDirs.slice(1)) rmSync(path, { recursive: true, force: true })
  }
})

/** The data folders of a service, each of which belongs to the same cluster afterwards. */
export async function hostFolders(dataDir: string): Promise<HostFolders> {
  if (TEST_HOSTS === 1) return { dataDirs: [dataDir], clusterUrl: undefined }
  const before = known.get(dataDir)
  if (before) return before
  const clusterUrl = await createDatabase()
  const others = Array.from({ length: TEST_HOSTS - 1 }, (_, i) => `${dataDir}.host-${i + 1}`)
  const folders = { dataDirs: [dataDir, ...others], clusterUrl }
  await register(initCluster, dataDir, clusterUrl)
  await ignoreDigests(clusterUrl)
  for (const other of others) {
    mkdirSync(other, { mode: 0o700 })
    for (const name of ['hopcode.db', 'secret.key']) {
      copyFileSync(join(dataDir, name), join(other, name))
    }
    await register(joinCluster, other, clusterUrl)
  }
  known.set(dataDir, folders)
  return folders
}

async function register(
  join: typeof initCluster,
  dataDir: string,
  clusterUrl: string,
): Promise<void> {
  const { db } = openDataFolder(dataDir)
  try {
    await join({ db, dataDir, clusterUrl, name: 'test', address: 'test' })
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    db.close()
  }
}

/** `onEveryHost` changes one host after the other: a comparison would stop them meanwhile. */
async function ignoreDigests(clusterUrl: string): Promise<void> {
  const sql = new SQL(clusterUrl, { max: 1 })
  const statements = `
    CREATE FUNCTION hopcode.ignore() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER ignore BEFORE INSERT ON hopcode.digests
      FOR EACH ROW EXECUTE FUNCTION hopcode.ignore()`
  await sql.unsafe(statements).finally(() => sql.close({ timeout: 0 }))
}

let databases = 0

async function createDatabase(): Promise<string> {
  const server = process.env.TEST_POSTGRES
  if (server === undefined) throw new Error('TEST_HOSTS needs TEST_POSTGRES')
  const name = `test_${process.pid}_${++databases}`
  const sql = new SQL(server, { max: 1 })
  await sql.unsafe(`CREATE DATABASE ${name}`).finally(() => sql.close({ timeout: 0 }))
  const url = new URL(server)
  url.pathname = name
  return url.href
}

/**
 * Tests change a database beside its service, as commands on one host do. Copies the tables that
 * `work` changes in the first folder to the others: a cluster would do it through the log.
 */
export function onEveryHost<Result>(
  { dataDirs }: HostFolders,
  db: Database,
  work: () => Result,
): Result {
  if (dataDirs.length === 1) return work()
  const before = contents(db)
  try {
    return work()
  } finally {
    const after = contents(db)
    const changed = [...after].filter(([name, rows]) => before.get(name) !== rows)
    const names = changed.map(([name]) => name).filter((name) => !OF_THE_LOG.includes(name))
    for (const other of names.length > 0 ? dataDirs.slice(1) : [])
      copyTables(dataDirs, other, names)
  }
}

const OF_THE_LOG = ['log_position', 'hit_positions']

const contents = (db: Database): Map<string, string> =>
  new Map(sharedTables(db).map(({ name, query }) => [name, JSON.stringify(db.query(query).all())]))

function copyTables([first = '']: readonly string[], to: string, names: readonly string[]): void {
  const db = openWritable(databaseFile(to))
  try {
    db.query('ATTACH ? AS first').run(databaseFile(first))
    db.run('BEGIN IMMEDIATE')
    for (const name of names) {
      db.run(`DELETE FROM main.${name}`)
      db.run(`INSERT INTO main.${name} SELECT * FROM first.${name}`)
    }
    db.run('COMMIT')
  } finally {
    db.close()
  }
}

/** Whether all hosts have applied the same entries. */
export function areEqual({ dataDirs }: HostFolders): boolean {
  const positions = dataDirs.map((dataDir) => {
    const db = openReadonly(databaseFile(dataDir), { cacheKiB: 64 })
    try {
      return findLogPosition(db)?.seq
    } finally {
      db.close()
    }
  })
  return new Set(positions).size === 1
}
