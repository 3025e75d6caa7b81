import type { Database } from 'bun:sqlite'
import { OwnAddress } from '../blocklist/own-address.ts'
import { openReadonly } from '../db/open.ts'
import { type Clock, clocksIn, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { functionOf, messageOf } from '../lib/thread.ts'
import type { LazyThread, ThreadStarter } from '../lib/thread-starter.ts'
import { AllowedHosts } from './addresses.ts'
import { Sender } from './sender.ts'

/**
 * The thread of outgoing requests, which has the lowest priority and starts with its first use. It
 * runs tasks: checks of destinations, deliveries of webhooks. A task reads the database on this
 * thread, sends with the one sender, and asks the control thread to write.
 *
 * To add a task:
 * 1. `export const openX: OpenTask = (host) => ({ async run() { … } })` in the folder of its
 *    subject, and its line in `TASKS` of threads/outgoing.ts.
 * 2. The functions of the control thread that it calls with `host.call(name, args)`, in
 *    `outgoingCalls` of service.ts: writes of its subject such as `'checks.record'`.
 * 3. `outgoing.wake('x')` on the control thread, at the start of the service if there may be work,
 *    and whenever there is new work. Without a call of `wake`, the thread is not started.
 */
export interface OutgoingTask {
  /**
   * Does what is due, and returns after how many milliseconds it is called again; undefined: when
   * it is woken. It is never called while it runs. If it rejects, that is logged, and it is called
   * again after `RETRY_MS`. It may start requests and return before their end, with `host.wake`.
   */
  run(): Promise<number | undefined>
}

export interface TaskHost {
  /** Read only, on this thread. */
  db: Database
  /** Shared by all tasks: 16 requests at a time, one for each host. */
  sender: Sender
  clock: Clock
  baseUrl: string
  /** Calls a function of `outgoingCalls`. Rejects if it does. */
  call(name: string, args: unknown): Promise<unknown>
  /** Runs this task soon, once more if it runs already. */
  wake(): void
}

export type OpenTask = (host: TaskHost) => OutgoingTask

const RETRY_MS = 10 * SECOND

export interface OutgoingSettings {
  file: string
  baseUrl: string
  /** `OUTGOING_HOSTS`. */
  hosts: readonly string[]
  /** Where the service listens. */
  own: { host: string; ports: readonly (number | undefined)[] }
  /** See `clocksIn`. */
  time: SharedArrayBuffer | undefined
  /** Carries calls of the control thread's functions. */
  port: MessagePort
}

type ToControl = { id: number; name: string; args: unknown }
type FromControl = { id: number; value?: unknown; error?: string }

/** The side of the thread: its functions, and what ends it. */
export function serveTasks(tasks: Record<string, OpenTask>, settings: OutgoingSettings) {
  const { file, port, own, hosts, time, baseUrl } = settings
  const db = openReadonly(file, { cacheKiB: 2048 })
  const ownAddress = new OwnAddress({ host: own.host, ports: () => own.ports })
  const sender = new Sender({ hosts: new AllowedHosts(hosts), own: ownAddress })
  const call = callerOn(port)
  const { clock } = clocksIn(time)
  const loops = Object.entries(tasks).map(([name, open]) => {
    const loop: TaskLoop = new TaskLoop(
      () => open({ db, sender, clock, baseUrl, call, wake: () => loop.wake() }),
      (reason) => void call('failed', { task: name, reason }).catch(() => {}),
    )
    return [name, loop] as const
  })
  const byName = new Map(loops)
  return {
    functions: { wake: (name: string) => byName.get(name)?.wake() },
    close() {
      for (const loop of byName.values()) loop.close()
      sender.close()
      port.close()
      db.close()
    },
  }
}

export type OutgoingFunctions = ReturnType<typeof serveTasks>['functions']

function callerOn(port: MessagePort): TaskHost['call'] {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0
  port.onmessage = ({ data: { id, value, error } }: { data: FromControl }) => {
    if (error === undefined) waiting.get(id)?.resolve(value)
    else waiting.get(id)?.reject(new Error(error))
    waiting.delete(id)
  }
  return (name, args) => {
    const answer = Promise.withResolvers<unknown>()
    waiting.set(++last, answer)
    port.postMessage({ id: last, name, args } satisfies ToControl)
    return answer.promise
  }
}

/** Calls a task when it is woken and when it is due. */
export class TaskLoop {
  readonly #open: () => OutgoingTask
  readonly #onFailure: (reason: string) => void
  #task: OutgoingTask | undefined
  #timer: Timer | undefined
  #isRunning = false
  #isWoken = false
  #isClosed = false

  constructor(open: () => OutgoingTask, onFailure: (reason: string) => void) {
    this.#open = open
    this.#onFailure = onFailure
  }

  wake(): void {
    this.#isWoken = true
    if (!this.#isRunning) void this.#run()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    clearTimeout(this.#timer)
    let pauseMs: number | undefined
    while (this.#isWoken && !this.#isClosed) {
      this.#isWoken = false
      try {
        this.#task ??= this.#open()
        pauseMs = await this.#task.run()
      } catch (error) {
        if (!this.#isClosed) this.#onFailure(messageOf(error))
        pauseMs = RETRY_MS
      }
    }
    this.#isRunning = false
    if (pauseMs === undefined || this.#isClosed) return
    this.#timer = setTimeout(() => this.wake(), pauseMs)
  }
}

interface OutgoingOptions {
  start: ThreadStarter
  settings: () => Omit<OutgoingSettings, 'port'>
  /** What tasks may call, by names such as `checks.record`. */
  calls: Record<string, (args: never) => unknown>
  log: Log
}

/** The side of the control thread. */
export class Outgoing {
  readonly #options: OutgoingOptions
  readonly #thread: LazyThread<OutgoingFunctions>
  readonly #woken = new Set<string>()
  readonly #waking = new Set<string>()
  #port: MessagePort | undefined

  constructor(options: OutgoingOptions) {
    this.#options = options
    this.#thread = options.start.lazily<OutgoingFunctions>('outgoing', {
      prepare: () => {
        const port = this.#openPort()
        return { settings: { ...options.settings(), port }, transfer: [port] }
      },
      onRestart: () => {
        for (const task of this.#woken) this.wake(task)
      },
    })
  }

  /** Tells a task that there is work. The first call starts the thread. */
  wake(task: string): void {
    this.#woken.add(task)
    if (this.#waking.has(task)) return
    this.#waking.add(task)
    void this.#thread
      .call('wake', task)
      // A thread that ended is logged, and started again.
      .catch(() => {})
      .finally(() => this.#waking.delete(task))
  }

  async close(): Promise<void> {
    await this.#thread.close()
    this.#port?.close()
  }

  #openPort(): MessagePort {
    this.#port?.close()
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.onmessage = ({ data }: { data: ToControl }) => void this.#answer(port1, data)
    return port2
  }

  async #answer(port: MessagePort, { id, name, args }: ToControl): Promise<void> {
    const { calls, log } = this.#options
    const failed = ({ task, reason }: { task: string; reason: string }) =>
      log.warn('outgoing.task_failed', { task, reason })
    const answer: FromControl = await Promise.resolve(args)
      .then(functionOf({ failed, ...calls }, name))
      .then(
        (value) => ({ id, value }),
        (error: unknown) => ({ id, error: messageOf(error) }),
      )
    port.postMessage(answer)
  }
}
