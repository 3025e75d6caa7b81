import type { SQL } from 'bun'
import { type Digest, LEASE_MS, type LogSize, type OtherHost, parsed } from './log.ts'

/** The state of a cluster, as PostgreSQL knows it. */
export interface ClusterState {
  /** Random; differs from that of every other cluster. */
  name: string
  /** The last entry of the log. */
  head: number
  /** The hosts in the order in which they joined. */
  hosts: HostState[]
  /** `oldest`: epoch ms; null for an empty log. */
  log: LogSize & { oldest: number | null }
}

export interface HostState extends OtherHost {
  /** `HOST_NAME`, by default the name of the machine. */
  name: string
  address: string
  /** The release of Hopcode, also as a number: see `RELEASE`. */
  program: string
  version: number
  /** The digest of the rows that were compared last, or that differ. Null before the first. */
  digest: Digest | null
  /** The host is in contact with PostgreSQL. */
  isLive: boolean
  /** Milliseconds since it was in contact with PostgreSQL; null for a stopped host. */
  silentMs: number | null
}

export async function readCluster(sql: SQL): Promise<ClusterState> {
  const [row] = await sql`
    SELECT json_build_object('name', name, 'head', seq, 'hosts', (
      SELECT coalesce(json_agg(json_build_object(
        'id', id, 'name', name, 'address', address, 'program', program, 'version', version,
        'applied', applied, 'problem', problem, 'digest', compared, 'silentMs', ms,
        'isLive', coalesce(ms <= ${LEASE_MS}, false)
      ) ORDER BY joined, id), '[]')
      FROM hopcode.hosts LEFT JOIN LATERAL (
        SELECT seq, digest FROM hopcode.digests AS own WHERE host = id
        ORDER BY EXISTS (
          SELECT FROM hopcode.digests AS other
          WHERE other.seq = own.seq AND other.digest <> own.digest
        ) DESC, seq DESC LIMIT 1
      ) AS compared ON true,
      LATERAL (
        SELECT round(extract(epoch FROM now() - nullif(seen, 'epoch')) * 1000) AS ms
      ) AS silence
    ), 'log', (
      SELECT json_build_object(
        'entries', coalesce(max(seq) - min(seq) + 1, 0),
        'bytes', pg_total_relation_size('hopcode.log'),
        'oldest', (
          SELECT round(extract(epoch FROM at) * 1000) FROM hopcode.log ORDER BY seq LIMIT 1
        )
      ) FROM hopcode.log
    )) AS state FROM hopcode.cluster`
  return parsed(row.state)
}
