import { readdirSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { HitJournal } from '../hot/journal.ts'
import { descriptorsMax } from '../lib/descriptors.ts'
import { hasImageRoom, imageFolder } from '../qr/files.ts'
import type { Health } from './health.ts'

/** The part of `Cluster` that the dashboard shows. */
interface ClusterState {
  readonly problem: string | undefined
  readonly state:
    | { head: number; applied: number; hosts: readonly { isLive: boolean }[] }
    | undefined
}

interface VitalsDeps {
  health: Health
  writer: { readonly failing: boolean }
  journal: Pick<HitJournal, 'pending' | 'entries' | 'overflow'>
  databaseFile: string
  cluster?: ClusterState | undefined
}

export type Vitals = ReturnType<typeof readVitals>

/**
 * State of the service for its dashboard page. Sizes are bytes. Waits only for the file system.
 * Throws nothing.
 */
export function readVitals({ health, writer, journal, databaseFile, cluster }: VitalsDeps) {
  const { pending, entries, overflow } = journal
  return {
    /** The database answers, and the last write succeeded. */
    isDatabaseHealthy: health.totalRedirects() !== undefined,
    isWriteFailing: writer.failing,
    hits: { pending, journalFill: Math.min(1, pending / entries), areOverflowing: overflow > 0 },
    disk: readDisk(databaseFile),
    /** Memory of all threads; undefined while no file descriptor is free to read it. */
    memory: orUndefined(() => process.memoryUsage.rss()),
    startedAt: performance.timeOrigin,
    /** Undefined where this host is alone. */
    cluster: cluster && clusterVitals(cluster),
  }
}

function clusterVitals({ problem, state }: ClusterState) {
  const hosts = state?.hosts ?? []
  return {
    /** Why this host does not follow the log. */
    problem,
    /** Entries that this host has not applied yet. */
    lag: state ? state.head - state.applied : 0,
    /** Other hosts. */
    hosts: hosts.length,
    liveHosts: hosts.filter(({ isLive }) => isLive).length,
  }
}

/** The files that grow, and the disk that they are on, in bytes. Throws nothing. */
export function readDisk(databaseFile: string) {
  const size = (file: string) => orUndefined(() => statSync(file).size) ?? 0
  const disk = orUndefined(() => statfsSync(databaseFile))
  return {
    database: size(databaseFile),
    log: size(`${databaseFile}-wal`),
    size: disk && disk.blocks * disk.bsize,
    /** Free bytes for this process. */
    free: disk && disk.bavail * disk.bsize,
    /** New QR images are stored; if not, they are rendered on demand. */
    hasImageRoom: hasImageRoom(imageFolder(dirname(databaseFile))),
  }
}

/** Figures of the operating system about this process. Undefined: cannot be read at present. */
export function readProcess() {
  return {
    // Bun reads it from a file, which needs a descriptor.
    memory: orUndefined(() => process.memoryUsage()),
    /** Microseconds. */
    cpu: process.cpuUsage(),
    descriptorsOpen: countDescriptors(),
    descriptorsMax: descriptorsMax(),
  }
}

/** Undefined on systems other than Linux, and while no descriptor is free. */
function countDescriptors(): number | undefined {
  // Linux 6.2 and later report the number as the folder's size.
  const size = orUndefined(() => statSync('/proc/self/fd').size)
  return size || orUndefined(() => readdirSync('/proc/self/fd').length)
}

function orUndefined<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
