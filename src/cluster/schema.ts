import type { SQL } from 'bun'
import { DataError } from '../lib/data-error.ts'
import type { LogPosition } from './position.ts'

/** The tables of a cluster in PostgreSQL, created and upgraded by `hopcode cluster init`. */

/** Steps in order. Released ones never change. `cluster.format` is the number of completed ones. */
const STEPS = [
  `CREATE TABLE hopcode.cluster (
     id INT PRIMARY KEY CHECK (id = 1),
     name TEXT NOT NULL,
     format INT NOT NULL,
     seq BIGINT NOT NULL,
     chain BYTEA NOT NULL
   );
   CREATE TABLE hopcode.log (
     seq BIGINT PRIMARY KEY,
     host TEXT NOT NULL,
     batch TEXT NOT NULL,
     at TIMESTAMPTZ NOT NULL DEFAULT now(),
     version INT NOT NULL,
     chain BYTEA NOT NULL,
     calls BYTEA NOT NULL,
     digest TEXT,
     UNIQUE (host, batch)
   );
   CREATE TABLE hopcode.hosts (
     id TEXT PRIMARY KEY,
     name TEXT NOT NULL,
     address TEXT NOT NULL,
     program TEXT NOT NULL,
     version INT NOT NULL,
     applied BIGINT NOT NULL,
     problem TEXT,
     joined TIMESTAMPTZ NOT NULL DEFAULT now(),
     seen TIMESTAMPTZ NOT NULL
   );`,
  // `boot`: the process that was the host at the time of `seen`.
  `ALTER TABLE hopcode.hosts ADD boot TEXT;
   CREATE TABLE hopcode.digests (
     seq BIGINT NOT NULL,
     host TEXT NOT NULL REFERENCES hopcode.hosts ON DELETE CASCADE,
     digest TEXT NOT NULL,
     PRIMARY KEY (seq, host)
   );`,
]

const FORMAT = STEPS.length

/**
 * Advisory lock of PostgreSQL. It is held while the tables are created or a host joins, and while
 * entries are deleted. It stops no changes.
 */
export const HOSTS_LOCK = 4657

const POSTGRES_LEAST = 15

/** `version`: PostgreSQL's `server_version_num`. Throws DataError for a release that is too old. */
export function requirePostgres(version: number): void {
  const major = Math.floor(version / 10_000)
  if (major >= POSTGRES_LEAST) return
  throw new DataError(`PostgreSQL ${major} is too old: a cluster needs ${POSTGRES_LEAST} or later.`)
}

/**
 * Creates what is missing. Throws DataError if PostgreSQL is too old. Until the end of the caller's
 * transaction, no other call does.
 */
export async function createTables(sql: SQL): Promise<void> {
  const [server] = await sql`SELECT current_setting('server_version_num')::int AS version`
  requirePostgres(server.version)
  await sql`SELECT pg_advisory_xact_lock(${HOSTS_LOCK})`
  await sql.unsafe('CREATE SCHEMA IF NOT EXISTS hopcode')
  const [found] = await sql`SELECT to_regclass('hopcode.cluster') IS NOT NULL AS exists`
  const [row] = found.exists ? await sql`SELECT format FROM hopcode.cluster FOR UPDATE` : []
  for (const step of STEPS.slice(row?.format ?? 0)) await sql.unsafe(step)
  await sql`UPDATE hopcode.cluster SET format = ${FORMAT}`
}

/** The log is empty, and continues after `position`. */
export async function beginLog(sql: SQL, { cluster, seq, chain }: LogPosition): Promise<void> {
  // TRUNCATE, because its time does not depend on the length of an earlier log.
  await sql`TRUNCATE hopcode.log`
  await sql`INSERT INTO hopcode.cluster (id, name, format, seq, chain)
    VALUES (1, ${cluster}, ${FORMAT}, ${seq}, ${chain}::bytea)
    ON CONFLICT (id) DO UPDATE SET name = ${cluster}, seq = ${seq}, chain = ${chain}::bytea`
}

/** The chain before the first entry. */
export const FIRST_CHAIN = Buffer.alloc(0)
