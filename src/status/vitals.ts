import { readdirSync, statfsSync, statSync } from 'node:fs'
import type { HitJournal } from '../hot/journal.ts'
import type { Health } from './health.ts'

/** State of the service for its dashboard page. Sizes are bytes. */
export interface Vitals {
  /** The database answers, and the last write succeeded. */
  isDatabaseWell: boolean
  isWriteFailing: boolean
  hits: { pending: number; journalFill: number; areOverflowing: boolean }
  disk: { database: number; log: number; free: number | undefined }
  /** Resident memory of all threads; undefined while no file descriptor is free to read it. */
  memory: number | undefined
  /** Epoch ms. */
  startedAt: number
}

interface VitalsDeps {
  health: Health
  writer: { readonly failing: boolean }
  journal: Pick<HitJournal, 'pending' | 'entries' | 'overflow'>
  databaseFile: string
}

/** Waits for nothing but the file system, and throws nothing. */
export function readVitals({ health, writer, journal, databaseFile }: VitalsDeps): Vitals {
  const { pending, entries, overflow } = journal
  return {
    isDatabaseWell: health.totalRedirects() !== undefined,
    isWriteFailing: writer.failing,
    hits: { pending, journalFill: Math.min(1, pending / entries), areOverflowing: overflow > 0 },
    disk: readDisk(databaseFile),
    memory: orUndefined(() => process.memoryUsage.rss()),
    startedAt: performance.timeOrigin,
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
    /** Room left for this process. */
    free: disk && disk.bavail * disk.bsize,
  }
}

/** What the operating system knows of this process. Undefined: it cannot be read at present. */
export function readProcess() {
  return {
    // Bun reads it from a file, which needs a descriptor.
    memory: orUndefined(() => process.memoryUsage()),
    /** Microseconds. */
    cpu: process.cpuUsage(),
    descriptorsOpen: countDescriptors(),
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
