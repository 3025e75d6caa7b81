import type { Database } from 'bun:sqlite'
import { type SecondFactorWrites, secondFactorWrites } from '../accounts/second-factor.ts'
import { type SessionWrites, sessionWrites } from '../accounts/sessions.ts'
import { type AccountWrites, accountWrites } from '../accounts/writes.ts'
import type { SeenMessage } from '../cluster/events.ts'
import { PostgresLog } from '../cluster/log.ts'
import { SharedOrder } from '../cluster/shared-order.ts'
import { Checkpoints } from '../db/checkpoint.ts'
import { closeWritable, openWritable } from '../db/open.ts'
import { LocalOrder, type Order } from '../db/order.ts'
import { type SettingWrites, settingWrites } from '../db/settings.ts'
import { hitReader, sharedHitWrites } from '../hits/shared-store.ts'
import { type HitWrites, hitWrites } from '../hits/store.ts'
import { JournalFile } from '../hot/journal-file.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { serveThread } from '../lib/thread.ts'
import { type SearchWrites, searchWrites } from '../links/search-index.ts'
import { type LinkWrites, linkWrites } from '../links/store.ts'
import { type ModerationWrites, moderationWrites } from '../moderation/moderation.ts'
import { type QrWrites, qrWrites } from '../qr/store.ts'

/** The one thread that writes the database while the service runs. */
export type Writes = LinkWrites &
  SearchWrites &
  HitWrites &
  SettingWrites &
  AccountWrites &
  SessionWrites &
  SecondFactorWrites &
  ModerationWrites &
  QrWrites

/** How the writer thread of a host in a cluster orders writes. */
export interface ClusterSettings {
  url: string
  host: string
  /** Takes each StateEvent. */
  state: MessagePort
  /** Takes each AppliedEvent, and brings each SeenMessage. */
  applied: MessagePort
}

interface WriterSettings {
  file: string
  journal: string
  cluster?: ClusterSettings
}

serveThread(({ file, journal: journalPath, cluster }: WriterSettings) => {
  setThreadPriority('normal')
  const db = openWritable(file)
  const checkpoints = new Checkpoints(db)
  const journal = JournalFile.open(journalPath)
  const functions = writeFunctions(db, journal)
  const order: Order = cluster
    ? sharedOrder({ db, journal, functions, checkpoints, cluster })
    : new LocalOrder(db, functions)
  return {
    answer: (calls) => order.submit(calls),
    onBatchDone: () => checkpoints.afterCommit(),
    place: () => order.place,
    async close() {
      await order.close()
      checkpoints.close()
      closeWritable(db)
    },
  }
})

/** All functions of the thread, on a connection that may write. */
function writeFunctions(db: Database, journal: Pick<JournalFile, 'read'>): Writes {
  return {
    ...linkWrites(db),
    ...searchWrites(db),
    ...hitWrites(db, journal),
    ...settingWrites(db),
    ...accountWrites(db),
    ...sessionWrites(db),
    ...secondFactorWrites(db),
    ...moderationWrites(db),
    ...qrWrites(db),
  }
}

interface SharedOrderParts {
  db: Database
  journal: JournalFile
  functions: Writes
  checkpoints: Checkpoints
  cluster: ClusterSettings
}

function sharedOrder({ db, journal, functions, checkpoints, cluster }: SharedOrderParts): Order {
  const { url, host, state, applied } = cluster
  // The log is durable: after a loss of power, its last entries are applied again.
  db.run('PRAGMA synchronous = NORMAL')
  const order = new SharedOrder({
    db,
    functions: { ...functions, ...sharedHitWrites(db, host) },
    host,
    log: new PostgresLog({ url, host }),
    readHits: hitReader(db, journal, host),
    onApplied: (event) => {
      applied.postMessage(event)
      checkpoints.afterCommit()
    },
    onState: (event) => state.postMessage(event),
  })
  applied.onmessage = ({ data }: { data: SeenMessage }) => order.confirm(data.seen)
  return order
}
