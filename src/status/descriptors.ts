import { closeSync, openSync, readFileSync } from 'node:fs'
import { MINUTE, type MonotonicClock, monotonicClock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { closeIdleConnections, ListenerPause } from '../lib/sockets.ts'

const INTERVAL_MS = 250
/** After a resume without a free descriptor, Bun uses a whole core until the next check. */
const FIRST_CHECK_MS = 5
/** Minimum length of a pause. */
const PAUSE_MS = SECOND
/** A connection may be closed when its client has sent nothing for this time. */
const IDLE_MS = 2 * SECOND
/** After this time without a pause, log and metrics report that descriptors are free. */
const CALM_MS = MINUTE
/** Descriptors kept for the service's own files. */
const RESERVE_MAX = 64
const RESERVE_SHARE = 1 / 8
/** Share of all descriptors that are freed at once by closing connections. */
const ROOM_SHARE = 1 / 4

interface DescriptorsOptions {
  log: Log
  monotonic?: MonotonicClock
  /** Maximum number of descriptors; undefined: not known. Default: the process's limit. */
  limit?: number | undefined
  /** The lowest free descriptor: all below it are in use. Undefined: none is free. */
  lowestFree?: () => number | undefined
  closeConnections?: typeof closeIdleConnections
}

/**
 * Keeps the service working when connections use up its file descriptors: accepts no more for a
 * second or longer, and closes idle connections, beginning with the addresses that have the most.
 */
export class Descriptors {
  /** Connections closed to free descriptors. */
  ended = 0
  readonly #log: Log
  readonly #monotonic: MonotonicClock
  /** Undefined: not known. */
  readonly limit: number | undefined
  readonly #lowestFree: () => number | undefined
  readonly #closeConnections: typeof closeIdleConnections
  #listeners: readonly Pick<ListenerPause, 'pause' | 'resume'>[] = []
  #internal: number | undefined
  #timer: Timer | undefined
  /** When accepting last stopped; undefined once descriptors were free for `CALM_MS`. */
  #exhaustedAt: number | undefined
  #isPaused = false

  constructor(options: DescriptorsOptions) {
    this.#log = options.log
    this.#monotonic = options.monotonic ?? monotonicClock
    this.limit = 'limit' in options ? options.limit : descriptorsMax()
    this.#lowestFree = options.lowestFree ?? lowestFree
    this.#closeConnections = options.closeConnections ?? closeIdleConnections
  }

  /** Every descriptor but a reserve is in use, or was within the last minute. */
  get areExhausted(): boolean {
    return this.#exhaustedAt !== undefined
  }

  /**
   * Call it once the ports are open. Does nothing when the limit is not known. `internal`: a port
   * through which threads of this process are connected.
   */
  watch(ports: readonly number[], internal: number | undefined): void {
    this.#internal = internal
    const all = internal === undefined ? ports : [...ports, internal]
    this.watchListeners(all.flatMap((port) => ListenerPause.findAll(port)))
    // Closes nothing; loads the C functions while descriptors are free.
    this.#closeIdle({ wanted: 0, limit: 0 })
    this.#timer = setInterval(() => this.check(), INTERVAL_MS).unref()
  }

  watchListeners(listeners: readonly Pick<ListenerPause, 'pause' | 'resume'>[]): void {
    this.#listeners = listeners
  }

  /** Call it before the ports are closed: a listener must not be resumed after that. */
  close(): void {
    clearInterval(this.#timer)
    this.#listeners = []
  }

  /** Runs at every interval. */
  check(): void {
    if (this.limit === undefined) return
    const now = this.#monotonic()
    const open = this.#lowestFree() ?? this.limit
    const reserve = Math.min(RESERVE_MAX, Math.floor(this.limit * RESERVE_SHARE))
    if (this.#isPaused) {
      if (now - (this.#exhaustedAt ?? now) >= PAUSE_MS) this.#endPause(now, open, reserve)
    } else if (open >= this.limit - reserve) {
      this.#beginPause(now, open)
    } else if (this.#exhaustedAt !== undefined && now - this.#exhaustedAt >= CALM_MS) {
      this.#exhaustedAt = undefined
      this.#log.info('service.descriptors_free', { connections_ended: this.ended })
    }
  }

  #beginPause(now: number, open: number): void {
    if (this.#exhaustedAt === undefined) {
      const fields = { open, limit: this.limit }
      this.#log.error('service.descriptors_exhausted', fields)
    }
    this.#exhaustedAt = now
    this.#isPaused = true
    for (const listener of this.#listeners) listener.pause()
    this.#makeRoom(open)
  }

  #endPause(now: number, open: number, reserve: number): void {
    this.#exhaustedAt = now
    if (open >= (this.limit ?? 0) - 2 * reserve) {
      this.#makeRoom(open)
      return
    }
    this.#isPaused = false
    for (const listener of this.#listeners) listener.resume()
    setTimeout(() => this.check(), FIRST_CHECK_MS).unref()
  }

  #closeIdle({ wanted, limit }: { wanted: number; limit: number }): number {
    return this.#closeConnections({ wanted, limit, idleMs: IDLE_MS, except: this.#internal })
  }

  #makeRoom(open: number): void {
    const limit = this.limit ?? 0
    const wanted = open - Math.floor(limit * (1 - ROOM_SHARE))
    if (wanted > 0) this.ended += this.#closeIdle({ wanted, limit })
  }
}

/** Maximum number of descriptors of this process; undefined: not known. */
function descriptorsMax(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]) || undefined
  } catch {
    return undefined
  }
}

function lowestFree(): number | undefined {
  try {
    const descriptor = openSync('/dev/null', 'r')
    closeSync(descriptor)
    return descriptor
  } catch {
    return undefined
  }
}
