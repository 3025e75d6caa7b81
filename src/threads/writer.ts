import type { Database } from 'bun:sqlite'
import { loggedFunctions } from '../cluster/apply.ts'
import type { SeenMessage } from '../cluster/events.ts'
import { PostgresLog } from '../cluster/log.ts'
import { SharedOrder } from '../cluster/shared-order.ts'
import { subjects } from '../data.ts'
import { Checkpoints } from '../db/checkpoint.ts'
import { closeWritable, openWritable } from '../db/open.ts'
import { writeFunctions } from '../db/subject.ts'
import { CATCH_UP, localOrder, type Order } from '../db/writer.ts'
import { hitCalls } from '../hits/cluster-store.ts'
import { JournalFile } from '../hot/journal-file.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { serveThread } from '../lib/thread.ts'

/** How the writer thread of a host in a cluster orders writes. */
export interface ClusterSettings {
  url: string
  host: string
  /** A random id of this process. */
  boot: string
  /** The name and the address of the host. */
  name: string
  address: string
  /** Receives each StateEvent. */
  state: MessagePort
  /** Receives each AppliedEvent, and returns each SeenMessage. */
  applied: MessagePort
}

interface WriterSettings {
  file: string
  journal: string
  cluster?: ClusterSettings
}

/** The one thread that writes the database while the service runs. */
serveThread(({ file, journal: journalPath, cluster }: WriterSettings) => {
  setThreadPriority('writes')
  const db = openWritable(file)
  const checkpoints = new Checkpoints(db)
  const journal = JournalFile.open(journalPath)
  const order: Order = cluster
    ? sharedOrder({ db, journal, checkpoints, cluster })
    : localOrder(db, {
        ...writeFunctions(subjects, db, { id: '', journal }),
        // A host alone has every change.
        [CATCH_UP]() {},
      })
  return {
    answer: (calls) => order.submit(calls),
    onBatchDone: () => checkpoints.afterCommit(),
    seq: () => order.seq,
    async close() {
      await order.close()
      checkpoints.close()
      closeWritable(db)
    },
  }
})

interface SharedOrderParts {
  db: Database
  journal: JournalFile
  checkpoints: Checkpoints
  cluster: ClusterSettings
}

function sharedOrder({ db, journal, checkpoints, cluster }: SharedOrderParts): Order {
  const { url, host, boot, name, address, state, applied } = cluster
  // The log is durable: after a loss of power, its last entries are applied again.
  db.run('PRAGMA synchronous = NORMAL')
  const order = new SharedOrder({
    db,
    functions: loggedFunctions(db, { id: host, journal }),
    host,
    log: new PostgresLog({ url, host, boot, name, address }),
    compares: true,
    prepare: hitCalls(db, journal, host),
    onApplied: (event) => {
      applied.postMessage(event)
      checkpoints.afterCommit()
    },
    onState: (event) => state.postMessage(event),
  })
  applied.onmessage = ({ data }: { data: SeenMessage }) => order.confirm(data.seen)
  return order
}
