import type { SQL } from 'bun'
import { type Digest, LEASE_MS } from './log.ts'

/** The state of a cluster, as PostgreSQL knows it. */
export interface ClusterState {
  /** Random; differs from that of every other cluster. */
  name: string
  /** The last entry of the log. */
  head: number
  /** In the order in which they joined. */
  hosts: HostState[]
  /** `oldest`: epoch ms; undefined for an empty log. */
  log: { entries: number; bytes: number; oldest: number | undefined }
}

export interface HostState {
  id: string
  /** `HOST_NAME`, by default the name of the machine. */
  name: string
  address: string
  /** The release of Hopcode. */
  program: string
  /** The set of calls that it knows. */
  version: number
  /** The last entry that it has applied. */
  applied: number
  /** Why it applies no entries; null while it does. */
  problem: string | null
  /** Of the rows that were compared last, or that differ. Undefined before the first comparison. */
  digest: Digest | undefined
  isLive: boolean
  /** Milliseconds since it was in contact with PostgreSQL; undefined for a stopped host. */
  silentMs: number | undefined
}

type Row = Record<string, unknown>

export async function readCluster(sql: SQL): Promise<ClusterState> {
  // Before the last entry of the log: no host looks as if it had applied a later one.
  const hosts = (await sql`
    SELECT id, name, address, program, version, applied, problem, seq, digest,
      CASE WHEN seen > 'epoch' THEN extract(epoch FROM now() - seen) * 1000 END AS silent
    FROM hopcode.hosts LEFT JOIN LATERAL (
      SELECT seq, digest FROM hopcode.digests AS own WHERE host = id
      ORDER BY EXISTS (
        SELECT FROM hopcode.digests AS other
        WHERE other.seq = own.seq AND other.digest <> own.digest
      ) DESC, seq DESC LIMIT 1
    ) AS compared ON true
    ORDER BY joined, id`) as Row[]
  const [row] = (await sql`
    SELECT name, seq, pg_total_relation_size('hopcode.log') AS bytes,
      (SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM hopcode.log) AS entries,
      (SELECT extract(epoch FROM at) * 1000 FROM hopcode.log ORDER BY seq LIMIT 1) AS oldest
    FROM hopcode.cluster`) as Row[]
  return {
    name: String(row?.name),
    head: Number(row?.seq ?? 0),
    hosts: hosts.map(hostOf),
    log: {
      entries: Number(row?.entries ?? 0),
      bytes: Number(row?.bytes ?? 0),
      oldest: row?.oldest === null ? undefined : Math.round(Number(row?.oldest)),
    },
  }
}

function hostOf({ silent, seq, digest, ...row }: Row): HostState {
  const silentMs = silent === null ? undefined : Math.round(Number(silent))
  return {
    id: String(row.id),
    name: String(row.name),
    address: String(row.address),
    program: String(row.program),
    version: Number(row.version),
    applied: Number(row.applied),
    problem: row.problem as string | null,
    digest: digest === null ? undefined : { seq: Number(seq), digest: String(digest) },
    isLive: silentMs !== undefined && silentMs <= LEASE_MS,
    silentMs,
  }
}
