import type { Database } from 'bun:sqlite'
import { CATCH_UP, commitTogether, type Order } from '../db/writer.ts'
import type { PreparedCall } from '../hits/cluster-store.ts'
import { retry, withTimeout } from '../lib/deadline.ts'
import { messageOf, type Outcome } from '../lib/thread.ts'
import { type AppliedEntry, Applier, LOST_TAIL, NOT_CURRENT, OTHER_CLUSTER } from './apply.ts'
import { Comparison, DAMAGED } from './comparison.ts'
import { NOT_ANSWERING } from './connection.ts'
import { encodeEntry, isLocal, type LoggedCall, splitCalls } from './entries.ts'
import type { AppliedEvent, StateEvent } from './events.ts'
import { HostInUse, HostRemoved, LEASE_MS, type LogState, type PostgresLog } from './log.ts'
import type { Entry } from './log-reader.ts'
import { recordDamage } from './position.ts'

/** Interval of polling the log and reporting that this host is live. */
const REPORT_MS = 250
const PRUNE_MS = 60_000
/**
 * A host that lacks an entry for longer gets no requests until it lacks none for `LEASE_MS`: one on
 * a slow connection must not become ready for a moment again and again.
 */
const OLD_MS = 5000
/** Time limit of retrying an append of unknown outcome; a large one has more. */
const APPEND_MS = 2000
const APPEND_BYTES_PER_MS = 1024
const APPEND_PAUSE_MS = 50

interface SharedOrderOptions {
  db: Database
  /** All functions that an entry may call. */
  functions: object
  host: string
  log: PostgresLog
  /** False for a process that ends soon. */
  compares: boolean
  /** See `hitCalls`. */
  prepare: (call: LoggedCall) => PreparedCall
  /** Receives applied calls that this host did not submit. */
  onApplied: (event: AppliedEvent) => void
  onState: (event: StateEvent) => void
}

/**
 * The order of a cluster's writes on one host: appends this host's batches to the log, and applies
 * all entries of the log to the database in their order. Runs on the writer thread.
 *
 * The database is a replicated state machine over a shared log, as in Tango (SOSP 2013).
 */
export class SharedOrder implements Order {
  readonly #options: SharedOrderOptions
  readonly #applier: Applier
  readonly #waiting = new Map<string, (outcomes: Outcome[]) => void>()
  #state: LogState | undefined
  /** Permanent reason for not applying entries. */
  #problem: string | undefined
  /** Why this host could not apply an entry. It tries again. */
  #fault: string | undefined
  readonly #comparison: Comparison
  /** Whether this host has the newest data, as of the last report. */
  #isCurrent = true
  /** Why the log could not be read. */
  #readProblem: string | undefined
  /** The problem in the last report. */
  #reported: string | null | undefined
  #contactAt = Number.NEGATIVE_INFINITY
  /** Why the last report failed. */
  #contactProblem: string | undefined
  #following: Promise<void> | undefined
  /** Set by a notification during `#followAll`, which then reads the log once more. */
  #mustFollow = false
  #confirming: Promise<void> | undefined
  /** Other hosts know that this one, with its caches, has the entries up to here. */
  #confirmed: number
  /** The last entry that was posted to the control thread. */
  #posted: number
  #timer: Timer | undefined
  #prunedAt = performance.now()
  #logSize: StateEvent['log']
  #isClosed = false
  /** Calls during the start wait for it: before, they would fail. */
  readonly #firstReport: Promise<void>

  constructor(options: SharedOrderOptions) {
    this.#options = options
    this.#applier = new Applier(options)
    this.#problem = this.#applier.problem
    this.#comparison = new Comparison(options)
    this.#confirmed = this.seq
    this.#posted = this.seq
    this.#firstReport = this.#report()
  }

  get seq(): number {
    return this.#applier.position.seq
  }

  async submit(calls: readonly LoggedCall[]): Promise<Outcome[]> {
    const { db, functions } = this.#options
    const own = calls.filter(({ name }) => isLocal(name))
    const ownOutcomes = own.length > 0 ? commitTogether(db, functions, own) : []
    const shared = calls.filter(({ name }) => !isLocal(name) && name !== CATCH_UP)
    const needsAll = calls.some(({ name }) => name === CATCH_UP)
    const [caughtUp, sharedOutcomes] = await Promise.all([
      needsAll ? this.#catchUp() : NO_ANSWER,
      this.#submitShared(shared),
    ])
    return calls.map(({ name }) => {
      if (name === CATCH_UP) return caughtUp
      const outcome = (isLocal(name) ? ownOutcomes : sharedOutcomes).shift()
      return outcome ?? NO_ANSWER
    })
  }

  /** Readers on the control thread know the entries up to `seq`. */
  confirm(seq: number): void {
    // Entries after the last posted one concern no reader on the control thread.
    this.#confirmed = seq < this.#posted ? seq : this.seq
    this.#confirming ??= this.#sendConfirmed().finally(() => {
      this.#confirming = undefined
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#options.log.leave().catch(() => {})
    await this.#options.log.close()
  }

  /** Applies the log up to its end as of this call. */
  async #catchUp(): Promise<Outcome> {
    const { log } = this.#options
    const until = performance.now() + APPEND_MS
    try {
      await this.#firstReport
      this.#requireOrder()
      const { head } = await log.head()
      for (; this.seq < head; this.#requireOrder()) {
        // What is left then is followed in the background.
        await withTimeout(until - performance.now(), this.#follow(), NOT_READ).catch(() => {})
        if (this.#readProblem) throw new Error(this.#readProblem)
        if (performance.now() >= until) throw new Error(NOT_READ)
      }
      return { value: undefined }
    } catch (error) {
      return { error: messageOf(error) }
    }
  }

  async #submitShared(calls: readonly LoggedCall[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = []
    for (const part of splitCalls(calls)) {
      try {
        outcomes.push(...(await this.#submitEntry(part)))
      } catch (error) {
        outcomes.push(...part.map(() => ({ error: messageOf(error) })))
      }
    }
    return outcomes
  }

  async #submitEntry(calls: readonly LoggedCall[]): Promise<Outcome[]> {
    await this.#firstReport
    this.#requireOrder()
    const prepared = calls.map(this.#options.prepare)
    const logged = prepared.flatMap(({ call }) => call ?? [])
    const outcomes = logged.length > 0 ? await this.#append(logged) : []
    return prepared.map(({ call, toResult }) => toResult((call && outcomes.shift()) ?? NO_ANSWER))
  }

  async #append(calls: readonly LoggedCall[]): Promise<Outcome[]> {
    const { log, host } = this.#options
    const batch = crypto.randomUUID()
    const entry = { batch, ...encodeEntry(calls) }
    const ms = APPEND_MS + entry.calls.length / APPEND_BYTES_PER_MS
    const applied = new Promise<Outcome[]>((resolve) => this.#waiting.set(batch, resolve))
    try {
      const deadline = log.deadlineAfter(ms)
      const added = await retry({ ms, pauseMs: APPEND_PAUSE_MS }, () =>
        log.append(entry, deadline, ms),
      )
      // Usually no other host has appended in between, so the entry need not be read from the log.
      const isNext = added.seq === this.seq + 1
      for (const _ of this.#apply(isNext ? [{ ...entry, ...added, host }] : []));
      if (!isNext) void this.#follow()
      return await withTimeout(APPEND_MS, applied, NOT_READ)
    } finally {
      this.#waiting.delete(batch)
    }
  }

  get #anyProblem(): string | undefined {
    return this.#problem ?? this.#fault ?? this.#comparison.doubt
  }

  #requireOrder(): void {
    const reason = this.#notFollowing
    if (reason) throw new Error(reason)
  }

  /** Why this host makes no changes. */
  get #notFollowing(): string | undefined {
    const isAway = performance.now() - this.#contactAt > LEASE_MS
    const contactProblem = isAway ? (this.#contactProblem ?? NOT_ANSWERING) : undefined
    return this.#anyProblem ?? contactProblem ?? this.#behind
  }

  /** Why this host lacks new entries, or the other hosts do not wait for it yet. */
  get #behind(): string | undefined {
    if (this.#isCurrent && this.#reported === null) return undefined
    return this.#readProblem ? `${NOT_CURRENT}: ${this.#readProblem}` : NOT_CURRENT
  }

  /** Repeats itself every `REPORT_MS`. */
  async #report(): Promise<void> {
    try {
      await this.#exchange()
    } catch (error) {
      this.#contactProblem = messageOf(error)
      // Before the first report, a killed process of this host may still hold the claim.
      const isInUse = error instanceof HostInUse && this.#state
      if (isInUse || error instanceof HostRemoved) this.#stop(messageOf(error))
      this.#postState()
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#report(), REPORT_MS)
  }

  async #exchange(): Promise<void> {
    const { log } = this.#options
    const applied = this.#confirmed
    // Entries may be appended and applied before the answer arrives.
    const { seq } = this
    const problem = this.#anyProblem ?? (this.#isCurrent ? undefined : this.#behind) ?? null
    const { digests } = this.#comparison
    const wasAway = performance.now() - this.#contactAt > LEASE_MS
    if (wasAway) log.unsubscribe()
    // Polls bring all entries even if notifications fail.
    log.subscribe({
      entry: () => void this.#follow(),
      applied: (id, seq) => this.#noteApplied(id, seq),
    })
    this.#state = await log.report({ applied, problem, digests })
    this.#comparison.forget(digests)
    // So that the others wait for this host again before it receives requests.
    if (problem === null && (wasAway || this.#reported !== null)) await this.#sendApplied(applied)
    this.#reported = problem
    this.#contactAt = performance.now()
    this.#contactProblem = undefined
    this.#checkState(this.#state, seq)
    this.#isCurrent = this.#state.lagMs < (this.#isCurrent ? OLD_MS : LEASE_MS)
    this.#postState()
    // The report does not wait for these: the other hosts must know that this one is live.
    void this.#follow()
    void this.#comparison.proceed(this.#state.hosts, (call) => this.#submitEntry([call]))
    if (performance.now() - this.#prunedAt >= PRUNE_MS) await this.#prune()
  }

  /** Runs again with the next report while old entries are left, unless it fails. */
  async #prune(): Promise<void> {
    this.#prunedAt = performance.now()
    const { deleted, ...size } = await this.#options.log.prune()
    this.#logSize = size
    if (deleted > 0) this.#prunedAt = Number.NEGATIVE_INFINITY
  }

  #checkState(state: LogState, seq: number): void {
    if (state.cluster !== this.#applier.position.cluster) this.#stop(OTHER_CLUSTER)
    else if (state.head < seq) this.#stop(LOST_TAIL)
    else if (this.#comparison.judge(state) === 'wrong') {
      // First: a full disk may refuse the record, which the next report then tries again.
      this.#stop(DAMAGED)
      recordDamage(this.#options.db, DAMAGED)
    }
  }

  #noteApplied(id: string, seq: number): void {
    const host = this.#state?.hosts.find((one) => one.id === id)
    if (!host) return
    host.applied = Math.max(host.applied, seq)
    host.isLive = true
    this.#postState()
  }

  #postState(): void {
    this.#options.onState({
      contactMs: performance.now() - this.#contactAt,
      head: Math.max(this.#state?.head ?? 0, this.seq),
      applied: this.seq,
      hosts: this.#state?.hosts ?? [],
      problem: this.#notFollowing,
      comparisons: this.#comparison.completed,
      log: this.#logSize,
    })
  }

  /** Applies the entries of the log after the position. */
  #follow(): Promise<void> {
    this.#mustFollow = true
    this.#following ??= this.#followAll().finally(() => {
      this.#following = undefined
    })
    return this.#following
  }

  async #followAll(): Promise<void> {
    while (this.#mustFollow && !this.#problem && !this.#isClosed) {
      this.#mustFollow = false
      // After a failure, the next poll tries again.
      if (await this.#applyNext()) this.#mustFollow = true
    }
  }

  /** False if there were no entries, or they could not be read or applied. */
  async #applyNext(): Promise<boolean> {
    const { log } = this.#options
    const entries = await log.readAfter(this.seq).catch((error: unknown) => {
      this.#readProblem = messageOf(error)
    })
    if (!entries) return false
    this.#readProblem = undefined
    try {
      // Reports, and requests of this host, continue between two transactions.
      for (const _ of this.#apply(entries)) await new Promise((resolve) => setImmediate(resolve))
      this.#fault = undefined
    } catch (error) {
      this.#fault = `this host cannot apply the log: ${messageOf(error)}`
      return false
    }
    return entries.length > 0
  }

  /** Yields after each transaction. Throws if the disk refuses. */
  *#apply(entries: readonly Entry[]): Generator<void> {
    for (const applied of this.#applier.apply(entries)) {
      this.#settle(applied)
      yield
    }
    if (this.#applier.problem) this.#stop(this.#applier.problem)
  }

  /** Answers the callers of this host, and reports the calls of other hosts. */
  #settle(entries: readonly AppliedEntry[]): void {
    const others: AppliedEvent['calls'] = []
    for (const { entry, calls, outcomes } of entries) {
      const isComparison = this.#comparison.noteEntry(entry.seq, calls, outcomes)
      const answer = entry.host === this.#options.host && this.#waiting.get(entry.batch)
      if (answer) answer(outcomes)
      // No client waits for a comparison: the next report confirms it.
      else if (!isComparison)
        others.push(...calls.map(({ name }, at) => ({ name, ...outcomes[at] })))
    }
    const seq = this.seq
    if (others.length > 0) {
      this.#posted = seq
      this.#options.onApplied({ seq, calls: others })
    } else if (this.#confirmed >= this.#posted) this.#confirmed = seq
  }

  async #sendConfirmed(): Promise<void> {
    for (let sent = -1; sent !== this.#confirmed; ) {
      sent = this.#confirmed
      // The next report contains it too.
      await this.#sendApplied(sent).catch(() => {})
    }
  }

  /** After `leave`, this host would look live again. */
  async #sendApplied(seq: number): Promise<void> {
    if (!this.#isClosed) await this.#options.log.confirm(seq)
  }

  #stop(problem: string): void {
    this.#problem ??= problem
    this.#postState()
  }
}

const NO_ANSWER: Outcome = { error: 'the log gave no answer' }
const NOT_READ = 'the log could not be read in time'
