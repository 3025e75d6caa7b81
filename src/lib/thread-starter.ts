import { MINUTE, SECOND } from './clock.ts'
import type { Log } from './log.ts'
import { type Caller, type Functions, Thread, type ThreadOptions } from './thread.ts'

const PAUSE_MIN_MS = 100
const PAUSE_MAX_MS = 30 * SECOND
/** After a thread has run for this time, the next pause is the shortest again. */
const STABLE_MS = MINUTE

/** Starts the thread. Calls `onDeath` if it ends later without `close`. */
type Open<Calls extends Functions<Calls>> = (onDeath: () => void) => Promise<Thread<Calls>>

interface Options {
  /** Called after each restart. */
  onRestart?: () => void
  /** Pause before the first restart. Each restart soon after another waits twice as long. */
  pauseMs?: number
}

/**
 * A thread without state of its own, which is started again when it ends: for reads and images.
 * Calls in progress are then refused, and so are new ones until the new thread runs. The writer is
 * not such a thread: see docs/decisions/018-do-not-restart-the-writer-thread.md.
 */
export class RestartingThread<Calls extends Functions<Calls>> implements Caller<Calls> {
  readonly #open: Open<Calls>
  readonly #options: Required<Options>
  #thread: Thread<Calls>
  #startedAt = performance.now()
  #pauseMs: number
  #timer: Timer | undefined
  #restarting: Promise<void> | undefined
  #isClosed = false

  private constructor(open: Open<Calls>, thread: Thread<Calls>, options: Options) {
    this.#open = open
    this.#thread = thread
    this.#options = { onRestart: () => {}, pauseMs: PAUSE_MIN_MS, ...options }
    this.#pauseMs = this.#options.pauseMs
  }

  /** Rejects if the first start fails. Later starts are retried. */
  static async start<Calls extends Functions<Calls>>(
    open: Open<Calls>,
    options: Options = {},
  ): Promise<RestartingThread<Calls>> {
    let restart = () => {}
    const it = new RestartingThread(open, await open(() => restart()), options)
    restart = () => it.#restartLater()
    if (it.isDead) restart()
    return it
  }

  get isDead(): boolean {
    return this.#thread.isDead
  }

  get pending(): number {
    return this.#thread.pending
  }

  get batchMs(): number {
    return this.#thread.batchMs
  }

  call: Caller<Calls>['call'] = (name, args, options) => this.#thread.call(name, args, options)

  async close(options?: Parameters<Thread<Calls>['close']>[0]): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#restarting
    await this.#thread.close(options)
  }

  #restartLater(): void {
    if (this.#isClosed || this.#restarting) return
    const wasStable = performance.now() - this.#startedAt >= STABLE_MS
    if (wasStable) this.#pauseMs = this.#options.pauseMs
    this.#timer = setTimeout(() => {
      this.#restarting = this.#restart().finally(() => {
        this.#restarting = undefined
        if (this.isDead) this.#restartLater()
      })
    }, this.#pauseMs)
    this.#pauseMs = Math.min(PAUSE_MAX_MS, this.#pauseMs * 2)
  }

  async #restart(): Promise<void> {
    try {
      this.#thread = await this.#open(() => this.#restartLater())
    } catch {
      // `#thread` is still the dead one, so the caller schedules the next attempt.
      return
    }
    this.#startedAt = performance.now()
    if (!this.#isClosed) this.#options.onRestart()
  }
}

/** A thread that starts with its first call, and takes no memory without one. */
export class LazyThread<Calls extends Functions<Calls>> implements Caller<Calls> {
  readonly #start: () => Promise<RestartingThread<Calls>>
  #thread: RestartingThread<Calls> | undefined
  #starting: Promise<RestartingThread<Calls>> | undefined
  #isClosed = false

  /** `start`: if it rejects, so do the calls that wait, and the next one tries again. */
  constructor(start: () => Promise<RestartingThread<Calls>>) {
    this.#start = start
  }

  get isDead(): boolean {
    return this.#thread?.isDead ?? false
  }

  get pending(): number {
    return this.#thread?.pending ?? 0
  }

  get batchMs(): number {
    return this.#thread?.batchMs ?? 0
  }

  call: Caller<Calls>['call'] = (name, args, options) =>
    this.#thread
      ? this.#thread.call(name, args, options)
      : this.#started().then((thread) => thread.call(name, args, options))

  async close(options?: Parameters<Thread<Calls>['close']>[0]): Promise<void> {
    this.#isClosed = true
    const thread = this.#thread ?? (await this.#starting?.catch(() => undefined))
    await thread?.close(options)
  }

  #started(): Promise<RestartingThread<Calls>> {
    if (this.#isClosed) return Promise.reject(new Error('a worker thread is closed'))
    this.#starting ??= this.#start()
      .then((thread) => {
        this.#thread = thread
        return thread
      })
      .finally(() => {
        this.#starting = undefined
      })
    return this.#starting
  }
}

/** Maximum number of calls that wait for one thread. */
const CALLS_MAX = 200_000

interface Repeated {
  /** Called before each start. */
  prepare: () => Pick<ThreadOptions, 'transfer' | 'onDeath'> & { settings: unknown }
  onRestart?: () => void
}

/** Starts threads by name, and logs their end by a fault. */
export class ThreadStarter {
  readonly #log: Log
  readonly #open: (thread: string) => Worker

  /** `open`: opens the worker of a thread. */
  constructor(log: Log, open: (thread: string) => Worker) {
    this.#log = log
    this.#open = open
  }

  once<Calls extends Functions<Calls>>(
    thread: string,
    settings: unknown,
    options: Partial<ThreadOptions> = {},
  ): Promise<Thread<Calls>> {
    return Thread.start<Calls>(this.#open(thread), settings, {
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
    { prepare, onRestart }: Repeated,
  ): Promise<RestartingThread<Calls>> {
    const open = (restart: () => void) => {
      const { settings, onDeath, ...options } = prepare()
      const end = (error: Error) => {
        onDeath?.(error)
        restart()
      }
      return this.once<Calls>(thread, settings, { ...options, onDeath: end })
    }
    return RestartingThread.start<Calls>(open, {
      onRestart: () => {
        this.#log.info('thread.restarted', { thread })
        onRestart?.()
      },
    })
  }

  /** The same, but the thread starts with its first call. */
  lazily<Calls extends Functions<Calls>>(thread: string, repeated: Repeated): LazyThread<Calls> {
    return new LazyThread(() => this.again<Calls>(thread, repeated))
  }
}
