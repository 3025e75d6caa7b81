import type { Log } from '../lib/log.ts'
import type { LinkEffects } from '../links/writer.ts'
import { NOT_ANSWERING } from './connection.ts'
import type { AppliedEvent, SeenMessage, StateEvent } from './events.ts'
import { LEASE_MS } from './log.ts'

/** How long the response to a change waits for the other hosts. */
const WAIT_MS = 250

interface Waiting {
  seq: number
  resolve: () => void
  timer: Timer
}

/** The state of the cluster on the control thread. */
export class Cluster {
  readonly #log: Log
  readonly #port: MessagePort
  readonly #waiting = new Set<Waiting>()
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
    port.onmessage = ({ data }: { data: StateEvent }) => this.#take(data)
  }

  /** Resolves when all live hosts have applied the entry `seq`, after `WAIT_MS` at the latest. */
  whenAllApplied(seq: number): Promise<void> | undefined {
    if (this.#haveAllApplied(seq)) return undefined
    return new Promise((resolve) => {
      const waiting: Waiting = {
        seq,
        resolve,
        timer: setTimeout(() => {
          this.late++
          this.#waiting.delete(waiting)
          resolve()
        }, WAIT_MS),
      }
      this.#waiting.add(waiting)
    })
  }

  /** Why this host must get no traffic; undefined while it follows the log. */
  get problem(): string | undefined {
    const state = this.#state
    if (state?.problem) return state.problem
    if (!state || this.contactMs > LEASE_MS) return state?.contactProblem ?? NOT_ANSWERING
    return state.behind
  }

  /** Milliseconds since PostgreSQL answered. */
  get contactMs(): number {
    if (!this.#state) return Number.POSITIVE_INFINITY
    return this.#state.contactMs + performance.now() - this.#stateAt
  }

  get state(): StateEvent | undefined {
    return this.#state
  }

  close(): void {
    this.#port.close()
    for (const { resolve, timer } of this.#waiting) {
      clearTimeout(timer)
      resolve()
    }
  }

  #haveAllApplied(seq: number): boolean {
    return this.#state?.hosts.every(({ isLive, applied }) => !isLive || applied >= seq) ?? true
  }

  #take(state: StateEvent): void {
    this.#state = state
    this.#stateAt = performance.now()
    for (const waiting of this.#waiting) {
      if (!this.#haveAllApplied(waiting.seq)) continue
      clearTimeout(waiting.timer)
      this.#waiting.delete(waiting)
      waiting.resolve()
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

/** Applies the effects of calls that other hosts and commands made. */
export class OtherChanges {
  readonly #port: MessagePort

  /** `port`: receives each AppliedEvent, and sends each SeenMessage. */
  constructor({ port, effects }: { port: MessagePort; effects: Pick<LinkEffects, 'after'> }) {
    this.#port = port
    port.onmessage = ({ data }: { data: AppliedEvent }) => {
      for (const { name, value } of data.calls) effects.after(name, value)
      if (data.seq !== undefined) port.postMessage({ seen: data.seq } satisfies SeenMessage)
    }
  }

  close(): void {
    this.#port.close()
  }
}
