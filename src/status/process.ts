import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import type { Exposition } from './exposition.ts'

/** What the operating system knows of this process. A figure that is not to be had is left out. */
export function writeProcess(out: Exposition): void {
  const { rss, heapTotal } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  out
    .gauge('hopcode_process_resident_memory_bytes', 'Memory resident, of all threads.', rss)
    // Not `heapUsed`: that counts memory outside the heap too, resident or not.
    .gauge(
      'hopcode_process_heap_bytes',
      'JavaScript heap of the HTTP thread, without large arrays, buffers and texts.',
      heapTotal,
    )
    .counter('hopcode_process_cpu_seconds_total', 'Processor time of all threads, by mode.', [
      { labels: { mode: 'user' }, value: user / 1e6 },
      { labels: { mode: 'system' }, value: system / 1e6 },
    ])
    .gauge(
      'hopcode_process_start_time_seconds',
      'When the process began, as Unix time.',
      Math.round(performance.timeOrigin) / 1000,
    )
  const open = attempt(() => readdirSync('/proc/self/fd').length)
  if (open !== undefined) {
    out.gauge('hopcode_process_open_fds', 'File descriptors open: connections and files.', open)
  }
  const most = attempt(descriptorsMax)
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

function descriptorsMax(): number {
  const limits = readFileSync('/proc/self/limits', 'utf8')
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1])
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
