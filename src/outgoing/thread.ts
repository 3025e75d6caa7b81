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
 * The thread of outgoing requests. It runs tasks: checks of destinations, deliveries of webhooks. A
 * task reads the database on this thread, sends, and asks the control thread to write. To add one:
 * 1. `export const openX: OpenTask = (host) => ({ async run() { … } })` in the folder of its
 *    subject, and its line in `TASKS` of threads/outgoing.ts.
 * 2. The functions that it calls with `host.call(name, args)`, in `outgoingCalls` of service.ts:
 *    writes of its subject such as `'checks.record'`.
 * 3. `outgoing.wake('x')` on the control thread, at the start of the service if there may be work,
 *    and whenever there is new work. Without any such call, the thread does not start.
 */
export interface OutgoingTask {
  /**
   * Does what is due, and returns after how many milliseconds it is called again; undefined: when
   * it is woken. Never called while it runs, but it may return before its requests have ended. If
   * it rejects, that is logged, and it is called again after `RETRY_MS`.
   */
  run(): Promise<number | undefined>
}

export interface TaskHost {
  /** Read only. */
  db: Database
  /** Shared by all tasks. */
  sender: Sender
  clock: Clock
  baseUrl: string
  /** Calls a function of `outgoingCalls`, and rejects if that does. */
  call(name: string, args: unknown): Promise<unknown>
  /** Runs this task soon; once more if it runs already. */
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
  /** Carries calls to the control thread. */
  port: MessagePort
}

type ToControl = { id: number; name: string; args: unknown }
type FromControl = { id: number; value?: unknown; error?: string }

/** The side of the thread. */
export function serveTasks(tasks: Record<string, OpenTask>, settings: OutgoingSettings) {
  const { file, port, own, hosts, time, baseUrl } = settings
  const db = openReadonly(file, { cacheKiB: 2048 })
  const ownAddress = new OwnAddress({ host: own.host, ports: () => own.ports })
  const sender = new Sender({ hosts: new AllowedHosts(hosts), own: ownAddress })
  const call = callerOn(port)
  const host = { db, sender, clock: clocksIn(time).clock, baseUrl, call }
  const loops = new Map(
    Object.entries(tasks).map(([task, open]) => {
      const onFailure = (reason: string) => void call('failed', { task, reason })
      return [task, loopOf((wake) => open({ ...host, wake }), onFailure)]
    }),
  )
  return {
    functions: { wake: (task: string) => loops.get(task)?.wake() },
    close() {
      for (const loop of loops.values()) loop.close()
      sender.close()
      port.close()
      db.close()
    },
  }
}

type OutgoingFunctions = ReturnType<typeof serveTasks>['functions']

function callerOn(port: MessagePort): TaskHost['call'] {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0
  port.onmessage = ({ data: { id, value, error } }: { data: FromControl }) => {
    const answer = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) answer?.resolve(value)
    else answer?.reject(new Error(error))
  }
  return (name, args) => {
    const answer = Promise.withResolvers<unknown>()
    waiting.set(++last, answer)
    port.postMessage({ id: last, name, args } satisfies ToControl)
    return answer.promise
  }
}

/** Runs a task when it is woken and when it is due. */
function loopOf(open: (wake: () => void) => OutgoingTask, onFailure: (reason: string) => void) {
  let timer: Timer | undefined
  let [isRunning, isWoken, isClosed] = [false, false, false]
  const wake = () => {
    isWoken = true
    if (!isRunning) void run()
  }
  const task = open(wake)
  const run = async () => {
    isRunning = true
    clearTimeout(timer)
    let pauseMs: number | undefined
    while (isWoken && !isClosed) {
      isWoken = false
      pauseMs = await task.run().catch((error: unknown) => {
        if (!isClosed) onFailure(messageOf(error))
        return RETRY_MS
      })
    }
    isRunning = false
    if (pauseMs !== undefined && !isClosed) timer = setTimeout(wake, pauseMs)
  }
  const close = () => {
    isClosed = true
    clearTimeout(timer)
  }
  return { wake, close }
}

interface OutgoingOptions {
  start: ThreadStarter
  settings: () => Omit<OutgoingSettings, 'port'>
  /** What tasks may call. */
  calls: Record<string, (args: never) => unknown>
  log: Log
}

/** The side of the control thread. */
export class Outgoing {
  readonly #calls: object
  readonly #thread: LazyThread<OutgoingFunctions>
  readonly #woken = new Set<string>()
  #port: MessagePort | undefined
  #retry: Timer | undefined
  #isClosed = false

  constructor({ start, settings, calls, log }: OutgoingOptions) {
    const failed = (fields: { task: string; reason: string }) =>
      log.warn('outgoing.task_failed', fields)
    this.#calls = { failed, ...calls }
    this.#thread = start.lazily<OutgoingFunctions>('outgoing', {
      prepare: () => {
        const port = this.#openPort()
        return { settings: { ...settings(), port }, transfer: [port] }
      },
      onRestart: () => this.#wakeAll(),
    })
  }

  /** Tells a task that there is work. The first call starts the thread. */
  wake(task: string): void {
    this.#woken.add(task)
    // A thread that has ended is started again. One whose first start has failed is not.
    void this.#thread.call('wake', task).catch(() => {
      if (!this.#isClosed) this.#retry ??= setTimeout(() => this.#wakeAll(), RETRY_MS)
    })
  }

  #wakeAll(): void {
    clearTimeout(this.#retry)
    this.#retry = undefined
    for (const task of this.#woken) this.wake(task)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#retry)
    await this.#thread.close()
    this.#port?.close()
  }

  #openPort(): MessagePort {
    this.#port?.close()
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.onmessage = async ({ data: { id, name, args } }: { data: ToControl }) => {
      const answer: FromControl = await Promise.resolve(args)
        .then(functionOf(this.#calls, name))
        .then(
          (value) => ({ id, value }),
          (error: unknown) => ({ id, error: messageOf(error) }),
        )
      port1.postMessage(answer)
    }
    return port2
  }
}
