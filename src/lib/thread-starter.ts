import type { Log } from './log.ts'
import { RestartingThread } from './restarting-thread.ts'
import { type Functions, Thread, type ThreadOptions } from './thread.ts'

/** Maximum number of calls that wait for one thread. */
const CALLS_MAX = 200_000

/** Starts threads by name, and logs their end by a fault. */
export class ThreadStarter {
  readonly #log: Log
  /** Opens the worker of a thread. */
  readonly open: (thread: string) => Worker

  constructor(log: Log, open: (thread: string) => Worker) {
    this.#log = log
    this.open = open
  }

  once<Calls extends Functions<Calls>>(
    thread: string,
    settings: unknown,
    options: Partial<ThreadOptions> = {},
  ): Promise<Thread<Calls>> {
    return Thread.start<Calls>(this.open(thread), settings, {
      batchMax: 1,
      queueMax: CALLS_MAX,
      ...options,
      onDeath: (error) => {
        this.#log.error('thread.ended', { thread }, error)
        options.onDeath?.(error)
      },
    })
  }

  /** For a thread without state: it is started again when it ends. */
  again<Calls extends Functions<Calls>>(
    thread: string,
    settings: unknown,
  ): Promise<RestartingThread<Calls>> {
    return RestartingThread.start<Calls>(
      (onDeath) => this.once<Calls>(thread, settings, { onDeath }),
      { onRestart: () => this.#log.info('thread.restarted', { thread }) },
    )
  }
}
