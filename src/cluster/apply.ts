import type { Database } from 'bun:sqlite'
import { subjects } from '../data.ts'
import { callOrigin, type WriterHost, writeFunctions } from '../db/subject.ts'
import { inOneTransaction, type RunCall } from '../db/writer.ts'
import { machineFailure } from '../lib/disk-refusal.ts'
import type { Outcome } from '../lib/thread.ts'
import { RELEASE, releaseName, VERSION } from '../lib/version.ts'
import { decodeCalls, type LoggedCall } from './entries.ts'
import type { Entry } from './log-reader.ts'
import { findDamage, findLogPosition, type LogPosition, logPositionSetter } from './position.ts'
import { rowHashes } from './rows.ts'

/** Bytes of entries that one transaction applies while many are read. */
const TRANSACTION_BYTES = 64 * 1024
/** While no request waits. A page that several entries change is written once in a transaction. */
export const IDLE_TRANSACTION_BYTES = 1024 * 1024

/** All functions that an entry of the log may call. */
export const loggedFunctions = (db: Database, host: WriterHost): object => ({
  ...writeFunctions(subjects, db, host),
  ...rowHashes(db),
})

interface DueEntry {
  entry: Entry
  calls: readonly LoggedCall[]
}

/** An entry that is committed on this host. */
export interface AppliedEntry extends DueEntry {
  outcomes: Outcome[]
}

interface ApplierOptions {
  db: Database
  /** All functions that an entry may call. */
  functions: object
  transactionBytes?: number
}

/**
 * Applies entries of the log to the database, in their order. One transaction applies entries and
 * moves `log_position` past them.
 */
export class Applier {
  readonly #options: ApplierOptions
  readonly #setPosition: (position: LogPosition) => void
  #position: LogPosition
  #problem: string | undefined

  constructor(options: ApplierOptions) {
    const position = findLogPosition(options.db)
    if (!position) throw new Error('the database belongs to no cluster')
    this.#options = options
    this.#position = position
    this.#problem = findDamage(options.db)
    this.#setPosition = logPositionSetter(options.db)
  }

  get position(): LogPosition {
    return this.#position
  }

  /** Why an entry must not be applied here. No later one is. */
  get problem(): string | undefined {
    return this.#problem
  }

  /**
   * Applies the entries that are due. Yields after each transaction what it has applied. Throws if
   * the disk refuses.
   */
  *apply(entries: readonly Entry[]): Generator<AppliedEntry[]> {
    const { transactionBytes = TRANSACTION_BYTES } = this.#options
    let due: DueEntry[] = []
    let bytes = 0
    for (const entry of entries) {
      if (entry.seq <= this.#position.seq) continue
      const calls = this.#admit(entry, due.at(-1)?.entry ?? this.#position)
      if (!calls) break
      due.push({ entry, calls })
      bytes += entry.calls.length
      if (bytes < transactionBytes) continue
      yield this.#commit(due)
      due = []
      bytes = 0
    }
    if (due.length > 0) yield this.#commit(due)
  }

  /** The calls of an entry; undefined for one that must not be applied after `previous`. */
  #admit(entry: Entry, previous: Pick<LogPosition, 'seq' | 'chain'>): LoggedCall[] | undefined {
    this.#problem ??= findProblem(entry, previous)
    if (this.#problem) return undefined
    const calls = decodeCalls(entry.calls)
    const unknown = calls.find(({ name }) => !Object.hasOwn(this.#options.functions, name))
    if (!unknown) return calls
    this.#problem = `entry ${entry.seq} has the unknown call ${unknown.name}. Upgrade Hopcode.`
    return undefined
  }

  #commit(due: readonly DueEntry[]): AppliedEntry[] {
    const { db, functions } = this.#options
    const { applied, position } = inOneTransaction(
      db,
      functions,
      (run) => this.#run(due, run),
      isFault,
    )
    this.#position = position
    return applied
  }

  #run(due: readonly DueEntry[], run: RunCall): { applied: AppliedEntry[]; position: LogPosition } {
    let position = this.#position
    const applied = due.map(({ entry, calls }): AppliedEntry => {
      const { seq, chain, host } = entry
      callOrigin(this.#options.db).host = host
      // Calls have the same outcome on every host, except where a machine fails.
      const outcomes = calls.map(run)
      position = { cluster: position.cluster, seq, chain }
      return { entry, calls, outcomes }
    })
    this.#setPosition(position)
    return { applied, position }
  }
}

/** SQLite failed for a reason of this machine. A violated constraint fails on every host alike. */
function isFault(error: unknown): boolean {
  const code = String((error as { code?: unknown }).code)
  const isSqlite = code.startsWith('SQLITE_') && !code.startsWith('SQLITE_CONSTRAINT')
  return isSqlite || machineFailure(error) !== undefined
}

const JOIN_AGAIN = 'Make a new data folder with "hopcode cluster join".'

export const OTHER_CLUSTER =
  'CLUSTER_URL is the database of another cluster than that of this data folder.'

export const NOT_CURRENT = 'this host is still reading the log of the cluster'

/** `hopcode cluster status` gives the advice: it depends on the other hosts. */
export const LOST_TAIL =
  'the log lacks entries that this host has applied: PostgreSQL has lost them'

/** The hash chain of the log: SHA-256 over the chain before an entry, and its bytes. */
const nextChain = (before: Uint8Array, calls: Uint8Array): Buffer =>
  new Bun.CryptoHasher('sha256').update(before).update(calls).digest()

/** Why an entry must not be applied after `previous`. */
function findProblem(
  { seq, chain, calls, version }: Entry,
  previous: Pick<LogPosition, 'seq' | 'chain'>,
): string | undefined {
  if (seq !== previous.seq + 1) {
    return `the log no longer has entry ${previous.seq + 1}. ${JOIN_AGAIN}`
  }
  if (!nextChain(previous.chain, calls).equals(chain)) return LOST_TAIL
  if (version <= RELEASE) return undefined
  return (
    `entry ${seq} needs a newer Hopcode: version ${releaseName(version)} has written it, and ` +
    `this host has ${VERSION}. Upgrade it.`
  )
}
