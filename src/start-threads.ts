import type { PasswordFunctions } from './accounts/passwords.ts'
import type { Config } from './config.ts'
import { databaseFile } from './db/open.ts'
import { journalFile } from './hits/hits.ts'
import type { Log } from './lib/log.ts'
import { RestartingThread } from './lib/restarting-thread.ts'
import { type Functions, Thread, type ThreadOptions } from './lib/thread.ts'
import { imageFolder } from './qr/files.ts'
import type { Renderer } from './qr/renderer.ts'
import type { WriterWork } from './status/metrics.ts'
import type { Reads } from './threads/reader.ts'
import type { ClusterSettings, Writes } from './threads/writer.ts'
import type { CollectorFunctions, CollectorSettings } from './visits/collector.ts'

export type OpenWorker = (url: URL) => Worker

/** Maximum number of calls that wait for one thread. */
const CALLS_MAX = 200_000

interface ThreadDescription {
  name: string
  url: URL
  settings: unknown
  options?: Partial<ThreadOptions>
}

interface ThreadHost {
  log: Log
  openWorker: OpenWorker
}

interface ThreadsOptions {
  config: Config
  host: ThreadHost
  writerWork: WriterWork
  /** Absent where this host is alone. */
  cluster: ClusterSettings | undefined
}

export type Threads = Awaited<ReturnType<typeof startThreads>>

export async function startThreads(options: ThreadsOptions) {
  const { config, host, writerWork, cluster } = options
  const file = databaseFile(config.dataDir)
  const [writer, reader, qr] = await Promise.all([
    startThread<Writes>(host, {
      name: 'writer',
      url: new URL('./threads/writer.ts', import.meta.url),
      settings: { file, journal: journalFile(config.dataDir), cluster },
      options: {
        batchMax: 1000,
        observe: writerWork.observe,
        transfer: cluster ? [cluster.state, cluster.applied] : [],
      },
    }),
    startRestartingThread<Reads>(host, {
      name: 'reader',
      url: new URL('./threads/reader.ts', import.meta.url),
      settings: { file },
    }),
    startRestartingThread<Renderer>(host, {
      name: 'qr',
      url: new URL('./threads/qr.ts', import.meta.url),
      settings: { dir: imageFolder(config.dataDir) },
    }),
  ])
  return { writer, reader, qr }
}

export function startVisits(
  host: ThreadHost,
  settings: CollectorSettings,
): Promise<RestartingThread<CollectorFunctions>> {
  const url = new URL('./threads/visits.ts', import.meta.url)
  return startRestartingThread(host, { name: 'visits', url, settings })
}

export function startPasswords(host: ThreadHost): Promise<Thread<PasswordFunctions>> {
  const url = new URL('./threads/passwords.ts', import.meta.url)
  return startThread<PasswordFunctions>(host, { name: 'passwords', url, settings: {} })
}

/** Starts a thread, and logs its end by a fault. */
function startThread<Calls extends Functions<Calls>>(
  { log, openWorker }: ThreadHost,
  { name, url, settings, options }: ThreadDescription,
): Promise<Thread<Calls>> {
  return Thread.start<Calls>(openWorker(url), settings, {
    batchMax: 1,
    queueMax: CALLS_MAX,
    ...options,
    onDeath: (error) => {
      log.error('thread.ended', { thread: name }, error)
      options?.onDeath?.(error)
    },
  })
}

/** Starts a thread without state, which is restarted when it ends. */
function startRestartingThread<Calls extends Functions<Calls>>(
  host: ThreadHost,
  thread: ThreadDescription,
): Promise<RestartingThread<Calls>> {
  return RestartingThread.start<Calls>(
    (onDeath) => startThread(host, { ...thread, options: { onDeath } }),
    { onRestart: () => host.log.info('thread.restarted', { thread: thread.name }) },
  )
}
