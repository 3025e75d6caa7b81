import { LRUCache } from 'lru-cache'
import type { Account, AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { MINUTE } from '../lib/clock.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import type { Log } from '../lib/log.ts'
import { type Hold, SharedBudget } from '../limits/shared-budget.ts'
import { hostsFor, type ImportKit, importRows } from './lines.ts'
import type { ImportOptions } from './plan.ts'
import { readInProcess } from './reader.ts'
import { type ImportedRow, runImport, type Summary, writeReport } from './run.ts'
import { type FoundDomains, SeveralDomains, SourceError, type SourceFile } from './source.ts'

/** An import in the dashboard: of one file, checked first. */
export interface ImportJob {
  file: SourceFile
  /** Memory of the file and the report. */
  hold: Hold
  options: ImportOptions
  phase: 'checking' | 'choosing' | 'checked' | 'importing' | 'done' | 'failed'
  /** While the user chooses among them. */
  domains?: FoundDomains
  /** Why it failed, for the user. */
  problem?: string
  /** Rows of the file, known after it was read once. */
  rows?: number
  /** Rows that this phase has read or sent. */
  done: number
  /** Result of the last phase. */
  summary?: Summary
  /** The first rows that were refused. */
  problems: ImportedRow[]
  /** CSV with the result of each row. */
  report: Blob
}

/** Time that a file waits for its import, and a report for its download. */
const STORED_MS = 60 * 60 * 1000
const JOBS_MAX = 1000
/** Bytes of files and reports that wait: those of owners, and those of all others. */
const BYTES_MAX = 48 * 1024 * 1024
/** Maximum of rows in a file of a member: bounds the time of a check, and its report. */
export const ROWS_MAX = 100_000
/**
 * Checks and imports that run at once, of owners and of all others: further ones wait, shorter ones
 * before longer ones. Each holds a process of up to 100 MiB, so that large files do not take turns.
 * Files of about 1,000 rows have a queue of their own: none waits for the end of a large one.
 */
const RUNNING_MAX = { owners: 1, others: 2, small: 1 }
const SMALL_BYTES_MAX = 100_000
/** In small files: all jobs of a queue, also those whose files others have displaced. */
const COST_MAX = 10_000
/** Processor time for reading a file twice. */
const READING_MS = 2 * MINUTE

const INTERRUPTED =
  'The import was interrupted. Choose the file again: links that exist already are not changed.'

/** Jobs of one kind of accounts: queued by account, and in the memory of this kind. */
const newPool = (atOnce: number, budget = new SharedBudget(BYTES_MAX)) => ({
  queue: new FairQueue({ atOnce, jobsMax: COST_MAX, full: () => new AppError('import_running') }),
  budget,
})

/** Imports of the dashboard, one for each account. They run in the background. */
export class ImportJobs {
  readonly #deps: ImportKit & { log: Log }
  readonly #jobs = new LRUCache<AccountId, ImportJob>({
    max: JOBS_MAX,
    ttl: STORED_MS,
    dispose: (job) => {
      job.hold[Symbol.dispose]()
      // The job may still wait in a queue.
      job.file = { ...job.file, blob: new Blob() }
    },
  })
  readonly #owners = newPool(RUNNING_MAX.owners)
  readonly #others = newPool(RUNNING_MAX.others)
  readonly #small = newPool(RUNNING_MAX.small, this.#others.budget)
  readonly #closing = new AbortController()

  constructor(deps: ImportKit & { log: Log }) {
    this.#deps = deps
  }

  findByAccount(accountId: AccountId): ImportJob | undefined {
    return this.#jobs.get(accountId)
  }

  /** Checks a file. Throws `import_running` while the last one of the account runs. */
  check(account: Account, file: SourceFile, options: ImportOptions): void {
    const last = this.findByAccount(account.id)
    const isRunning = last?.phase === 'checking' || last?.phase === 'importing'
    if (isRunning) throw new AppError('import_running')
    this.#jobs.delete(account.id)
    const hold = this.#poolOf(file).budget.hold(account.id, () => this.#jobs.delete(account.id))
    hold.take(file.blob.size)
    const report = new Blob()
    const job: ImportJob = { file, hold, options, phase: 'checking', done: 0, problems: [], report }
    this.#jobs.set(account.id, job)
    this.#check(account, job)
  }

  /** Checks the same file again, for some of its domains. False if no job asks for them. */
  choose(account: Account, domains: readonly string[]): boolean {
    const job = this.findByAccount(account.id)
    if (job?.phase !== 'choosing') return false
    job.options = { ...job.options, domains }
    job.phase = 'checking'
    this.#check(account, job)
    return true
  }

  #check(account: Account, job: ImportJob): void {
    this.#begin(account, job, async () => {
      await this.#run(account, job, true)
      job.phase = 'checked'
    })
  }

  /** Imports the file that was checked. False if there is none. */
  start(account: Account): boolean {
    const job = this.findByAccount(account.id)
    if (job?.phase !== 'checked') return false
    this.#begin(account, job, async () => {
      await this.#run(account, job, false)
      job.phase = 'done'
    })
    job.phase = 'importing'
    return true
  }

  close(): void {
    this.#closing.abort(new Error('the service stops'))
  }

  #begin(account: Account, job: ImportJob, work: () => Promise<void>): void {
    job.done = 0
    const { queue } = this.#poolOf(job.file)
    const cost = 1 + job.file.blob.size / SMALL_BYTES_MAX
    queue
      .run(account.id, work, () => this.#requireWanted(job), { cost })
      .catch((error: unknown) => {
        if (error instanceof SeveralDomains) {
          job.domains = error.domains
          job.phase = 'choosing'
          return
        }
        const isExpected = error instanceof SourceError || error instanceof AppError
        if (!isExpected && !this.#closing.signal.aborted) {
          this.#deps.log.error('import.failed', { account: account.id }, error)
        }
        job.problem = isExpected ? (error as Error).message : INTERRUPTED
        job.phase = 'failed'
      })
  }

  #poolOf({ isTrusted, blob }: SourceFile) {
    if (isTrusted) return this.#owners
    return blob.size <= SMALL_BYTES_MAX ? this.#small : this.#others
  }

  /** Throws if the service stops or others need the memory of the job. */
  #requireWanted({ hold }: ImportJob): void {
    this.#closing.signal.throwIfAborted()
    hold.requireHeld()
  }

  async #run(account: Account, job: ImportJob, dryRun: boolean): Promise<void> {
    job.problems = []
    job.done = 0
    const parts: string[] = []
    const { signal } = this.#closing
    const options = {
      ...job.options,
      as: 'rows' as const,
      hosts: hostsFor(this.#deps, account),
      asksDomains: true,
      dryRun,
      rowsMax: job.file.isTrusted ? undefined : ROWS_MAX,
    }
    const readings = readInProcess([job.file], options, {
      signal,
      totalMs: READING_MS,
      isBackground: true,
    })
    const steps = runImport(readings, {
      send: (rows, before) => {
        this.#requireWanted(job)
        return importRows(this.#deps, account, rows, { dryRun, before })
      },
      onRead: (rows) => {
        job.done = rows
      },
      onFound: ({ rows }) => {
        job.rows = rows
        job.done = 0
      },
    })
    job.summary = await writeReport(steps, job, (text) => parts.push(text))
    if (this.#jobs.peek(account.id) !== job) return
    const report = new Blob(parts)
    job.hold.take(report.size - job.report.size)
    job.report = report
    // Renews the time that it is kept.
    this.#jobs.set(account.id, job)
  }
}
