import { existsSync } from 'node:fs'
import type { Command } from '@commander-js/extra-typings'
import { LOST_TAIL } from '../cluster/apply.ts'
import { hostIdFile, hostIdOf } from '../cluster/host-id.ts'
import { usingPostgres } from '../cluster/setup.ts'
import { type ClusterState, type HostState, readCluster } from '../cluster/status.ts'
import type { Config } from '../config.ts'
import { formatBytes } from '../lib/bytes.ts'
import { HOUR, isoTime, MINUTE, SECOND } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { print } from '../lib/log.ts'
import { Columns } from './columns.ts'
import { CommandError, ProblemsFound } from './errors.ts'
import { readConfigOfFolder } from './folder.ts'
import { JSON_LINES } from './options.ts'
import { findPositionOf } from './restore.ts'

/** Entries that a live host may be behind without advice. */
const LAG_MAX = 10_000

export function addClusterStatus(cluster: Command): void {
  cluster
    .command('status')
    .summary('show the hosts of the cluster, its log, and what to do')
    .description(
      'Show the hosts of the cluster, its log, and what to do. Exit 1 if something needs ' +
        'attention.',
    )
    .option(...JSON_LINES)
    .action(async ({ json }) => {
      const config = readConfigOfFolder()
      const state = await readState(config)
      const own = existsSync(hostIdFile(config.dataDir)) ? hostIdOf(config.dataDir) : undefined
      const advice = adviceOn(state)
      print(json ? JSON.stringify(viewOf(state, own, advice)) : textOf(state, own, advice))
      if (advice.length > 0) throw new ProblemsFound()
    })
}

export function requireClusterUrl({ clusterUrl }: Config): string {
  if (clusterUrl) return clusterUrl
  throw new CommandError('CLUSTER_URL is missing: the PostgreSQL database of the cluster')
}

/** If PostgreSQL fails, the error has the position of this host, to find the newest data. */
async function readState(config: Config): Promise<ClusterState> {
  try {
    return await usingPostgres(requireClusterUrl(config), readCluster)
  } catch (error) {
    const position = findPositionOf(config.dataDir)
    if (!(error instanceof DataError) || !position) throw error
    const reason = error.message.replace(/\.$/, '')
    throw new DataError(`${reason}. This host has applied entry ${position.seq}.`)
  }
}

const viewOf = (
  { name, head, hosts, log }: ClusterState,
  own: string | undefined,
  advice: string[],
) => ({
  ok: advice.length === 0,
  cluster: name,
  entry: head,
  hosts: hosts.map(({ id, isLive, silentMs, ...host }) => ({
    id,
    name: host.name,
    address: host.address,
    this_host: id === own,
    live: isLive,
    last_contact_ms: silentMs,
    applied: host.applied,
    behind: head - host.applied,
    program: host.program,
    problem: host.problem,
    digest: host.digest && { entry: host.digest.seq, hash: host.digest.digest },
  })),
  log: {
    entries: log.entries,
    bytes: log.bytes,
    oldest: log.oldest === null ? null : isoTime(log.oldest),
  },
  advice,
})

const HEAD = ['HOST', 'STATE', 'APPLIED', 'BEHIND', 'DIGEST', 'RELEASE', 'ADDRESS', 'ID']

function textOf(state: ClusterState, own: string | undefined, advice: readonly string[]): string {
  const { name, head, hosts, log } = state
  const rows = hosts.map((host) => [
    host.name + (host.id === own ? ' (this host)' : ''),
    stateOf(host),
    String(host.applied),
    host.applied > head ? `${host.applied - head} ahead` : String(head - host.applied),
    host.digest ? `${host.digest.digest.slice(0, 8)} at ${host.digest.seq}` : 'none',
    host.program,
    host.address,
    host.id,
  ])
  const oldest = log.oldest === null ? '' : `, the oldest from ${isoTime(log.oldest)}`
  return [
    `Cluster ${name}, at entry ${head}.`,
    '',
    ...new Columns(HEAD.map(() => ({}))).lines([HEAD, ...rows]),
    '',
    `Log: ${log.entries} entries, ${formatBytes(log.bytes)}${oldest}.`,
    ...(advice.length === 0 ? ['No problems.'] : advice.map((line) => `→ ${line}`)),
  ].join('\n')
}

function stateOf({ problem, isLive, silentMs }: HostState): string {
  if (silentMs === null) return 'stopped'
  if (!isLive) return `silent for ${duration(silentMs)}`
  return problem === null ? 'live' : 'not following'
}

function duration(ms: number): string {
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} min`
  return `${Math.round(ms / HOUR)} h`
}

const JOIN_AGAIN =
  'Stop its service, and run "hopcode cluster join" there, with a copy of a host without a problem.'
const ALL_AHEAD =
  'The log lacks entries that all hosts have applied: PostgreSQL has lost them. The steps are in ' +
  'docs/operations/cluster.md, “PostgreSQL is lost for good”.'

/** What a person should do, one line each. */
function adviceOn({ head, hosts }: ClusterState): string[] {
  const newest = Math.max(0, ...hosts.map(({ version }) => version))
  const isAhead = ({ applied, problem }: HostState) => applied > head || problem === LOST_TAIL
  if (hosts.length > 0 && hosts.every(isAhead)) return [ALL_AHEAD]
  return hosts.flatMap((host) => {
    const { id, problem, isLive, version, applied } = host
    const name = `${host.name} (${host.address})`
    const lines: string[] = []
    if (isAhead(host)) lines.push(`${name}: ${LOST_TAIL}. ${JOIN_AGAIN}`)
    else if (problem !== null) lines.push(`${name}: ${problem}`)
    else if (!isLive) {
      lines.push(
        `${name} has no contact to PostgreSQL: start its service, or see its log. If the host is ` +
          `lost: hopcode cluster leave --host ${id}`,
      )
    } else if (head - applied > LAG_MAX) lines.push(`${name} is still applying the log.`)
    if (version < newest) lines.push(`${name} has an older release than another host: upgrade it.`)
    return lines
  })
}
