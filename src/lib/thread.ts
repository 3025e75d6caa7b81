import { type MonotonicClock, monotonicClock } from './clock.ts'
import { DataError } from './data-error.ts'
import { shrinkAfterStart } from './footprint.ts'

/** A worker thread as a typed function table: calls queue up, one batch at a time is away. */

export type Functions<Calls> = { [Name in keyof Calls]: (args: never) => unknown }

interface Call {
  name: string
  args: unknown
}

export type Outcome = { value: unknown } | { error: string }

type ToThread = { start: unknown } | { batch: readonly Call[] } | { stop: true }
type FromThread = { ready: true } | { failed: string } | { outcomes: Outcome[] } | { stopped: true }

interface Waiting extends Call {
  resolve: (value: never) => void
  reject: (error: Error) => void
}

export interface ThreadOptions {
  /** The most calls sent together; the thread answers them together. */
  batchMax: number
  /** Calls waiting beyond this are refused with an error, so that memory stays bounded. */
  queueMax: number
  /** Told of each answered batch: how many calls, and how long it was away. */
  observe?: (calls: number, seconds: number) => void
  /** Told once if the thread ends though nobody closed it: every call is refused from then on. */
  onDeath?: (error: Error) => void
  /** Measures how long a batch is away. Default: the machine's own. */
  monotonic?: MonotonicClock
}

/** What a feature needs of a thread: to call its own functions there. */
export interface Caller<Calls extends Functions<Calls>> {
  call<Name extends keyof Calls & string>(
    name: Name,
    args: Parameters<Calls[Name]>[0],
    options?: { background?: boolean },
  ): Promise<Awaited<ReturnType<Calls[Name]>>>
}

/** The calling side. Calls marked `background` go only when no other call waits. */
export class Thread<Calls extends Functions<Calls>> implements Caller<Calls> {
  readonly #worker: Worker
  readonly #options: ThreadOptions
  readonly #monotonic: MonotonicClock
  #urgent: Waiting[] = []
  #background: Waiting[] = []
  #away: Waiting[] = []
  #drained: (() => void) | undefined
  #stopped: (() => void) | undefined
  #dead: Error | undefined
  /** What calls are told from the beginning of a close on. */
  #closing: Error | undefined
  #sentAt = 0

  private constructor(worker: Worker, options: ThreadOptions) {
    this.#worker = worker
    this.#options = options
    this.#monotonic = options.monotonic ?? monotonicClock
  }

  /**
   * Resolves once the thread has made its functions from `settings`; rejects with its reason if it
   * cannot.
   */
  static start<Calls extends Functions<Calls>>(
    worker: Worker,
    settings: unknown,
    options: ThreadOptions,
  ): Promise<Thread<Calls>> {
    const thread = new Thread<Calls>(worker, options)
    return new Promise((resolve, reject) => {
      const end = (why: string) => {
        const error = new Error(`a worker thread ended: ${why}`)
        thread.#die(error)
        reject(error)
      }
      worker.onerror = ({ message }) => end(message)
      worker.addEventListener('close', ({ code }) => end(`exit code ${code}`))
      worker.onmessage = ({ data }: MessageEvent<FromThread>) => {
        if ('ready' in data) resolve(thread)
        else if ('failed' in data) {
          thread.#dead = new DataError(data.failed)
          worker.terminate()
          reject(thread.#dead)
        } else if ('stopped' in data) thread.#stopped?.()
        else thread.#settle(data.outcomes)
      }
      worker.postMessage({ start: settings } satisfies ToThread)
    })
  }

  /** The thread has ended, and takes no more calls. */
  get isDead(): boolean {
    return this.#dead !== undefined
  }

  /** Calls waiting or away. */
  get pending(): number {
    return this.#urgent.length + this.#background.length + this.#away.length
  }

  /** How long the current batch has been with the thread, in milliseconds; 0 without a batch. */
  get awayMs(): number {
    return this.#away.length > 0 ? this.#monotonic() - this.#sentAt : 0
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
      // The rest of this turn may add calls: they leave together.
      if (this.pending === 1) queueMicrotask(() => this.#send())
    })
  }

  /**
   * Lets waiting calls finish, but for background ones of the names in `drop`, and refuses others;
   * then ends the thread.
   */
  async close({ drop = [] }: { drop?: readonly (keyof Calls)[] } = {}): Promise<void> {
    if (this.#dead) return
    this.#closing = new Error('the worker thread is closed')
    const isDropped = ({ name }: Waiting) => drop.includes(name as keyof Calls)
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
    if (this.#away.length > 0 || this.#dead) return
    const from = this.#urgent.length > 0 ? this.#urgent : this.#background
    if (from.length === 0) return
    this.#away = from.splice(0, this.#options.batchMax)
    const batch = this.#away.map(({ name, args }) => ({ name, args }))
    this.#sentAt = this.#monotonic()
    this.#worker.postMessage({ batch } satisfies ToThread)
  }

  #settle(outcomes: readonly Outcome[]): void {
    const answered = this.#away
    this.#options.observe?.(answered.length, this.awayMs / 1000)
    this.#away = []
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
    this.#options.onDeath?.(error)
    this.#stopped?.()
    for (const { reject } of [...this.#away, ...this.#urgent, ...this.#background]) reject(error)
    this.#away = []
    this.#urgent = []
    this.#background = []
    this.#drained?.()
  }
}

interface Service {
  /** Answers a batch, one outcome a call, in order. Must not throw. */
  answer(calls: readonly Call[]): Outcome[] | Promise<Outcome[]>
  /** Work that may follow each batch, once its answers have left. Must not throw. */
  afterwards?(): void
  close(): void
}

declare const self: Worker

/**
 * The thread's side: `open` makes the functions from the settings that `Thread.start` was given.
 */
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
      service?.close()
      post({ stopped: true })
    } else if (service) {
      post({ outcomes: await service.answer(data.batch) })
      service.afterwards?.()
    }
  }
}

/** Runs one call of a function table; a throw becomes its outcome. */
export async function runCall(functions: object, { name, args }: Call): Promise<Outcome> {
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
