import { BlockedHosts, type BlockedLists } from '../blocklist/blocked-hosts.ts'
import { OwnAddress } from '../blocklist/own-address.ts'
import { openReadonly } from '../db/open.ts'
import { ClientAddress } from '../hot/client-address.ts'
import { CodeVersions } from '../hot/code-versions.ts'
import { JournalAppender, type SharedJournal } from '../hot/journal-appender.ts'
import { RedirectCounters } from '../hot/redirect-counters.ts'
import { RequestIds } from '../http/context.ts'
import { Forwarder } from '../http/forward.ts'
import { type Clocks, clocksIn, SECOND } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import { secureRandom } from '../lib/random.ts'
import { type LimiterMemory, RateLimiter } from '../limits/budgets.ts'
import { LinkCache } from '../links/cache.ts'
import { CodeFilter } from '../links/code-filter.ts'
import { DestinationReads } from '../links/destination.ts'
import { type Follow, follower } from './follow.ts'
import { logged, timed } from './observe.ts'

/** What a redirect thread is started with. */
export interface RedirectSettings {
  hostname: string
  port: number
  /** For the locks of the limiter. */
  thread: number
  /** To the control thread. */
  control: MessagePort
  databaseFile: string
  cacheMax: number
  trustedProxies: readonly string[]
  notFoundUrl: string | undefined
  logsRequests: boolean
  limiter: LimiterMemory
  journal: SharedJournal
  lists: BlockedLists
  /** Shared memory of `CodeVersions`, `RedirectCounters` and, once it is there, a `CodeFilter`. */
  versions: SharedArrayBuffer
  counters: SharedArrayBuffer
  codes: SharedArrayBuffer | undefined
  /** See `clocksIn`. */
  time: SharedArrayBuffer | undefined
}

/** The page cache of the operating system holds the rest of the database. */
const CACHE_KIB = 4096
const IDLE_TIMEOUT_SECONDS = 30
/** Time between two requests for the codes in use: a scanner causes thousands of look-ups. */
const CODES_WANTED_MS = SECOND

/** The redirect thread itself. See docs/architecture.md. */
export class RedirectThread {
  readonly #settings: RedirectSettings
  readonly #db
  readonly #server
  readonly #address: ClientAddress
  readonly #clocks: Clocks
  readonly #counters: RedirectCounters
  readonly #forwarder: Forwarder
  readonly #onStop: (() => void)[] = []
  #blocked: BlockedHosts
  #codes: CodeFilter | undefined
  #codesWantedAt = Number.NEGATIVE_INFINITY

  constructor(settings: RedirectSettings) {
    this.#settings = settings
    this.#db = openReadonly(settings.databaseFile, { cacheKiB: CACHE_KIB })
    this.#address = new ClientAddress(settings.trustedProxies)
    this.#clocks = clocksIn(settings.time)
    this.#counters = new RedirectCounters(settings.counters)
    this.#forwarder = new Forwarder(settings.control)
    this.#blocked = this.#blockedIn(settings.lists)
    this.#codes = settings.codes && new CodeFilter(settings.codes)
    this.#server = this.#listen(this.#follower())
  }

  readonly functions = {
    port: (): number => this.#server.port ?? 0,
    /** Other lists of blocked hosts are active. The versions of all codes change after this. */
    setLists: (lists: BlockedLists): void => {
      this.#blocked = this.#blockedIn(lists)
    },
    setCodes: (codes: SharedArrayBuffer): void => {
      this.#codes = new CodeFilter(codes)
    },
    /** From now on every response says `Connection: close`. */
    beginStop: (): void => {
      for (const begin of this.#onStop) begin()
    },
    /** Waits up to `graceMs` for requests under way, and closes all connections. */
    stop: async ({ graceMs }: { graceMs: number }): Promise<void> => {
      if (graceMs > 0) await Promise.race([this.#server.stop(), Bun.sleep(graceMs)])
      await this.#server.stop(true)
    },
  }

  close(): void {
    void this.#server.stop(true)
    this.#settings.control.close()
    this.#db.close()
  }

  #listen(follow: Follow) {
    const forwarder = this.#forwarder
    return Bun.serve({
      hostname: this.#settings.hostname,
      port: this.#settings.port,
      // The control thread has made sure that no other process listens there.
      reusePort: true,
      // Bodies are bounded by http/body.ts, which answers in JSON; Bun would not.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      routes: {
        '/:code': {
          GET: (request, server) =>
            follow(request.params.code, request, server) ?? forwarder.forward(request, server),
        },
      },
      fetch: (request, server) => forwarder.forward(request, server),
    })
  }

  #follower(): Follow {
    const { trustedProxies, notFoundUrl, limiter, journal, versions, cacheMax } = this.#settings
    const { thread } = this.#settings
    const counters = this.#counters
    const reads = new DestinationReads(this.#db, {
      isBlocked: (url) => this.#blocked.isBlocked(url),
    })
    const follow = follower({
      cache: new LinkCache({
        reads,
        versions: new CodeVersions(versions),
        counters,
        max: cacheMax,
      }),
      codes: { mayExist: (code) => this.#mayExist(code) },
      journal: new JournalAppender(journal),
      limiter: new RateLimiter(limiter, { ...this.#clocks, thread }),
      address: this.#address,
      behindProxy: trustedProxies.length > 0,
      counters,
      notFoundUrl,
      requestIds: new RequestIds(secureRandom),
      health: { onStop: (begin) => this.#onStop.push(begin) },
    })
    const { monotonic } = this.#clocks
    const timedFollow = timed(follow, counters.seconds, monotonic)
    if (!this.#settings.logsRequests) return timedFollow
    const note = (log: Record<string, string | number | null>) => this.#forwarder.note({ log })
    return logged(timedFollow, { note, address: this.#address, monotonic })
  }

  #blockedIn(lists: BlockedLists): BlockedHosts {
    const { hostname: host } = this.#settings
    return new BlockedHosts(lists, new OwnAddress({ host, port: () => this.#server?.port }))
  }

  #mayExist(code: Code): boolean {
    if (this.#codes) return this.#codes.has(code)
    const now = performance.now()
    if (now - this.#codesWantedAt >= CODES_WANTED_MS) {
      this.#codesWantedAt = now
      this.#forwarder.note({ codesWanted: true })
    }
    return true
  }
}

export type RedirectFunctions = RedirectThread['functions']
