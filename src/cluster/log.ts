import { SQL } from 'bun'
import { assert } from '../lib/assert.ts'
import { DataError } from '../lib/data-error.ts'
import { withTimeout } from '../lib/deadline.ts'
import { RELEASE, VERSION } from '../lib/version.ts'
import {
  CONNECT_MS,
  CONNECTION,
  Connection,
  NOT_ANSWERING,
  type Row,
  STATEMENT_MS,
} from './connection.ts'
import { type Entry, LogReader } from './log-reader.ts'
import { HOSTS_LOCK } from './schema.ts'

/**
 * The ordered log of a cluster, in PostgreSQL 15 or later: plain rows and row locks. Each
 * connection has one role, so that a statement that waits does not delay another role.
 */

/** Changes do not wait for a host that has not reported for longer. */
export const LEASE_MS = 2000
/** Retention of entries that all hosts have applied: the copy for a join may be as old. */
const KEPT = '1 hour'
/** Entries that one statement reads and may delete: more would delay the reports of the host. */
const PRUNED_MAX = 1000
/** Bytes of calls that one statement deletes, at least one entry. */
const PRUNED_BYTES = 16 * 1024 * 1024

/** The state of a host, for the other hosts. */
export interface OtherHost {
  id: string
  /** The last entry that it has applied. */
  applied: number
  /** Why it no longer applies entries; null while it does. */
  problem: string | null
  /** Changes wait for it. */
  isLive: boolean
}

interface HostReport extends Pick<OtherHost, 'applied' | 'problem'> {
  /** Digests of the rows of the host. */
  digests: readonly Digest[]
}

/** A hash of a part of the rows. */
export interface Digest {
  /** The entry that asked for it. */
  seq: number
  digest: string
}

/** An entry for which hosts have different digests. */
export interface Split {
  seq: number
  /** By the id of the host. */
  digests: Record<string, string>
}

/** Digests of a host that are kept. */
export const DIGESTS_KEPT = 100

export interface LogSize {
  entries: number
  /** Size on the disk of PostgreSQL. */
  bytes: number
}

interface PrunedLog extends LogSize {
  /** Entries that were deleted. If there were any, more may be left. */
  deleted: number
}

export type NewEntry = Pick<Entry, 'batch' | 'version' | 'calls'>

/** The state of the log as of one report. */
export interface LogState {
  /** The random name of the cluster. */
  cluster: string
  /** The last entry. */
  head: number
  /** Age of the oldest entry that this host has not applied; 0 if it has applied all. */
  lagMs: number
  hosts: OtherHost[]
  /** The newest first. */
  splits: Split[]
}

interface PostgresLogOptions {
  url: string
  host: string
  /** A random id of this process. Absent where it sends no reports. */
  boot?: string
  /** The name and the address of the host, which its reports contain. */
  name?: string
  address?: string
}

/**
 * Every method throws when PostgreSQL cannot be reached or does not answer in time; the next call
 * connects again.
 */
export class PostgresLog {
  readonly #options: PostgresLogOptions
  readonly #append: Connection
  readonly #read: Connection
  readonly #reader: LogReader
  readonly #report: Connection
  #subscription: SQL | undefined
  /** PostgreSQL's clock in epoch ms, and an instant of `performance.now()` after it was read. */
  #clock: { now: number; readBefore: number } | undefined

  constructor(options: PostgresLogOptions) {
    this.#options = options
    this.#append = new Connection(options.url)
    this.#read = new Connection(options.url)
    this.#reader = new LogReader(this.#read)
    // A report is repeated soon: losing the last one does no harm.
    this.#report = new Connection(options.url, { synchronous_commit: 'off' })
  }

  /**
   * A time of PostgreSQL's clock that is over when `ms` have passed here, by the last answer of
   * `head` or `report`.
   */
  deadlineAfter(ms: number): number {
    assert(this.#clock, 'the clock of PostgreSQL was read')
    const { now, readBefore } = this.#clock
    return now + performance.now() - readBefore + ms
  }

  /**
   * Adds an entry and returns its number. With a batch that the log has already, nothing is added:
   * a batch whose outcome is unknown can be appended again. After `deadline`, PostgreSQL adds
   * nothing: a statement that was on its way for longer could replace a newer change.
   */
  async append(
    { batch, version, calls }: NewEntry,
    deadline: number,
    ms = STATEMENT_MS,
  ): Promise<Position> {
    const { host } = this.#options
    const [row] = await this.#append.run(
      // The time is compared when the row of the head is locked. If an earlier attempt commits
      // meanwhile, this one fails, because a batch is unique; the next one finds the entry.
      (sql) => sql`
        WITH old AS (SELECT seq, chain FROM hopcode.log WHERE host = ${host} AND batch = ${batch}),
        new AS (SELECT ${calls}::bytea AS calls WHERE NOT EXISTS (SELECT FROM old)),
        locked AS (SELECT id FROM hopcode.cluster FOR UPDATE),
        head AS (
          UPDATE hopcode.cluster SET seq = seq + 1, chain = sha256(chain || new.calls)
          FROM new, locked WHERE extract(epoch FROM clock_timestamp()) * 1000 < ${deadline}
          RETURNING cluster.seq, cluster.chain, new.calls
        ),
        added AS (
          INSERT INTO hopcode.log (seq, host, batch, version, chain, calls)
          SELECT seq, ${host}, ${batch}, ${version}, chain, calls FROM head
          RETURNING seq, chain, pg_notify('hopcode_log', host)
        )
        SELECT seq, chain FROM old UNION ALL SELECT seq, chain FROM added`,
      ms,
    )
    if (!row) throw new Error('PostgreSQL received the change too late')
    return { seq: Number(row.seq), chain: row.chain as Buffer }
  }

  /** The random name of the cluster, and the last entry. */
  async head(): Promise<Pick<LogState, 'cluster' | 'head'>> {
    const [row] = await this.#read.run(
      (sql) => sql`
        SELECT name, seq, extract(epoch FROM clock_timestamp()) * 1000 AS now FROM hopcode.cluster`,
    )
    this.#noteClock(row)
    return { cluster: String(row?.name), head: Number(row?.seq) }
  }

  /** The next entries after `seq`, in order. Empty at the end of the log. One call at a time. */
  readAfter(seq: number): Promise<Entry[]> {
    return this.#reader.readAfter(seq)
  }

  /**
   * Reports the state of this host, and returns that of the others. Throws `HostRemoved`, and
   * `HostInUse` after a report of another process that has not left since and is in the lease.
   */
  async report(report: HostReport): Promise<LogState> {
    const { host, boot, name = null, address = null } = this.#options
    const { applied, problem, digests } = report
    const [row] = await this.#report.run(
      (sql) => sql`
        WITH own AS (
          UPDATE hopcode.hosts
          SET name = coalesce(${name}::text, name), address = coalesce(${address}::text, address),
            applied = ${applied}, problem = ${problem}, seen = now(),
            program = ${VERSION}, version = ${RELEASE}, boot = ${boot}
          WHERE id = ${host} AND (
            boot = ${boot} OR boot IS NULL OR seen < now() - ${LEASE_MS} * interval '1 millisecond'
          ) RETURNING id
        ), compared AS (
          INSERT INTO hopcode.digests (seq, host, digest)
          SELECT seq, id, digest FROM own,
            json_to_recordset(${JSON.stringify(digests)}::text::json) AS new (seq INT8, digest TEXT)
          ON CONFLICT DO NOTHING
        )
        SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now,
          (SELECT count(*) FROM own) AS own,
          (SELECT boot FROM hopcode.hosts WHERE id = ${host}) AS boot,
          json_build_object('cluster', name, 'head', seq, 'hosts', (
            SELECT coalesce(json_agg(json_build_object(
              'id', id, 'applied', applied, 'problem', problem,
              'isLive', problem IS NULL AND seen > now() - ${LEASE_MS} * interval '1 millisecond'
            )), '[]') FROM hopcode.hosts WHERE id <> ${host}
          ), 'splits', (
            SELECT coalesce(json_agg(split ORDER BY seq DESC), '[]') FROM (
              SELECT seq, json_object_agg(host, digest) AS digests
              FROM hopcode.digests GROUP BY seq HAVING count(DISTINCT digest) > 1
            ) AS split
          ), 'lagMs', coalesce((
            SELECT extract(epoch FROM clock_timestamp() - at) * 1000 FROM hopcode.log
            WHERE seq > ${applied} ORDER BY seq LIMIT 1
          ), 0)) AS state
        FROM hopcode.cluster`,
    )
    if (!row || Number(row.own) === 0) throw row?.boot ? new HostInUse() : new HostRemoved()
    this.#noteClock(row)
    return parsed<LogState>(row.state)
  }

  /**
   * Reports that this host has applied the entries up to `seq`, and notifies the other hosts of it
   * if they wait for this one.
   */
  async confirm(seq: number): Promise<void> {
    const { host, boot } = this.#options
    await this.#report.run(
      (sql) => sql`
        WITH own AS (
          UPDATE hopcode.hosts SET applied = ${seq}, seen = now()
          WHERE id = ${host} AND boot = ${boot} RETURNING id, problem
        )
        SELECT pg_notify('hopcode_applied', ${seq}::text || ' ' || id) FROM own
        WHERE problem IS NULL`,
    )
  }

  /** This host stops: the others no longer wait for it. */
  async leave(): Promise<void> {
    const { host, boot } = this.#options
    await this.#report.run(
      (sql) => sql`
        UPDATE hopcode.hosts SET seen = 'epoch'
        WHERE id = ${host} AND boot = ${boot}`,
    )
  }

  /**
   * Deletes the oldest entries if every host has applied them, and the oldest digests of this host
   * unless others differ. Returns the size of the log.
   */
  async prune(): Promise<PrunedLog> {
    const { host } = this.#options
    // The limit is applied before the conditions: the cost must not grow with the log.
    const deleted = await this.#report.run((sql) =>
      sql.begin(async (tx): Promise<Row[]> => {
        // A host that joins has found the entries that it needs, and is registered in a moment.
        const [lock] = await tx`SELECT pg_try_advisory_xact_lock(${HOSTS_LOCK}) AS is_free`
        if (!lock.is_free) return []
        return tx`
          DELETE FROM hopcode.log WHERE seq IN (
            SELECT seq FROM (
              SELECT seq, at, sum(length(calls)) OVER (ORDER BY seq) - length(calls) AS bytes_before
              FROM hopcode.log ORDER BY seq LIMIT ${PRUNED_MAX}
            ) AS oldest
            WHERE seq <= (SELECT min(applied) FROM hopcode.hosts)
              AND at < now() - ${KEPT}::interval AND bytes_before < ${PRUNED_BYTES}
          ) RETURNING seq`
      }),
    )
    const [row] = await this.#report.run(
      (sql) => sql`
        WITH old AS (
          DELETE FROM hopcode.digests WHERE host = ${host} AND seq <= (
            SELECT seq FROM hopcode.digests WHERE host = ${host}
            ORDER BY seq DESC OFFSET ${DIGESTS_KEPT} LIMIT 1
          ) AND seq NOT IN (
            SELECT seq FROM hopcode.digests GROUP BY seq HAVING count(DISTINCT digest) > 1
          )
        )
        SELECT pg_total_relation_size('hopcode.log') AS bytes,
          (SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM hopcode.log) AS entries`,
    )
    return {
      entries: Number(row?.entries),
      bytes: Number(row?.bytes),
      deleted: deleted.length,
    }
  }

  /**
   * Calls back for each new entry of another host, and when another host has applied entries,
   * unless it does already. A connection that is lost is restored; notifications sent meanwhile are
   * lost, so poll as well.
   */
  subscribe(on: Subscriber): void {
    if (this.#subscription) return
    const sql = new SQL(this.#options.url, CONNECTION)
    this.#subscription = sql
    // The first change should not wait for a connection.
    void this.#append.run(async () => []).catch(() => {})
    void withTimeout(CONNECT_MS, this.#listen(sql, on), NOT_ANSWERING)
      // Entries that others have appended meanwhile come without a notification.
      .then(on.entry)
      .catch(() => this.#subscription === sql && this.unsubscribe())
  }

  /** The connection may be dead without an error, because only the server writes to it. */
  unsubscribe(): void {
    void this.#subscription?.close({ timeout: 0 }).catch(() => {})
    this.#subscription = undefined
  }

  async #listen(sql: SQL, on: Subscriber): Promise<void> {
    const { host } = this.#options
    await sql.listen('hopcode_log', (author: string) => {
      if (author !== host) on.entry()
    })
    await sql.listen('hopcode_applied', (payload: string) => {
      const [seq = '', id = ''] = payload.split(' ', 2)
      if (id !== host) on.applied(id, Number(seq))
    })
  }

  #noteClock(row: Row | undefined): void {
    this.#clock = { now: Number(row?.now), readBefore: performance.now() }
  }

  async close(): Promise<void> {
    this.unsubscribe()
    await Promise.all([this.#append.close(), this.#read.close(), this.#report.close()])
  }
}

export type Position = Pick<Entry, 'seq' | 'chain'>

interface Subscriber {
  entry: () => void
  applied: (host: string, seq: number) => void
}

/** Bun returns JSON as text or as a value, depending on the protocol. */
export const parsed = <Value>(json: unknown): Value =>
  (typeof json === 'string' ? JSON.parse(json) : json) as Value

/** Another process runs with the id of this host. */
export class HostInUse extends DataError {
  override readonly message =
    'Another service runs with the host.id of this data folder: one of the folders is a copy. ' +
    'A further host needs an empty folder and "hopcode cluster join".'
}

/** The cluster no longer knows this host. */
export class HostRemoved extends Error {
  override readonly name = 'HostRemoved'
  override readonly message = 'this host was removed from the cluster'
}
