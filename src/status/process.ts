import { readdirSync, statfsSync, statSync } from 'node:fs'
import { descriptorsMax } from './descriptors.ts'
import type { Exposition } from './exposition.ts'

/** What the operating system knows of this process. A figure that is not to be had is left out. */
export function writeProcess(out: Exposition): void {
  // Bun reads it from a file, which takes a descriptor.
  const memory = attempt(() => process.memoryUsage())
  const { user, system } = process.cpuUsage()
  if (memory) {
    out
      .gauge(
        'hopcode_process_resident_memory_bytes',
        'Memory resident, of all threads.',
        memory.rss,
      )
      // Not `heapUsed`: that counts memory outside the heap too, resident or not.
      .gauge(
        'hopcode_process_heap_bytes',
        'JavaScript heap of the HTTP thread, without large arrays, buffers and texts.',
        memory.heapTotal,
      )
  }
  out
    .counter('hopcode_process_cpu_seconds_total', 'Processor time of all threads, by mode.', [
      { labels: { mode: 'user' }, value: user / 1e6 },
      { labels: { mode: 'system' }, value: system / 1e6 },
    ])
    .gauge(
      'hopcode_process_start_time_seconds',
      'When the process began, as Unix time.',
      Math.round(performance.timeOrigin) / 1000,
    )
  limitSeen = descriptorsMax() ?? limitSeen
  const most = limitSeen
  const open = descriptorsOpen() ?? most
  if (open !== undefined) {
    out.gauge('hopcode_process_open_fds', 'File descriptors open: connections and files.', open)
  }
  if (most) out.gauge('hopcode_process_max_fds', 'The most file descriptors allowed.', most)
}

/** The files that grow, and the disk that they are on, in bytes. Throws nothing. */
export function readDisk(databaseFile: string) {
  const size = (file: string) => attempt(() => statSync(file).size) ?? 0
  const disk = attempt(() => statfsSync(databaseFile))
  return {
    database: size(databaseFile),
    log: size(`${databaseFile}-wal`),
    size: disk && disk.blocks * disk.bsize,
    /** Room left for this process. */
    free: disk && disk.bavail * disk.bsize,
  }
}

export function writeDisk(out: Exposition, databaseFile: string): void {
  const { database, log, size, free } = readDisk(databaseFile)
  out
    .gauge('hopcode_database_size_bytes', 'Size of the database file.', database)
    .gauge('hopcode_wal_size_bytes', 'Size of the write-ahead log beside the database.', log)
  if (size === undefined || free === undefined) return
  out
    .gauge('hopcode_disk_size_bytes', 'Size of the disk under DATA_DIR.', size)
    .gauge(
      'hopcode_disk_available_bytes',
      'Room left for this process on the disk under DATA_DIR.',
      free,
    )
}

/** The limit as it could last be read: that takes a descriptor too. */
let limitSeen: number | undefined

/** Undefined where it is not known, and where it cannot be counted because none is free. */
function descriptorsOpen(): number | undefined {
  // Linux 6.2 and later tell their number as the folder's size.
  const size = attempt(() => statSync('/proc/self/fd').size)
  return size || attempt(() => readdirSync('/proc/self/fd').length)
}

export function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
