import type { Database } from 'bun:sqlite'
import type { Log } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import { Applier } from './apply.ts'
import { PostgresLog } from './log.ts'

interface CatchUpOptions {
  db: Database
  url: string
  host: string
  /** All functions that an entry may call. */
  functions: object
  log: Log
}

/**
 * Applies all entries of the log before the service starts. The hit journal must not be opened
 * before that: a loss of power may have removed hits from it that the log has already counted, and
 * new hits must not get their positions. Without PostgreSQL the service starts with what it has.
 */
export async function catchUp({ db, url, host, functions, log }: CatchUpOptions): Promise<void> {
  const applier = new Applier({ db, functions, host })
  const entries = new PostgresLog({ url, host })
  const first = applier.position.seq
  try {
    while (!applier.problem) {
      const page = await entries.readAfter(applier.position.seq)
      if (page.length === 0) break
      for (const _ of applier.apply(page)) await Bun.sleep(0)
    }
    log.info('cluster.caught_up', { entries: applier.position.seq - first })
  } catch (error) {
    log.warn('cluster.not_caught_up', { reason: messageOf(error) })
  } finally {
    await entries.close()
  }
}
