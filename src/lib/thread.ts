import { type MonotonicClock, monotonicClock } from './clock.ts'
import { DataError } from './data-error.ts'

/** Typed calls to functions on a worker thread. Calls queue up; one batch is sent at a time. */

export type Functions<Calls> = { [Name in keyof Calls]: (args: never) => unknown }

/** Functions whose names the type does not tell. */
export type NamedFunctions = Record<string, (args: never) => unknown>

/** A call of a function by its name. */
export interface Call {
  name: string
  args: unknown
}

export type Outcome = { value: unknown } | { error: string }

type ToThread = { start: unknown } | { batch: readonly Call[] } | { stop: true }
type FromThread =
  | { ready: true }
  | { failed: string }
  | { outcomes: Outcome[]; seq: number }
  | { stopped: true }

interface Waiting extends Call {
  resolve: (value: never) => void
  reject: (error: Error) => void
}

export interface ThreadOptions {
  /** Maximum number of calls in a batch. The thread answers a batch as a whole. */
  batchMax: number
  /** Calls beyond this many pending ones are refused with an error: memory stays bounded. */
  queueMax: number
  /** Called after each answered batch, with its size and the time until its answer. */
  observe?: (calls: number, seconds: number) => void
  /** Called once if the thread ends without `close`. Every call is refused from then on. */
  onDeath?: (error: Error) => void
  /** Moves to the thread with its settings. */
  transfer?: Bun.Transferable[]
  /** Measures how long a batch takes. Default: the machine's clock. */
  monotonic?: MonotonicClock
}

export interface CallOptions {
  /** Sent only when no other call waits. */
  background?: boolean
  /** A client waits for the call: in a cluster, it resolves when all hosts have applied it. */
  isAcknowledged?: boolean
}

/** The calling side of a thread, limited to the functions that a feature calls. */
export interface Caller<Calls extends Functions<Calls>> {
  call<Name extends keyof Calls & string>(
    name: Name,
    args: Parameters<Calls[Name]>[0],
    options?: CallOptions,
  ): Promise<Awaited<ReturnType<Calls[Name]>>>
}

/** The calling side. A `background` call is sent only when no other call waits. */
export class Thread<Calls extends Functions<Calls>> implements Caller<Calls> {
  readonly #worker: Worker
  readonly #options: ThreadOptions
  readonly #monotonic: MonotonicClock
  readonly #started = Promise.withResolvers<void>()
  #urgent: Waiting[] = []
  #background: Waiting[] = []
  #batch: Waiting[] = []
  #drained: (() => void) | undefined
  #stopped: (() => void) | undefined
  #dead: Error | undefined
  /** The error of every call made after `close`. */
  #closing: Error | undefined
  #sentAt = 0
  #seq = 0

  /** For a worker that has its functions already; otherwise call `start`. */
  constructor(worker: Worker, options: ThreadOptions) {
    this.#worker = worker
    this.#options = options
    this.#monotonic = options.monotonic ?? monotonicClock
    // Only `start` awaits it.
    this.#started.promise.catch(() => {})
    const end = (why: string) => this.#die(new Error(`a worker thread ended: ${why}`))
    worker.onerror = ({ message }) => end(message)
    worker.addEventListener('close', ({ code }) => end(`exit code ${code}`))
    worker.onmessage = ({ data }: MessageEvent<FromThread>) => {
      if ('ready' in data) this.#started.resolve()
      else if ('failed' in data) {
        this.#dead = new DataError(data.failed)
        worker.terminate()
        this.#started.reject(this.#dead)
      } else if ('stopped' in data) this.#stopped?.()
      else this.#settle(data)
    }
  }

  /**
   * Resolves once the thread has created its functions from `settings`. Rejects with the thread's
   * error if it cannot.
   */
  static async start<Calls extends Functions<Calls>>(
    worker: Worker,
    settings: unknown,
    options: ThreadOptions,
  ): Promise<Thread<Calls>> {
    const thread = new Thread<Calls>(worker, options)
    worker.postMessage({ start: settings } satisfies ToThread, options.transfer ?? [])
    await thread.#started.promise
    return thread
  }

  /** The thread has ended and accepts no more calls. */
  get isDead(): boolean {
    return this.#dead !== undefined
  }

  /** Entry of the shared order with the last answered batch: see `Service.seq`. */
  get seq(): number {
    return this.#seq
  }

  /** Number of calls without an answer. */
  get pending(): number {
    return this.#urgent.length + this.#background.length + this.#batch.length
  }

  /** Milliseconds since the current batch was sent; 0 without a batch. */
  get batchMs(): number {
    return this.#batch.length > 0 ? this.#monotonic() - this.#sentAt : 0
  }

  call<Name extends keyof Calls & string>(
    name: Name,
    args: Parameters<Calls[Name]>[0],
    { background = false } = {},
  ): Promise<Awaited<ReturnType<Calls[Name]>>> {
    return new Promise((resolve, reject) => {
      const refusal = this.#dead ?? this.#closing
      if (refusal) return reject(refusal)
      if (this.pending >= this.#options.queueMax) {
        return reject(new Error(`a worker thread has ${this.pending} calls waiting`))
      }
      const waiting = { name, args, resolve, reject } as Waiting
      if (background) this.#background.push(waiting)
      else this.#urgent.push(waiting)
      // Calls that the rest of this tick adds are sent in the same batch.
      if (this.pending === 1) queueMicrotask(() => this.#send())
    })
  }

  /**
   * Refuses new calls, rejects waiting background calls named in `drop`, finishes all others, and
   * then ends the thread.
   */
  async close({ drop = [] }: { drop?: readonly string[] } = {}): Promise<void> {
    if (this.#dead) return
    this.#closing = new Error('the worker thread is closed')
    const isDropped = ({ name }: Waiting) => drop.includes(name)
    const dropped = this.#background.filter(isDropped)
    this.#background = this.#background.filter((waiting) => !isDropped(waiting))
    for (const { reject } of dropped) reject(this.#closing)
    if (this.pending > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    if (!this.#dead) {
      const stopped = new Promise<void>((resolve) => {
        this.#stopped = resolve
      })
      this.#worker.postMessage({ stop: true } satisfies ToThread)
      await stopped
    }
    this.#dead = this.#closing
    this.#worker.terminate()
  }

  #send(): void {
    if (this.#batch.length > 0 || this.#dead) return
    const from = this.#urgent.length > 0 ? this.#urgent : this.#background
    if (from.length === 0) return
    this.#batch = from.splice(0, this.#options.batchMax)
    const batch = this.#batch.map(({ name, args }) => ({ name, args }))
    this.#sentAt = this.#monotonic()
    this.#worker.postMessage({ batch } satisfies ToThread)
  }

  #settle({ outcomes, seq }: { outcomes: readonly Outcome[]; seq: number }): void {
    const answered = this.#batch
    this.#seq = seq
    this.#options.observe?.(answered.length, this.batchMs / 1000)
    this.#batch = []
    // First, so that the thread works on the next batch while the callers continue.
    this.#send()
    for (const [index, { resolve, reject }] of answered.entries()) {
      const outcome = outcomes[index]
      if (outcome && 'value' in outcome) resolve(outcome.value as never)
      else reject(new Error(outcome?.error ?? 'a worker thread gave no answer'))
    }
    if (this.pending === 0) this.#drained?.()
  }

  #die(error: Error): void {
    if (this.#dead) return
    this.#dead = error
    this.#started.reject(error)
    this.#options.onDeath?.(error)
    this.#stopped?.()
    for (const { reject } of [...this.#batch, ...this.#urgent, ...this.#background]) reject(error)
    this.#batch = []
    this.#urgent = []
    this.#background = []
    this.#drained?.()
  }
}

interface Service {
  /** Returns one outcome per call, in order. Must not throw. */
  answer(calls: readonly Call[]): Outcome[] | Promise<Outcome[]>
  /** Runs after the answers of a batch are sent. Must not throw. */
  onBatchDone?(): void
  /** After a batch: a number that grows with each change, where changes have an order. */
  seq?(): number
  close(): void | Promise<void>
}

declare const self: Worker

/** The thread's side. `open` receives the settings passed to `Thread.start`. */
export function serveThread<Settings>(
  open: (settings: Settings) => Service | Promise<Service>,
): void {
  const post = (message: FromThread) => self.postMessage(message)
  let service: Service | undefined
  self.onmessage = async ({ data }: MessageEvent<ToThread>) => {
    if ('start' in data) {
      try {
        service = await open(data.start as Settings)
        post({ ready: true })
        shrinkAfterStart()
      } catch (error) {
        post({ failed: messageOf(error) })
      }
    } else if ('stop' in data) {
      await service?.close()
      post({ stopped: true })
    } else if (service) {
      const outcomes = await service.answer(data.batch)
      post({ outcomes, seq: service.seq?.() ?? 0 })
      service.onBatchDone?.()
    }
  }
}

/** Short, because compiled code is discarded too, and no code is hot yet. */
const SHRINK_DELAY_MS = 100

/**
 * Frees memory of the calling thread that only its start needed: module sources, code that runs
 * once. Runs shortly after this call, when the thread is idle; code in use is compiled again.
 */
export function shrinkAfterStart(): void {
  setTimeout(() => Bun.shrink(), SHRINK_DELAY_MS).unref()
}

/** Answers each call by itself, from a function table. */
export function functionService(functions: object, close = () => {}): Service {
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(functions, call))),
    close,
  }
}

/** An error becomes the outcome of its call. */
async function runCall(functions: object, { name, args }: Call): Promise<Outcome> {
  try {
    return { value: await functionOf(functions, name)(args) }
  } catch (error) {
    return { error: messageOf(error) }
  }
}

export function functionOf(functions: object, name: string): (args: unknown) => unknown {
  return (functions as Record<string, (args: unknown) => unknown>)[name] as never
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
