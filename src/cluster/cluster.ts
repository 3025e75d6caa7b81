import { withTimeout } from '../lib/deadline.ts'
import type { Log } from '../lib/log.ts'
import { NOT_ANSWERING } from './connection.ts'
import type { AppliedEvent, SeenMessage, StateEvent } from './events.ts'
import { LEASE_MS } from './log.ts'

/** How long the response to a change waits for the other hosts. */
const WAIT_MS = 250

/** The state of the cluster on the control thread. */
export class Cluster {
  readonly #log: Log
  readonly #port: MessagePort
  /** The entry that each waiting response needs, by the function that resumes it. */
  readonly #waiting = new Map<() => void, number>()
  #state: StateEvent | undefined
  /** When `#state` arrived, by `performance.now()`. */
  #stateAt = 0
  #problem: string | undefined
  /** Changes that were answered before all live hosts had applied them. */
  late = 0

  /** `port`: receives each StateEvent. */
  constructor({ port, log }: { port: MessagePort; log: Log }) {
    this.#log = log
    this.#port = port
    port.onmessage = ({ data }: { data: StateEvent }) => this.#setState(data)
  }

  /** Resolves when all live hosts have applied the entry `seq`, after `WAIT_MS` at the latest. */
  async whenAllApplied(seq: number): Promise<void> {
    if (this.#haveAllApplied(seq)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.set(resolve, seq)
    await withTimeout(WAIT_MS, promise, '').catch(() => this.late++)
    this.#waiting.delete(resolve)
  }

  /** Why this host must get no traffic; undefined while it follows the log. */
  get problem(): string | undefined {
    // The writer thread posts nothing while it waits for PostgreSQL.
    return this.#state?.problem ?? (this.contactMs > LEASE_MS ? NOT_ANSWERING : undefined)
  }

  /** Milliseconds since PostgreSQL answered. */
  get contactMs(): number {
    if (!this.#state) return Number.POSITIVE_INFINITY
    return this.#state.contactMs + performance.now() - this.#stateAt
  }

  /** Whether this host does what one host does for all: the live one with the first id. */
  isFirst(id: string): boolean {
    if (!this.#state || this.problem !== undefined) return false
    return this.#state.hosts.every((other) => !other.isLive || other.id > id)
  }

  get state(): StateEvent | undefined {
    return this.#state
  }

  close(): void {
    this.#port.close()
  }

  #haveAllApplied(seq: number): boolean {
    return this.#state?.hosts.every(({ isLive, applied }) => !isLive || applied >= seq) ?? true
  }

  #setState(state: StateEvent): void {
    this.#state = state
    this.#stateAt = performance.now()
    for (const [resolve, seq] of this.#waiting) {
      if (this.#haveAllApplied(seq)) resolve()
    }
    this.#logChange()
  }

  #logChange(): void {
    const { problem } = this
    if (problem === this.#problem) return
    this.#problem = problem
    if (problem) this.#log.error('cluster.not_following', { reason: problem })
    else this.#log.info('cluster.following', { entry: this.#state?.applied })
  }
}

/**
 * Calls `apply` with each call that other hosts made and its result. `port`: receives each
 * AppliedEvent, and sends each SeenMessage.
 */
export function applyOtherChanges(
  port: MessagePort,
  apply: (name: string, value: unknown) => void,
): void {
  port.onmessage = ({ data }: { data: AppliedEvent }) => {
    for (const call of data.calls) {
      if ('value' in call) apply(call.name, call.value)
    }
    port.postMessage({ seen: data.seq } satisfies SeenMessage)
  }
}
