import { DomainMap, type RequestDomain } from '../addresses/map.ts'
import { type Alias, AliasReads } from '../addresses/names.ts'
import { BlockedHosts, type BlockedLists } from '../blocklist/blocked-hosts.ts'
import { OwnAddress } from '../blocklist/own-address.ts'
import { StoredHosts } from '../blocklist/stored-hosts.ts'
import type { TlsPair } from '../certificates/pair.ts'
import { openReadonly } from '../db/open.ts'
import { ClientAddress } from '../hot/client-address.ts'
import { CodeVersions, KEY_LENGTH_MAX } from '../hot/code-versions.ts'
import type { Destination } from '../hot/destination-cache.ts'
import { JournalAppender, type SharedJournal } from '../hot/journal-appender.ts'
import { PassedPeers } from '../hot/passed-peers.ts'
import { RedirectCounters } from '../hot/redirect-counters.ts'
import { VisitRecorder } from '../hot/visit-ring.ts'
import { newRequestId } from '../http/context.ts'
import { type Clocks, clocksIn, monotonicClock, SECOND } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import { stackOf } from '../lib/log.ts'
import { type LimiterMemory, RateLimiter } from '../limits/budgets.ts'
import { DestinationReads, LinkCache } from '../links/destination.ts'
import { CodeFilter } from '../links/known-codes.ts'
import { AnswerQueue } from './answer-queue.ts'
import { DestinationChooser } from './choose-destination.ts'
import { ClearPort } from './clear-port.ts'
import {
  type Connection,
  type ConnectionContext,
  type HandshakeResult,
  listenForClients,
  listenForTls,
  type TlsPort,
} from './connection.ts'
import { ConnectionLimits, type ThreadLimits } from './connection-limits.ts'
import { type AliasedLink, type FollowRequest, follower } from './follow.ts'
import { LookupTransaction } from './lookup-transaction.ts'
import { logged, timed } from './observe.ts'
import { type Answer, internalError } from './responses.ts'
import type { Brand } from './visitor-page.ts'

/** Messages from a redirect thread to the control thread. */
export type ThreadNote =
  | { log: Record<string, string | number | null> }
  /** The codes in use are needed: see `KnownCodes`. */
  | { codesWanted: true }
  /** A connection was closed because there are too many. */
  | { descriptorsExhausted: true }
  | { exception: string; requestId: string }

/** Memory of a `VisitRecorder`, and the headers that it keeps of a long request. */
export interface VisitRecording {
  ring: SharedArrayBuffer
  headers: readonly string[]
}

/** Settings that are the same for all threads, and do not change while the service runs. */
export interface CommonSettings {
  databaseFile: string
  cacheMax: number
  trustedProxies: readonly string[]
  baseUrl: string
  rootUrl: string | undefined
  notFoundUrl: string | undefined
  countryHeader: string | undefined
  hasCountryFile: boolean
  brand: Brand
  logsRequests: boolean
  /** Shared memory of `CodeVersions`. */
  versions: SharedArrayBuffer
  /** See `clocksIn`. */
  time: SharedArrayBuffer | undefined
}

/** What a service with https has beside its plain port. */
export interface HttpsState {
  port: number
  /** Undefined until there is a certificate. */
  pair: TlsPair | undefined
  /** See `ClearPort`. */
  challenges: Readonly<Record<string, string>>
}

export interface RedirectSettings extends CommonSettings {
  hostname: string
  port: number
  https: HttpsState | undefined
  /** Number of this thread for the locks of the limiter. */
  thread: number
  /** For notes to the control thread. */
  control: MessagePort
  /** Where the control thread listens, on the loopback interface. */
  controlPort: number
  connectionLimits: ThreadLimits
  /** Where details of redirects are recorded; undefined with VISIT_DETAILS=off. */
  visits: VisitRecording | undefined
  limiter: LimiterMemory
  journal: SharedJournal
  lists: BlockedLists
  /** Shared memory of `PassedPeers`. */
  peers: SharedArrayBuffer
  /** Shared memory of `RedirectCounters` and, once it exists, a `CodeFilter`. */
  counters: SharedArrayBuffer
  codes: SharedArrayBuffer | undefined
}

/** The page cache of the operating system holds the rest of the database. */
const CACHE_KIB = 4096
/** Interval at which a stop checks whether all connections are closed. */
const STOP_POLL_MS = 20
/** A year, as in http/headers.ts. */
const HSTS = '\r\nStrict-Transport-Security: max-age=31536000'
/** Maximum number of notes of one kind per second: clients cause them. */
const NOTES_MAX = { codesWanted: 1, descriptorsExhausted: 1, exception: 10 }

const HANDSHAKES = {
  ok: 'handshakes',
  failed: 'handshakesFailed',
  timeout: 'handshakesLate',
} as const

/** The redirect thread itself. See docs/architecture.md. */
export class RedirectThread {
  readonly #settings: RedirectSettings
  readonly #db
  readonly #lookups
  readonly #transaction: LookupTransaction
  readonly #listener: Bun.TCPSocketListener<Connection>
  /** Both are undefined without https. */
  readonly #tlsListener: Bun.TCPSocketListener<undefined> | undefined
  readonly #tls: TlsPort | undefined
  readonly #clear: ClearPort | undefined
  readonly #connections: ConnectionContext
  readonly #timer: Timer
  readonly #health = { isStopping: false }
  readonly #address: ClientAddress
  readonly #clocks: Clocks
  readonly #counters: RedirectCounters
  readonly #versions: CodeVersions
  readonly #domains: DomainMap
  #blocked: BlockedHosts
  #codes: CodeFilter | undefined
  /** Notes of this second, by kind. */
  #noted = { codesWanted: 0, descriptorsExhausted: 0, exception: 0 }

  constructor(settings: RedirectSettings) {
    this.#settings = settings
    this.#db = openReadonly(settings.databaseFile, { cacheKiB: CACHE_KIB })
    this.#lookups = openReadonly(settings.databaseFile, { cacheKiB: CACHE_KIB })
    this.#address = new ClientAddress(settings.trustedProxies)
    this.#clocks = clocksIn(settings.time)
    this.#counters = new RedirectCounters(settings.counters)
    this.#versions = new CodeVersions(settings.versions)
    this.#transaction = new LookupTransaction(this.#lookups, this.#versions)
    this.#domains = new DomainMap(this.#db, this.#versions, settings)
    this.#blocked = this.#blockedIn(settings.lists)
    this.#codes = settings.codes && new CodeFilter(settings.codes)
    const limits = new ConnectionLimits<Connection>(settings.connectionLimits, (limit) => {
      this.#counters.add('closed')
      if (limit === 'connections') this.#noteSome({ descriptorsExhausted: true })
    })
    this.#connections = {
      follow: this.#follower(),
      hasDomains: () => !this.#domains.isUnused,
      limits,
      answers: new AnswerQueue(monotonicClock),
      address: this.#address,
      fail: (exception) => this.#fail(exception),
      controlPort: settings.controlPort,
      peers: new PassedPeers(settings.peers),
      garbageBytes: 0,
      now: 0,
      date: '',
      dateOverTls: '',
      health: this.#health,
    }
    this.#tick()
    const { hostname, https } = settings
    const count = (result: HandshakeResult) => this.#counters.add(HANDSHAKES[result])
    this.#tls = https && { pair: https.pair, count }
    this.#clear = https && this.#clearPort()
    this.#listener = listenForClients(settings, this.#connections, this.#clear)
    this.#tlsListener =
      this.#tls && listenForTls({ hostname, port: https?.port ?? 0 }, this.#connections, this.#tls)
    this.#setChallenges(https?.challenges ?? {})
    this.#timer = setInterval(() => this.#tick(), SECOND)
  }

  readonly functions = {
    ports: (): { port: number; httpsPort: number | undefined } => ({
      port: this.#listener.port,
      httpsPort: this.#tlsListener?.port,
    }),
    /** For the connections from now on. */
    setCertificate: (pair: TlsPair): void => {
      if (this.#tls) this.#tls.pair = pair
    },
    setChallenges: (challenges: HttpsState['challenges']): void => this.#setChallenges(challenges),
    /** Other lists of blocked hosts are active. The versions of all codes change after this. */
    setLists: (lists: BlockedLists): void => {
      this.#blocked = this.#blockedIn(lists)
    },
    setCodes: (codes: SharedArrayBuffer): void => {
      this.#codes = new CodeFilter(codes)
    },
    /** From now on every response has `Connection: close`. */
    beginStop: (): void => {
      this.#health.isStopping = true
    },
    /** Open connections are answered as before. */
    refuseConnections: (): void => this.#refuseConnections(),
    /** Waits up to `graceMs` for requests in progress, and closes all connections. */
    stop: async ({ graceMs }: { graceMs: number }): Promise<void> => {
      const { connections } = this.#connections.limits
      this.#refuseConnections()
      for (const connection of connections) if (connection.isIdle) connection.end()
      const deadline = performance.now() + graceMs
      while (connections.size > 0 && performance.now() < deadline) await Bun.sleep(STOP_POLL_MS)
      for (const connection of connections) connection.terminate()
    },
  }

  close(): void {
    clearInterval(this.#timer)
    this.#listener.stop(true)
    this.#tlsListener?.stop(true)
    this.#settings.control.close()
    this.#db.close()
    this.#transaction.close()
  }

  #clearPort(): ClearPort {
    const { baseUrl } = this.#settings
    const hasCertificate = () => this.#tls?.pair !== undefined
    return new ClearPort({ domains: this.#domains, baseUrl, hasCertificate })
  }

  #setChallenges(challenges: HttpsState['challenges']): void {
    if (this.#clear) this.#clear.challenges = challenges
  }

  #refuseConnections(): void {
    this.#listener.stop()
    this.#tlsListener?.stop()
  }

  /** Once a second. */
  #tick(): void {
    const context = this.#connections
    const { limits } = context
    const now = performance.now()
    context.now = now
    context.date = new Date().toUTCString()
    context.dateOverTls = context.date + HSTS
    this.#noted = { codesWanted: 0, descriptorsExhausted: 0, exception: 0 }
    for (const connection of limits.connections) {
      if (connection.isOverdue) connection.expire()
    }
    limits.check(now)
    this.#counters.set('bytesHeld', limits.bytes)
  }

  #follower(): ConnectionContext['follow'] {
    const { brand, limiter, journal, visits, thread } = this.#settings
    const { countryHeader, hasCountryFile } = this.#settings
    const counters = this.#counters
    const follow = follower({
      ...this.#finder(),
      journal: new JournalAppender(journal),
      visits: visits && new VisitRecorder(visits.ring, visits.headers),
      limiter: new RateLimiter(limiter, { ...this.#clocks, thread }),
      clock: this.#clocks.clock,
      chooser: new DestinationChooser({
        clock: this.#clocks.clock,
        countries: undefined,
        countryHeader,
        isFileElsewhere: hasCountryFile,
      }),
      counters,
      domains: this.#domains,
      brand,
      health: this.#health,
    })
    const { monotonic } = this.#clocks
    const timedFollow = timed(follow, counters.seconds, monotonic)
    const note = (log: Record<string, string | number | null>) => this.#note({ log })
    const observed = this.#settings.logsRequests
      ? logged(timedFollow, { note, monotonic })
      : timedFollow
    // A route of the service, or an alias of several segments, may have the path.
    const isElsewhere = ({ text, rest }: FollowRequest) =>
      rest !== undefined && this.#codes?.mayContinue(text) !== false
    return (request, peer) =>
      isElsewhere(request) ? undefined : observed(request, this.#address.resolve(peer, request))
  }

  /** Both return undefined while the database fails. */
  #finder() {
    const max = this.#settings.cacheMax
    const isBlocked = (url: URL) => this.#blocked.isBlocked(url)
    const cache = new LinkCache({
      reads: new DestinationReads(this.#lookups, { isBlocked }),
      aliases: new AliasReads(this.#lookups),
      beforeRead: () => this.#transaction.renew(),
      versions: this.#versions,
      counters: this.#counters,
      max,
    })
    const lookUp = <Found>(read: () => Found | undefined): Found | null | undefined => {
      try {
        const stored = read()
        if (!stored && !this.#codes) this.#noteSome({ codesWanted: true })
        return stored ?? null
      } catch {
        return undefined
      }
    }
    const findByCode = (code: Code): Destination | null | undefined => {
      const found = cache.findInMemory(code)
      if (found !== undefined) return found
      if (this.#codes?.has(code) === false) return null
      return lookUp(() => cache.lookUp(code))
    }
    // The link of a remembered alias may be gone, and its code may be that of another one.
    const resolve = (alias: Alias): AliasedLink | null | undefined => {
      const link = findByCode(alias.code)
      return link && link.id === alias.linkId ? { code: alias.code, link } : link && null
    }
    const findAlias = (path: string, domain: RequestDomain): AliasedLink | null | undefined => {
      if (path.length > KEY_LENGTH_MAX) return null
      const alias = cache.findAliasInMemory(path, domain)
      const found = alias && resolve(alias)
      if (found) return found
      // One in any case may be that of another link by now.
      if (this.#codes?.mayHaveAlias(path) === false) return null
      const stored = lookUp(() => cache.lookUpAlias(path, domain))
      return stored ? resolve(stored) : stored
    }
    return { findByCode, findAlias }
  }

  #blockedIn(lists: BlockedLists): BlockedHosts {
    const { hostname: host } = this.#settings
    const ports = () => [this.#listener?.port, this.#tlsListener?.port]
    const ownAddress = new OwnAddress({ host, ports })
    const stored = new StoredHosts(this.#db, this.#versions)
    return new BlockedHosts(lists, { ownAddress, stored, domains: this.#domains })
  }

  #note(note: ThreadNote): void {
    this.#settings.control.postMessage(note)
  }

  /** Only some notes of a kind are sent per second. */
  #noteSome(note: ThreadNote): void {
    const kind = Object.keys(note)[0] as keyof typeof NOTES_MAX
    if (++this.#noted[kind] <= NOTES_MAX[kind]) this.#note(note)
  }

  #fail(exception: unknown): Answer {
    const requestId = newRequestId()
    this.#counters.add('failed')
    this.#noteSome({ exception: stackOf(exception), requestId })
    return internalError(requestId)
  }
}

export type RedirectFunctions = RedirectThread['functions']
