import { JournalAppender, type SharedJournal } from '../../src/hot/journal-appender.ts'

/** A thread that appends to a journal as fast as it can. */
export interface AppendingThread {
  shared: SharedJournal
  /** Its link ids are `first` to `first + links - 1`, in turn. */
  first: number
  links: number
  hits: number
  /**
   * Int32: hits begun and hits completed. Undefined: the thread ends after its hits by itself.
   */
  progress: SharedArrayBuffer
}

declare const self: Worker

if (!Bun.isMainThread) {
  self.onmessage = ({ data }: MessageEvent<AppendingThread>) => {
    const appender = new JournalAppender(data.shared)
    const progress = new Int32Array(data.progress)
    for (let hit = 0; hit < data.hits; hit++) {
      Atomics.store(progress, 0, hit + 1)
      appender.append(data.first + (hit % data.links))
      Atomics.store(progress, 1, hit + 1)
    }
    postMessage('done')
  }
}

/** Starts a thread. `done` resolves after its last hit. */
export function startAppending(work: Omit<AppendingThread, 'progress'>) {
  const progress = new Int32Array(new SharedArrayBuffer(8))
  const worker = new Worker(import.meta.url)
  const done = new Promise<void>((resolve, reject) => {
    worker.onmessage = () => resolve()
    worker.onerror = ({ message }) => reject(new Error(message))
  })
  worker.postMessage({ ...work, progress: progress.buffer })
  return {
    worker,
    done,
    get begun() {
      return Atomics.load(progress, 0)
    },
    get completed() {
      return Atomics.load(progress, 1)
    },
  }
}
