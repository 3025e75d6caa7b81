import type { HitJournal } from '../hot/journal.ts'
import type { Health } from './health.ts'
import { attempt, readDisk } from './process.ts'

/** How the service is, in figures for a person. Sizes are bytes. */
export interface Vitals {
  /** The database answers, and its last write was taken. */
  isDatabaseWell: boolean
  isWriteFailing: boolean
  hits: { pending: number; journalFill: number; areOverflowing: boolean }
  disk: { database: number; log: number; free: number | undefined }
  /** Memory resident, of all threads; undefined while no file descriptor is free to read it. */
  memory: number | undefined
  /** Epoch ms. */
  startedAt: number
}

interface VitalsDeps {
  health: Health
  writer: { readonly failing: boolean }
  journal: Pick<HitJournal, 'pending' | 'entries' | 'overflowing'>
  databaseFile: string
}

/** Waits for nothing but the file system, and throws nothing. */
export function readVitals({ health, writer, journal, databaseFile }: VitalsDeps): Vitals {
  const { pending, entries, overflowing } = journal
  return {
    isDatabaseWell: health.totalRedirects() !== undefined,
    isWriteFailing: writer.failing,
    hits: { pending, journalFill: Math.min(1, pending / entries), areOverflowing: overflowing },
    disk: readDisk(databaseFile),
    memory: attempt(() => process.memoryUsage.rss()),
    startedAt: performance.timeOrigin,
  }
}
