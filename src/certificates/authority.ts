import { type AcmeSettings, mayBeCertified } from '../config.ts'
import { type Clock, HOUR, isoTime, MINUTE, type MonotonicClock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { AcmeClient, AcmeError, askUntil, type Fetch, type Order } from './acme.ts'
import { certificateRequest, renewalId } from './der.ts'
import { type Certificate, readPair, type TlsPair } from './pair.ts'
import { backoffAfter, type PlannedOrder, planOrder, usualWindow } from './schedule.ts'
import {
  type CertificateSource,
  type CertificateStatus,
  type CertificateThreads,
  oneLine,
} from './status.ts'
import {
  type CertificateState,
  CertificateStore,
  newKeys,
  type OrderRecord,
  pemOf,
} from './store.ts'
import { validate } from './validate.ts'

const UNREACHABLE_MIN_MS = 10 * SECOND
const UNREACHABLE_MAX_MS = HOUR
const SPREAD = 0.2
/** Where the authority does not say when to ask again. */
const ASK_AGAIN_MS = 6 * HOUR
const ASK_MIN_MS = HOUR
const ASK_MAX_MS = 24 * HOUR
const RETRY_GAP_MS = MINUTE
const CLOCK_DIFFERENCE_MAX_MS = 5 * MINUTE
/** An authority that refuses for the time being, without saying for how long. */
const BLOCKED_MS = HOUR
/** Time for an authority to issue a certificate. */
const ORDER_MAX_MS = 3 * MINUTE
const NOT_CERTIFIED = 'No public certificate exists for this name. It is never sent.'

interface AuthorityOptions {
  acme: AcmeSettings
  dataDir: string
  /** Of the service, the primary one first. */
  hosts: () => readonly string[]
  clock: Clock
  monotonic: MonotonicClock
  log: Log
  /** Default: that of the runtime. */
  fetch?: Fetch | undefined
}

/** Gets and renews one certificate for all hosts of the service. docs/operations/https.md. */
export class Authority implements CertificateSource {
  readonly #options: AuthorityOptions
  readonly #store: CertificateStore
  #state: CertificateState
  #certificate: Certificate | undefined
  /** Names of the certificate that counts; those of another authority are ordered again. */
  #certified: readonly string[] | undefined
  #client: AcmeClient | undefined
  #threads: CertificateThreads | undefined
  #timer: Timer | undefined
  /** In progress. */
  #work: Promise<void> | undefined
  #isClosed = false
  #hosts = ''
  #changedAt = 0
  #unreachable = 0
  #pausedUntil = Number.NEGATIVE_INFINITY
  #retriedAt = Number.NEGATIVE_INFINITY
  #problem: string | undefined
  readonly #orders = { issued: 0, failed: 0 }

  constructor(options: AuthorityOptions) {
    this.#options = options
    const { acme, dataDir, log, clock } = options
    this.#store = new CertificateStore({ dataDir, directory: acme.directory, log })
    this.#certificate = this.#store.readCertificate()
    const fingerprint = this.#certificate?.leaf.fingerprint256
    const { state, isForeign } = this.#store.readState(fingerprint, clock())
    this.#state = state
    this.#certified = isForeign ? undefined : namesIn(this.#certificate)
  }

  get pair(): TlsPair | undefined {
    return this.#certificate?.pair
  }

  start(threads: CertificateThreads): void {
    this.#threads = threads
    this.#timer = setInterval(() => void this.check(), SECOND).unref()
    void this.check()
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  retry(): boolean {
    const now = this.#options.monotonic()
    if (now - this.#retriedAt < RETRY_GAP_MS) return false
    this.#retriedAt = now
    for (const failure of Object.values(this.#state.names)) failure.nextAt = 0
    this.#pausedUntil = Number.NEGATIVE_INFINITY
    void this.check()
    return true
  }

  status(): CertificateStatus {
    const plan = this.#plan()
    const active = namesIn(this.#certificate) ?? []
    return {
      source: 'acme',
      names: this.#options.hosts().map((name) => {
        const isActive = active.includes(name)
        const failure = this.#state.names[name]
        if (!mayBeCertified(this.#options.acme, name)) {
          return { name, isActive, error: NOT_CERTIFIED, nextAt: undefined }
        }
        const planned = plan?.names.includes(name) ? plan.at : undefined
        const nextAt = failure ? Math.max(failure.nextAt, planned ?? 0) : planned
        return { name, isActive, error: failure?.error, nextAt: isActive ? undefined : nextAt }
      }),
      from: this.#certificate?.from,
      until: this.#certificate?.until,
      renewAt: this.#state.renewal?.at,
      problem: this.#problem,
      orders: this.#orders,
    }
  }

  /** The time of the authority: it decides what has expired. */
  get #now(): number {
    return this.#options.clock() + this.#state.aheadMs
  }

  get #names(): string[] {
    return this.#options.hosts().filter((host) => mayBeCertified(this.#options.acme, host))
  }

  #plan(): PlannedOrder | undefined {
    return planOrder({
      names: this.#names,
      certified: this.#certified,
      changedAt: this.#changedAt,
      state: this.#state,
      now: this.#now,
    })
  }

  check(): Promise<void> {
    this.#work ??= this.#doWhatIsDue().finally(() => {
      this.#work = undefined
    })
    return this.#work
  }

  async #doWhatIsDue(): Promise<void> {
    if (this.#isClosed) return
    this.#noteHosts()
    if (this.#options.monotonic() < this.#pausedUntil) return
    try {
      await this.#step()
      this.#unreachable = 0
    } catch (error) {
      this.#pause(error)
    }
  }

  /** Names that were added a moment ago wait for others. */
  #noteHosts(): void {
    const names = this.#names
    const hosts = names.join(' ')
    if (hosts === this.#hosts) return
    this.#changedAt = this.#now
    this.#hosts = hosts
    for (const name of Object.keys(this.#state.names)) {
      if (!names.includes(name)) delete this.#state.names[name]
    }
  }

  async #step(): Promise<void> {
    const unfinished = this.#state.orders.findLast(({ result }) => result === undefined)
    if (unfinished) return this.#resume(unfinished)
    await this.#askForRenewal()
    const isDue = () => (this.#plan()?.at ?? Number.POSITIVE_INFINITY) <= this.#now
    if (!isDue()) {
      this.#problem = undefined
      return
    }
    const client = await this.#connect()
    // By the clock of the authority, which may differ.
    const plan = isDue() ? this.#plan() : undefined
    if (plan) await this.#order(client, plan)
  }

  /** An authority that is down costs none of its limits. */
  #pause(error: unknown): void {
    if (this.#isClosed) return
    const { monotonic, log } = this.#options
    const reason = oneLine((error as Error).message)
    const pause = Math.min(UNREACHABLE_MIN_MS * 2 ** this.#unreachable++, UNREACHABLE_MAX_MS)
    const after = error instanceof AcmeError ? error.retryAfterMs : undefined
    const pauseMs = Math.max(pause * (1 - SPREAD + 2 * SPREAD * Math.random()), after ?? 0)
    this.#pausedUntil = monotonic() + pauseMs
    this.#problem = reason
    log.warn('certificate.authority_failed', { reason, retry_in_s: Math.round(pauseMs / SECOND) })
  }

  /** A client with an account. */
  async #connect(): Promise<AcmeClient> {
    const { acme, fetch = globalThis.fetch } = this.#options
    const account = this.#store.readAccount()
    const client =
      this.#client ??
      new AcmeClient({
        directory: acme.directory,
        keys: account.keys,
        accountUrl: account.url,
        fetch,
        onDate: (date) => this.#compareClocks(date),
      })
    this.#client = client
    await client.connect()
    if (!account.url) {
      const url = await client.register(acme.email)
      this.#store.writeAccount({ ...account, url })
    }
    return client
  }

  #compareClocks(date: number): void {
    const difference = date - this.#options.clock()
    const differs = Math.abs(difference) > CLOCK_DIFFERENCE_MAX_MS
    if (differs && this.#state.aheadMs === 0) {
      const seconds = Math.round(difference / SECOND)
      this.#options.log.warn('certificate.clock_differs', { authority_ahead_s: seconds })
    }
    this.#state.aheadMs = differs ? difference : 0
  }

  /** When the authority wants the certificate to be renewed. Without an answer: the usual time. */
  async #askForRenewal(): Promise<void> {
    const certificate = this.#certified && this.#certificate
    const id = certificate && (renewalId(certificate.leaf) ?? certificate.leaf.fingerprint256)
    const { renewal } = this.#state
    const isOld = renewal?.id !== id
    if (!certificate || !id || (renewal && !isOld && this.#now < renewal.askAt)) return
    const client = await this.#connect().catch(() => undefined)
    const answer = await client?.renewalInfo(id).catch(() => undefined)
    const pause = Math.min(Math.max(answer?.retryAfterMs ?? ASK_AGAIN_MS, ASK_MIN_MS), ASK_MAX_MS)
    const askAt = this.#now + pause
    const usual = isOld ? usualWindow(certificate) : undefined
    const found = answer ?? usual ?? renewal
    if (!found) return
    const { start, end } = found
    const isSame = renewal && !isOld && renewal.start === start && renewal.end === end
    const at = isSame ? renewal.at : start + (end - start) * Math.random()
    this.#state.renewal = { id, start, end, at, askAt }
    this.#save()
  }

  #save(): void {
    if (this.#isClosed) throw new Error('the service has stopped')
    this.#store.writeState(this.#state, this.#now)
  }

  async #order(client: AcmeClient, { names, isRenewal }: PlannedOrder): Promise<void> {
    const record: OrderRecord = { at: this.#now, names, isRenewal }
    this.#state.orders.push(record)
    try {
      // Before the request: a restart must know of it.
      this.#save()
    } catch (error) {
      this.#state.orders.pop()
      throw error
    }
    await this.#run(record, async () => {
      const created = await this.#create(client, record)
      record.url = created.url
      this.#save()
      return this.#complete(client, record, created.order)
    })
  }

  async #create(client: AcmeClient, record: OrderRecord) {
    const replaced = record.isRenewal && this.#certificate && renewalId(this.#certificate.leaf)
    try {
      return await client.createOrder(record.names, replaced || undefined)
    } catch (error) {
      const isReplaced = error instanceof AcmeError && error.type === 'alreadyReplaced'
      if (!isReplaced) throw error
      record.isRenewal = false
      return client.createOrder(record.names, undefined)
    }
  }

  /** An order that a crash, or an authority that did not answer, has interrupted. */
  async #resume(record: OrderRecord): Promise<void> {
    const { url } = record
    if (url === undefined) return this.#end(record, 'failed', [])
    const client = await this.#connect()
    await this.#run(record, async () => this.#complete(client, record, await client.order(url)))
  }

  /** An error of the network is thrown, and the order goes on later. */
  async #run(record: OrderRecord, work: () => Promise<Certificate | undefined>): Promise<void> {
    let certificate: Certificate | undefined
    try {
      certificate = await work()
    } catch (error) {
      if (error instanceof AcmeError && error.status < 500) {
        this.#refuse(record, error)
        return
      }
      const isLate = this.#now - record.at > ORDER_MAX_MS
      if (record.url === undefined || isLate) this.#end(record, 'failed', [])
      throw error
    }
    if (certificate) await this.#activate(record, certificate)
  }

  #refuse(record: OrderRecord, error: AcmeError): void {
    const { log } = this.#options
    const isBlocked = error.status === 429 || error.type === 'rateLimited'
    if (error.type === 'accountDoesNotExist') this.#forgetAccount()
    if (isBlocked) {
      this.#state.blockedUntil = this.#now + (error.retryAfterMs ?? BLOCKED_MS)
      this.#problem = error.message
      const until = isoTime(this.#state.blockedUntil)
      log.warn('certificate.order_refused', { reason: error.message, next_at: until })
      this.#end(record, 'failed', [])
      return
    }
    const named = record.names.filter((name) => error.names.has(name))
    const failed = named.length > 0 ? named : record.names
    for (const name of failed) this.#fail(name, error.names.get(name) ?? error.message)
    this.#end(record, 'failed', failed)
  }

  #fail(name: string, error: string): void {
    const failures = (this.#state.names[name]?.failures ?? 0) + 1
    const nextAt = this.#now + backoffAfter(failures)
    this.#state.names[name] = { failures, error, nextAt }
    const fields = { name, reason: error, next_at: isoTime(nextAt) }
    this.#options.log.warn('certificate.name_failed', fields)
  }

  #forgetAccount(): void {
    this.#client = undefined
    this.#store.writeAccount({ ...this.#store.readAccount(), url: undefined })
  }

  #end(record: OrderRecord, result: 'issued' | 'failed', failed: string[]): void {
    record.result = result
    record.failed = failed
    this.#orders[result]++
    this.#save()
  }

  /** Undefined: the order has failed, and that is recorded. */
  async #complete(client: AcmeClient, record: OrderRecord, first: Order) {
    const url = record.url ?? ''
    let order = first
    if (order.status === 'pending') {
      const setAnswers = async (answers: Record<string, string>) =>
        this.#threads?.setChallenges(answers)
      const errors = await validate(client, order, { setAnswers, maxMs: ORDER_MAX_MS })
      if (errors.size > 0) {
        for (const [name, error] of errors) this.#fail(name, error)
        this.#end(record, 'failed', [...errors.keys()])
        return undefined
      }
      order = await client.order(url)
    }
    const keys = newKeys()
    if (order.status === 'ready') {
      await client.finalize(order.finalize, certificateRequest(record.names, keys))
      const isDone = ({ status }: Order) => status !== 'processing' && status !== 'ready'
      const deadline = performance.now() + ORDER_MAX_MS
      order = await askUntil(isDone, () => client.order(url), deadline)
      if (order.status === 'valid') {
        const cert = await client.download(order.certificate ?? '')
        return certificateFor(record.names, { cert, key: pemOf(keys) }, this.#now)
      }
    }
    if (order.status === 'valid' || order.status === 'processing') {
      // A crash has lost its key: it counts, and the next order takes its place.
      this.#end(record, 'issued', [])
      return undefined
    }
    throw new AcmeError(400, { type: '', detail: '', subproblems: [], ...order.error })
  }

  async #activate(record: OrderRecord, certificate: Certificate): Promise<void> {
    const { log } = this.#options
    const { pair, leaf, until } = certificate
    try {
      this.#store.writeCertificate(pair)
    } catch (error) {
      // It is served all the same, and ordered again after a restart.
      log.error('certificate.not_stored', {}, error)
    }
    this.#certificate = certificate
    this.#certified = namesIn(certificate)
    this.#problem = undefined
    for (const name of record.names) delete this.#state.names[name]
    this.#state.active = leaf.fingerprint256
    await this.#threads?.setCertificate(pair)
    // Last, because a full disk refuses it.
    this.#end(record, 'issued', [])
    const names = record.names.join(', ')
    log.info('certificate.active', { names, expires_at: isoTime(until) })
  }
}

function namesIn(certificate: Certificate | undefined): string[] | undefined {
  const names = certificate?.leaf.subjectAltName?.split(', ')
  return names?.map((name) => name.replace(/^DNS:/, ''))
}

/** Throws AcmeError for a certificate that is not the one that was asked for. */
function certificateFor(names: readonly string[], pair: TlsPair, now: number): Certificate {
  try {
    const certificate = readPair(pair)
    const found = namesIn(certificate)?.toSorted().join(' ')
    if (found === names.toSorted().join(' ') && certificate.until > now) return certificate
  } catch {
    // It has another key, or is none.
  }
  const detail = 'The certificate of the authority is not the one that was asked for.'
  throw new AcmeError(400, { type: '', detail, subproblems: [] })
}
