import type { Database } from 'bun:sqlite'
import {
  type Caller,
  type Functions,
  functionOf,
  messageOf,
  type Outcome,
  type Thread,
} from '../lib/thread.ts'
import type { SettingWrites } from './settings.ts'

/** How often a disk that refused a write is asked again, while nobody writes. */
const PROBE_MS = 1000

interface WriteGuards {
  /** Why changes must not be written; undefined while they may be. */
  data: { readonly problem: string | undefined }
  /** The thread has not answered a batch for seconds. */
  isHanging: () => boolean
}

/**
 * The writer thread as the service calls it. Remembers whether the disk accepts writes. Refuses all
 * but counted hits while the database is not the file that everybody else would open: a change
 * would be acknowledged and then lost, while a hit also stays in the journal.
 */
export class Writer<Calls extends Functions<Calls> & SettingWrites> implements Caller<Calls> {
  readonly #thread: Thread<Calls>
  readonly #guards: WriteGuards
  #failing = false
  #probe: Timer | undefined
  #askedAt = 0

  constructor(thread: Thread<Calls>, guards: WriteGuards) {
    this.#thread = thread
    this.#guards = guards
  }

  /** The last write was refused, the next one will be, or one waits for a disk that hangs. */
  get failing(): boolean {
    const { data, isHanging } = this.#guards
    return this.#failing || this.#thread.isDead || data.problem !== undefined || isHanging()
  }

  /** Milliseconds since the last call that somebody waits for. */
  get idleMs(): number {
    return performance.now() - this.#askedAt
  }

  async call<Name extends keyof Calls & string>(
    name: Name,
    args: Parameters<Calls[Name]>[0],
    options: { background?: boolean } = {},
  ): Promise<Awaited<ReturnType<Calls[Name]>>> {
    const { problem } = this.#guards.data
    if (problem && name !== 'countHits') throw new Error(problem)
    if (!options.background) this.#askedAt = performance.now()
    try {
      const value = await this.#thread.call(name, args, options)
      this.#failing = false
      return value
    } catch (error) {
      this.#failing = true
      this.#probe ??= setTimeout(() => void this.#ask(), PROBE_MS)
      throw error
    }
  }

  /** Lets waiting writes finish, but for background ones of the names in `drop`. */
  close(options: { drop?: readonly (keyof Calls)[] } = {}): Promise<void> {
    clearTimeout(this.#probe)
    return this.#thread.close(options)
  }

  async #ask(): Promise<void> {
    this.#probe = undefined
    const order = { name: 'last_write_probe', value: String(Date.now()) }
    // A refusal sets the next probe itself.
    await this.call('saveSetting', order as Parameters<Calls['saveSetting']>[0]).catch(() => {})
  }
}

interface Call {
  name: string
  args: unknown
}

/**
 * Group commit: runs every call of the batch in one transaction, each in a savepoint of its own,
 * so that one that throws leaves the others untouched. No outcome is a success unless the commit
 * was: the caller's answer leaves after its write is on disk.
 */
export function commitTogether(db: Database, functions: object, calls: readonly Call[]): Outcome[] {
  try {
    // mutate late-lock-of-a-batch: s/ IMMEDIATE//
    db.run('BEGIN IMMEDIATE')
    // A call alone needs no savepoint, whose bookkeeping grows with every row that it changes.
    const run = calls.length === 1 ? runCall : runInSavepoint
    const outcomes = calls.map((call) => run(db, functions, call))
    db.run('COMMIT')
    return outcomes
  } catch (error) {
    if (db.inTransaction) db.run('ROLLBACK')
    return calls.map(() => ({ error: messageOf(error) }))
  }
}

function runCall(_: Database, functions: object, call: Call): Outcome {
  return { value: functionOf(functions, call.name)(call.args) }
}

function runInSavepoint(db: Database, functions: object, call: Call): Outcome {
  db.run('SAVEPOINT operation')
  try {
    const outcome = runCall(db, functions, call)
    db.run('RELEASE operation')
    return outcome
  } catch (error) {
    // A full disk may have rolled the whole transaction back: then nothing of this batch is stored.
    if (!db.inTransaction) throw error
    db.run('ROLLBACK TO operation')
    db.run('RELEASE operation')
    return { error: messageOf(error) }
  }
}
