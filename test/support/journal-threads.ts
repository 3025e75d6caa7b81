import { JournalAppender, type SharedJournal } from '../../src/hot/journal-appender.ts'

/** A thread that appends to a journal as fast as it can. */
interface AppendingThread {
  shared: SharedJournal
  /** Its link ids are `first` to `first + links - 1`, in turn. */
  first: number
  links: number
  hits: number
  /** A file for the numbers of hits begun and completed, which outlives the process. */
  progressFile?: string
}

/** Words of the memory that a thread shares with its starter. */
const BEGUN = 0
const COMPLETED = 1
const GO = 2

declare const self: Worker

if (!Bun.isMainThread) {
  self.onmessage = ({ data }: MessageEvent<AppendingThread & { state: Int32Array }>) => {
    const { first, links, hits, state, progressFile } = data
    const progress = progressFile ? new Int32Array(Bun.mmap(progressFile).buffer) : state
    const appender = new JournalAppender(data.shared)
    postMessage('ready')
    Atomics.wait(state, GO, 0)
    for (let hit = 0; hit < hits; hit++) {
      Atomics.store(progress, BEGUN, hit + 1)
      appender.append(first + (hit % links))
      Atomics.store(progress, COMPLETED, hit + 1)
    }
    postMessage('done')
  }
}

/** Starts threads, which all begin to append when the last one is ready. */
export async function startAppending(work: readonly AppendingThread[]) {
  const threads = work.map((data) => {
    const state = new Int32Array(new SharedArrayBuffer(12))
    const worker = new Worker(import.meta.url)
    const next = () =>
      new Promise<void>((resolve, reject) => {
        worker.onmessage = () => resolve()
        worker.onerror = ({ message }) => reject(new Error(message))
      })
    const ready = next()
    worker.postMessage({ ...data, state })
    return { worker, ready, next, state }
  })
  await Promise.all(threads.map(({ ready }) => ready))
  return threads.map(({ worker, next, state }) => {
    const done = next()
    Atomics.store(state, GO, 1)
    Atomics.notify(state, GO)
    return {
      worker,
      /** Resolves after the last hit. */
      done,
      get begun() {
        return Atomics.load(state, BEGUN)
      },
      get completed() {
        return Atomics.load(state, COMPLETED)
      },
    }
  })
}
