import type { Blocklist } from '../blocklist/watch.ts'
import type { TlsPair } from '../certificates/pair.ts'
import type { CertificateThreads } from '../certificates/status.ts'
import type { HitJournal } from '../hot/journal.ts'
import { CONTROL_THREAD } from '../hot/lock.ts'
import { RedirectCounters, sumCounters } from '../hot/redirect-counters.ts'
import { allocateVisitRing, VisitRecorder } from '../hot/visit-ring.ts'
import { ControlServer } from '../http/control-server.ts'
import { MINUTE } from '../lib/clock.ts'
import { descriptorsMax } from '../lib/descriptors.ts'
import { ListenError } from '../lib/listen-error.ts'
import type { Log } from '../lib/log.ts'
import type { RestartingThread, ThreadStarter } from '../lib/thread-starter.ts'
import type { RateLimiter } from '../limits/budgets.ts'
import type { KnownCodes } from '../links/known-codes.ts'
import { limitsPerThread } from './connection-limits.ts'
import { withPortLock } from './port-lock.ts'
import type {
  CommonSettings,
  HttpsState,
  RedirectFunctions,
  RedirectSettings,
  ThreadNote,
  VisitRecording,
} from './thread.ts'

interface RedirectThreadsOptions {
  count: number
  start: ThreadStarter
  log: Log
  settings: CommonSettings
  /** Headers that details of redirects are read from; undefined with VISIT_DETAILS=off. */
  visitHeaders: readonly string[] | undefined
  limiter: Pick<RateLimiter, 'memory' | 'releaseLocksOf'>
  journal: Pick<HitJournal, 'attach' | 'detach'>
  blocklist: Pick<Blocklist, 'lists'>
  control: Promise<Control>
  /** The first certificate; undefined without https, or before there is one. */
  pair?: TlsPair | undefined
}

/** The rest of the service, which starts after the redirect threads. */
export interface Control {
  /** Answers the requests that the threads forward. */
  answer(request: Request): Response | Promise<Response>
  codes: Pick<KnownCodes, 'prepare'>
}

interface Address {
  hostname: string
  port: number
  /** Undefined without https. */
  httpsPort: number | undefined
}

/** The control thread's side of the redirect threads: starts, restarts and stops them. */
export class RedirectThreads implements CertificateThreads {
  readonly #options: RedirectThreadsOptions
  readonly #counters: RedirectCounters[]
  readonly #visits: VisitRecording[] | undefined
  #control: ControlServer | undefined
  #threads: RestartingThread<RedirectFunctions>[] = []
  #port: number | undefined
  #httpsPort: number | undefined
  #pair: TlsPair | undefined
  #challenges: HttpsState['challenges'] = {}
  #codes: SharedArrayBuffer | undefined
  #exhaustedAt = Number.NEGATIVE_INFINITY

  constructor(options: RedirectThreadsOptions) {
    this.#options = options
    this.#pair = options.pair
    // The first is for the redirects that the control thread answers.
    this.#counters = Array.from({ length: options.count + 1 }, () => new RedirectCounters())
    const { visitHeaders: headers } = options
    this.#visits = headers && this.#counters.map(() => ({ ring: allocateVisitRing(), headers }))
  }

  /** The public port; undefined before `listen`. */
  get port(): number | undefined {
    return this.#port
  }

  /** The port for https; undefined without it. */
  get httpsPort(): number | undefined {
    return this.#httpsPort
  }

  /** The counters of the control thread itself. */
  get controlCounters(): RedirectCounters {
    return this.#counters[0] as RedirectCounters
  }

  /** For the redirects that the control thread answers; undefined with VISIT_DETAILS=off. */
  get controlVisits(): VisitRecorder | undefined {
    const own = this.#visits?.[0]
    return own && new VisitRecorder(own.ring, own.headers)
  }

  /** Where all threads record details of redirects. */
  get visitRings(): SharedArrayBuffer[] | undefined {
    return this.#visits?.map(({ ring }) => ring)
  }

  /** The counts of all threads together. */
  get totals() {
    const { areDescriptorsExhausted } = this
    return { areDescriptorsExhausted, ...sumCounters(this.#counters) }
  }

  /** Connections have used up the file descriptors, now or within the last minute. */
  get areDescriptorsExhausted(): boolean {
    return performance.now() - this.#exhaustedAt < MINUTE
  }

  /** No thread answers. */
  get isDead(): boolean {
    return this.#threads.length > 0 && this.#threads.every(({ isDead }) => isDead)
  }

  get pending(): number {
    return this.#threads.reduce((sum, { pending }) => sum + pending, 0)
  }

  get batchMs(): number {
    return Math.max(0, ...this.#threads.map(({ batchMs }) => batchMs))
  }

  /** Port 0: a free one. Throws ListenError. */
  async listen(address: Address): Promise<void> {
    const { control, log, count } = this.#options
    const answer = async (request: Request) => (await control).answer(request)
    this.#control = new ControlServer(answer, log)
    const { hostname, port, httpsPort } = address
    const startFirst = async () => {
      if (httpsPort !== undefined) refusePortInUse(hostname, httpsPort, true)
      refusePortInUse(hostname, port, httpsPort !== undefined)
      try {
        return [await this.#start(1, address)]
      } catch (error) {
        throw new ListenError({ host: hostname, port, cause: error })
      }
    }
    this.#threads = await withPortLock(httpsPort ?? 0, () => withPortLock(port, startFirst))
    const ports = await this.#threads[0]?.call('ports', undefined)
    this.#port = ports?.port
    this.#httpsPort = ports?.httpsPort
    const others = Array.from({ length: count - 1 }, (_, i) => this.#start(i + 2, address))
    this.#threads.push(...(await Promise.all(others)))
    // They may have changed since the first start began.
    await this.setLists()
  }

  /** Resolves when every thread has the certificate for its next connections. */
  async setCertificate(pair: TlsPair): Promise<void> {
    this.#pair = pair
    await this.#callAll('setCertificate', pair)
  }

  /** Resolves when every thread answers these challenges, and no others. */
  async setChallenges(challenges: HttpsState['challenges']): Promise<void> {
    this.#challenges = challenges
    await this.#callAll('setChallenges', challenges)
  }

  /** The blocklist has changed. Resolves when every thread has the new lists. */
  async setLists(): Promise<void> {
    await this.#callAll('setLists', this.#options.blocklist.lists)
  }

  /** The codes in use have been read: memory of a `CodeFilter`. */
  setCodes(codes: SharedArrayBuffer): void {
    this.#codes = codes
    void this.#callAll('setCodes', codes)
  }

  /** Resolves when all responses of every thread have `Connection: close`. */
  async beginStop(): Promise<void> {
    await this.#callAll('beginStop', undefined)
  }

  /** Closes the port. Open connections are answered as before. */
  async refuseConnections(): Promise<void> {
    await this.#callAll('refuseConnections', undefined)
  }

  /** Waits up to `graceMs` for requests in progress, and closes all connections. */
  async stop(graceMs: number): Promise<void> {
    const drained = this.#control?.drain()
    await Promise.all([this.#callAll('stop', { graceMs }), graceMs > 0 && drained])
    await this.#control?.close()
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()))
    await this.#control?.close()
  }

  async #callAll<Name extends keyof RedirectFunctions>(
    name: Name,
    args: Parameters<RedirectFunctions[Name]>[0],
  ): Promise<void> {
    // A thread that has ended gets the present state when it starts again.
    await Promise.allSettled(this.#threads.map((thread) => thread.call(name, args)))
  }

  #start(thread: number, address: Address): Promise<RestartingThread<RedirectFunctions>> {
    return this.#options.start.again<RedirectFunctions>(`redirect-${thread}`, {
      prepare: () => this.#prepare(thread, address),
      // They may have changed since the start began.
      onRestart: () => this.#renewState(),
    })
  }

  #renewState(): void {
    void this.setLists()
    if (this.#httpsPort === undefined) return
    void this.setChallenges(this.#challenges)
    if (this.#pair) void this.setCertificate(this.#pair)
  }

  #prepare(thread: number, { hostname, port, httpsPort }: Address) {
    const { settings: common, limiter, journal, blocklist, count } = this.#options
    const server = this.#control as ControlServer
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = ({ data }: { data: ThreadNote }) => this.#receive(data)
    const counters = this.#counters[thread] as RedirectCounters
    const settings: RedirectSettings = {
      ...common,
      hostname,
      // All threads and their restarts use the port that the first start was given.
      port: this.#port ?? port,
      https:
        httpsPort === undefined
          ? undefined
          : { port: this.#httpsPort ?? httpsPort, pair: this.#pair, challenges: this.#challenges },
      thread: CONTROL_THREAD + thread,
      control: port2,
      controlPort: server.port,
      connectionLimits: limitsPerThread(descriptorsMax() ?? Number.POSITIVE_INFINITY, count),
      peers: server.peers.memory,
      visits: this.#visits?.[thread],
      limiter: limiter.memory,
      journal: journal.attach(),
      lists: blocklist.lists,
      counters: counters.memory,
      codes: this.#codes,
    }
    const onDeath = () => {
      port1.close()
      limiter.releaseLocksOf(settings.thread)
      journal.detach(settings.journal)
    }
    return { settings, transfer: [port2], onDeath }
  }

  #receive(note: ThreadNote): void {
    const { control, log } = this.#options
    if ('log' in note) log.info('request', note.log)
    else if ('exception' in note) {
      log.error('request.failed', { path: '/:code', request_id: note.requestId }, note.exception)
    } else if ('descriptorsExhausted' in note) {
      const limit = descriptorsMax()
      if (!this.areDescriptorsExhausted) log.error('service.descriptors_exhausted', { limit })
      this.#exhaustedAt = performance.now()
    } else void control.then(({ codes }) => codes.prepare())
  }
}

/**
 * Throws ListenError if another process listens there. The redirect threads share a port, which the
 * system allows to other processes of the same user too: each would answer for its own data.
 */
function refusePortInUse(hostname: string, port: number, isHttps: boolean): void {
  if (port === 0) return
  try {
    const fetch = () => new Response()
    void Bun.serve({ hostname, port, reusePort: false, fetch }).stop(true)
  } catch (cause) {
    throw new ListenError({ host: hostname, port, cause, isHttps })
  }
}
