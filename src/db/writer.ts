import type { Database } from 'bun:sqlite'
import { AppError } from '../errors.ts'
import {
  type Call,
  type CallOptions,
  functionOf,
  messageOf,
  type NamedFunctions,
  type Outcome,
  type Thread,
} from '../lib/thread.ts'

/** Calls of subjects: see hits/subject.ts and settings.ts. */
const COUNT_HITS = 'hits.count'
const PROBE = 'settings.probe'
/** Interval of test writes after the disk refused one, while there are no other writes. */
const PROBE_MS = 1000

/** Other hosts that apply the same writes. */
interface OtherHosts {
  /** Resolves when all have applied the entries up to `seq`. Undefined if they already have. */
  whenAllApplied(seq: number): Promise<void> | undefined
}

/** The call that applies every change that this host lacks. It fails without PostgreSQL. */
export const CATCH_UP = 'catchUp'

/** Decides about changes. In a cluster, this host may not have the newest data. */
export interface Decider {
  /**
   * Runs `decide`. In a cluster, a refusal is final only if `again`, by default `decide` itself,
   * repeats it on data with every change that was acknowledged before. Throws without PostgreSQL.
   */
  decide<Result>(decide: () => Result, again?: () => Result): Promise<Result>
  /** Resolves when this host has every change that any host of its cluster has acknowledged. */
  catchUp(): Promise<void>
  /** Whether `decide` may wait. */
  readonly isInCluster: boolean
}

interface WriteGuards {
  /** Why changes must not be written; undefined if they may. */
  data: { readonly problem: string | undefined }
  /** Whether the thread has not answered a batch for seconds. */
  isHanging: () => boolean
}

/**
 * The service's client of the writer thread. Knows whether the disk accepts writes. While another
 * file has replaced the database, it refuses all calls except the one that counts hits: a change
 * would be acknowledged and then lost, while a hit is also in the journal.
 */
export class Writer implements Decider {
  readonly #thread: Thread<NamedFunctions>
  readonly #guards: WriteGuards
  readonly #others: OtherHosts | undefined
  #failing = false
  #probe: Timer | undefined
  #askedAt = 0

  constructor(thread: Thread<NamedFunctions>, guards: WriteGuards, others?: OtherHosts) {
    this.#thread = thread
    this.#guards = guards
    this.#others = others
  }

  /** Whether the last write was refused, the next one will be, or the disk hangs. */
  get failing(): boolean {
    const { data, isHanging } = this.#guards
    return this.#failing || this.#thread.isDead || data.problem !== undefined || isHanging()
  }

  /** Milliseconds since the last call that was not a background call. */
  get idleMs(): number {
    return performance.now() - this.#askedAt
  }

  /**
   * Calls a function of the writer thread: see `writeFunctions`. Resolves once its change is on the
   * disk of this host.
   */
  async call(name: string, args: unknown, options: CallOptions = {}): Promise<unknown> {
    const { problem } = this.#guards.data
    if (problem && name !== COUNT_HITS) throw new Error(problem)
    if (!options.background) this.#askedAt = performance.now()
    try {
      const value = await this.#thread.call(name, args as never, options)
      this.#failing = false
      return value
    } catch (error) {
      this.#failing = true
      this.#probe ??= setTimeout(() => void this.#ask(), PROBE_MS)
      throw error
    }
  }

  /**
   * Resolves when the other hosts have applied the change of a call that has just resolved.
   * Undefined if nobody waits for them.
   */
  whenAllApplied(name: string, options: CallOptions = {}): Promise<void> | undefined {
    const { isAcknowledged = !options.background && name !== COUNT_HITS } = options
    return isAcknowledged ? this.#others?.whenAllApplied(this.#thread.seq) : undefined
  }

  get isInCluster(): boolean {
    return this.#others !== undefined
  }

  async decide<Result>(decide: () => Result, again = decide): Promise<Result> {
    try {
      return decide()
    } catch (error) {
      if (!this.isInCluster || !(error instanceof AppError)) throw error
      await this.catchUp()
      return again()
    }
  }

  async catchUp(): Promise<void> {
    if (this.isInCluster) await this.#thread.call(CATCH_UP, null as never)
  }

  /** Finishes waiting writes, except background ones with a name in `drop`. */
  close(options: { drop?: readonly string[] } = {}): Promise<void> {
    clearTimeout(this.#probe)
    return this.#thread.close(options)
  }

  async #ask(): Promise<void> {
    this.#probe = undefined
    // If it is refused, `call` schedules the next probe.
    await this.call(PROBE, { at: Date.now() }).catch(() => {})
  }
}

/** Decides in which order writes happen. */
export interface Order {
  /** One outcome per call, once the calls are durable and applied on this host. */
  submit(calls: readonly Call[]): Outcome[] | Promise<Outcome[]>
  /** How many entries of a shared order are applied; 0 without one. */
  readonly seq: number
  close(): void | Promise<void>
}

/** The order of a single host: the order in which the writer thread receives calls. */
export const localOrder = (db: Database, functions: object): Order => ({
  seq: 0,
  submit: (calls) => commitTogether(db, functions, calls),
  close() {},
})

/**
 * Group commit: runs all calls of a batch in one transaction. One that throws does not affect the
 * others. An outcome is a success only if the commit was: responses are sent after their write is
 * on the disk.
 */
export function commitTogether(db: Database, functions: object, calls: readonly Call[]): Outcome[] {
  try {
    return inOneTransaction(db, functions, (run) => calls.map(run))
  } catch (error) {
    return calls.map(() => ({ error: messageOf(error) }))
  }
}

export type RunCall = (call: Call) => Outcome

/**
 * Runs `work` as a transaction, in which it runs calls of `functions`. A savepoint for each call
 * would make a call that changes a thousand rows three times as expensive. So only if a call throws
 * is all of it rolled back and run again, with savepoints: calls have the same results again,
 * because they depend on the database and their arguments only. Throws the errors that `isFault`
 * selects.
 */
export function inOneTransaction<Result>(
  db: Database,
  functions: object,
  work: (run: RunCall) => Result,
  isFault: (error: unknown) => boolean = () => false,
): Result {
  const run: RunCall = ({ name, args }) => ({ value: functionOf(functions, name)(args) })
  try {
    return commit(db, () => work(run))
  } catch (error) {
    if (isFault(error)) throw error
    return commit(db, () => work((call) => inSavepoint(db, () => run(call), isFault)))
  }
}

function commit<Result>(db: Database, work: () => Result): Result {
  db.run('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.run('COMMIT')
    return result
  } catch (error) {
    if (db.inTransaction) db.run('ROLLBACK')
    throw error
  }
}

function inSavepoint(
  db: Database,
  work: () => Outcome,
  isFault: (error: unknown) => boolean,
): Outcome {
  db.run('SAVEPOINT operation')
  try {
    const outcome = work()
    db.run('RELEASE operation')
    return outcome
  } catch (error) {
    // After a full disk SQLite has rolled the whole transaction back: nothing of it is stored.
    if (!db.inTransaction || isFault(error)) throw error
    db.run('ROLLBACK TO operation')
    db.run('RELEASE operation')
    return { error: messageOf(error) }
  }
}
